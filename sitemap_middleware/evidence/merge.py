"""Merges observations into pages: which one decides, what is worth writing, and what own requests are to settle.

Pure functions; every time is passed in, as POSIX seconds. The store is read before a batch is merged and written after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ..models import Page, UnconfirmedAnswer
from .dates import CLOCK_SKEW_SECONDS, timestamp_of_w3c
from .delisting_confirmation import CONFIRMATION_SECONDS, answer_kind, is_conclusive, needs_confirmation
from .generated_dates import is_credible
from .observations import HTML_TYPES, HtmlFacts, Observation
from .page_verdict import is_listable
from .value_history import VOLATILE, History, add_sighting, significant

REFRESH_SECONDS: Final = 60 * 60
"""How long the last visit of an unchanged page may stay unwritten: one write an hour instead of one a visit."""

UNREPEATED_CONTENT_SECONDS: Final = 60
"""If a content was not seen again for so many seconds, the prober's request for it must have failed."""

VOLATILE_RECHECK_SECONDS: Final = 60 * 60
"""Seconds for which new content of a page is not probed after the content varied from request to request."""


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


def merge_batch(stored: Mapping[str, Page], observations: Iterable[Observation], now: float = math.inf) -> MergedBatch:
    """Merge observations into pages.

    An observation creates a learned page only if the page would be listed, since clients can request any number of
    paths that do not exist. The pages of an enumerable route are an exception: the app may name them in `values`, and
    then has to leave them out. Nor does an observation have a learned page listed, for the first time or again, whose
    HTML was not read: that may say noindex.

    Args:
        stored: those of the pages that are stored.
        observations: any number for each page. Of those of one second, the last counts as the latest.
        now: the store's time. What a page shows at a later time, by a clock that was wrong then, is dated back.
    """
    batch = MergedBatch({}, [], [], [], [])
    by_path: dict[str, list[Observation]] = {}
    for observation in observations:
        by_path.setdefault(observation.path, []).append(observation)
    for path, of_page in by_path.items():
        of_page.sort(key=lambda observation: observation.at)
        before = stored.get(path)
        page = before if before is None else _without_future(before, now, of_page[0].at)
        may_be_provided = any(observation.may_be_provided for observation in of_page)
        for observation in of_page:
            known = _with_known_origin(observation, page)
            if _must_be_read(page, known):
                batch.unread_paths.append(path)
            else:
                page = merge(page, known)
        if page is None or (before is not None and not is_worth_writing(before, page)):
            continue
        if before is None and page.learned and not may_be_provided and not is_listable(page):
            continue
        batch.pages[path] = page
        if needs_probe(before, page, of_page[0].listed_types) and not any(seen.is_probe for seen in of_page):
            batch.conflicting_paths.append(path)
        _note_news(batch, before, page)
    return batch


def merge(page: Page | None, observation: Observation) -> Page:
    """The page with one more observation: the latest evidence decides.

    HTML is not read on every visit, so it has a date and a decision of its own. What may concern one visitor only
    waits, if the page is good, until it is confirmed.
    """
    at = observation.at
    if page is None:
        page = Page(observation.path, observation.route, first_seen=at, last_seen=0, status=0)
    changes: dict[str, Any] = {"first_seen": min(page.first_seen, at)}
    if observation.last_modified is not None:
        changes["last_modified_history"] = add_sighting(page.last_modified_history, observation.last_modified, at)
    if observation.html is not None:
        changes |= _read(page, observation.html, at)
    if _decides(observation, page):
        waiting = (answer for answer in page.unconfirmed_answers if answer.at > at)
        changes |= {
            "route": observation.route,
            "last_seen": at,
            "status": observation.status,
            "media_type": observation.media_type,
            "refusal": observation.refusal,
            "expires_at": observation.expires_at,
            "last_modified": observation.last_modified,
            "learned": observation.learned,
            "unconfirmed_answers": tuple(waiting) if _is_good(observation, observation.listed_types) else (),
        }
    elif needs_confirmation(observation) and at >= page.last_seen:
        answer = UnconfirmedAnswer(at, observation.status)
        first = min(filter(None, [_same_kind(page, observation), answer]))
        others = [other for other in page.unconfirmed_answers if answer_kind(other.status) != answer_kind(first.status)]
        changes["unconfirmed_answers"] = tuple(sorted([*others, first]))
    return page._replace(**changes)


def _decides(observation: Observation, page: Page) -> bool:
    """Whether an observation replaces the evidence that decides about the page so far."""
    conclusive = is_conclusive(observation.status)
    if conclusive is not is_conclusive(page.status):
        return conclusive
    if observation.at < page.last_seen:
        return False
    if not (_is_good(page, observation.listed_types) and needs_confirmation(observation)):
        return True
    earlier = _same_kind(page, observation)
    return earlier is not None and observation.at - earlier.at >= CONFIRMATION_SECONDS


