"""Site signals: what only many pages together show: deployments and template changes.

A deployment gives all files one modification time, and a template change alters many pages at once. Neither is a change
of one page, but one page alone cannot show the difference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..models import Page
from .dates import timestamp_of_w3c
from .images_and_versions import common_images
from .template_changes import FOREVER, Period, TemplateChanges
from .value_history import History, is_generated

DEPLOYMENT_RULES: Final = ((60, 0.2), (5 * 60, 0.5))
"""Dates of a deployment follow each other within so many seconds, and this share of the dated pages seen since has one.

A fifth is enough, because while workers see the pages move from one deployment's date to the next, neither date is that
of most pages. A slow upload takes minutes from file to file, but then it is of most pages.
"""

MIN_DEPLOYED_PAGES: Final = 3

INSTALLATION_SECONDS: Final = 60
"""How far the dates of a package's files may be from the time of its installation."""

PageDates = tuple[Collection[int], int]
"""The dates of a page, and when one of them was last seen."""


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """Deployments and template changes of a site."""

    deployments: tuple[Period, ...] = ()
    """The first and last date of each deployment, or installation of a package; in order."""
    templates: TemplateChanges = field(default_factory=lambda: TemplateChanges({}))
    common_images: frozenset[str] = frozenset()
    """Images that are the site's rather than a page's."""
    until: int | None = None
    """The time up to which the signals are known, if they come from a sample of the pages; None: all, up to now."""

    def deployed_at(self, moment: int) -> bool:
        """Whether the site's files, or an installed package's, were written to the server at this time."""
        return any(first <= moment <= last for first, last in self.deployments)

    def is_distinguishable(self, moment: int) -> bool:
        """Whether the signals cover a time, so that an edit then can be told from a deployment."""
        return self.until is None or moment <= self.until


def site_signals(
    pages: Iterable[Page],
    files: Iterable[int] = (),
    until: int | None = None,
    *,
    installed: Collection[int] = (),
) -> SiteSignals:
    """The signals of a site, by its observed pages, or a sample of them that shows what was until a time.

    `files` are the modification times of the files that routes serve, and `installed` those of packages.
    """
    dates: list[PageDates] = [({moment}, FOREVER) for moment in files]
    contents: defaultdict[str, list[History]] = defaultdict(list)
    read: list[Page] = []
    for page in pages:
        if page.read_at:
            read.append(page)
        if page.status != 200:
            continue
        if page.last_modified_history and not is_generated(page.last_modified_history):
            dates.append(({run.value for run in page.last_modified_history}, _last_seen(page.last_modified_history)))
        elif page.stated_date:
            dates.append(({timestamp_of_w3c(page.stated_date)}, _last_seen(page.stated_date_history)))
        if page.content_history:
            contents[page.route].append(page.content_history)
    return SiteSignals(deployments(dates, installed), TemplateChanges(contents), common_images(read), until)


def _last_seen(history: History) -> int:
    return max((run.last for run in history), default=0)


def deployments(dates: Sequence[PageDates], installed: Collection[int] = ()) -> tuple[Period, ...]:
    """The deployments that the dates of each page show, and the installations in which a page has a date."""
    ordered = sorted((moment, page) for page, (moments, _) in enumerate(dates) for moment in moments)
    last_seen = sorted(seen for _, seen in dates)
    found: set[Period] = set()
    for moment in installed:
        first, last = moment - INSTALLATION_SECONDS, moment + INSTALLATION_SECONDS
        place = bisect_left(ordered, (first, -1))
        if place < len(ordered) and ordered[place][0] <= last:
            found.add((first, last))
    for gap, share in DEPLOYMENT_RULES:
        start = 0
        for end in range(1, len(ordered) + 1):
            if end < len(ordered) and ordered[end][0] - ordered[end - 1][0] <= gap:
                continue
            pages = {page for _, page in ordered[start:end]}
            seen_since = len(dates) - bisect_left(last_seen, ordered[start][0])  # the others may still get the date
            if len(pages) >= MIN_DEPLOYED_PAGES and len(pages) >= share * seen_since:
                found.add((ordered[start][0], ordered[end - 1][0]))
            start = end
    return tuple(sorted(found))
