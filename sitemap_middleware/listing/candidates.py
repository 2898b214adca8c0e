"""Collects candidates: the URLs of a site that its routes, providers and learned pages give, before evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..evidence.soft_404 import equal_groups, find_equal_pages
from ..http.messages import AsyncCollector
from ..http.robots_parser import RobotsRules
from ..http.urls import path_digest, quote_path
from ..models import Page, Route, Site
from ..options.entry import Entry
from ..routing.route_table import RouteTable
from ..stores.base import UNLEARNED_PART, Store
from ..util import in_pieces

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
    entry: Entry | None = None
    """The item of `values` that it was built from."""
    loc: str | None = None
    """Its loc, if it is a page of a named section."""
    equal_page: str | None = None
    """The path of the page of its part that has the same content and is listed instead, if there is one."""


def learned_candidates(snapshot: SiteSnapshot, pages: Collection[Page]) -> Iterator[Candidate]:
    """Those of these pages that are learned from traffic, in the order given.

    The pages are those of a part: of equal ones among them, which are soft 404s, each gets the page that is listed
    instead.
    """
    find_route, site = snapshot.table.find_route, snapshot.site
    learned = []
    for page in in_pieces(pages, PIECE_PAGES):
        route = find_route(site, decode_path(page.path))
        if route is not None and not route.static and route.builder is None:
            learned.append((page, route))
    equal_pages = equal_pages_of_part(snapshot.store, site, [page for page, _ in learned])
    for page, route in learned:
        yield Candidate(page.path, route, page, equal_page=equal_pages.get(page.path))


def equal_pages_of_part(store: Store, site: Site, pages: Collection[Page]) -> dict[str, str]:
    """By path of those pages of a part that are not listed, as they equal another one: the path of that."""
    groups = equal_groups(in_pieces(pages, PIECE_PAGES))
    if not groups:
        return {}
    around = chain(store.part(site.store_key, UNLEARNED_PART), pages)
    digests = {digest for page in in_pieces(around, PIECE_PAGES) for digest in page.links.split()}
    return find_equal_pages(groups.values(), lambda page: path_digest(site.root + page.path) in digests)


def stored_candidates(snapshot: SiteSnapshot, path: str | None = None) -> Iterator[Candidate]:
    """All learned pages of a site, part by part; or those of the part that has a percent-encoded path."""
    store, site = snapshot.store, snapshot.site.store_key
    for number in sorted(store.parts(site).keys() - {UNLEARNED_PART}):
        pages = store.part(site, number)
        if path is None or any(page.path == path for page in pages):
            yield from learned_candidates(snapshot, pages)


def stored_links(snapshot: SiteSnapshot) -> Iterator[str]:
    """The links of each page of a site that has any."""
    store, site = snapshot.store, snapshot.site.store_key
    for number in sorted(store.parts(site)):
        yield from (page.links for page in in_pieces(store.part(site, number), PIECE_PAGES) if page.links)


def link_digests(snapshot: SiteSnapshot) -> set[str]:
    """The digest of each path that a page of a site links to."""
    return {digest for links in stored_links(snapshot) for digest in links.split()}


def is_linked(site: Site, route: Route, path: str, digests: Collection[str]) -> bool | None:
    """Whether a page links to a percent-encoded path, given the digests of some links; None if that is not known.

    Pages of a route with parameters are often linked from lists such as `/posts?page=2`, which are never read.
    """
    if path_digest(site.root + path) in digests:
        return True
    return False if digests and route.static and path != "/" else None


def decode_path(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path


def with_pages(snapshot: SiteSnapshot, routes: Iterable[Route]) -> list[Candidate]:
    """Static routes as candidates, with what was observed of each. A path that no URL can express is left out."""
    quoted = {path: route for route in routes if (path := quote_path(route.path))}
    pages = snapshot.find_pages(quoted)
    return [Candidate(path, quoted[path], pages.get(path)) for path in sorted(quoted)]
