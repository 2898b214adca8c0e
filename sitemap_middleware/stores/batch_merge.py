"""The census: a batch of observations into a site's pages, as many as the caps allow. Pure; every engine's `merge_if_changed`."""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ..evidence.merge import merge_if_changed, merge_without_future, needs_probe, page_to_store
from ..evidence.verdict import is_listable
from ..history import VOLATILE
from ..models import MergeResult, Page, PageLimits
from ..observations import Observation

UNREPEATED_CONTENT_SECONDS: Final = 60
"""Seconds after which a content that was seen but once can be taken to have been asked for in vain."""

VOLATILE_RECHECK_SECONDS: Final = 60 * 60
"""Seconds for which a page that moves is not looked at again for whether it still does."""


class BatchMerger:
    """How many pages were learned of each route of a site, and what one batch makes of them."""

    def __init__(self, counts: Mapping[str, int], caps: PageLimits) -> None:
        self._caps = caps
        self._before = counts
        self._counts = dict(counts)
        self._total = sum(counts.values())
        self.changed = 0
        """Pages that are new or changed."""
        self.refused = 0
        """New pages for which there was no room."""
        self.first: list[str] = []
        self.new: list[str] = []
        """The paths of pages that say something for the first time, and of those that say something new: it has not
        stood yet."""
        self.conflicting: list[str] = []
        """The paths of good pages that answered something else, which is not confirmed yet."""

    def merge(self, known: Callable[[str], Page | None], observations: Iterable[Observation]) -> Iterator[Page]:
        """The pages that are new or changed once these observations are folded in, in the order in which they came.

        One after the other, and nothing of them is kept: a batch of many thousand takes
        no longer for each of its pages than a small one.

        A page that only traffic speaks of is not begun by what would not be listed:
        strangers ask for any number of paths that lead nowhere. But where the route
        enumerates its pages, the app may name this one, and then it is to be left out.

        Args:
            known: the page of a path as it is kept, where there is one.
            observations: any number of each page.
        """
        sights: dict[str, Observation] = {}
        others: dict[str, list[Observation]] = {}  # than the first of each page: few have any
        for seen in observations:
            if sights.setdefault(seen.path, seen) is not seen:
                others.setdefault(seen.path, []).append(seen)
        for path, seen in sights.items():
            before = known(path)
            telling = seen.enumerable
            first = _with_known_route(seen, before) if telling else seen
            if path in others:
                page = merge_without_future(before, first)
                for seen in others[path]:
                    telling = telling or seen.enumerable
                    page = merge_without_future(page, _with_known_route(seen, page) if seen.enumerable else seen)
                page = page_to_store(before, page)
            else:
                page = merge_if_changed(before, first)
            if page is not before and self._accepts(before, page, telling=telling):
                self.changed += 1
                self._note_contradiction(before, page)
                yield page

    @property
    def count_changes(self) -> dict[str, int]:
        """By how much the counts of routes changed, of those that did."""
        moved = ((route, pages - self._before.get(route, 0)) for route, pages in self._counts.items())
        return {route: by for route, by in moved if by}

    def result(self) -> MergeResult:
        """What came of it."""
        return MergeResult(self.changed, self.refused, tuple(self.first), tuple(self.new), tuple(self.conflicting))

    def _note_contradiction(self, before: Page | None, page: Page) -> None:
        """Note a page that says something that was not there before."""
        if needs_probe(before, page):
            self.conflicting.append(page.path)
        contents = page.content_history
        known = before.content_history if before is not None else ()
        if not contents or contents is known:
            return
        value, _, last = contents[-1]
        if value == VOLATILE:
            return
        if not known:
            self.first.append(page.path)
            return
        kind, moves = self.first, False
        for run in known:
            if run.value == value:
                if run.was_repeated or last <= run.first + UNREPEATED_CONTENT_SECONDS:
                    return  # it stands, or is being asked for
            else:
                kind = self.new
                moves = moves or (run.value == VOLATILE and run.last > last - VOLATILE_RECHECK_SECONDS)
        if not moves:
            kind.append(page.path)

    def _accepts(self, before: Page | None, page: Page, *, telling: bool) -> bool:
        if before is None:
            return not page.learned or ((telling or is_listable(page)) and self._has_room(page.route))
        if page.learned != before.learned or page.route != before.route:
            if page.learned:
                self._count(page.route, 1)
            if before.learned:
                self._count(before.route, -1)
        return True

    def _has_room(self, route: str) -> bool:
        """Whether the caps leave room for one more page of a route, which then takes it."""
        pages = self._counts.get(route, 0)
        if self._total < self._caps.site and pages < self._caps.route:
            self._counts[route] = pages + 1
            self._total += 1
            return True
        self.refused += 1
        return False

    def _count(self, route: str, by: int) -> None:
        self._counts[route] = self._counts.get(route, 0) + by
        self._total += by


def _with_known_route(seen: Observation, page: Page | None) -> Observation:
    """What is seen of a page that may be named by its route's values: a process that has asked them decides."""
    if seen.learned and page is not None and not page.learned:
        return seen._replace(learned=False)
    return seen
