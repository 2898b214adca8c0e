"""Surroundings: what only a site's pages together can tell of one of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..dates import CLOCK_SKEW_SECONDS, timestamp_of_w3c
from ..history import OVERLAP_SECONDS, History, without_future
from ..models import Page
from .content_table import ContentTable
from .soft_not_found import NO_SOFT_NOT_FOUNDS, LearnedContents, SoftNotFounds
from .template_changes import TemplateChanges

DEPLOYMENT_SECONDS: Final = 60
"""Seconds within which one deployment writes all its files."""

GENERATED_DATE_SECONDS: Final = 60
"""Seconds within which a Last-Modified could have been made up for the very answer that bears it."""

CLOCK_JITTER_SECONDS: Final = 2
"""Seconds by which the distance of a clock to the clock may vary."""

MIN_STEADY_DATES: Final = 3
"""Dates that show by being as old as each other that a clock makes them."""

OLDER_PAGES_FACTOR: Final = 2
"""How many times as many pages must have kept an older date as bear one of a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """The deployment's minute, what templates changed, and contents that are soft 404s."""

    deployed: tuple[int, int] = (1, 0)
    deployments: frozenset[int] = frozenset()
    """The minutes, since the epoch, of this deployment and of earlier ones."""
    older_from: tuple[int, ...] = ()
    older_to: tuple[int, ...] = ()
    """The first and last moments, each sorted by itself, of the times at which a page was known to bear an older date
    later on; those of one page do not overlap."""
    seen_dates: tuple[int, ...] = ()
    """Every Last-Modified of every page, sorted; clocks left out."""
    installed: frozenset[int] = frozenset()
    """The minutes, since the epoch, around the times at which packages were installed, of those that a page bore."""
    templates: TemplateChanges | None = None
    soft_not_founds: SoftNotFounds = NO_SOFT_NOT_FOUNDS
    until: int | None = None
    """The moment, in POSIX seconds, up to which this was learned of some of the pages; None: of all, up to now."""

    def deployed_at(self, moment: int) -> bool:
        """Whether this is when the site's files were copied to the server, now or at an earlier deployment."""
        minute = moment // DEPLOYMENT_SECONDS
        return self.deployed[0] <= moment <= self.deployed[1] or minute in self.deployments or minute in self.installed

    def is_own_change(self, moment: int) -> bool:
        """Whether three pages at least bore an older date still, well after this moment, and fewer one of its own time.

        Then it is no deployment's, which would have moved them all.
        """
        older = bisect_right(self.older_from, moment) - bisect_left(self.older_to, moment)
        alike = bisect_right(self.seen_dates, moment + OVERLAP_SECONDS) - bisect_left(
            self.seen_dates, moment - OVERLAP_SECONDS
        )
        return older >= max(3, OLDER_PAGES_FACTOR * alike)

    def is_distinguishable(self, moment: int) -> bool:
        """Whether what happened at a moment can be told from what happened to the whole site."""
        return self.until is None or moment <= self.until

    def needs_more_pages(self, moment: int) -> bool:
        """Whether too few pages were read since a moment to tell an edit from a new template."""
        ends = self.templates.unclear_since if self.templates else None
        return ends is not None and moment >= ends

    @property
    def open_after(self) -> int | None:
        """The moment after which more may come to be known of what happened; None where all is known."""
        ends = self.templates.unclear_since if self.templates else None
        return ends if self.until is None else min(self.until, self.until if ends is None else ends)

    def as_tuple(self) -> object:
        """All that this says, but for its echoes, of what was before it is `open`: it is equal where that is."""
        deployed = bool(self.deployments or self.installed or self.deployed[0] <= self.deployed[1])
        borne = (self.older_from, self.older_to, self.seen_dates) if deployed else ()
        templates = self.templates.as_tuple() if self.templates else ()
        return self.deployed, sorted(self.deployments), sorted(self.installed), borne, templates

    def own_content_history(self, page: Page) -> History:
        """The part of a page's contents that is its own doing rather than that of templates."""
        return self.templates.own_history(page.route, page.content_history) if self.templates else page.content_history


