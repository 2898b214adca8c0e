"""What is found: a check returns problems, and a run collects them as findings, a limited number of each code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from .rules import RULES, Severity

DEFAULT_LIMIT: Final = 100
"""Findings of one code that are kept."""

MAX_TEXT_CHARS: Final = 500
"""Characters of a text and of its URL. Values of a document are hostile, and may be long."""

Problem = tuple[str, str]
"""What a check returns: the code of a rule, and what is wrong here, as a sentence without a period."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and where it was found."""

    code: str
    document: str
    """The URL or the path of the document."""
    line: int
    """From 1. 0 is the document as a whole."""
    column: int
    """From 1, in characters. 0 is not known."""
    url: str
    """The URL that it is about: a page, or a document."""
    text: str

    @property
    def severity(self) -> Severity:
        """That of its rule."""
        return RULES[self.code].severity

    @property
    def family(self) -> str:
        """That of its rule."""
        return RULES[self.code].family


class Findings:
    """The findings of one run.

    Args:
        ignored: codes that are not reported.
        limit: findings of one code that are kept; further ones are counted. 0 keeps all.
    """

    def __init__(self, ignored: Collection[str] = (), limit: int = DEFAULT_LIMIT) -> None:
        self.kept: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._ignored = frozenset(ignored)
        self._limit = limit

    def add(self, problem: Problem, url: str, document: str = "", line: int = 0, column: int = 0) -> None:
        """Report a problem of a page or a document, by default one of the document `url` as a whole.

        Raises `KeyError` if there is no rule of its code.
        """
        code, text = problem
        if RULES[code].code in self._ignored:
            return
        self._counts[code] += 1
        if not self._limit or self._counts[code] <= self._limit:
            url = shortened(url)
            self.kept.append(Finding(code, document or url, line, column, url, shortened(text)))

    def add_all(self, problems: Iterable[Problem], url: str, document: str = "", line: int = 0) -> None:
        """Report what a check found."""
        for problem in problems:
            self.add(problem, url, document, line)

    def by_severity(self) -> dict[Severity, int]:
        """How many findings there were of each severity, with those that were not kept."""
        numbers = dict.fromkeys(Severity, 0)
        for code, number in self._counts.items():
            numbers[RULES[code].severity] += number
        return numbers

    def omitted(self) -> dict[str, int]:
        """How many findings of each code were not kept."""
        kept = Counter(finding.code for finding in self.kept)
        return dict(self._counts - kept)


def shortened(text: str) -> str:
    """The text with an ellipsis in its middle if it is long."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[: MAX_TEXT_CHARS - 100]}…{text[-99:]}"


def quoted(value: str) -> str:
    """A value of a document, quoted and shortened, for a text."""
    return repr(shortened(value))
