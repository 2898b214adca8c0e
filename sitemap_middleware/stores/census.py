"""The census: a batch of observations into a site's pages, as many as the caps allow. Pure; every engine's `fold`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ..evidence import fold, promising
from ..model import Caps, Observation, Page


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

    def take(self, known: Mapping[str, Page], observations: Iterable[Observation]) -> dict[str, Page]:
        """The pages that are new or changed once these observations are folded in.

        A page that only traffic speaks of is not begun by what would not be listed:
        strangers ask for any number of paths that lead nowhere.
        """
        pages = dict(known)
        for seen in observations:
            pages[seen.path] = fold(pages.get(seen.path), seen)
        return {path: page for path, page in pages.items() if self._takes(known.get(path), page)}

    def _takes(self, before: Page | None, page: Page) -> bool:
        if page is before:
            return False
        if page.learned and (before is None or not before.learned or before.route != page.route):
            if before is None and not (promising(page) and self._has_room(page.route)):
                return False
            self._count(page.route, 1)
        if before is not None and before.learned and not (page.learned and before.route == page.route):
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
