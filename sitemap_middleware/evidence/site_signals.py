"""Site signals: what only many pages together show, such as deployments, template changes and soft 404s.

A deployment gives all files one modification time, and a template change alters many pages at once. Neither is a change
of one page, but one page alone cannot show the difference.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..dates import timestamp_of_w3c
from ..models import Page
from ..value_history import OVERLAP_SECONDS, History
from .page_as_of import page_as_of
from .soft_404_by_equal_content import NO_SOFT_NOT_FOUNDS, LearnedContents, SoftNotFounds
from .template_changes import TemplateChanges

DEPLOYMENT_SECONDS: Final = 60
"""The time in which a deployment writes all its files."""

GENERATED_DATE_SECONDS: Final = 60
"""A date this close to the time of its response may have been generated for the response."""

CLOCK_JITTER_SECONDS: Final = 2
"""How much the age of a generated date may vary from response to response."""

MIN_STEADY_DATES: Final = 3
"""Consecutive dates of the same age that show that a clock generates them."""

OLDER_PAGES_FACTOR: Final = 2
"""Minimum ratio of the pages that kept an older date to those with a date of the same time."""


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """Deployments, template changes and soft 404s of a site."""

    deployed: tuple[int, int] = (1, 0)
    """The first and last second of the present deployment; (1, 0) if there is none."""
    deployments: frozenset[int] = frozenset()
    """The present and earlier deployments, in minutes since the epoch."""
    older_from: tuple[int, ...] = ()
    older_to: tuple[int, ...] = ()
    """Spans of time in which a page kept its date, so that no deployment in them wrote its file.

    The page was modified before the span, and seen with that date after it. These are the first seconds of all spans,
    and their last seconds, each sorted. The spans of one page do not overlap.
    """
    seen_dates: tuple[int, ...] = ()
    """All values of Last-Modified of all pages, sorted, without generated dates."""
    installed: frozenset[int] = frozenset()
    """The minutes since the epoch around installations of packages, if a page has such a date."""
    templates: TemplateChanges | None = None
    soft_not_founds: SoftNotFounds = NO_SOFT_NOT_FOUNDS
    until: int | None = None
    """The time up to which the signals are known, if they come from a sample of the pages; None: all, up to now."""
    is_complete: bool = True
    """Whether all evidence counts: none was from the future, so that it would count later."""

    @property
    def has_deployments(self) -> bool:
        """Whether `deployed_at` is true for any time."""
        return bool(self.deployments or self.installed or self.deployed[0] <= self.deployed[1])

    def deployed_at(self, moment: int) -> bool:
        """Whether the site's files, or an installed package's, were written to the server at this time."""
        minute = moment // DEPLOYMENT_SECONDS
        return self.deployed[0] <= moment <= self.deployed[1] or minute in self.deployments or minute in self.installed

    def is_own_change(self, moment: int) -> bool:
        """Whether a date is a change of its own page: a deployment at that time would have changed more pages.

        At least three pages must have kept an older date until later, and fewer have a date of the same time.
        """
        older = bisect_right(self.older_from, moment) - bisect_left(self.older_to, moment)
        same_time = bisect_right(self.seen_dates, moment + OVERLAP_SECONDS) - bisect_left(
            self.seen_dates, moment - OVERLAP_SECONDS
        )
        return older >= max(3, OLDER_PAGES_FACTOR * same_time)

    def is_distinguishable(self, moment: int) -> bool:
        """Whether the signals cover a time, so that an edit then can be told from a deployment."""
        return self.until is None or moment <= self.until

    def needs_more_pages(self, moment: int) -> bool:
        """Whether too few pages were read since a time to tell an edit then from a template change."""
        ends = self.templates.ambiguous_since if self.templates else None
        return ends is not None and moment >= ends

    @property
    def open_after(self) -> int | None:
        """The time after which more evidence may still change the signals; None if the signals are complete."""
        ends = self.templates.ambiguous_since if self.templates else None
        return ends if self.until is None else min(self.until, self.until if ends is None else ends)

    def as_tuple(self) -> object:
        """The signals about the time before `open_after`, without soft 404s; equal tuples mean equal signals."""
        dates = (self.older_from, self.older_to, self.seen_dates) if self.has_deployments else ()
        templates = self.templates.as_tuple() if self.templates else ()
        return self.deployed, sorted(self.deployments), sorted(self.installed), dates, templates

    def own_content_history(self, page: Page) -> History:
        """The page's content history without template changes."""
        return self.templates.own_history(page.route, page.content_history) if self.templates else page.content_history


def site_signals(
    pages: Iterable[Page],
    files: Iterable[int] = (),
    until: int | None = None,
    *,
    now: int | None = None,
    installed: Collection[int] = (),
) -> SiteSignals:
    """The signals of a site.

    Args:
        pages: the observed pages, all or a sample, read once and in order. Only those that answer 200 count.
        files: modification times of the files that routes serve, in POSIX seconds.
        until: when the pages were read, if they are a sample.
        now: POSIX seconds. Evidence later than that, of a worker whose clock was ahead, is ignored. None: all counts.
        installed: when packages were installed, in POSIX seconds.
    """
    observed, is_complete = _ObservedHistories(), True
    for stored in pages:
        page = stored if now is None else page_as_of(stored, now)
        is_complete = is_complete and page is stored
        observed.add(page)
    moments, dates = [*files, *observed.moments], observed.dates
    older_from, older_to = _older_date_spans(dates)
    seen_dates = tuple(sorted(run.value for history in dates for run in history))
    return SiteSignals(
        deployed=deployment_minute(moments),
        deployments=deployments(dates),
        older_from=older_from,
        older_to=older_to,
        seen_dates=seen_dates,
        installed=_seen_minutes(seen_dates, installed),
        soft_not_founds=observed.learned.soft_not_founds(alike=until is None),
        templates=TemplateChanges(observed.contents),
        until=until,
        is_complete=is_complete,
    )


