"""Builds the entries of pages of which nothing was observed, and to which no rule applies, in whole batches.

The policy lists such a page because the values of its route include it, and its entry has what the developer says. All
others are the policy's to evaluate, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from ..checked_options import Options
from ..dates import w3c_column, w3c_from_timestamp
from ..entry import Entry, changefreq_of, lastmod_of, priority_of
from ..evidence.lastmod import lastmod
from ..models import Route, UrlColumns
from ..urls import quote_path
from .policy import EvaluationContext, is_unrestricted, route_changefreq, route_priority
from .provider_item_paths import ProvidedPages


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
        priorities: list[Any] = [*map(priority_of, pages.entries)]
        if (priority := route_priority(self._options, route)) is not None:
            priorities = [priority if given is None else given for given in priorities]
        words: list[Any] = [*map(changefreq_of, pages.entries)]
        default_word = route_changefreq(self._options, route)
        words = [word or default_word for word in words] if any(words) else [default_word] * len(words)
        if (priority == "auto" and "auto" in priorities) or "auto" in {*words}:
            return None  # only evidence can replace it
        base = self._context.snapshot.site.base_url
        locs = [base + path for path in pages.paths]
        return UrlColumns(locs, self._lastmods(route, pages.entries), words, priorities)

    def _is_plain(self, route: Route) -> bool:
        """Whether no option, and no rule of robots.txt, may keep a page of this route from being listed."""
        known = self._plain.get(route)
        if known is None:
            known = self._plain[route] = is_unrestricted(self._options, self._context, route)
        return known

    def _lastmods(self, route: Route, entries: Sequence[Entry]) -> list[str | None]:
        """The lastmod of each entry, or else of the route, as `lastmod` gives it without evidence."""
        of_route = self._lastmod(self._developer_lastmod(route))
        dates = [*map(lastmod_of, entries)]
        if not any(dates):
            return [of_route] * len(dates)
        texts = w3c_column(dates)
        if of_route is not None:
            texts = [of_route if text is None else text for text in texts]
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