def _same_kind(page: Page, observation: Observation) -> UnconfirmedAnswer | None:
    """The answer of this kind that waits for confirmation, if any."""
    kind = answer_kind(observation.status)
    return next((answer for answer in page.unconfirmed_answers if answer_kind(answer.status) == kind), None)


def _read(page: Page, facts: HtmlFacts, at: int) -> dict[str, Any]:
    """What one more reading of a page's HTML changes: the latest one decides, and the histories keep all.

    A reading that did not reach the head counts only while there is no other.
    """
    if not facts.has_head:
        return {} if page.read_at else {"unread_reason": facts.unread_reason}
    changes: dict[str, Any] = {}
    if facts.digest is not None:
        changes["content_history"] = add_sighting(page.content_history, facts.digest, at)
    if facts.stated_date:
        moment = timestamp_of_w3c(facts.stated_date)
        changes["stated_date_history"] = add_sighting(page.stated_date_history, moment, at)
    if at >= page.read_at:
        changes |= {
            "read_at": at,
            "html_refusal": facts.refusal,
            "html_expires_at": facts.expires_at,
            "stated_date": facts.stated_date,
            "unread_reason": facts.unread_reason,
            "without_path": facts.without_path,
        }
    return changes


def _without_future(page: Page, now: float, at: int) -> Page:
    """The page, what it showed later than now dated back to just before `at`.

    What that evidence said stays until something else is seen. Without this, one hour with a wrong clock would decide
    about a page until its date has come.
    """
    if max(page.last_seen, page.read_at) <= now + CLOCK_SKEW_SECONDS:
        return page

    def past(history: History) -> History:
        return tuple(run for run in history if run.last <= now)

    return page._replace(
        first_seen=min(page.first_seen, at),
        last_seen=min(page.last_seen, at - 1),
        read_at=min(page.read_at, at - 1),
        last_modified_history=past(page.last_modified_history),
        content_history=past(page.content_history),
        stated_date_history=past(page.stated_date_history),
        unconfirmed_answers=(),
    )


# What is worth writing, and worth a request


def is_worth_writing(before: Page, page: Page) -> bool:
    """Whether more than the times of the last visit or reading changed, or one of these by `REFRESH_SECONDS`.

    What arrives late may show that two values were served at one time, so all that it changes counts.
    """
    return (
        (page.last_seen == before.last_seen and page != before)
        or not 0 <= page.last_seen - before.last_seen < REFRESH_SECONDS
        or not 0 <= page.read_at - before.read_at < REFRESH_SECONDS
        or _without_times(page) != _without_times(before)
        or _credible_dates(page) != _credible_dates(before)  # a date becomes so by a later visit
    )


def _without_times(page: Page) -> object:
    """All about a page but when it, and each value of its histories, was last seen."""
    bare = page._replace(last_seen=0, read_at=0, last_modified_history=(), content_history=(), stated_date_history=())
    histories = page.last_modified_history, page.content_history, page.stated_date_history
    return bare, [*map(significant, histories)]


def _credible_dates(page: Page) -> tuple[bool, bool]:
    """Whether the page's Last-Modified, and the date that it states, are credible."""
    return (
        page.last_modified is not None and is_credible(page.last_modified_history, page.last_modified),
        page.stated_date is not None and is_credible(page.stated_date_history, timestamp_of_w3c(page.stated_date)),
    )


def needs_probe(before: Page | None, page: Page, listed_types: frozenset[str]) -> bool:
    """Whether a good page has just answered something else, so that the prober can settle what it answers now.

    One odd request can get a 404 or a noindex from some apps, so these are settled, too.
    """
    if before is None or not _is_good(before, listed_types):
        return False
    return (is_listable(before) and not is_listable(page)) or not {*page.unconfirmed_answers} <= {
        *before.unconfirmed_answers
    }


def _is_good(evidence: Page | Observation, listed_types: frozenset[str]) -> bool:
    """Whether it is an answer that shows a page."""
    return evidence.status == 200 and evidence.media_type in listed_types


def _must_be_read(page: Page | None, observation: Observation) -> bool:
    """Whether the HTML of a page must be read before an observation counts."""
    if not (observation.is_unread and observation.learned):
        return False
    return page is None or page.media_type not in HTML_TYPES or not is_listable(page)


def _with_known_origin(observation: Observation, page: Page | None) -> Observation:
    """The observation, as unlearned if its route is enumerable and the page is known to be unlearned.

    Only a process that has read the route's `values` knows that they name the page.
    """
    if observation.may_be_provided and observation.learned and page is not None and not page.learned:
        return observation._replace(learned=False)
    return observation


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
