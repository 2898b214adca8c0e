"""A message: the rule that is broken, the URL and the place in the document."""

from __future__ import annotations

from typing import NamedTuple

from .rules import Rule, Severity

Finding = tuple[Rule, str]
"""What a pure check returns: the rule, and what is wrong here, as a sentence without a period."""


class Place(NamedTuple):
    """Where something was found."""

    document: str
    """The URL or the path of the document."""
    line: int = 0
    """From 1. 0 is the document as a whole."""
    column: int = 0
    """From 1, in characters. 0 is not known."""


class Message(NamedTuple):
    """One thing that is reported."""

    code: str
    severity: Severity
    url: str
    """The URL that it is about: a page, or a document."""
    message: str
    place: Place

    def as_json(self) -> dict[str, str]:
        """The object that `--json` prints."""
        return {"code": self.code, "severity": str(self.severity), "url": self.url, "message": self.message}
