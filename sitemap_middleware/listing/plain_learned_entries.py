"""Builds the entries of learned pages whose evidence is plain, in whole blocks.

Such a page answered 200, nothing that it said forbids to list it, and no option and no rule of robots.txt concerns it.
All others are the policy's to evaluate, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple

from ..checked_options import Options
from ..dates import SECONDS_PER_DAY
from ..evidence.lastmod import lastmod, observed_lastmod
from ..models import Changefreq, Route, SitemapUrl, UrlColumns
from ..urls import MAX_LOC_CHARS, MIN_LOC_CHARS
from .candidates import Candidate, decode_path
from .policy import EvaluationContext, is_unrestricted, route_changefreq, route_priority


class _RouteSettings(NamedTuple):
    """What the entries of a route's pages have in common."""

    has_date: bool
    """Whether the developer dates the pages of the route."""
    lastmod: str | None
    changefreq: Changefreq | None
    priority: float | None


class PlainLearnedEntries:
    """Builds the entries of learned pages without a verdict for each."""

    def __init__(
        self, options: Options, context: EvaluationContext, developer_lastmod: Callable[[Route], date | None]
    ) -> None:
        """`developer_lastmod` returns the lastmod that a route's settings give all its pages."""
        self._options = options
        self._context = context
        self._developer_lastmod = developer_lastmod

    def entries(
        self, candidates: Iterable[Candidate], evaluate: Callable[[Candidate], Iterable[SitemapUrl]]
    ) -> UrlColumns:
        """The entries of the candidates that are listed. `evaluate` returns that of one, if it is listed."""
        context, options = self._context, self._options
        signals, now = context.site_signals.signals, context.snapshot.now
        visited_since = now - options.max_age_days * SECONDS_PER_DAY
        may_be_soft_not_found = bool(signals.soft_not_founds)
        own_paths = (options.path,) if options.report is None else (options.path, options.report)
        base, media_types = context.snapshot.site.base_url, options.media_types
        min_chars, max_chars = MIN_LOC_CHARS - len(base), MAX_LOC_CHARS - len(base)
        route, settings = None, None
        entries = UrlColumns([], [], [], [])
        add_loc, add_lastmod = entries.locs.append, entries.lastmods.append
        add_word, add_priority = entries.changefreqs.append, entries.priorities.append
        for candidate in candidates:
            page = candidate.page
            if candidate.route is not route:
                route = candidate.route
                settings = self._settings(route)
            if (
                settings is None
                or page is None
                or page.status != 200
                or page.media_type not in media_types
                # of all these, none is set on most pages
                or page.noindex
                or page.html_noindex
                or page.private
                or page.obstacle
                or page.html_obstacle
                or page.canonical
                or page.html_canonical
                or page.unconfirmed_answers
                or candidate.slash_variant
                or not (page.expires_at is None and page.html_expires_at is None)
                or page.last_seen < visited_since
                or not min_chars <= len(page.path) <= max_chars
                or decode_path(page.path).startswith(own_paths)
                or (may_be_soft_not_found and signals.soft_not_founds.first_equal_page(page) is not None)
            ):
                for entry in evaluate(candidate):
                    add_loc(entry.loc)
                    add_lastmod(entry.lastmod)
                    add_word(entry.changefreq)
                    add_priority(entry.priority)
                continue
            add_loc(base + page.path)
            add_lastmod(settings.lastmod if settings.has_date else observed_lastmod(page, signals, now))
            add_word(settings.changefreq)
            add_priority(settings.priority)
        return entries

    def _settings(self, route: Route) -> _RouteSettings | None:
        """What the entries of a route's pages have in common; None if the policy has to evaluate each."""
        context, options = self._context, self._options
        priority, word = route_priority(options, route), route_changefreq(options, route)
        if priority == "auto" or word == "auto" or not is_unrestricted(options, context, route):
            return None
        given = self._developer_lastmod(route)
        if given is None:
            return _RouteSettings(False, None, word, priority)
        text = lastmod(given, None, None, context.site_signals.signals, context.snapshot.now).text
        return _RouteSettings(True, text, word, priority)
