"""`<lastmod>`: when a page last changed, by the best evidence there is; and `changefreq="auto"`, from its changes.

Google uses lastmod only from sites whose dates prove accurate (Google, "Build and submit a sitemap"), so a date that
may be wrong is left out. Pure functions; every time is passed in, as POSIX seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from ..models import Page
from ..protocol.value_checks import Changefreq
from .content_digest import differ_by_numbers
from .dates import (
    CLOCK_SKEW_SECONDS,
    EARLIEST_DATE_SECONDS,
    SECONDS_PER_DAY,
    timestamp_of,
    timestamp_of_w3c,
    w3c,
    w3c_day_from_timestamp,
    w3c_from_timestamp,
)
from .site_signals import SiteSignals
from .value_history import VOLATILE, History, changes_without_content, is_credible, last_change


class LastmodResult(NamedTuple):
    """A lastmod as it is written, or None, and the evidence for that."""

    text: str | None
    source: str
    failure: str = ""
    """Why the developer's function gives no date, if it fails."""

    @property
    def note(self) -> str:
        """All that people are to know of it."""
        return f"{self.source}; {self.failure}" if self.failure else self.source


_LONGEST_DAY_SECONDS: Final = SECONDS_PER_DAY + CLOCK_SKEW_SECONDS
"""For how long a daily counter may show one number."""

_TOO_NEW_REASON: Final = "is too new to tell it from a deployment's"

_NO_LASTMOD: Final = LastmodResult(None, "it has no date, and no change of its content was observed")


def lastmod(
    developer_date: date | None, page: Page | None, file_modified: int | None, signals: SiteSignals, now: int
) -> LastmodResult:
    """When a page last changed, by the first rule that gives a date.

    1. The developer's date.
    2. A credible Last-Modified, or the modification time of the served file.
    3. The date that the page states.
    4. An observed change of its content.
    """
    if developer_date is not None:
        return _by_developer(developer_date, now)
    latest = _NO_LASTMOD
    for latest in _results(page, file_modified, signals, now):
        if latest.text is not None:
            break
    return latest  # without a date, the last rule that had any evidence says why


def _results(page: Page | None, file_modified: int | None, signals: SiteSignals, now: int) -> Iterator[LastmodResult]:
    """The result of each rule that has evidence, in their order."""
    if page is not None and page.last_modified is not None:
        yield _by_last_modified(page, page.last_modified, file_modified, signals, now)
    elif file_modified is not None:
        history = () if page is None else page.last_modified_history
        yield _unless_deployed(file_modified, "the file's modification time", history, signals, now)
    if page is not None and page.stated_date is not None:
        yield _by_stated_date(page, page.stated_date, signals, now)
    if page is not None and len(page.content_history) > 1:
        yield _by_content_change(page, signals, now)


def futurity(developer_date: date, now: int) -> int:
    """0 if a developer's date is not in the future, 1 if a wrong clock may explain that it is, else 2."""
    moment = timestamp_of(developer_date)
    return (moment > now) + (moment > now + CLOCK_SKEW_SECONDS)


def _by_developer(developer_date: date, now: int) -> LastmodResult:
    text, future = w3c(developer_date), futurity(developer_date, now)
    if future > 1:
        return LastmodResult(None, f"the developer's date, {text}, is in the future")
    if future:  # such as `datetime.now()` on a machine whose clock is a little ahead
        text = w3c_from_timestamp(now) if isinstance(developer_date, datetime) else w3c_day_from_timestamp(now)
    return LastmodResult(text, "the developer's date")


def _by_last_modified(
    page: Page, modified: int, file_modified: int | None, signals: SiteSignals, now: int
) -> LastmodResult:
    """The page's Last-Modified (RFC 9110, section 8.8.2), unless a server or a deployment set it."""
    history = page.last_modified_history
    if modified != file_modified and not is_credible(history, modified):
        reason = "its Last-Modified is the time of the response, or has not stayed the same long enough"
        return LastmodResult(None, reason)
    if changes_without_content(history, page.content_history, signals.deployed_at):
        return LastmodResult(None, "its Last-Modified changes while its content stays the same")
    return _unless_deployed(modified, "Last-Modified", history, signals, now)


def _unless_deployed(moment: int, source: str, history: History, signals: SiteSignals, now: int) -> LastmodResult:
    """A date of a page with this history of dates, unless it cannot be true or is that of a deployment."""
    if not EARLIEST_DATE_SECONDS <= moment <= now:
        return LastmodResult(None, f"{source} cannot be true")
    if signals.until is not None and any(
        value == moment and not signals.is_distinguishable(first) for value, first, _ in history
    ):
        return LastmodResult(None, f"{source} {_TOO_NEW_REASON}")
    if signals.deployed_at(moment):
        return LastmodResult(None, f"{source} is that of a deployment or of an installed package")
    return LastmodResult(w3c_from_timestamp(moment), source)