def site_signals(
    pages: Iterable[Page],
    files: Iterable[int] = (),
    until: int | None = None,
    *,
    now: int | None = None,
    installed: Collection[int] = (),
) -> SiteSignals:
    """What a site's pages tell together. Of each, no more is kept in mind than that takes.

    Args:
        pages: all that were seen; what is learned is learned of those that answered 200.
        files: modification times of the files that routes serve.
        until: when the pages were as they are here, where they are some of many.
        now: POSIX seconds. What was seen later, by a clock that was ahead, tells nothing. None: all of it counts.
        installed: when packages were installed, in POSIX seconds.
    """
    moments = list(files)
    bearing: list[History] = []
    contents: defaultdict[str, ContentTable] = defaultdict(ContentTable)
    said = LearnedContents()
    for one in pages:
        page = one if now is None else page_as_of(one, now)
        if page.status != 200:
            continue
        timed = is_generated(page.last_modified_history)
        if page.last_modified is not None and not timed:
            moments.append(page.last_modified)
        elif page.stated_date:
            moments.append(timestamp_of_w3c(page.stated_date))
        if page.last_modified_history and not timed:
            bearing.append(page.last_modified_history)
        if page.content_history:
            contents[page.route].add(page.content_history)
            said.add(page)
    older = [span for history in bearing for span in _older_date_spans(history)]
    borne = tuple(sorted([run.value for history in bearing for run in history]))
    return SiteSignals(
        deployed=deployment_minute(moments),
        deployments=deployments(bearing),
        older_from=tuple(sorted([first for first, _ in older])),
        older_to=tuple(sorted([last for _, last in older])),
        seen_dates=borne,
        installed=_seen_minutes(borne, installed),
        soft_not_founds=said.soft_not_founds(alike=until is None),
        templates=TemplateChanges(contents),
        until=until,
    )


def page_as_of(page: Page, now: int) -> Page:
    """A page without the dates and contents that were seen after a moment, by a clock that was ahead."""
    if page.last_seen <= now and page.read_at <= now:
        return page
    moments, contents = without_future(page.last_modified_history, now), without_future(page.content_history, now)
    statements = without_future(page.stated_date_history, now)
    last_modified, stated = page.last_modified, page.stated_date
    if page.last_seen > now + CLOCK_SKEW_SECONDS:
        last_modified = moments[-1].value if moments else None
    if page.read_at > now + CLOCK_SKEW_SECONDS:
        stated = None
    return page._replace(
        last_modified=last_modified,
        stated_date=stated,
        last_modified_history=moments,
        content_history=contents,
        stated_date_history=statements,
    )


def is_generated(moments: History) -> bool:
    """Whether a page's Last-Modified is the time of the answer, as far as is known: it tells nothing of other pages."""
    if any(run.last - run.first >= GENERATED_DATE_SECONDS for run in moments):
        return False
    lags = [run.first - run.value for run in moments]
    return bool(lags) and (max(lags) < GENERATED_DATE_SECONDS or has_steady_age(lags[-MIN_STEADY_DATES:]))


def has_steady_age(lags: Sequence[int]) -> bool:
    """Whether dates were all as old as each other when they were seen first."""
    return len(lags) == MIN_STEADY_DATES and max(lags) - min(lags) <= CLOCK_JITTER_SECONDS


def _older_date_spans(moments: History) -> list[tuple[int, int]]:
    """The first and last of the moments well after which a page bore a date from before; no two spans overlap."""
    spans: list[tuple[int, int]] = []
    for run in sorted(moments):
        first, last = run.value + DEPLOYMENT_SECONDS, run.last - OVERLAP_SECONDS
        if spans:
            first = max(first, spans[-1][1] + 1)
        if first <= last:
            spans.append((first, last))
    return spans


def _seen_minutes(borne: Sequence[int], installed: Collection[int]) -> frozenset[int]:
    """The minutes around those of these times that a page bore within a minute."""
    minutes = {moment // DEPLOYMENT_SECONDS for moment in borne} if installed else set()
    return frozenset(
        near
        for minute in {moment // DEPLOYMENT_SECONDS for moment in installed}
        for near in (minute - 1, minute, minute + 1)
        if near in minutes
    )


def depends_on_site_signals(page: Page) -> bool:
    """Whether anything of surroundings but their echoes decides what is said of a page."""
    return page.last_modified is not None or page.stated_date is not None or len(page.content_history) > 1


def changed_since(page: Page, since: int) -> bool:
    """Whether anything happened to a page after a moment."""
    if page.stated_date is not None and page.read_at > since:
        return True
    return any(run.first > since for run in page.last_modified_history) or any(
        run.first > since for run in page.content_history
    )


def deployments(bearing: Collection[History]) -> frozenset[int]:
    """The minutes that a fifth of the pages with a date, and three at least, bore at some time; by what each bore.

    While pages pass from one deployment's time to the next one's, neither is most pages'.
    """
    borne = Counter([minute for moments in bearing for minute in {run.value // DEPLOYMENT_SECONDS for run in moments}])
    least = max(3, len(bearing) / 5)
    return frozenset(
        minute for start in borne if borne[start] + borne.get(start + 1, 0) >= least for minute in (start, start + 1)
    )


def deployment_minute(moments: Iterable[int]) -> tuple[int, int]:
    """The span of a minute that holds most of a site's modification times, as first and last second; else nothing.

    Three pages or more, and more than half of all that bear a date: that is
    the moment their files were copied to the server, not when they were written.
    An empty span, (1, 0), where there is no such moment.
    """
    ordered = sorted(moments)
    best, start = (1, 0), 0
    most = max(2, len(ordered) // 2)
    for end, moment in enumerate(ordered):
        while moment - ordered[start] > DEPLOYMENT_SECONDS:
            start += 1
        if end - start + 1 > most:
            most = end - start + 1
            best = (ordered[start], moment)
    return best
