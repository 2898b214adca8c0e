"""Merges a batch of observations into the pages of a site. Pure; the store is read before it and written after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from ..models import Page
from ..value_history import VOLATILE
from .observation_merge import merge_without_future, needs_probe, page_to_store
from .observations import HTML_TYPES, Observation
from .page_verdict import is_listable

UNREPEATED_CONTENT_SECONDS: Final = 60
"""If a content was not seen again for so many seconds, the prober's request for it must have failed."""

VOLATILE_RECHECK_SECONDS: Final = 60 * 60
"""Seconds for which new content of a page is not probed after the content varied from request to request."""

_AT: Final = attrgetter("at", "fraction")


class MergedBatch(NamedTuple):
    """What a batch of observations comes to."""

    pages: dict[str, Page]
    """The pages that are new or changed, by path."""
    new_paths: list[str]
    """Pages whose first content was just seen."""
    changed_paths: list[str]
    """Pages whose content has just changed, so that the prober can check whether it is stable."""
    conflicting_paths: list[str]
    """Good pages that just answered something else, so that the prober can check what they answer now."""
    unread_paths: list[str]
    """Pages whose headers did not count, because their HTML must be read first."""


def merge_batch(stored: Mapping[str, Page], observations: Iterable[Observation]) -> MergedBatch:
    """Merge observations into pages.

    An observation creates a learned page only if the page would be listed, since clients can request any number of
    paths that do not exist. The pages of an enumerable route are an exception: the app may name them in `values`, and
    then has to leave them out. Nor does an observation have a learned page listed, for the first time or again, whose
    HTML was not read: that may say noindex.

    Args:
        stored: those of the pages that are stored.
        observations: any number for each page.
    """
    batch = MergedBatch({}, [], [], [], [])
    by_path: dict[str, list[Observation]] = {}
    for observation in observations:
        by_path.setdefault(observation.path, []).append(observation)
    for path, of_page in by_path.items():
        before = page = stored.get(path)
        may_be_provided = any(observation.may_be_provided for observation in of_page)
        for observation in sorted(of_page, key=_AT):
            known = _with_known_origin(observation, page)
            if _must_be_read(page, known):
                batch.unread_paths.append(path)
            else:
                page = merge_without_future(page, known)
        if page is None:
            continue
        listed_types = of_page[0].listed_types
        page = page_to_store(before, page, listed_types)
        if page is before or not (before or not page.learned or may_be_provided or is_listable(page)):
            continue
        batch.pages[path] = page
        if needs_probe(before, page, listed_types) and not any(seen.is_probe for seen in of_page):
            batch.conflicting_paths.append(path)
        _note_news(batch, before, page)
    return batch


def _must_be_read(page: Page | None, observation: Observation) -> bool:
    """Whether the HTML of a page must be read before an observation counts."""
    if not (observation.is_unread and observation.learned):
        return False
    return page is None or page.media_type not in HTML_TYPES or not is_listable(page)


def _note_news(batch: MergedBatch, before: Page | None, page: Page) -> None:
    """Note the path of a page that the prober should request again, and why."""
    history = page.content_history
    history_before = before.content_history if before is not None else ()
    if not history or history is history_before:
        return
    content, _, seen_at = history[-1]
    if content == VOLATILE:
        return
    if not history_before:
        batch.new_paths.append(page.path)
        return
    news, was_volatile_lately = batch.new_paths, False
    for run in history_before:
        if run.value == content:
            if run.was_repeated or seen_at <= run.first + UNREPEATED_CONTENT_SECONDS:
                return  # it is confirmed, or is being probed
        else:
            news = batch.changed_paths
            is_recent = run.last > seen_at - VOLATILE_RECHECK_SECONDS
            was_volatile_lately = was_volatile_lately or (run.value == VOLATILE and is_recent)
    if not was_volatile_lately:
        news.append(page.path)


def _with_known_origin(observation: Observation, page: Page | None) -> Observation:
    """The observation, as unlearned if its route is enumerable and the page is known to be unlearned.

    Only a process that has read the route's `values` knows that they name the page.
    """
    if observation.may_be_provided and observation.learned and page is not None and not page.learned:
        return observation._replace(learned=False)
    return observation
