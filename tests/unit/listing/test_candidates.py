"""Candidates: the URLs of a site before evaluation, and which spelling of a learned page counts."""

from __future__ import annotations

from typing import Any

import flask

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.listing.candidates import (
    Candidate,
    SiteSnapshot,
    provider_candidates,
    route_candidates,
    stored_candidates,
)
from sitemap_middleware.listing.provider_reader import ProviderReport
from sitemap_middleware.models import Site
from sitemap_middleware.observe.ingest import save_observations

from ...support.sample_sites import Clock

SITE = Site("https", "example.com")
NOW = 1_750_000_000


class Shop:
    """An app with learned pages, and with items."""

    def __init__(self, items: Any = (), store: Any = "memory://") -> None:
        app = flask.Flask("shop", static_folder=None)
        app.url_map.strict_slashes = False
        app.add_url_rule("/tags/<slug>", "tag", lambda slug: slug)
        item = sitemap(values=items)(lambda slug="all": slug)
        app.add_url_rule("/items/<slug>", "item", item)
        app.add_url_rule("/items", "item", item, defaults={"slug": "all"})
        app.add_url_rule("/items/sale", "sale", lambda: "Sale")
        self.app = SitemapMiddleware(
            app, base_url="https://example.com", store=store, learn="/tags/*", clock=Clock(NOW)
        )

    def keep(self, *observations: Observation) -> None:
        save_observations(self.app.service.store, SITE.store_key, observations)

    def snapshot(self) -> SiteSnapshot:
        return self.app.service.snapshot(SITE, self.app.service.store)

    def items(self) -> tuple[list[Candidate], ProviderReport]:
        snapshot, report = self.snapshot(), ProviderReport()
        ((provider, routes),) = snapshot.table.providers(SITE).values()
        return [*provider_candidates(snapshot, self.app.service.providers, provider, routes, report)], report


def seen(path: str, digest: int | None = 7, **more: Any) -> Observation:
    read = Observation(path, "/tags/*", NOW, 200, "text/html", is_read=True, digest=digest, learned=True)
    return read._replace(**more)


def test_page_that_is_not_learned_has_no_other_spelling() -> None:
    shop = Shop()
    shop.keep(seen("/tags/a/"), seen("/tags/a"), seen("/items/old"), seen("/gone/a"))
    assert sorted(candidate.path for candidate in stored_candidates(shop.snapshot())) == ["/tags/a", "/tags/a/"]


def test_items_are_candidates_in_their_order_with_what_was_observed_of_them() -> None:
    slugs = [f"n{number}" for number in range(1003)]
    shop = Shop([*slugs, "sale", "k\u00e4se"])
    shop.keep(seen("/items/n1", learned=False), seen("/items", learned=False), seen("/items/k%C3%A4se", learned=False))
    found, report = shop.items()
    assert [candidate.path for candidate in found] == [
        *(f"/items/{slug}" for slug in slugs),
        "/items/k%C3%A4se",
        "/items",
    ]
    assert [candidate.path for candidate in found if candidate.page] == ["/items/n1", "/items/k%C3%A4se", "/items"]
    assert [candidate.route.path for candidate in found[-2:]] == ["/items/<slug>", "/items"]
    assert report.examples == [
        "'sale' was left out: /items/sale is not routed to /items/<slug> (/items/<slug>)",
    ]
    assert found[0].entry is not None, "it is what the provider gave"


def test_static_route_that_its_provider_gives_comes_in_the_providers_order() -> None:
    found, _ = Shop(["b", "all", "a"]).items()
    assert [(candidate.path, candidate.route.path) for candidate in found] == [
        ("/items/b", "/items/<slug>"),
        ("/items", "/items"),
        ("/items/a", "/items/<slug>"),
    ]
    assert all(candidate.entry is not None for candidate in found), "they are what the provider gave"


def test_static_routes_of_other_views_are_candidates_of_their_own() -> None:
    shop = Shop(["a"])
    shop.keep(seen("/items/sale", learned=False))
    ((provider, _),) = shop.snapshot().table.providers(SITE).values()
    (sale,) = route_candidates(shop.snapshot(), [provider])
    assert (sale.path, sale.route.endpoint) == ("/items/sale", "sale")
    assert sale.page is not None
    assert [candidate.path for candidate in route_candidates(shop.snapshot(), [])] == ["/items", "/items/sale"]
