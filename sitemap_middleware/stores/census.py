"""The census: a batch of observations into a site's pages, as many as the caps allow. Pure; every engine's `fold`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ..history import MOVING, latest
from ..model import Caps, Folded, Observation, Page
from ..pages.evidence import fold, promising

MINUTE: Final = 60
"""Seconds after which a content that was seen but once can be taken to have been asked for in vain."""

HOUR: Final = 60 * 60
"""Seconds for which a page that moves is not looked at again for whether it still does."""


class Census:
    """How many pages were learned of each route of a site, and what one batch makes of them."""

    def __init__(self, counts: Mapping[str, int], caps: Caps) -> None:
        self._caps = caps
        self._counts = Counter(counts)
        self._total = sum(self._counts.values())
        self.moved: Counter[str] = Counter()
        """By how much each route's count changed."""
        self.refused = 0
        """New pages for which there was no room."""
        self.first: list[str] = []
        self.new: list[str] = []
        """The paths of pages that say something for the first time, and of those that say something new: it has not
        stood yet."""

    def take(self, known: Mapping[str, Page], observations: Iterable[Observation]) -> dict[str, Page]:
        """The pages that are new or changed once these observations are folded in, in the order in which they came.

        A page that only traffic speaks of is not begun by what would not be listed:
        strangers ask for any number of paths that lead nowhere. But where the route
        enumerates its pages, the app may name this one, and then it is to be left out.
        """
        pages: dict[str, Page] = {}
        enumerable = set()
        for seen in observations:
            path = seen.path
            before = pages.get(path) or known.get(path)
            if seen.enumerable:
                enumerable.add(path)
                if seen.learned and before is not None and not before.learned:
                    seen = seen._replace(learned=False)  # so says a process that has asked the route's values
            pages[path] = fold(before, seen)
        taken = {}
        for path, page in pages.items():
            before = known.get(path)
            if page is not before and self._takes(before, page, telling=path in enumerable):
                taken[path] = page
                self._compare(before, page)
        return taken

    def folded(self, changed: Mapping[str, Page]) -> Folded:
        """What came of it."""
        return Folded(len(changed), self.refused, tuple(self.first), tuple(self.new))

    def _compare(self, before: Page | None, page: Page) -> None:
        """Note a page that says something that was not there before."""
        now, known = latest(page.contents), before.contents if before is not None else ()
        if now is None or now.value == MOVING or page.contents is known:
            return
        kind = self.first
        for run in known:
            if run.value == now.value:
                if run.stood or now.last <= run.first + MINUTE:
                    return  # it stands, or is being asked for
            else:
                kind = self.new
        if not any(run.value == MOVING and run.last > now.last - HOUR for run in known):
            kind.append(page.path)

    def _takes(self, before: Page | None, page: Page, *, telling: bool) -> bool:
        if before is None:
            if not page.learned:
                return True
            if not ((telling or promising(page)) and self._has_room(page.route)):
                return False
            self._count(page.route, 1)
        elif page.learned != before.learned or page.route != before.route:
            if page.learned:
                self._count(page.route, 1)
            if before.learned:
                self._count(before.route, -1)
        return True

    def _has_room(self, route: str) -> bool:
        room = self._total < self._caps.site and self._counts[route] < self._caps.route
        self.refused += not room
        return room

    def _count(self, route: str, by: int) -> None:
        self._counts[route] += by
        self._total += by
        self.moved[route] += by
