"""Site signals: what only many pages together show: deployments and template changes.

A deployment gives all files one modification time, and a template change alters many pages at once. Neither is a change
of one page, but one page alone cannot show the difference.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..models import Page
from .dates import timestamp_of_w3c
from .generated_dates import is_generated
from .template_changes import TemplateChanges
from .value_history import History

DEPLOYMENT_RULES: Final = ((60, 0.2), (5 * 60, 0.5))
"""Dates of a deployment follow each other within so many seconds, and more than this share of the dated pages has one.

A fifth is enough, because while workers see the pages move from one deployment's date to the next, neither date is that
of most pages. A slow upload takes minutes from file to file, but then it is of most pages.
"""

MIN_DEPLOYED_PAGES: Final = 3

INSTALLATION_SECONDS: Final = 60
"""How far the dates of a package's files may be from the time of its installation."""


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """Deployments and template changes of a site."""

    deployments: tuple[tuple[int, int], ...] = ()
    """The first and last date of each deployment, or installation of a package; sorted, without overlaps."""
    templates: TemplateChanges | None = None
    until: int | None = None
    """The time up to which the signals are known, if they come from a sample of the pages; None: all, up to now."""

    def deployed_at(self, moment: int) -> bool:
        """Whether the site's files, or an installed package's, were written to the server at this time."""
        place = bisect_right(self.deployments, (moment, moment))
        return any(first <= moment <= last for first, last in self.deployments[max(0, place - 1) : place + 1])

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
        """The signals about the time before `open_after`; equal tuples mean equal signals."""
        return self.deployments, self.templates.as_tuple() if self.templates else ()

    def own_content_history(self, page: Page) -> History:
        """The page's content history without template changes."""
        return self.templates.own_history(page.route, page.content_history) if self.templates else page.content_history


def site_signals(
    pages: Iterable[Page],
    files: Iterable[int] = (),
    until: int | None = None,
    *,
    installed: Collection[int] = (),
) -> SiteSignals:
    """The signals of a site.

    Args:
        pages: the observed pages, all or a sample, read once and in order. Only those that answer 200 count.
        files: modification times of the files that routes serve, in POSIX seconds.
        until: when the pages were read, if they are a sample.
        installed: when packages were installed, in POSIX seconds.
    """
    dates: list[Collection[int]] = [{moment} for moment in files]
    contents: defaultdict[str, list[History]] = defaultdict(list)
    for page in pages:
        if page.status != 200:
            continue
        if page.last_modified_history and not is_generated(page.last_modified_history):
            dates.append({run.value for run in page.last_modified_history})
        elif page.stated_date:
            dates.append({timestamp_of_w3c(page.stated_date)})
        if page.content_history:
            contents[page.route].append(page.content_history)
    return SiteSignals(
        deployments=deployments(dates, installed),
        templates=TemplateChanges(contents),
        until=until,
    )


def deployments(dates: Sequence[Collection[int]], installed: Collection[int] = ()) -> tuple[tuple[int, int], ...]:
    """The deployments that the dates of pages show, and the installations in which a page has a date.

    Args:
        dates: those of each page, in POSIX seconds.
        installed: when packages were installed, in POSIX seconds.
    """
    ordered = sorted((moment, page) for page, moments in enumerate(dates) for moment in moments)
    found: list[tuple[int, int]] = []
    for moment in installed:
        first, last = moment - INSTALLATION_SECONDS, moment + INSTALLATION_SECONDS
        place = bisect_right(ordered, (first, -1))
        if place < len(ordered) and ordered[place][0] <= last:
            found.append((first, last))
    for gap, share in DEPLOYMENT_RULES:
        start = 0
        for end in range(1, len(ordered) + 1):
            if end < len(ordered) and ordered[end][0] - ordered[end - 1][0] <= gap:
                continue
            pages = {page for _, page in ordered[start:end]}
            if len(pages) >= MIN_DEPLOYED_PAGES and len(pages) >= share * len(dates):
                found.append((ordered[start][0], ordered[end - 1][0]))
            start = end
    merged: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def depends_on_site_signals(page: Page) -> bool:
    """Whether site signals other than soft 404s may affect the page's dates."""
    return page.last_modified is not None or page.stated_date is not None or len(page.content_history) > 1


def changed_since(page: Page, since: int) -> bool:
    """Whether a page was observed to change after a time."""
    if page.stated_date is not None and page.read_at > since:
        return True
    return any(run.first > since for run in (*page.last_modified_history, *page.content_history))
