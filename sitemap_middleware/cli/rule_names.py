"""Checks the rule codes and families in the options of `check`, and returns the codes to ignore."""

from __future__ import annotations

from difflib import get_close_matches

from ..linter.rules import FAMILIES, RULES
from ..linter.runner import ignored_codes
from .check_results_as_text import print_family, print_rule
from .terminal_output import CommandError


def print_rule_or_family(name: str) -> None:
    """Print what a rule means, or which rules a family has. Raises `CommandError` if there is none of this name."""
    family = next((family for family in FAMILIES if family.name == name), None)
    if name in RULES:
        print_rule(RULES[name])
    elif family is not None:
        print_family(family)
    else:
        raise _unknown(name)


def ignored(select: tuple[str, ...], ignore: tuple[str, ...]) -> set[str]:
    """The codes that are not reported. Raises `CommandError` for a name that is neither a code nor a family."""
    names = [[name.strip() for text in texts for name in text.split(",")] for texts in (select, ignore)]
    try:
        return ignored_codes(*names)
    except KeyError as error:
        raise _unknown(error.args[0]) from None


def _unknown(name: str) -> CommandError:
    families = [family.name for family in FAMILIES]
    near = get_close_matches(name, [*families, *RULES], 1)
    hint = (
        f"did you mean {near[0]}?" if near else f"--explain FAMILY lists the codes of a family: {', '.join(families)}"
    )
    return CommandError(f"{name!r} is neither the code of a rule nor a family of rules; {hint}")
