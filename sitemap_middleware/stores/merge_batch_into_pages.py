"""Merges a batch of observations into the pages that a site has, within the page limits. Pure; used by every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from ..evidence.observation_merge import merge_if_changed, merge_without_future, needs_probe, page_to_store
from ..evidence.observations import HTML_TYPES, Observation
from ..evidence.page_verdict import is_listable
from ..models import MergeResult, Page, PageLimits
from ..value_history import VOLATILE

UNREPEATED_CONTENT_SECONDS: Final = 60
"""If a content was not seen again for so many seconds, the prober's request for it must have failed."""

_AT: Final = attrgetter("at", "fraction")

VOLATILE_RECHECK_SECONDS: Final = 60 * 60
"""Seconds for which new content of a page is not probed after the content varied from request to request."""


class BatchMerger:
    """Merges one batch, and collects what the caller needs to know of it.

    Args:
        counts: learned pages of each route of the site.
        limits: how many there may be.
    """

    def __init__(self, counts: Mapping[str, int], limits: PageLimits) -> None:
        self._limits = limits
        self._counts_before = counts
        self._counts = dict(counts)
        self._total = sum(counts.values())
        self.changed: int = 0
        """Pages that are new or changed."""
        self._refused = 0
        self._new_paths: list[str] = []
        self._changed_paths: list[str] = []
        self._conflicting_paths: list[str] = []
        self._unread_paths: list[str] = []

    def merge(self, stored_page: Callable[[str], Page | None], observations: Iterable[Observation]) -> Iterator[Page]:
        """Yield the pages that are new or changed, in the order of the first observation of each.

        Pages are yielded one by one and not kept, so a large batch takes little memory. An
        observation creates a learned page only if the page would be listed, since clients
        can request any number of paths that do not exist. The pages of an enumerable route
        are an exception: the app may name them in `values`, and then has to leave them out.
        Nor does an observation have a learned page listed, for the first time or again, whose
        HTML was not read: that may say noindex.

        Args:
            stored_page: the page of a path, if it is stored.
            observations: any number for each page.
        """
        first_observations: dict[str, Observation] = {}
        later_observations: dict[str, list[Observation]] = {}  # few pages have any
        for observation in observations:
            if first_observations.setdefault(observation.path, observation) is not observation:
                later_observations.setdefault(observation.path, []).append(observation)
        for path, first in first_observations.items():
            before = stored_page(path)
            may_be_provided = first.may_be_provided
            page = before
            if path in later_observations:
                for observation in sorted((first, *later_observations[path]), key=_AT):
                    may_be_provided = may_be_provided or observation.may_be_provided
                    known = _with_known_origin(observation, page)
                    if not self._must_be_read(page, known):
                        page = merge_without_future(page, known)
                if page is not None:
                    page = page_to_store(before, page, first.listed_types)
            else:
                known = _with_known_origin(first, before) if may_be_provided else first
                if not self._must_be_read(before, known):
                    page = merge_if_changed(before, known)
            if page is not None and page is not before and self._accept(before, page, may_be_provided=may_be_provided):
                self.changed += 1
                if needs_probe(before, page, first.listed_types):
                    of_page = (first, *later_observations.get(path, ()))
                    if not any(seen.is_probe for seen in of_page):
                        self._conflicting_paths.append(path)
                self._note_news(before, page)
                yield page

    @property
    def count_changes(self) -> dict[str, int]:
        """By how many learned pages each route has grown or shrunk, if it has."""
        changes = ((route, count - self._counts_before.get(route, 0)) for route, count in self._counts.items())
        return {route: change for route, change in changes if change}

    def result(self) -> MergeResult:
        """What the batch has done, once all pages were yielded."""
        return MergeResult(
            self.changed,
            self._refused,
            tuple(self._new_paths),
            tuple(self._changed_paths),
            tuple(self._conflicting_paths),
            tuple(self._unread_paths),
        )

    def _must_be_read(self, page: Page | None, observation: Observation) -> bool:
        """Whether the HTML of a page must be read before an observation counts; if so, note the path."""
        if not (observation.is_unread and observation.learned):
            return False
        if page is not None and page.media_type in HTML_TYPES and is_listable(page):
            return False
        self._unread_paths.append(observation.path)
        return True

    def _note_news(self, before: Page | None, page: Page) -> None:
        """Note the path of a page that the prober should request again, and why."""
        history = page.content_history
        history_before = before.content_history if before is not None else ()
        if not history or history is history_before:
            return
        content, _, seen_at = history[-1]
        if content == VOLATILE:
            return
        if not history_before:
            self._new_paths.append(page.path)
            return
        news, was_volatile_lately = self._new_paths, False
        for run in history_before:
            if run.value == content:
                if run.was_repeated or seen_at <= run.first + UNREPEATED_CONTENT_SECONDS:
                    return  # it is confirmed, or is being probed
            else:
                news = self._changed_paths
                is_recent = run.last > seen_at - VOLATILE_RECHECK_SECONDS
                was_volatile_lately = was_volatile_lately or (run.value == VOLATILE and is_recent)
        if not was_volatile_lately:
            news.append(page.path)

    def _accept(self, before: Page | None, page: Page, *, may_be_provided: bool) -> bool:
        """Whether to store a page; if so, count it."""
        if before is None:
            return not page.learned or ((may_be_provided or is_listable(page)) and self._take_room(page.route))
        if page.learned != before.learned or page.route != before.route:
            if page.learned:
                self._count(page.route, 1)
            if before.learned:
                self._count(before.route, -1)
        return True

    def _take_room(self, route: str) -> bool:
        """Count one more page of a route, if the limits allow it; return whether they do."""
        if self._total >= self._limits.site or self._counts.get(route, 0) >= self._limits.route:
            self._refused += 1
            return False
        self._count(route, 1)
        return True

    def _count(self, route: str, change: int) -> None:
        self._counts[route] = self._counts.get(route, 0) + change
        self._total += change


def _with_known_origin(observation: Observation, page: Page | None) -> Observation:
    """The observation, as unlearned if its route is enumerable and the page is known to be unlearned.

    Only a process that has read the route's `values` knows that they name the page.
    """
    if observation.may_be_provided and observation.learned and page is not None and not page.learned:
        return observation._replace(learned=False)
    return observation
