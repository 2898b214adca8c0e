"""Builds the entries of learned pages whose evidence is plain, in columns.

Such a page answered 200, nothing that it said forbids to list it, and no option and no rule of robots.txt concerns it.
All others are the policy's to evaluate, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress
from operator import add, itemgetter, not_
from typing import Any, Final

from ..checked_options import Options
from ..dates import SECONDS_PER_DAY
from ..evidence.lastmod import observed_lastmods
from ..evidence.page_columns import PageBlock, PageColumns
from ..evidence.page_verdict import page_verdict
from ..evidence.soft_404_by_equal_content import SoftNotFounds
from ..models import Page, Route, SitemapUrl, UrlColumns
from ..routing.prefix_index import common_start
from ..urls import MAX_LOC_CHARS, MIN_LOC_CHARS, has_slash_like
from ..yield_to_other_threads import yield_to_other_threads
from .candidates import decode_paths
from .policy import EvaluationContext
from .route_entry_settings import RouteEntrySettings, UnrestrictedRoutes

_MANY_PAGES: Final = 250
"""Pages that take about a millisecond: other threads may run before them."""


class BulkLearnedEntries:
    """Builds the entries of learned pages without a verdict for each."""

    def __init__(
        self, options: Options, context: EvaluationContext, routes: UnrestrictedRoutes, soft_not_founds: SoftNotFounds
    ) -> None:
        """`soft_not_founds` are left out, besides those of the site signals."""
        self._options = options
        self._context = context
        self._routes = routes
        self._soft_not_founds = [*filter(None, (soft_not_founds, context.site_signals.signals.soft_not_founds))]

    def entries(
        self, block: PageBlock, evaluate: Callable[[list[Page]], Iterator[tuple[str, SitemapUrl]]]
    ) -> UrlColumns:
        """The entries of the pages that are listed, in the order of the pages.

        `evaluate` returns the entries of any pages, each with the path of the page.
        """
        others = [*block.others]
        positions: list[int] = []
        entries = UrlColumns([], [], [], [])
        for pages in block.columns:
            if len(pages.paths) >= _MANY_PAGES:
                yield_to_other_threads()
            paths = decode_paths(pages.paths)
            start = common_start(paths)
            route = self._context.snapshot.table.learned_route(self._context.snapshot.site, paths, start)
            settings = None if route is None else self._routes.entry_settings(route)
            if (
                route is None
                or settings is None
                or "auto" in (settings.changefreq, settings.priority)
                or not self._may_be_listed(pages.common)
            ):
                others += pages.rows()
                continue
            odd = self._odd_pages(pages, route, paths, start)
            if True in odd:
                others += compress(pages.rows(), odd)
            selected = pages.select([*map(not_, odd)]) if True in odd else pages
            if selected is not None and self._soft_not_founds:
                selected = selected.select([not self._is_soft_not_found(page) for page in selected.pages()])
            if selected is not None:
                positions += selected.positions
                self._add(entries, selected, settings)
        position_of_path = {page.path: position for position, page in others}
        evaluated = [*evaluate([page for _, page in sorted(others)])]
        positions += [position_of_path[path] for path, _ in evaluated]
        entries = UrlColumns(*map(add, entries, UrlColumns.of([entry for _, entry in evaluated])))
        order = sorted(range(len(positions)), key=positions.__getitem__)
        if order == [*range(len(positions))]:
            return entries
        in_order = itemgetter(*order)  # a half of the time of looking up one after the other
        return UrlColumns(*([*in_order(column)] for column in entries))

    def _may_be_listed(self, common: Page) -> bool:
        """True if pages that share all fields of this one that have no column are listed, apart from odd ones."""
        return page_verdict(common, self._options.media_types, self._context.snapshot.now).listed

    def _odd_pages(self, pages: PageColumns, route: Route, paths: Collection[str], start: str) -> Sequence[bool]:
        """Whether each page has to be evaluated by itself: for its path, or because nobody visits it any more."""
        options, snapshot = self._options, self._context.snapshot
        visited_since = snapshot.now - options.max_age_days * SECONDS_PER_DAY
        own_paths = (options.path,) if options.report is None else (options.path, options.report)
        base_chars = len(snapshot.site.base_url)
        min_chars, max_chars = MIN_LOC_CHARS - base_chars, MAX_LOC_CHARS - base_chars
        lines = "\n".join([*pages.paths, ""])  # a percent-encoded path contains no line break
        if (  # most pages, in a fifth of the time
            min(pages.last_seen) >= visited_since
            and lines.count("/\n") == (pages.count if route.path.endswith("/") else 0)
            and min_chars <= min(map(len, pages.paths))
            and max(map(len, pages.paths)) <= max_chars
            and not any(own.startswith(start) or start.startswith(own) for own in own_paths)
        ):
            return [False] * pages.count
        return [
            last_seen < visited_since
            or not has_slash_like(path, route.path)
            or not min_chars <= len(path) <= max_chars
            or decoded.startswith(own_paths)
            for path, decoded, last_seen in zip(pages.paths, paths, pages.last_seen, strict=True)
        ]

    def _is_soft_not_found(self, page: Page) -> bool:
        return any(found.first_equal_page(page) is not None for found in self._soft_not_founds)

    def _add(self, entries: UrlColumns, pages: PageColumns, settings: RouteEntrySettings) -> None:
        """Add the entries of pages that are all listed."""
        context = self._context
        base = context.snapshot.site.base_url
        words: list[Any] = [settings.changefreq] * pages.count
        priorities: list[Any] = [settings.priority] * pages.count
        entries.locs.extend([base + path for path in pages.paths])
        if settings.has_date:
            entries.lastmods.extend([settings.lastmod] * pages.count)
        else:
            entries.lastmods.extend(observed_lastmods(pages, context.site_signals.signals, context.snapshot.now))
        entries.changefreqs.extend(words)
        entries.priorities.extend(priorities)
