"""Site signals: what only many pages together show: deployments, template changes and soft 404s.

A deployment gives all files one modification time, and a template change alters many pages at once. Neither is a change
of one page, but one page alone cannot show the difference. Of pages that are equal only one is listed.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from ..models import Page
from .dates import timestamp_of_w3c
from .images_and_versions import common_images
from .template_changes import FOREVER, TemplateChanges
from .value_history import VOLATILE, History, is_generated

DEPLOYMENT_RULES: Final = ((60, 0.2), (5 * 60, 0.5))
"""Dates of a deployment follow each other within so many seconds, and this share of the dated pages seen since has one.

A fifth is enough, because while workers see the pages move from one deployment's date to the next, neither date is that
of most pages. A slow upload takes minutes from file to file, but then it is of most pages.
"""

MIN_DEPLOYED_PAGES: Final = 3

INSTALLATION_SECONDS: Final = 60
"""How far the dates of a package's files may be from the time of its installation."""

Period = tuple[int, int]
"""A first and a last time, in POSIX seconds."""

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
    """The signals of a site, by its observed pages, or a sample of them that was read at the time `until`.

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


# Soft 404s: learned pages of one route that are equal, or that differ only by words of their own path. A route that
# answers 200 to any path shows no page for these paths: "Nothing is tagged foo", "Nothing is tagged bar". Of equal
# pages only one is listed: one that pages link to, else the first one known. So nobody can delist a page by requesting
# others, nor take its place by requesting another spelling of it first.

MIN_EQUAL_PAGES: Final = 5
"""If a route has this many pages that are equal but for their own paths, only the first is listed. Fewer may be equal
by chance."""

EqualityKey = tuple[int, str, int, str]
"""What equal pages have in common: how many of them show that they are no pages of their own, the route, the content,
and what their paths have in common."""

Rank = tuple[bool, bool, int, int, str]
"""The order of equal pages: whether its trailing slash differs from its route's, whether no page links to it, when the
page was first seen, the number of capital letters in its path, and the path."""


def equal_groups(pages: Iterable[Page]) -> dict[EqualityKey, list[Page]]:
    """Those of some pages that are equal, by what they have in common."""
    groups: defaultdict[EqualityKey, list[Page]] = defaultdict(list)
    for page in pages:
        for key in equality_keys(page):
            groups[key].append(page)
    return {key: group for key, group in groups.items() if len(group) >= key[0]}


def find_equal_pages(
    groups: Iterable[Iterable[Page]], is_linked: Callable[[Page], bool] = lambda _: False
) -> dict[str, str]:
    """The soft 404s of some groups of equal pages, by path: the path of the page that is listed instead."""
    instead: dict[str, Rank] = {}
    for group in groups:
        first, *others = sorted(_rank(page, is_linked) for page in group)
        instead |= {rank[-1]: min(first, instead.get(rank[-1], first)) for rank in others}
    return {path: first[-1] for path, first in instead.items()}


def equality_keys(page: Page) -> Iterator[EqualityKey]:
    """What a page may have in common with others; nothing if it was not learned or may not be listed."""
    if not page.learned or page.status != 200 or page.refusal or not page.content_history:
        return
    content = page.content_history[-1].value
    if content == VOLATILE:
        return
    if page.without_path:
        yield MIN_EQUAL_PAGES, page.route, page.without_path, ""
    yield 2, page.route, content, _plain_path(page.path)
    if page.route.count("{") + page.route.count("<") > 1 and page.route[-1] in "}>":
        yield 2, page.route, content, f"{page.path.rstrip('/').rpartition('/')[0]}/"
    # Of "7-how-to" and "how-to-7" many apps read the number alone.
    folder, _, last = unquote(page.path.rstrip("/")).rpartition("/")
    if numbers := re.findall("[0-9]+", last):
        yield 2, page.route, content, f"{folder}#{'#'.join(numbers)}"


def _rank(page: Page, is_linked: Callable[[Page], bool]) -> Rank:
    has_other_slash = page.path.endswith("/") != page.route.endswith("/")
    return has_other_slash, not is_linked(page), page.first_seen, sum(map(str.isupper, unquote(page.path))), page.path


def _plain_path(path: str) -> str:
    """A decoded path without what different spellings of one path differ in: case, punctuation, zeros, last slash."""
    text = re.sub(r"(?<![0-9.])0+(?=[0-9])|(?<=\.[0-9])0+(?![0-9])", "", unquote(path.rstrip("/")))
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[^\w/]|_", "", text)
