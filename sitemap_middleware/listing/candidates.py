"""Collects candidates: the URLs of a site that its routes, providers and learned pages give, before evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..entry import Entry
from ..evidence.page_as_of import page_as_of
from ..evidence.page_verdict import is_listable
from ..evidence.soft_404 import NO_SOFT_NOT_FOUNDS, SoftNotFounds, soft_not_founds
from ..models import Page, Provider, Route, Site
from ..request_response import AsyncCollector
from ..robots_parser import RobotsRules
from ..routing.route_table import RouteTable
from ..stores.base import UNLEARNED_BLOCK, Store
from ..urls import has_slash_like, quote_path, toggle_trailing_slash
from ..yield_to_other_threads import in_pieces
from .provider_item_paths import ProvidedPage, ProvidedPages, ProviderReport
from .provider_reader import Providers

_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class

FEW_PAGES: Final = 1000
"""A site with no more pages than this is read as a whole: that is faster than looking up each path of a provider."""


PIECE_PAGES: Final = 250
"""Pages of a block that are worked on at a time, each step in less than a millisecond."""


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
        """What was observed, as of now, of those of these percent-encoded paths that were."""
        found = self.store.find_pages(self.site.store_key, paths)
        return {path: page_as_of(page, self.now) for path, page in found.items()}


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
    """The path of the page of its block that has the same content and is listed instead, if there is one."""


def route_candidates(snapshot: SiteSnapshot, providers: Collection[Provider]) -> list[Candidate]:
    """The static routes, except those of these providers, in the order of their paths."""
    routes = snapshot.table.static(snapshot.site)
    return _with_pages(snapshot, (route for route in routes if route.settings.values not in providers))


class ProvidedBatch(NamedTuple):
    """Pages that a provider enumerates, and what was observed of them."""

    pages: ProvidedPages
    observed: Mapping[str, Page]
    """By percent-encoded path. Most sites have observed few of these pages."""

    def candidates(self) -> list[Candidate]:
        """The pages as candidates, one by one."""
        find = self.observed.get
        return [
            Candidate(page.path, page.route, None if page.loc else find(page.path), entry=page.entry, loc=page.loc)
            for page in self.pages.rows()
        ]


def provider_batches(
    snapshot: SiteSnapshot, providers: Providers, provider: Provider, routes: Sequence[Route], report: ProviderReport
) -> Iterator[ProvidedBatch | list[Candidate]]:
    """The pages that a provider enumerates of its routes, each once, in its order.

    A view may also have static routes, by default parameters. They follow at the end, unless the provider gives them.

    Raises:
        ValuesError: the provider fails.
    """
    site, observed = snapshot.site, _ObservedPages(snapshot)
    static = {route.path: route for route in snapshot.table.static(site) if route.settings.values is provider}
    for pages in providers.pages(site, provider, routes, snapshot.async_collector, report):
        batch = ProvidedBatch(pages, observed.find(pages.paths))
        if pages.locs is None and not any(snapshot.table.is_static(site, path) for path in decode_paths(pages.paths)):
            yield batch
        else:
            rows = (_provided_candidate(snapshot, page, batch.observed, static, report) for page in pages.rows())
            yield [candidate for candidate in rows if candidate is not None]
    yield _with_pages(snapshot, static.values())


def provider_candidates(
    snapshot: SiteSnapshot, providers: Providers, provider: Provider, routes: Sequence[Route], report: ProviderReport
) -> Iterator[Candidate]:
    """The same, one by one."""
    for batch in provider_batches(snapshot, providers, provider, routes, report):
        yield from batch.candidates() if isinstance(batch, ProvidedBatch) else batch


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
        self._store = snapshot.store
        self._site = snapshot.site.store_key
        self._version = 0
        self._all: dict[str, Page] | None = {}
        """All pages of the site in that version; None if they are many."""

    def find(self, paths: Collection[str]) -> Mapping[str, Page]:
        """The observed pages among these paths, and perhaps others."""
        version = self._store.version(self._site)
        if version != self._version:
            self._version = version
            few = sum(block.pages for block in self._store.blocks(self._site)) <= FEW_PAGES
            now, pages = self._snapshot.now, self._store.pages(self._site) if few else None
            self._all = None if pages is None else {page.path: page_as_of(page, now) for page in pages}
        return self._snapshot.find_pages(paths) if self._all is None else self._all


def learned_candidates(snapshot: SiteSnapshot, pages: Iterable[Page]) -> list[Candidate]:
    """Those of these pages, as of now, that are learned from traffic, in the order given."""
    learned, wanted = [], []
    find_route, site = snapshot.table.find_route, snapshot.site
    for page in pages:
        path = page.path
        route = find_route(site, unquote(path) if "%" in path else path)
        if route is not None and not route.static and route.builder is None:
            learned.append((page, route))
            if not has_slash_like(path, route.path):
                wanted.append(toggle_trailing_slash(path))
    if not wanted:
        return [_make(Candidate, (page.path, route, page, None, None, None, None)) for page, route in learned]
    variants = snapshot.find_pages(wanted)
    return [
        Candidate(
            page.path,
            route,
            page,
            toggle_trailing_slash(page.path) if _is_slash_duplicate(page, route, variants) else None,
        )
        for page, route in learned
    ]


def stored_candidates(snapshot: SiteSnapshot, path: str | None = None) -> Iterator[Candidate]:
    """All learned pages of a site, block by block; or only that of a percent-encoded path, which takes as long."""
    store, site = snapshot.store, snapshot.site
    for block in store.blocks(site.store_key):
        if block.number != UNLEARNED_BLOCK:
            pages = [page_as_of(page, snapshot.now) for page in store.block(site.store_key, block.number)]
            wanted = pages if path is None else [page for page in pages if page.path == path]
            candidates = learned_candidates(snapshot, wanted)
            equal_pages = soft_not_founds(in_pieces(pages, PIECE_PAGES)) if candidates else NO_SOFT_NOT_FOUNDS
            yield from _without_equal_pages(equal_pages, candidates)


def _without_equal_pages(equal_pages: SoftNotFounds, candidates: list[Candidate]) -> Iterable[Candidate]:
    """Candidates of a block, each with the page that is listed instead, if it is a soft 404 within the block."""
    if not equal_pages.first_of:
        return candidates
    pages = ((candidate, candidate.page) for candidate in candidates)
    return [
        candidate._replace(equal_page=None if page is None else equal_pages.first_equal_page(page))
        for candidate, page in pages
    ]


def decode_path(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path


def decode_paths(paths: Collection[str]) -> Collection[str]:
    """The same for each of these paths."""
    return [*map(decode_path, paths)] if "%" in "".join(paths) else paths


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
