"""Collects candidates: the URLs of a site that its routes, providers and learned pages give, before evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..evidence.page_verdict import is_listable
from ..evidence.soft_404 import NO_SOFT_NOT_FOUNDS, soft_not_founds
from ..http.messages import AsyncCollector
from ..http.robots_parser import RobotsRules
from ..http.urls import has_slash_like, quote_path, toggle_trailing_slash
from ..models import Page, Provider, Route, Site
from ..options.entry import Entry
from ..routing.route_table import RouteTable
from ..stores.base import UNLEARNED_PART, Store
from ..util import in_pieces
from .provider_item_paths import ProvidedPage, ProviderReport
from .provider_reader import Providers

FEW_PAGES: Final = 1000
"""A site with no more pages than this is read as a whole: that is faster than looking up each path of a provider."""

PIECE_PAGES: Final = 250
"""Pages of a part that are worked on at a time, each step in less than a millisecond."""


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

    def find_pages(self, paths: Collection[str]) -> dict[str, Page]:
        """What was observed of those of these percent-encoded paths that were."""
        return self.store.find(self.site.store_key, paths)


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
    equal_page: str | None = None
    """The path of the page of its part that has the same content and is listed instead, if there is one."""


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
    site, observed = snapshot.site, _ObservedPages(snapshot)
    static = {route.path: route for route in snapshot.table.static(site) if route.settings.values is provider}
    for pages in providers.pages(site, provider, routes, snapshot.async_collector, report):
        known = observed.find([page.path for page in pages])
        for page in pages:
            candidate = _provided_candidate(snapshot, page, known, static, report)
            if candidate is not None:
                yield candidate
    yield from _with_pages(snapshot, static.values())


def _provided_candidate(
    snapshot: SiteSnapshot,
    page: ProvidedPage,
    observed: Mapping[str, Page],
    static: dict[str, Route],
    report: ProviderReport,
) -> Candidate | None:
    """One page as a candidate; None if it is that of another route."""
    path = decode_path(page.path)
    if page.loc is not None:
        if (owner := snapshot.table.find_route(snapshot.site, path)) is None:
            return Candidate(page.path, page.route, None, entry=page.entry, loc=page.loc)
        report.skip(page.loc, f"it is a page of the app's own route {owner.path}, which is listed as such")
        return None
    route = static.pop(path, None) or page.route
    # The path of a static route of another view is a candidate of that route.
    if not route.static and snapshot.table.is_static(snapshot.site, path):
        return None
    return Candidate(page.path, route, observed.get(page.path), entry=page.entry)


class _ObservedPages:
    """Finds what was observed of the pages of a provider."""

    def __init__(self, snapshot: SiteSnapshot) -> None:
        self._snapshot = snapshot
        store, site = snapshot.store, snapshot.site.store_key
        parts = store.parts(site)
        self._all: dict[str, Page] | None = None
        """All pages of the site; None if they are many."""
        if sum(state.pages for state in parts.values()) <= FEW_PAGES:
            pages = (page for number in parts for page in store.part(site, number))
            self._all = {page.path: page for page in pages}

    def find(self, paths: Collection[str]) -> Mapping[str, Page]:
        """The observed pages among these paths, and perhaps others."""
        return self._snapshot.find_pages(paths) if self._all is None else self._all


def learned_candidates(snapshot: SiteSnapshot, pages: Collection[Page]) -> Iterator[Candidate]:
    """Those of these pages that are learned from traffic, in the order given.

    The pages are those of a part: of equal ones among them, which are soft 404s, each gets the page that is listed
    instead. So those of a large site are found whose signals come from some of its pages.
    """
    find_route, site = snapshot.table.find_route, snapshot.site
    learned, wanted = [], []
    for page in in_pieces(pages, PIECE_PAGES):
        route = find_route(site, decode_path(page.path))
        if route is not None and not route.static and route.builder is None:
            learned.append((page, route))
            if not has_slash_like(page.path, route.path):
                wanted.append(toggle_trailing_slash(page.path))
    equal_pages = soft_not_founds(in_pieces(pages, PIECE_PAGES)) if learned else NO_SOFT_NOT_FOUNDS
    variants = snapshot.find_pages(wanted) if wanted else {}
    for page, route in learned:
        variant = toggle_trailing_slash(page.path) if _is_slash_duplicate(page, route, variants) else None
        yield Candidate(page.path, route, page, variant, equal_page=equal_pages.first_equal_page(page))


def stored_candidates(snapshot: SiteSnapshot, path: str | None = None) -> Iterator[Candidate]:
    """All learned pages of a site, part by part; or only that of a percent-encoded path, which takes as long."""
    store, site = snapshot.store, snapshot.site.store_key
    for number in sorted(store.parts(site)):
        if number != UNLEARNED_PART:
            pages = store.part(site, number)
            if path is None or any(page.path == path for page in pages):
                candidates = learned_candidates(snapshot, pages)
                yield from (candidate for candidate in candidates if path in (None, candidate.path))


def decode_path(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path


def _with_pages(snapshot: SiteSnapshot, routes: Iterable[Route]) -> list[Candidate]:
    """Static routes as candidates, with what was observed of each. A path that no URL can express is left out."""
    quoted = {path: route for route in routes if (path := quote_path(route.path))}
    pages = snapshot.find_pages(quoted)
    return [Candidate(path, quoted[path], pages.get(path)) for path in sorted(quoted)]


def _is_slash_duplicate(page: Page, route: Route, variants: Mapping[str, Page]) -> bool:
    """Whether the same content is listed under the path whose trailing slash is that of the route's template."""
    if has_slash_like(page.path, route.path) or not (page.learned and page.content_history):
        return False
    variant = variants.get(toggle_trailing_slash(page.path))
    if variant is None or not is_listable(variant):
        return False
    return bool(variant.content_history) and page.content_history[-1].value == variant.content_history[-1].value
