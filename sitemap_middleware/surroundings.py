"""Surroundings: what only a site's pages together can tell of one of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from .dates import seconds_of_text
from .history import OVERLAP, History, Run
from .model import Page

TOGETHER: Final = 60
"""Seconds within which one deployment writes all its files."""

SAMPLE: Final = 5
"""Pages that must have been seen on both sides of a moment before a change then is held to be one page's own."""

MOST: Final = 0.6
"""The share of those pages that, changing at that moment, shows that it was their template that changed."""

ECHOES: Final = 5
"""Learned pages of one route that have one and the same content, from which on it is taken to say "not found"."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The deployment's minute, the moments at which templates changed, and contents that are soft 404s."""

    deployed: tuple[int, int] = (1, 0)
    deployments: frozenset[int] = frozenset()
    """The minutes, since the epoch, of this deployment and of earlier ones."""
    borne_from: tuple[int, ...] = ()
    borne_to: tuple[int, ...] = ()
    """Every Last-Modified that a page bore, and when each was seen last; each sorted by itself."""
    changes: Changes | None = None
    echoes: frozenset[tuple[str, int]] = frozenset()

    def deployed_at(self, moment: int) -> bool:
        """Whether this is when the site's files were copied to the server, now or at an earlier deployment."""
        return self.deployed[0] <= moment <= self.deployed[1] or moment // TOGETHER in self.deployments

    def moved_alone(self, moment: int) -> bool:
        """Whether a fifth of the pages, and three at least, bore an older date still, well after this moment.

        Then it is no deployment's, which would have moved them all.
        """
        older = bisect_left(self.borne_from, moment)
        return older - bisect_right(self.borne_to, moment + OVERLAP) >= max(3, len(self.borne_to) / 5)

    def since_templates(self, contents: History) -> History:
        """The part of a history since the last change that may have been a template's.

        What was known before is left out with it: an edit may hide behind such a
        change, and then the date of an earlier one would be false.
        """
        if self.changes is None or len(contents) < 2:
            return contents
        since: list[Run] = []
        for run in sorted(contents, key=lambda run: (run.first, run.last)):
            if since and self.changes.of_template(since[-1].last, run.first):
                since.clear()
            since.append(run)
        return tuple(sorted(since, key=lambda run: (run.last, run.first, run.value)))

    def soft_404(self, page: Page) -> bool:
        """Whether many pages of its route say just what this one says."""
        return bool(page.contents) and (page.route, page.contents[-1].value) in self.echoes


class Changes:
    """Every change of content that was seen on the site, to tell one page's own from that of a template.

    A template changes on all pages at one moment. That moment lies in the interval,
    between last sight of old and first of new, of every page that was seen before
    and after; and most of these have changed.
    """

    def __init__(self, histories: Sequence[History]) -> None:
        self._pages = len(histories)
        self._first = sorted(min(run.first for run in history) for history in histories)
        self._last = sorted(max(run.last for run in history) for history in histories)
        intervals = [interval for history in histories for interval in _intervals(history)]
        self._opened = sorted(start for start, _ in intervals)
        self._closed = sorted(end for _, end in intervals)

    def of_template(self, start: int, end: int) -> bool:
        """Whether a change between these two sights is a template's, or cannot yet be told from one."""
        if start >= end:
            return False
        low, high = bisect_left(self._opened, start), bisect_left(self._opened, end)
        moments = {start, *self._opened[low:high]}
        return all(self._alive(moment) < min(SAMPLE, self._pages) for moment in moments) or any(
            self._changed(moment) >= max(3, MOST * self._alive(moment)) for moment in moments
        )

    def _alive(self, moment: int) -> int:
        """Pages that were seen at or before a moment, and after it."""
        return bisect_right(self._first, moment) - bisect_right(self._last, moment)

    def _changed(self, moment: int) -> int:
        return bisect_right(self._opened, moment) - bisect_right(self._closed, moment)


def surroundings(pages: Iterable[Page], files: Iterable[int], learned: Iterable[Page]) -> Surroundings:
    """What a site's pages tell together.

    Args:
        pages: all that were seen and answered 200.
        files: modification times of the files that routes serve.
        learned: those of the pages that were learned from traffic.
    """
    pages = list(pages)
    moments = [page.modified for page in pages if page.modified is not None]
    moments += [seconds_of_text(page.stated) for page in pages if page.modified is None and page.stated]
    histories = [page.contents for page in pages if page.contents]
    counted = Counter((page.route, page.contents[-1].value) for page in learned if page.contents)
    return Surroundings(
        deployed=deployment([*moments, *files]),
        deployments=deployments(pages),
        borne_from=tuple(sorted(run.value for page in pages for run in page.moments)),
        borne_to=tuple(sorted(run.last for page in pages for run in page.moments)),
        changes=Changes(histories) if histories else None,
        echoes=frozenset(echo for echo, count in counted.items() if count >= ECHOES),
    )


def deployments(pages: Iterable[Page]) -> frozenset[int]:
    """The minutes that a fifth of the pages with a date, and three at least, bore at some time.

    While pages pass from one deployment's time to the next one's, neither is most pages'.
    """
    bearing, borne = 0, Counter[int]()
    for page in pages:
        own = {run.value // TOGETHER for run in page.moments}
        bearing += bool(own)
        borne.update(own)
    least = max(3, bearing / 5)
    return frozenset(
        minute for start in borne if borne[start] + borne[start + 1] >= least for minute in (start, start + 1)
    )


def deployment(moments: Iterable[int]) -> tuple[int, int]:
    """The span of a minute that holds most of a site's modification times, as first and last second; else nothing.

    Three pages or more, and more than half of all that bear a date: that is
    the moment their files were copied to the server, not when they were written.
    An empty span, (1, 0), where there is no such moment.
    """
    ordered = sorted(moments)
    best, start = (1, 0), 0
    most = max(2, len(ordered) // 2)
    for end, moment in enumerate(ordered):
        while moment - ordered[start] > TOGETHER:
            start += 1
        if end - start + 1 > most:
            most = end - start + 1
            best = (ordered[start], moment)
    return best


def _intervals(history: History) -> Iterable[tuple[int, int]]:
    """Between each content and the next, the last sight of the one and the first of the other."""
    ordered = sorted(history, key=lambda run: (run.first, run.last))
    for before, after in pairwise(ordered):
        if before.last < after.first:
            yield before.last, after.first