class _ObservedHistories:
    """Collects what the signals are computed from."""

    def __init__(self) -> None:
        self.moments: list[int] = []
        """When pages were modified, by what they said last."""
        self.dates: list[History] = []
        """The values of Last-Modified of each page that has any, without generated dates."""
        self.contents: defaultdict[str, list[History]] = defaultdict(list)
        """By route."""
        self.learned = LearnedContents()

    def add(self, page: Page) -> None:
        if page.status != 200:
            return
        generated = is_generated(page.last_modified_history)
        if page.last_modified is not None and not generated:
            self.moments.append(page.last_modified)
        elif page.stated_date:
            self.moments.append(timestamp_of_w3c(page.stated_date))
        if page.last_modified_history and not generated:
            self.dates.append(page.last_modified_history)
        if page.content_history:
            self.contents[page.route].append(page.content_history)
            self.learned.add(page)


def is_generated(moments: Sequence[tuple[int, int, int]]) -> bool:
    """Whether a page's Last-Modified may be generated for each response. Then it shows no deployment."""
    for _, first, last in moments:
        if last - first >= GENERATED_DATE_SECONDS:
            return False
    lags = [first - value for value, first, _ in moments]
    return bool(lags) and (max(lags) < GENERATED_DATE_SECONDS or has_steady_age(lags[-MIN_STEADY_DATES:]))


def has_steady_age(lags: Sequence[int]) -> bool:
    """Whether `MIN_STEADY_DATES` dates all had the same age when first seen, as those of a clock have.

    Args:
        lags: the age of each date when first seen, in seconds.
    """
    return len(lags) == MIN_STEADY_DATES and max(lags) - min(lags) <= CLOCK_JITTER_SECONDS


def _older_date_spans(dates: Sequence[History]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The spans of time in which a page kept a date: modified before the span, and seen with that date after it.

    The first seconds of all spans, and their last seconds, each sorted.
    """
    starts, ends = list[int](), list[int]()
    for moments in dates:
        after = -(2**63)
        for run in sorted(moments):
            first, last = max(run.value + DEPLOYMENT_SECONDS, after), run.last - OVERLAP_SECONDS
            if first <= last:
                starts.append(first)
                ends.append(last)
                after = last + 1
    return tuple(sorted(starts)), tuple(sorted(ends))


def _seen_minutes(seen_dates: Sequence[int], installed: Collection[int]) -> frozenset[int]:
    """The minutes of installations, and those next to them, in which a page has a date."""
    minutes = {moment // DEPLOYMENT_SECONDS for moment in seen_dates} if installed else set()
    return frozenset(
        near
        for minute in {moment // DEPLOYMENT_SECONDS for moment in installed}
        for near in (minute - 1, minute, minute + 1)
        if near in minutes
    )


def depends_on_site_signals(page: Page) -> bool:
    """Whether site signals other than soft 404s may affect the page's dates."""
    return page.last_modified is not None or page.stated_date is not None or len(page.content_history) > 1


def changed_since(page: Page, since: int) -> bool:
    """Whether a page was observed to change after a time."""
    if page.stated_date is not None and page.read_at > since:
        return True
    # Loops rather than `any`, which takes twice the time: each page of a block passes here.
    for run in page.last_modified_history:
        if run.first > since:
            return True
    for run in page.content_history:  # noqa: SIM110
        if run.first > since:
            return True
    return False


def deployments(dates: Sequence[History]) -> frozenset[int]:
    """The present and earlier deployments: minutes of which a fifth of the dated pages, and at least three, had a date.

    A fifth is enough, because while workers see the pages move from one deployment's date to the next, neither date is
    that of most pages.
    """
    pages_of_minute = Counter(
        minute for moments in dates for minute in {run.value // DEPLOYMENT_SECONDS for run in moments}
    )
    min_count = max(3, len(dates) / 5)
    if 2 * max(pages_of_minute.values(), default=0) < min_count:  # most sites
        return frozenset()
    return frozenset(
        minute
        for start in pages_of_minute
        if pages_of_minute[start] + pages_of_minute.get(start + 1, 0) >= min_count
        for minute in (start, start + 1)
    )


def deployment_minute(moments: Iterable[int]) -> tuple[int, int]:
    """The first and last second of the minute with most of a site's modification times; (1, 0) if there is none.

    If at least three pages, and more than half of the dated ones, have a date of one minute, then their files were
    copied to the server in that minute rather than written.
    """
    ordered = sorted(moments)
    best, start = (1, 0), 0
    best_count = max(2, len(ordered) // 2)
    if not any(
        later - moment <= DEPLOYMENT_SECONDS for moment, later in zip(ordered, ordered[best_count:], strict=False)
    ):
        return best
    for end, moment in enumerate(ordered):
        while moment - ordered[start] > DEPLOYMENT_SECONDS:
            start += 1
        if end - start + 1 > best_count:
            best_count = end - start + 1
            best = (ordered[start], moment)
    return best
