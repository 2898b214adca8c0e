"""Collects the messages of a run: counts all, and keeps a limited number of each code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from .message import Finding, Message, Place
from .rules import Rule, Severity

DEFAULT_LIMIT: Final = 100
"""Messages of one code that are kept."""

MAX_TEXT_CHARS: Final = 500
"""Characters of a message and of its URL. Values of a document are hostile, and may be long."""


class MessageCollector:
    """The messages of one run.

    Args:
        ignored: codes that are not reported.
        limit: messages of one code that are kept; further ones are counted. 0 keeps all.
    """

    def __init__(self, ignored: Collection[str] = (), limit: int = DEFAULT_LIMIT) -> None:
        self.messages: list[Message] = []
        self.counts: Counter[Rule] = Counter()
        """How often each rule was broken."""
        self._ignored = frozenset(ignored)
        self._limit = limit

    def add(self, rule: Rule, url: str, text: str, place: Place | None = None) -> None:
        """Report that a rule is broken.

        Args:
            rule: the rule.
            url: the page or the document that it is about.
            text: what is wrong here, as a sentence without a period.
            place: where it was found. Default: `url`, as a document.
        """
        if rule.code in self._ignored:
            return
        self.counts[rule] += 1
        if self._limit and self.counts[rule] > self._limit:
            return
        url, text = shortened(url), shortened(text)
        self.messages.append(Message(rule.code, rule.severity, url, text, place or Place(url)))

    def add_all(self, findings: Iterable[Finding], url: str, place: Place | None = None) -> None:
        """Report what a check found."""
        for rule, text in findings:
            self.add(rule, url, text, place)

    def count(self, severity: Severity) -> int:
        """How many messages there were of a severity, with those that were not kept."""
        return sum(number for rule, number in self.counts.items() if rule.severity is severity)

    def omitted(self) -> dict[str, int]:
        """How many messages of each code were not kept."""
        if not self._limit:
            return {}
        return {rule.code: number - self._limit for rule, number in self.counts.items() if number > self._limit}


def shortened(text: str) -> str:
    """The text with an ellipsis in its middle if it is long."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[: MAX_TEXT_CHARS - 100]}…{text[-99:]}"


def quoted(value: str) -> str:
    """A value of a document, quoted and shortened, for a message."""
    return repr(shortened(value))
