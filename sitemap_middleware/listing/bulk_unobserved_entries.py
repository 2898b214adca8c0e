"""Builds the entries of pages of which nothing was observed, and to which no rule applies, in whole batches.

The policy lists such a page because the values of its route include it, and its entry has what the developer says. All
others are the policy's to evaluate, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from ..dates import w3c, w3c_from_timestamp
from ..entry import Entry, changefreq_of, lastmod_of, priority_of
from ..evidence.lastmod import lastmod
from ..models import Route, UrlColumns
from ..options.table import Options
from ..urls import quote_path
from .policy import EvaluationContext
from .provider_item_paths import ProvidedPages
from .route_entry_settings import UnrestrictedRoutes


class UnobservedEntries:
    """Builds the entries of a provider's pages without evaluating each."""

    def __init__(self, options: Options, context: EvaluationContext, routes: UnrestrictedRoutes) -> None:
        self._context = context
        self._routes = routes
        self._own_path = quote_path(options.path)
        self._now = w3c_from_timestamp(context.snapshot.now)

    def entries(self, pages: ProvidedPages) -> UrlColumns | None:
        """The entry of each page, if nothing was observed of it; None if the policy has to evaluate each."""
        route = pages.routes
        if not isinstance(route, Route) or pages.locs is not None or self._own_path in pages.paths:
            return None
        settings = self._routes.entry_settings(route)
        if settings is None:
            return None
        priorities: list[Any] = [*map(priority_of, pages.entries)]
        if (priority := settings.priority) is not None:
            priorities = [priority if given is None else given for given in priorities]
        words: list[Any] = [settings.changefreq] * len(pages.entries)
        if any(map(changefreq_of, pages.entries)):
            words = [changefreq_of(entry) or settings.changefreq for entry in pages.entries]
        if (priority == "auto" and "auto" in priorities) or "auto" in {*words}:
            return None  # only evidence can replace it
        base = self._context.snapshot.site.base_url
        locs = [base + path for path in pages.paths]
        return UrlColumns(locs, self._lastmods(settings.lastmod, pages.entries), words, priorities)

    def _lastmods(self, of_route: str | None, entries: Sequence[Entry]) -> list[str | None]:
        """The lastmod of each entry, or else of the route, as `lastmod` gives it without evidence."""
        dates = [*map(lastmod_of, entries)]
        if not any(dates):
            return [of_route] * len(dates)
        texts = [None if moment is None else w3c(moment) for moment in dates]
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
