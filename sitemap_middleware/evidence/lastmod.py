"""lastmod: when a page last changed, by the best that is known of it.

Pure functions; the time is always handed in, as POSIX seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Final, NamedTuple

from ..dates import (
    CLOCK_SKEW_SECONDS,
    EARLIEST_DATE_SECONDS,
    SECONDS_PER_DAY,
    timestamp_of,
    timestamp_of_w3c,
    w3c,
    w3c_day_from_timestamp,
    w3c_from_timestamp,
)
from ..history import VOLATILE, History, last_change
from ..models import Page
from .daily_counters import ticks
from .generated_dates import changes_without_content, is_credible
from .site_signals import SiteSignals, depends_on_site_signals, page_as_of


class LastmodResult(NamedTuple):
    """A lastmod as it will be written, and what it rests on; no text where there is nothing to rest on."""

    text: str | None
    source: str


_TOO_NEW_REASON: Final = "is so new that it cannot yet be told from a deployment's"

_NO_LASTMOD: Final = LastmodResult(None, "it bears no date, and no change of its content was seen")


def lastmod(given: date | None, page: Page | None, file: int | None, around: SiteSignals, now: int) -> LastmodResult:
    """When a page last changed, by the first of these that holds.

    The developer's date; a credible Last-Modified, or the time of the file that
    is served; what the page itself states; a change of its content that was seen.

    Args:
        given: the developer's date, where there is one.
        page: what was seen of it.
        file: the modification time of the file it is served from.
        around: what all of the site's pages tell together.
        now: POSIX seconds.
    """
    if given is not None:
        text = w3c(given)
        if timestamp_of(given) > now + CLOCK_SKEW_SECONDS:
            return LastmodResult(None, f"the developer's date, {text}, has not come yet")
        if timestamp_of(given) > now:  # as of a date that the app made a moment ago
            text = w3c_from_timestamp(now) if isinstance(given, datetime) else w3c_day_from_timestamp(now)
        return LastmodResult(text, "the developer's date")
    if page is not None:
        page = page_as_of(page, now)
    if file is None and (page is None or not depends_on_site_signals(page)):
        return _NO_LASTMOD
    reason = _NO_LASTMOD.source
    for found in _dates(page, file, around, now):
        if found is None:
            continue
        if found.text is not None:
            return found
        reason = found.source
    return LastmodResult(None, reason)


def _dates(page: Page | None, file: int | None, around: SiteSignals, now: int) -> Iterator[LastmodResult | None]:
    """What each of the rules finds, in their order, as long as it is asked for more."""
    yield _by_header(page, file, around, now)
    yield _by_statement(page, around, now)
    yield _by_change(page, around)


def _by_header(page: Page | None, file: int | None, around: SiteSignals, now: int) -> LastmodResult | None:
    moment, source = file, "the file's modification time"
    if page is not None and page.modified is not None:
        moment, source = page.modified, "Last-Modified"
        if file != moment and not is_credible(page.moments, page.modified):
            return LastmodResult(
                None, "its Last-Modified is the time of the answer, or was not yet seen to stand still"
            )
        if file != moment and changes_without_content(page.moments, page.contents, around.deployed_at):
            return LastmodResult(None, "its Last-Modified moves while its content stays the same")
    if moment is None:
        return None
    if not EARLIEST_DATE_SECONDS <= moment <= now:
        return LastmodResult(None, f"{source} cannot be true")
    new = page is not None and any(
        run.value == moment and not around.is_distinguishable(run.first) for run in page.moments
    )
    if new:
        return LastmodResult(None, f"{source} {_TOO_NEW_REASON}")
    before = page is not None and any(around.deployed_at(run.value) for run in page.moments)
    if around.deployed_at(moment) or (before and not around.is_own_change(moment)):
        return LastmodResult(None, f"{source} is that of a deployment or of an installed package, or was before")
    return LastmodResult(w3c_from_timestamp(moment), source)


def _by_statement(page: Page | None, around: SiteSignals, now: int) -> LastmodResult | None:
    """What the page states, unless it was made up for the answer, or for all pages at one time."""
    if page is None or page.stated is None:
        return None
    moment = timestamp_of_w3c(page.stated)
    day_alone = len(page.stated) == len("2024-05-01")
    if not EARLIEST_DATE_SECONDS <= moment <= now:
        return LastmodResult(None, "the date that the page states cannot be true")
    if not is_credible(page.statements, moment):
        return LastmodResult(
            None, "the date that the page states is that of the answer, or was not yet seen to stand still"
        )
    if changes_without_content(page.statements, page.contents, around.deployed_at):
        return LastmodResult(None, "the date that the page states moves while its content stays the same")
    if not around.is_distinguishable(moment):
        return LastmodResult(None, f"the date that the page states {_TOO_NEW_REASON}")
    if not day_alone and around.deployed_at(moment):
        return LastmodResult(None, "the date that the page states is one and the same on most pages")
    return LastmodResult(page.stated, "the date that the page states")


def _by_change(page: Page | None, around: SiteSignals) -> LastmodResult | None:
    """The later end of the interval in which the content changed; its day, where that interval is longer than one."""
    if page is None or len(page.contents) < 2:
        return None
    own = around.own_content_history(page)
    began = min(run.first for run in page.contents)
    whole = any(run.first == began for run in own)
    if (found := last_change(own, whole=whole)) is None:
        return LastmodResult(None, _why_undated(page.contents, around))
    if ticks(page.contents):
        return LastmodResult(None, "its content changes by a number that moves by the same step each day")
    earlier, later = found
    if not around.is_distinguishable(later):
        return LastmodResult(None, f"the change of its content that was seen {_TOO_NEW_REASON}")
    source = "a change of its content that was seen"
    if later - earlier > SECONDS_PER_DAY:
        return LastmodResult(w3c_day_from_timestamp(later), source)
    return LastmodResult(w3c_from_timestamp(later), source)


def _why_undated(contents: History, around: SiteSignals) -> str:
    """Why a page of several contents has no date by their change."""
    found = last_change(contents)
    if found is not None:
        moment = w3c_from_timestamp(found[1])
        if around.needs_more_pages(found[1]):
            return (
                f"its content changed at {moment}; it is dated once other pages have been read since, to tell an edit"
                " from a new template"
            )
        return f"its content changed at {moment}, and it cannot be told whether by an edit or a new template"
    if any(run.value == VOLATILE for run in contents):
        return "its content differs from one request to the next"
    if not contents[-1].was_repeated:
        return "its content was seen to change, and the new one was read only once so far"
    if not any(run.was_repeated for run in contents[:-1]):
        return "its content was seen to change, and the one before was read only once"
    return "its contents come and go"