def _by_stated_date(page: Page, stated: str, signals: SiteSignals, now: int) -> LastmodResult:
    """The date that the page states, unless the app generates it for each response or for all pages at once."""
    moment = timestamp_of_w3c(stated)
    source = "the date that the page states"
    if not EARLIEST_DATE_SECONDS <= moment <= now:
        return LastmodResult(None, f"{source} cannot be true")
    if not is_credible(page.stated_date_history, moment):
        return LastmodResult(None, f"{source} is that of the response, or has not stayed the same long enough")
    if changes_without_content(page.stated_date_history, page.content_history, signals.deployed_at):
        return LastmodResult(None, f"{source} changes while its content stays the same")
    if not signals.is_distinguishable(moment):
        return LastmodResult(None, f"{source} {_TOO_NEW_REASON}")
    # Many pages may well be edited on one day, but not within one minute.
    if len(stated) > len("2024-05-01") and signals.deployed_at(moment):
        return LastmodResult(None, "most pages state the same date")
    return LastmodResult(stated, source)


def _by_content_change(page: Page, signals: SiteSignals, now: int) -> LastmodResult:
    """The later end of the interval in which the content changed; only its day if the interval is longer than a day.

    The later end is never before the change, so a crawler that came in between is told to come again.
    """
    own = signals.templates.own_history(page.route, page.content_history)
    change = last_change(own)
    if change is None:
        return LastmodResult(None, _undated_reason(page.content_history, signals))
    if _may_be_daily_counter(own):
        return LastmodResult(None, "only numbers in its content changed, and they may change every day")
    earlier, later = change
    if later > now:
        return LastmodResult(None, "the observed change of its content is in the future, by a clock that was wrong")
    if not signals.is_distinguishable(later):
        return LastmodResult(None, f"the observed change of its content {_TOO_NEW_REASON}")
    write = w3c_day_from_timestamp if later - earlier > SECONDS_PER_DAY else w3c_from_timestamp
    return LastmodResult(write(later), "an observed change of its content")


def _may_be_daily_counter(history: History) -> bool:
    """Whether the present content differs from another by integers alone, and neither lasted for over a day.

    "Day 124 of our journey" changes every day although nobody edits the page. An edited number looks the same on its
    first day.
    """
    runs = [run for run in history if run.was_repeated and run.value != VOLATILE]
    if not runs or runs[-1].last - runs[-1].first > _LONGEST_DAY_SECONDS:
        return False
    return any(
        run.last - run.first <= _LONGEST_DAY_SECONDS and differ_by_numbers(run.value, runs[-1].value)
        for run in history
        if run.value not in (VOLATILE, runs[-1].value)
    )


def _undated_reason(contents: History, signals: SiteSignals) -> str:
    """Why the changes of a page's content give no date."""
    change = last_change(contents)
    if change is not None:
        changed = f"its content changed at {w3c_from_timestamp(change[1])}"
        since = signals.templates.ambiguous_since
        if since is not None and change[1] >= since:
            return (
                f"{changed}; it is dated once other pages have been read since, to tell an edit from a template change"
            )
        return f"{changed}, by an edit or by a template change: the evidence does not tell which"
    if any(run.value == VOLATILE for run in contents):
        return "its content differs from one request to the next"
    if not contents[-1].was_repeated:
        return "its content changed, and the new one was read only once so far"
    if not any(run.was_repeated for run in contents[:-1]):
        return "its content changed, and the one before was read only once"
    return "its contents alternate"


# changefreq="auto"

MIN_CHANGES: Final = 5
"""Changes that a page must have shown before its changefreq is inferred."""

_LONGEST_SECONDS: Final[tuple[tuple[Changefreq, float], ...]] = (
    ("hourly", 5 * 3600),
    ("daily", 3 * 86_400),
    ("weekly", 15 * 86_400),
    ("monthly", 105 * 86_400),
    ("yearly", 2 * 366 * 86_400),
)
"""The longest time between two changes for each word. "always" and "never" are not inferred."""


class ChangefreqResult(NamedTuple):
    """An inferred changefreq, or None, and the evidence for that."""

    word: Changefreq | None
    source: str


def changefreq(page: Page | None, signals: SiteSignals) -> ChangefreqResult:
    """The changefreq of a page, by the changes of its content."""
    contents = () if page is None else signals.templates.own_history(page.route, page.content_history)
    varies = any(run.value == VOLATILE for run in contents)
    moments = [] if varies else sorted(run.first for run in contents)
    if len(moments) <= MIN_CHANGES:
        return ChangefreqResult(None, f"fewer than {MIN_CHANGES} changes of its own were observed")
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    gap = gaps[len(gaps) // 2]
    word = next((word for word, longest in _LONGEST_SECONDS if gap <= longest), None)
    return ChangefreqResult(word, f"from {len(moments) - 1} changes, half of them within {gap / 3600:,.1f} hours")
