"""The rules of `check`: what can be reported, what it means and how to mend it. Their texts are in `rules.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Final


class Severity(StrEnum):
    """How bad a message is, the worst first."""

    ERROR = "error"
    """Search engines refuse the document, or ignore an entry or what it says."""
    WARNING = "warning"
    """Probably a mistake."""
    INFO = "info"
    """Not a mistake. Worth knowing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be reported. Its code never changes."""

    code: str
    family: str
    """The name of its family."""
    severity: Severity
    title: str
    """What is wrong, in a few words, without a period."""
    explanation: str
    """What search engines do then, and who says so."""
    fix: str
    """What to do about it."""
    source: str = ""
    """The URL of what says so: the protocol, or a search engine. Empty if nobody but this program does."""


@dataclass(frozen=True, slots=True)
class Family:
    """The rules about one subject."""

    name: str
    """What `--select` and `--ignore` take for all of its rules."""
    title: str
    about: str
    """What the rules are about, in a sentence or two."""
    rules: tuple[Rule, ...]


def _family(name: str, table: dict[str, str | dict[str, str]]) -> Family:
    """A family of `rules.toml`: its texts, and a table for each of its rules."""
    texts = {key: value for key, value in table.items() if isinstance(value, str)}
    source = texts.pop("source", "")
    rules = [
        Rule(code, name, **{"source": source, **rule, "severity": Severity(rule["severity"])})  # type: ignore[arg-type] # texts
        for code, rule in table.items()
        if isinstance(rule, dict)
    ]
    return Family(name, rules=(*rules,), **texts)


FAMILIES: Final = tuple(
    _family(name, table)
    for name, table in tomllib.loads(files(__package__).joinpath("rules.toml").read_text("utf-8")).items()
)
RULES: Final[dict[str, Rule]] = {rule.code: rule for family in FAMILIES for rule in family.rules}


def ignored_codes(select: Iterable[str], ignore: Iterable[str]) -> set[str]:
    """Return the codes that are not reported. Raises `KeyError` for a name that is neither a code nor a family.

    Args:
        select: codes and families that are reported. None means all.
        ignore: codes and families that are not.
    """
    selected = {code for name in select for code in _codes(name)}
    ignored = {code for name in ignore for code in _codes(name)}
    return ignored | ({*RULES} - selected if selected else set())


def _codes(name: str) -> list[str]:
    codes = [rule.code for rule in RULES.values() if name in (rule.code, rule.family)]
    if not codes:
        raise KeyError(name)
    return codes
