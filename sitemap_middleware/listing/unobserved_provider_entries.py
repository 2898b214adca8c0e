"""Builds the entries of pages of which nothing was observed, and to which no rule applies, in whole batches.

The policy lists such a page because the values of its route include it, and its entry has what the developer says. All
others are the policy's to evaluate, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import cast

from ..config import Options
from ..dates import w3c_column, w3c_from_timestamp
from ..entry import Entry
from ..evidence.lastmod import lastmod
from ..models import Changefreq, Route, UrlColumns
from ..urls import quote_path
from .policy import EvaluationContext, is_unrestricted, route_changefreq, route_priority
from .provider_pages import ProvidedPages


class UnobservedEntries:
    """Builds the entries of a provider's pages without evaluating each."""

    def __init__(
        self, options: Options, context: EvaluationContext, developer_lastmod: Callable[[Route], date | None]
    ) -> None:
        """`developer_lastmod` returns the lastmod that a route's settings give all its pages."""
        self._options = options
        self._context = context
        self._developer_lastmod = developer_lastmod
        self._own_path = quote_path(options.path)
        self._now = w3c_from_timestamp(context.snapshot.now)
        self._plain: dict[Route, bool] = {}

    def entries(self, pages: ProvidedPages) -> UrlColumns | None:
        """The entry of each page, if nothing was observed of it; None if the policy has to evaluate each."""
        route = pages.routes
        if not isinstance(route, Route) or pages.locs is not None or self._own_path in pages.paths:
            return None
        if not self._is_plain(route):
            return None
        priority, default_word = route_priority(self._options, route), route_changefreq(self._options, route)
        priorities = [priority if entry.priority is None else entry.priority for entry in pages.entries]
        words = [entry.changefreq or default_word for entry in pages.entries]
        if "auto" in priorities or "auto" in words:
            return None
        base = self._context.snapshot.site.base_url
        locs = [base + path for path in pages.paths]
        lastmods = self._lastmods(route, pages.entries)
        # None of them is "auto" any more.
        return UrlColumns(
            locs, lastmods, cast("list[Changefreq | None]", words), cast("list[float | None]", priorities)
        )

    def _is_plain(self, route: Route) -> bool:
        """Whether no option, and no rule of robots.txt, may keep a page of this route from being listed."""
        known = self._plain.get(route)
        if known is None:
            known = self._plain[route] = is_unrestricted(self._options, self._context, route)
        return known

    def _lastmods(self, route: Route, entries: Sequence[Entry]) -> list[str | None]:
        """The lastmod of each entry, or else of the route, as `lastmod` gives it without evidence."""
        of_route = self._lastmod(self._developer_lastmod(route))
        dates = [entry.lastmod for entry in entries]
        if not any(dates):
            return [of_route] * len(dates)
        texts = [of_route if text is None else text for text in w3c_column(dates)]
        today = self._now[:10]
        if max(filter(None, texts)) < today:
            return texts
        return [
            text if moment is None or text is None or text < today else self._lastmod(moment)
            for moment, text in zip(dates, texts, strict=True)
        ]

    def _lastmod(self, moment: date | None) -> str | None:
        context = self._context
        return lastmod(moment, None, None, context.site_signals.signals, context.snapshot.now).text
