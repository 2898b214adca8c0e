"""Finds the routes whose pages no rule restricts, and what the developer says of all pages of a route."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Literal, NamedTuple

from ..evidence.lastmod import lastmod
from ..models import Changefreq, Route
from ..options.table import Options
from .policy import EvaluationContext, is_unrestricted, route_changefreq, route_priority


class RouteEntrySettings(NamedTuple):
    """What the entries of a route's pages have in common."""

    has_date: bool
    """Whether the developer dates the pages of the route."""
    lastmod: str | None
    changefreq: Changefreq | Literal["auto"] | None
    priority: float | Literal["auto"] | None


class UnrestrictedRoutes:
    """The routes of which no option, and no rule of robots.txt, may keep a page from being listed."""

    def __init__(
        self, options: Options, context: EvaluationContext, developer_lastmod: Callable[[Route], date | None]
    ) -> None:
        """`developer_lastmod` returns the lastmod that a route's settings give all its pages."""
        self._options = options
        self._context = context
        self._developer_lastmod = developer_lastmod
        self._settings: dict[int, RouteEntrySettings | None] = {}
        """By the id of the route."""

    def entry_settings(self, route: Route) -> RouteEntrySettings | None:
        """What the entries of a route's pages have in common; None if the policy has to evaluate each page."""
        if id(route) not in self._settings:
            self._settings[id(route)] = self._read_settings(route)
        return self._settings[id(route)]

    def _read_settings(self, route: Route) -> RouteEntrySettings | None:
        context, options = self._context, self._options
        if not is_unrestricted(options, context, route):
            return None
        given = self._developer_lastmod(route)
        text = lastmod(given, None, None, context.site_signals.signals, context.snapshot.now).text
        return RouteEntrySettings(
            given is not None, text, route_changefreq(options, route), route_priority(options, route)
        )
