"""What is found: a check returns findings, and a run collects them as messages, a limited number of each code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from .rules import RULES, Severity

DEFAULT_LIMIT: Final = 100
"""Messages of one code that are kept."""

MAX_TEXT_CHARS: Final = 500
"""Characters of a message and of its URL. Values of a document are hostile, and may be long."""

Finding = tuple[str, str]
"""What a check returns: the code of a rule, and what is wrong here, as a sentence without a period."""


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


class MessageCollector:
    """The messages of one run.

    Args:
        ignored: codes that are not reported.
        limit: messages of one code that are kept; further ones are counted. 0 keeps all.
    """

    def __init__(self, ignored: Collection[str] = (), limit: int = DEFAULT_LIMIT) -> None:
        self.messages: list[Message] = []
        self.counts: Counter[str] = Counter()
        """How often each code was found."""
        self._ignored = frozenset(ignored)
        self._limit = limit

    def add(self, finding: Finding, url: str, place: Place | None = None) -> None:
        """Report a finding. Raises `KeyError` if there is no rule of its code.

        Args:
            finding: the code, and what is wrong.
            url: the page or the document that it is about.
            place: where it was found. Default: `url`, as a document.
        """
        code, text = finding
        severity = RULES[code].severity
        if code in self._ignored:
            return
        self.counts[code] += 1
        if self._limit and self.counts[code] > self._limit:
            return
        url = shortened(url)
        self.messages.append(Message(code, severity, url, shortened(text), place or Place(url)))

    def add_all(self, findings: Iterable[Finding], url: str, place: Place | None = None) -> None:
        """Report what a check found."""
        for finding in findings:
            self.add(finding, url, place)

    def by_severity(self) -> dict[Severity, int]:
        """How many messages there were of each severity, with those that were not kept."""
        numbers = dict.fromkeys(Severity, 0)
        for code, number in self.counts.items():
            numbers[RULES[code].severity] += number
        return numbers

    def omitted(self) -> dict[str, int]:
        """How many messages of each code were not kept."""
        if not self._limit:
            return {}
        return {code: number - self._limit for code, number in self.counts.items() if number > self._limit}


def shortened(text: str) -> str:
    """The text with an ellipsis in its middle if it is long."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[: MAX_TEXT_CHARS - 100]}…{text[-99:]}"


def quoted(value: str) -> str:
    """A value of a document, quoted and shortened, for a message."""
    return repr(shortened(value))
