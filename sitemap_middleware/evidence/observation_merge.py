"""Merges observations into pages: which one decides, and what is worth writing to the store.

Pure functions; every time is passed in, as POSIX seconds. Workers see responses in different orders, so the result does
not depend on the order in which observations arrive.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, timestamp_of_w3c
from ..models import Page, UnconfirmedAnswer
from ..value_history import History, add_sighting, significant, without_future
from .delisting_confirmation import (
    add_answer,
    confirmed_contradiction,
    has_same_answers,
    is_conclusive,
    needs_confirmation,
    since,
)
from .generated_dates import is_credible
from .observations import INDEXABLE_TYPES, HtmlFacts, Observation, refresh_obstacle
from .page_verdict import is_listable

REFRESH_SECONDS: Final = 60 * 60
"""How long the last visit of an unchanged page may stay unwritten: one write an hour instead of one a visit."""

_HtmlState = tuple[int, bool, str | None, str | None, str, int | None, str, int, int, History, History]
"""The fields of `Page` about its HTML, from `read_at` to `stated_date_history`."""

_UNREAD_HTML: Final[_HtmlState] = (0, False, None, None, "", None, "", 0, 0, (), ())

_HtmlSnapshot = tuple[bool, str | None, str | None, str, int | None, str, int]
"""The part of `_HtmlState` that each reading replaces: without the times and the two histories."""

# An observation's fields and the page's fields that keep them, in the same order.
_observation_fields: Final = itemgetter(slice(Observation._fields.index("at"), Observation._fields.index("html")))
_page_fields: Final = itemgetter(slice(Page._fields.index("last_seen"), Page._fields.index("last_modified_history")))
_html_fields: Final = itemgetter(slice(Page._fields.index("read_at"), Page._fields.index("learned")))

_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class


def merge(page: Page | None, observation: Observation) -> Page:
    """The page with one more observation.

    The latest evidence decides; of evidence from one moment, the one that forbids more. HTML is not read on every
    visit, so it has a date and a decision of its own. What may concern one visitor only waits in
    `Page.unconfirmed_answers`.
    """
    at = observation.at
    last_modified_history: History = () if page is None else page.last_modified_history
    html = _UNREAD_HTML if page is None else _html_fields(page)
    answers = () if page is None else page.unconfirmed_answers
    if observation.last_modified is not None:
        last_modified_history = add_sighting(last_modified_history, observation.last_modified, at)
    if observation.html is not None:
        html = _merge_html(html, observation.html, at, observation.fraction)
    unconfirmed = needs_confirmation(observation)
    if unconfirmed:
        answers = add_answer(answers, UnconfirmedAnswer(at, observation.status))
    if page is None or _is_decisive(observation, page, unconfirmed=unconfirmed):
        if not unconfirmed:
            answers = since(answers, at)
        path, route, learned = observation.path, observation.route, observation.learned
        facts = _observation_fields(observation)
    else:
        if answers and not page.is_unconfirmed:
            answers = since(answers, page.last_seen)
        path, route, learned, unconfirmed = page.path, page.route, page.learned, page.is_unconfirmed
        facts = _page_fields(page)
    first_seen = at if page is None else min(page.first_seen, at)
    return _make(Page, (path, route, first_seen, *facts, last_modified_history, *html, learned, unconfirmed, answers))


def merge_if_changed(page: Page | None, observation: Observation) -> Page:
    """As `merge_without_future`, but return the same object if nothing needs to be written."""
    return page_to_store(page, merge_without_future(page, observation), observation.listed_types)


def merge_without_future(page: Page | None, observation: Observation) -> Page:
    """As `merge`, but evidence dated later than now loses to this observation."""
    if page is not None and _has_future_evidence(page, observation):
        page = _without_future(page, observation)
    return merge(page, observation)


def page_to_store(stored: Page | None, merged: Page, listed_types: frozenset[str] = INDEXABLE_TYPES) -> Page:
    """The merged page if it differs significantly from the stored one, else the stored object itself.

    Call it after merging the whole batch. Observations of one second are ranked, and even one that changes nothing by
    itself may outrank another.
    """
    return merged if stored is None or _is_significant_change(stored, merged, listed_types) else stored


# Which observation decides


def _is_decisive(observation: Observation, page: Page, *, unconfirmed: bool) -> bool:
    """Whether an observation replaces the evidence that decides about the page so far."""
    if observation.status != page.status:
        conclusive = is_conclusive(observation.status)
        if conclusive is not is_conclusive(page.status):
            return conclusive
    if unconfirmed is not page.is_unconfirmed:
        return page.is_unconfirmed
    seen, last_seen = (observation.at, observation.fraction), (page.last_seen, page.last_seen_fraction)
    if seen != last_seen:
        return seen > last_seen
    types = observation.listed_types
    return _rank(observation, types) > _rank(page, types)


def _rank(evidence: Observation | Page, listed_types: frozenset[str]) -> tuple[object, ...]:
    """The sort key of evidence from one moment: by what forbids more; else by anything that all workers sort alike."""
    return (
        evidence.status != 200,
        evidence.noindex,
        evidence.private,
        evidence.obstacle,
        evidence.canonical or "",
        _expiry_rank(evidence.expires_at),
        evidence.media_type not in listed_types,
        evidence.status,
        evidence.media_type,
        evidence.last_modified or 0,
        evidence.route,
        evidence.learned,
    )


def _expiry_rank(expires_at: int | None) -> tuple[bool, int]:
    """Greater for an earlier expiry."""
    return expires_at is not None, -(expires_at or 0)


def _merge_html(html: _HtmlState, facts: HtmlFacts, at: int, fraction: int) -> _HtmlState:
    """The state of a page's HTML with one more reading: the latest one decides, and the histories keep all.

    A reading that did not reach the head counts only while there is no other.
    """
    read_at, read_fraction, content_history, stated_date_history = html[0], *html[-3:]
    if not facts.has_head:
        reason = max(html[6], facts.unread_reason)
        return html if read_at else (0, False, None, None, "", None, reason, 0, 0, (), ())
    if facts.digest is not None:
        content_history = add_sighting(content_history, facts.digest, at)
    if facts.stated_date:
        stated_date_history = add_sighting(stated_date_history, timestamp_of_w3c(facts.stated_date), at)
    if (at, fraction) < (read_at, read_fraction):
        return (*html[:-2], content_history, stated_date_history)
    snapshot = _html_snapshot(facts)
    if (at, fraction) == (read_at, read_fraction):
        snapshot = max(html[1:-3], snapshot, key=_html_rank)
    return (at, *snapshot, fraction, content_history, stated_date_history)


def _html_snapshot(facts: HtmlFacts) -> _HtmlSnapshot:
    return (
        facts.noindex,
        facts.canonical or None,
        facts.stated_date or None,
        refresh_obstacle(facts.instant_refresh),
        facts.expires_at,
        facts.unread_reason,
        facts.without_path,
    )


def _html_rank(snapshot: _HtmlSnapshot) -> tuple[object, ...]:
    """The sort key of readings from one moment: by what forbids more; else by anything that all workers sort alike."""
    noindex, canonical, stated_date, obstacle, expires_at, unread_reason, mark = snapshot
    return noindex, obstacle, canonical or "", _expiry_rank(expires_at), stated_date or "", unread_reason, mark


# Answers that need confirmation


def _is_good(page: Page, listed_types: frozenset[str]) -> bool:
    """Whether the deciding evidence is a page that every visitor gets."""
    return page.status == 200 and not page.is_unconfirmed and page.media_type in listed_types


def needs_probe(before: Page | None, page: Page, listed_types: frozenset[str] = INDEXABLE_TYPES) -> bool:
    """Whether a good page has just answered something else, so that the prober can settle what it answers now.

    One odd request can get a 404 or a noindex from some apps, so these are settled, too.
    """
    if before is None or not _is_good(before, listed_types):
        return False
    if is_listable(before) and not is_listable(page):
        return True
    return bool(page.unconfirmed_answers) and not has_same_answers(before.unconfirmed_answers, page.unconfirmed_answers)


# Evidence from the future


def _has_future_evidence(page: Page, observation: Observation) -> bool:
    """Whether the page holds evidence of a worker whose clock was ahead."""
    answers = page.unconfirmed_answers
    latest = max(page.last_seen, page.read_at, answers[-1].at if answers else 0)
    return 0 < observation.merged_at < latest - CLOCK_SKEW_SECONDS


def _without_future(page: Page, observation: Observation) -> Page:
    """The page, its future evidence dated back to just before this observation.

    What that evidence said stays until something else is seen. Without this, one worker with a wrong clock would decide
    about a page until its date has come.
    """
    now = observation.merged_at
    is_future_visit = page.last_seen > now + CLOCK_SKEW_SECONDS
    is_future_reading = page.read_at > now + CLOCK_SKEW_SECONDS
    return page._replace(
        first_seen=min(page.first_seen, observation.at),
        last_seen=min(page.last_seen, observation.at - 1) if is_future_visit else page.last_seen,
        last_modified_history=without_future(page.last_modified_history, now),
        read_at=min(page.read_at, observation.at - 1) if is_future_reading else page.read_at,
        content_history=without_future(page.content_history, now),
        stated_date_history=without_future(page.stated_date_history, now),
        unconfirmed_answers=tuple(answer for answer in page.unconfirmed_answers if answer.at <= now),
    )


# What is worth writing


def _is_significant_change(page: Page, merged: Page, listed_types: frozenset[str]) -> bool:
    """False if only the times of the last visit or reading moved, by less than `REFRESH_SECONDS`.

    A later visit is significant if the page's Last-Modified, or the date that it states, becomes credible by it. An
    observation that arrives late leaves `last_seen` as it is, but it may show that two values were served at one time,
    so every change of a history counts then.
    """
    late_visit, late_reading = merged.last_seen == page.last_seen, merged.read_at == page.read_at
    return (
        merged.last_seen - page.last_seen >= REFRESH_SECONDS
        or merged.read_at - page.read_at >= REFRESH_SECONDS
        or merged.last_seen < page.last_seen
        or merged.read_at < page.read_at
        or merged.first_seen != page.first_seen
        or merged.is_unconfirmed is not page.is_unconfirmed
        or _differ(page.content_history, merged.content_history, exactly=late_reading)
        or _differ(page.stated_date_history, merged.stated_date_history, exactly=late_reading)
        or _differ(page.last_modified_history, merged.last_modified_history, exactly=late_visit)
        or _rank(merged, listed_types) != _rank(page, listed_types)
        or _has_new_contradiction(page, merged, listed_types)
        or _html_fields(merged)[1:-3] != _html_fields(page)[1:-3]
        or _date_credibility(merged) != _date_credibility(page)
    )


def _differ(before: History, after: History, *, exactly: bool) -> bool:
    return after != before if exactly else significant(after) != significant(before)


def _has_new_contradiction(page: Page, merged: Page, listed_types: frozenset[str]) -> bool:
    """Whether unconfirmed answers are worth writing: only while they may still delist the page."""
    if not _is_good(merged, listed_types) or (confirmed_contradiction(page) and confirmed_contradiction(merged)):
        return False
    return not has_same_answers(page.unconfirmed_answers, merged.unconfirmed_answers)


def _date_credibility(page: Page) -> tuple[bool, bool]:
    """Whether the page's Last-Modified, and the date that it states, are credible."""
    return (
        page.last_modified is not None and is_credible(page.last_modified_history, page.last_modified),
        page.stated_date is not None and is_credible(page.stated_date_history, timestamp_of_w3c(page.stated_date)),
    )
