"""The classes `Rule` and `Family`: a rule has a code, a severity and explanations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

DOCUMENTATION: Final = "https://sitemap-middleware.example/docs/reference/check-rules/"
"""Where the pages of the rules are on the web."""


class Severity(StrEnum):
    """How bad a message is, the worst first."""

    ERROR = "error"
    """Search engines refuse the document, or ignore an entry or what it says."""
    WARNING = "warning"
    """Probably a mistake."""
    INFO = "info"
    """Not a mistake. Worth knowing."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One thing that can be reported. Its code never changes. There is one object of each."""

    code: str
    family: str
    """The name of its family, which is that of its documentation page."""
    severity: Severity
    title: str
    """What is wrong, in a few words, without a period."""
    explanation: str
    """What search engines do then, and who says so."""
    fix: str
    """What to do about it."""

    @property
    def url(self) -> str:
        """The URL of its documentation."""
        return f"{DOCUMENTATION}{self.family}.html#{self.code}"


@dataclass(frozen=True, slots=True)
class Family:
    """The rules about one subject. They have one documentation page."""

    name: str
    """The name of the page, and what `--select` and `--ignore` take for all of its rules."""
    title: str
    about: str
    """What the rules are about, in a sentence or two."""
    rules: list[Rule] = field(default_factory=list)

    def error(self, code: str, title: str, explanation: str, fix: str) -> Rule:
        """Declare a rule of severity error."""
        return self._declare(code, Severity.ERROR, title, explanation, fix)

    def warning(self, code: str, title: str, explanation: str, fix: str) -> Rule:
        """Declare a rule of severity warning."""
        return self._declare(code, Severity.WARNING, title, explanation, fix)

    def info(self, code: str, title: str, explanation: str, fix: str) -> Rule:
        """Declare a rule of severity info."""
        return self._declare(code, Severity.INFO, title, explanation, fix)

    def _declare(self, code: str, severity: Severity, title: str, explanation: str, fix: str) -> Rule:
        rule = Rule(code, self.name, severity, title, explanation, fix)
        self.rules.append(rule)
        return rule
