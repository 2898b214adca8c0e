"""What can be found: the rules, whose texts are in `rules.toml`, and a finding."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Final

MAX_TEXT_CHARS: Final = 500
"""Characters of a text and of its URL. Values of a document are hostile, and may be long."""

Problem = tuple[str, str]
"""What a check returns: the code of a rule, and what is wrong here, as a sentence without a period."""


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """Search engines refuse the document, or ignore an entry or what it says."""
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be reported. Its code never changes."""

    code: str
    family: str
    severity: Severity
    title: str
    explanation: str
    """What search engines do then, and who says so."""
    fix: str
    source: str = ""
    """The URL of what says so: the protocol, or a search engine. Empty if nobody but this program does."""


@dataclass(frozen=True, slots=True)
class Family:
    """The rules about one subject. `--select` and `--ignore` take its name for all of them."""

    name: str
    title: str
    about: str
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


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and where it was found."""

    code: str
    document: str
    line: int
    """From 1. 0 is the document as a whole."""
    column: int
    """From 1, in characters. 0 is not known."""
    url: str
    """The URL that it is about: a page, or a document."""
    text: str

    @property
    def place(self) -> str:
        """The document with line and column, as far as they are known."""
        return ":".join([self.document, *(str(number) for number in (self.line, self.column) if number)])

    @property
    def rule(self) -> Rule:
        """What it breaks."""
        return RULES[self.code]


def finding_key(code: str, url: str) -> str:
    """What the same finding of another run has in common with it, whatever date or count its text has then."""
    return " ".join([code, *url.split()])


def shortened(text: str) -> str:
    """The text with an ellipsis in its middle if it is long."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[: MAX_TEXT_CHARS - 100]}…{text[-99:]}"


def quoted(value: str) -> str:
    """A value of a document, quoted and shortened, for a text."""
    return repr(shortened(value))
