"""Merges observations into pages: which one decides, what is worth writing, and what own requests are to settle.

The latest answer decides, but for those that may concern one visitor only: a redirect by language or device, a 403 for
one User-Agent, another media type. The middleware asks the page itself, and that answer counts at once. Where it cannot
ask, with `verify=False` or on one thread, a good page stays until two such answers came at least a minute apart, with
no good one in between.

Pure functions; every time is passed in, as POSIX seconds. The store is read before a batch is merged and written after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ..models import Page
from .dates import CLOCK_SKEW_SECONDS, timestamp_of_w3c
from .images_and_versions import agreed
from .observations import HTML_TYPES, Observation, is_conclusive
from .page_verdict import GONE_STATUSES, is_listable
from .value_history import GENERATED_DATE_SECONDS, VOLATILE, History, add_sighting

REFRESH_SECONDS: Final = 60 * 60
"""How long the last visit of an unchanged page may stay unwritten: one write an hour instead of one a visit."""

CONFIRMATION_SECONDS: Final = 60
"""Time after which an answer confirms an earlier one that might have concerned one visitor only."""

VOLATILE_RECHECK_SECONDS: Final = 60 * 60
"""Seconds for which new content of a page is not probed after the content varied from request to request."""


class MergedBatch(NamedTuple):
    """What a batch of observations comes to."""

    pages: dict[str, Page]
    """The pages that are new or changed, by path."""
    changed_paths: list[str]
    """Pages with new content, so that the prober can check whether it is stable."""
    conflicting_paths: list[str]
    """Good pages that just answered something else, so that the prober can check what they answer now."""
    unread_paths: list[str]
    """Pages whose headers did not count, because their HTML must be read first."""


def merge_batch(stored: Mapping[str, Page], observations: Iterable[Observation], now: float) -> MergedBatch:
    """Merge observations into pages.

    An observation creates a learned page only if the page would be listed, since clients can request any number of
    paths that do not exist. The pages of an enumerable route are an exception: the app may name them in `values`, and
    then has to leave them out. Nor does an observation have a learned page listed, for the first time or again, whose
    HTML was not read: that may say noindex.

    Args:
        stored: those of the pages that are stored.
        observations: any number for each page. Of those of one second, the last counts as the latest.
        now: the store's time. A page that was seen later than that, by a clock that was wrong then, is learned again.
    """
    batch = MergedBatch({}, [], [], [])
    by_path: dict[str, list[Observation]] = {}
    for observation in observations:
        by_path.setdefault(observation.path, []).append(observation)
    for path, of_page in by_path.items():
        of_page.sort(key=lambda observation: observation.at)
        before = stored.get(path)
        page = before
        if before is not None and max(before.last_seen, before.read_at) > now + CLOCK_SKEW_SECONDS:
            page = None  # a clock was wrong then, and what it dated would decide until that date has come
        may_be_provided = any(observation.may_be_provided for observation in of_page)
        for observation in of_page:
            known = _with_known_origin(observation, before)
            if _must_be_read(page, known):
                batch.unread_paths.append(path)
            else:
                page = merge(page, known)
        is_own = any(observation.is_probe for observation in of_page)  # someone waits for what the page says now
        if page is None or (before is not None and not is_own and not is_worth_writing(before, page)):
            continue
        if before is None and page.learned and not may_be_provided and not is_listable(page):
            continue
        batch.pages[path] = page
        if _is_contradicted(before, page, of_page[0].listed_types) and not of_page[-1].is_probe:
            batch.conflicting_paths.append(path)
        if _has_new_content(before, page):
            batch.changed_paths.append(path)
    return batch


def merge(page: Page | None, observation: Observation) -> Page:
    """The page with one more observation: the latest evidence decides. HTML is not read on every visit."""
    at = observation.at
    if page is None:
        page = Page(observation.path, observation.route, first_seen=at, last_seen=0, status=0)
    changes: dict[str, Any] = {"first_seen": min(page.first_seen, at)}
    if observation.last_modified is not None:
        changes["last_modified_history"] = add_sighting(page.last_modified_history, observation.last_modified, at)
    if observation.digest is not None:
        changes["content_history"] = add_sighting(page.content_history, observation.digest, at)
    if observation.stated_date:
        moment = timestamp_of_w3c(observation.stated_date)
        changes["stated_date_history"] = add_sighting(page.stated_date_history, moment, at)
    decides = _decides(observation, page)
    reads = observation.is_read and at >= page.read_at and (decides or not observation.is_unusual)
    if reads:
        changes |= {"read_at": at, "unread_reason": observation.unread_reason}
    elif observation.unread_reason and not page.read_at:
        changes["unread_reason"] = observation.unread_reason
    if reads and not observation.is_unusual:
        changes |= {
            "stated_date": observation.stated_date,
            "without_path": observation.without_path,
            "links": observation.links,
            "shown": agreed(page.shown, observation.shown) if observation.shown else "",
        }
    if decides:
        waits = _is_good(observation, observation.listed_types) and page.unconfirmed_at > at
        changes |= {
            "route": observation.route,
            "last_seen": at,
            "status": observation.status,
            "media_type": observation.media_type,
            "last_modified": page.last_modified if observation.is_unusual else observation.last_modified,
            "learned": observation.learned,
            "unconfirmed_at": page.unconfirmed_at if waits else 0,
            "unconfirmed_status": page.unconfirmed_status if waits else 0,
        }
    elif _needs_confirmation(observation) and at >= page.last_seen and not 0 < page.unconfirmed_at <= at:
        changes |= {"unconfirmed_at": at, "unconfirmed_status": observation.status}
    if observation.status == 200 and (decides or reads):
        stands = not decides or (observation.is_unread and page.read_at > 0)  # until its HTML is read again
        changes["refusal"] = observation.refusal or (page.refusal if stands else "")
        changes["expires_at"] = observation.expires_at or (page.expires_at if stands else None)
    return page._replace(**changes)


def _decides(observation: Observation, page: Page) -> bool:
    """Whether an observation replaces the evidence that decides about the page so far."""
    conclusive = is_conclusive(observation.status)
    if conclusive is not is_conclusive(page.status):
        return conclusive
    if observation.at < page.last_seen:
        return False
    if not (_is_good(page, observation.listed_types) and _needs_confirmation(observation)):
        return True
    return 0 < page.unconfirmed_at <= observation.at - CONFIRMATION_SECONDS


def _needs_confirmation(observation: Observation) -> bool:
    """Whether an answer may concern this visitor only, such as a redirect by language or a 403 for one User-Agent.

    404, 410 and any HTML are the same for everyone, and count at once if the request was usual. So does the answer to a
    probe, which has no language, device or account, and a learned page that denies access: it may be private.
    """
    if observation.is_probe or not is_conclusive(observation.status):
        return False
    if observation.learned and observation.denies_access:
        return False
    if observation.is_unusual and not observation.may_be_listed:
        return True
    return not (observation.status in GONE_STATUSES or _is_good(observation, observation.listed_types))


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


# What is worth writing, and worth a request


def is_worth_writing(before: Page, page: Page) -> bool:
    """Whether more than the times of the last visit or reading changed, or these by `REFRESH_SECONDS`.

    What arrives late may show that two values were served at one time, so all that it changes counts.
    """
    if page.last_seen == before.last_seen:
        return page != before
    passed = page.last_seen - before.last_seen, page.read_at - before.read_at
    return not 0 <= min(passed) <= max(passed) < REFRESH_SECONDS or _lasting(page) != _lasting(before)


def _lasting(page: Page) -> object:
    """All about a page but its links, and when it, and each value of its histories, was last seen."""
    histories = page.last_modified_history, page.content_history, page.stated_date_history
    bare = page._replace(
        last_seen=0, read_at=0, last_modified_history=(), content_history=(), stated_date_history=(), links=""
    )
    return bare, [*map(_significant, histories)]


def _significant(history: History) -> list[tuple[int, int, int]]:
    """What of a history must be written at once: that a content was seen twice, and that a date stayed for a minute.

    A later sign that the content is `VOLATILE` takes away the dates of all changes before it.
    """
    return [
        (value, first, last if value == VOLATILE else (first < last) + (first + GENERATED_DATE_SECONDS <= last))
        for value, first, last in history
    ]


def _is_contradicted(before: Page | None, page: Page, listed_types: frozenset[str]) -> bool:
    """Whether a good page has just answered something else, so that the prober can settle what it answers now.

    One odd request can get a 404 or a noindex from some apps, so these are settled, too.
    """
    if before is None or not _is_good(before, listed_types):
        return False
    return (is_listable(before) and not is_listable(page)) or page.unconfirmed_at > before.unconfirmed_at


def _has_new_content(before: Page | None, page: Page) -> bool:
    """Whether the content is one that was never seen before, and has not varied from request to request lately."""
    if not page.content_history or page.content_history[-1].value == VOLATILE:
        return False
    content = page.content_history[-1]
    return not any(
        run.value == content.value or (run.value == VOLATILE and run.last > content.last - VOLATILE_RECHECK_SECONDS)
        for run in (before.content_history if before is not None else ())
    )
