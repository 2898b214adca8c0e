"""Candidates: the URLs of a site that routes, values, patterns and pages speak of, before any is judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..entry import Entry
from ..evidence.verdict import is_listable
from ..http import AsyncCollector
from ..models import Page, Provider, Route, Site
from ..robots_parser import RobotsRules
from ..routing.url_map import RouteTable
from ..stores.base import Store
from ..urls import has_slash_like, quote_path, toggle_trailing_slash
from .providers import ProviderReport, Providers

LOOKUP_BATCH_PAGES: Final = 500
"""Pages that are looked up in the store at one time."""


@dataclass(frozen=True, slots=True)
class SiteSnapshot:
    """All that a site's sitemap is made of, as it is at one moment."""

    site: Site
    table: RouteTable
    store: Store
    """Where its pages are."""
    rules: RobotsRules
    now: int
    """POSIX seconds."""
    async_collector: AsyncCollector | None = None
    """What takes from async providers on the app's own event loop, where it is at hand."""


class Candidate(NamedTuple):
    """A URL that may be listed: its route, what was seen of it, and what its route's values say of it, if anything."""

    path: str
    """Percent-encoded."""
    route: Route
    page: Page | None
    slash_variant: str | None = None
    """The path, with or without a slash at the end, under which the very same page is listed instead."""
    entry: Entry | None = None
    """What the developer says of this page, where the values of its route enumerate it."""


def route_candidates(state: SiteSnapshot, providers: Collection[Provider]) -> list[Candidate]:
    """The static routes that none of these providers gives, in the order of their paths."""
    return _with_pages(
        state, (route for route in state.table.static(state.site) if route.settings.values not in providers)
    )


def _with_pages(state: SiteSnapshot, routes: Iterable[Route]) -> list[Candidate]:
    quoted = {path: route for route in routes if (path := quote_path(route.path))}
    pages = state.store.find_pages(state.site.store_key, quoted)
    return [Candidate(path, quoted[path], pages.get(path)) for path in sorted(quoted)]


def provider_candidates(
    state: SiteSnapshot, values: Providers, provider: Provider, routes: Sequence[Route], report: ProviderReport
) -> Iterator[Candidate]:
    """What a provider gives of its routes, each page once, in its order; `ValuesError` where it fails.

    Static routes of the same view, which are given by default parameters, come last where they are not.
    """
    static = {route.path: route for route in state.table.static(state.site) if route.settings.values is provider}
    given = values.pages(state.site, provider, routes, state.async_collector, report)
    while batch := list(islice(given, LOOKUP_BATCH_PAGES)):
        pages = state.store.find_pages(state.site.store_key, [one.path for one in batch])
        for one in batch:
            path = decode_path(one.path)
            route = static.pop(path, None) or one.route
            if route.static or not state.table.is_static(state.site, path):
                yield Candidate(one.path, route, pages.get(one.path), entry=one.entry)
    yield from _with_pages(state, static.values())


def learned_candidates(state: SiteSnapshot, pages: Iterable[Page]) -> list[Candidate]:
    """The pages of which only traffic speaks, in the order given; others are passed over."""
    found = []
    for page in pages:
        route = state.table.find_route(state.site, decode_path(page.path))
        if route is not None and not route.static and route.builder is None:
            found.append((page, route))
    unlike = [toggle_trailing_slash(page.path) for page, route in found if not has_slash_like(page.path, route.path)]
    twins = state.store.find_pages(state.site.store_key, unlike) if unlike else {}
    return [
        Candidate(
            page.path,
            route,
            page,
            toggle_trailing_slash(page.path) if _is_slash_duplicate(page, route, twins) else None,
        )
        for page, route in found
    ]


def _is_slash_duplicate(page: Page, route: Route, twins: Mapping[str, Page]) -> bool:
    """Whether a page shows what its twin does, and it is not the one spelled as its route is."""
    if has_slash_like(page.path, route.path) or not (page.learned and page.contents):
        return False
    twin = twins.get(toggle_trailing_slash(page.path))
    if twin is None or not is_listable(twin):
        return False
    return bool(twin.contents) and page.contents[-1].value == twin.contents[-1].value


def decode_path(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path
