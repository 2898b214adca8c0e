"""Collects candidates: the URLs of a site that its routes, providers and learned pages give, before evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..entry import Entry
from ..evidence.verdict import is_listable
from ..models import Page, Provider, Route, Site
from ..request_response import AsyncCollector
from ..robots_parser import RobotsRules
from ..routing.route_table import RouteTable
from ..stores.base import UNLEARNED_BLOCK, Store
from ..urls import has_slash_like, quote_path, toggle_trailing_slash
from .provider_reader import ProviderReport, Providers

LOOKUP_BATCH_PAGES: Final = 500
"""Pages that are looked up in the store at one time."""


@dataclass(frozen=True, slots=True)
class SiteSnapshot:
    """The inputs of a site's sitemap at one moment."""

    site: Site
    table: RouteTable
    store: Store
    """The store that has its pages."""
    rules: RobotsRules
    now: int
    """POSIX seconds."""
    async_collector: AsyncCollector | None = None
    """Reads async providers on the app's own event loop; None if that loop is out of reach."""


class Candidate(NamedTuple):
    """A URL that may be listed, its route, and what was observed of it or given by the developer."""

    path: str
    """Percent-encoded."""
    route: Route
    page: Page | None
    slash_variant: str | None = None
    """The path with the other trailing slash, if the same page is listed under that one instead."""
    entry: Entry | None = None
    """The item of `values` that it was built from."""
    loc: str | None = None
    """Its loc, if it is a page of a named section."""


def route_candidates(snapshot: SiteSnapshot, providers: Collection[Provider]) -> list[Candidate]:
    """The static routes, except those of these providers, in the order of their paths."""
    routes = snapshot.table.static(snapshot.site)
    return _with_pages(snapshot, (route for route in routes if route.settings.values not in providers))


def provider_candidates(
    snapshot: SiteSnapshot, providers: Providers, provider: Provider, routes: Sequence[Route], report: ProviderReport
) -> Iterator[Candidate]:
    """The pages that a provider enumerates of its routes, each once, in its order.

    A view may also have static routes, by default parameters. They follow at the end, unless the provider gives them.

    Raises:
        ValuesError: the provider fails.
    """
    site, store = snapshot.site, snapshot.store
    static = {route.path: route for route in snapshot.table.static(site) if route.settings.values is provider}
    provided = providers.pages(site, provider, routes, snapshot.async_collector, report)
    while batch := list(islice(provided, LOOKUP_BATCH_PAGES)):
        pages = store.find_pages(site.store_key, [page.path for page in batch])
        for page in batch:
            path = decode_path(page.path)
            if page.loc is not None:
                if (owner := snapshot.table.find_route(site, path)) is None:
                    yield Candidate(page.path, page.route, None, entry=page.entry, loc=page.loc)
                else:
                    report.skip(page.loc, f"it is a page of the app's own route {owner.path}, which is listed as such")
                continue
            route = static.pop(path, None) or page.route
            # The path of a static route of another view is a candidate of that route.
            if route.static or not snapshot.table.is_static(site, path):
                yield Candidate(page.path, route, pages.get(page.path), entry=page.entry)
    yield from _with_pages(snapshot, static.values())


def learned_candidates(snapshot: SiteSnapshot, pages: Iterable[Page]) -> list[Candidate]:
    """Those of these pages that are learned from traffic, in the order given."""
    learned = []
    for page in pages:
        route = snapshot.table.find_route(snapshot.site, decode_path(page.path))
        if route is not None and not route.static and route.builder is None:
            learned.append((page, route))
    wanted = [toggle_trailing_slash(page.path) for page, route in learned if not has_slash_like(page.path, route.path)]
    variants = snapshot.store.find_pages(snapshot.site.store_key, wanted) if wanted else {}
    return [
        Candidate(
            page.path,
            route,
            page,
            toggle_trailing_slash(page.path) if _is_slash_duplicate(page, route, variants) else None,
        )
        for page, route in learned
    ]


def stored_candidates(snapshot: SiteSnapshot) -> Iterator[Candidate]:
    """All learned pages of a site, block by block."""
    store, site = snapshot.store, snapshot.site
    for block in store.blocks(site.store_key):
        if block.number != UNLEARNED_BLOCK:
            yield from learned_candidates(snapshot, store.block(site.store_key, block.number))


def decode_path(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path


def _with_pages(snapshot: SiteSnapshot, routes: Iterable[Route]) -> list[Candidate]:
    """Static routes as candidates, with what was observed of each. A path that no URL can express is left out."""
    quoted = {path: route for route in routes if (path := quote_path(route.path))}
    pages = snapshot.store.find_pages(snapshot.site.store_key, quoted)
    return [Candidate(path, quoted[path], pages.get(path)) for path in sorted(quoted)]


def _is_slash_duplicate(page: Page, route: Route, variants: Mapping[str, Page]) -> bool:
    """Whether the same content is listed under the path whose trailing slash is that of the route's template."""
    if has_slash_like(page.path, route.path) or not (page.learned and page.content_history):
        return False
    variant = variants.get(toggle_trailing_slash(page.path))
    if variant is None or not is_listable(variant):
        return False
    return bool(variant.content_history) and page.content_history[-1].value == variant.content_history[-1].value
