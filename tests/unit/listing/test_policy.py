"""Which pages are listed, and the reasons that `explain` gives."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.listing import site_signals_cache

from ...support.sample_sites import Page, SampleSite
from ...support.wire import BOTH

BASE = "https://example.com"

Marks = dict[str, Any]

INCLUDED = "listed: the option include matches it, and no response forbids it"
STATIC = "listed: it is a static route, and no response forbids it"


def site(pages: dict[str, Page], marks: Marks | None = None, protocol: str = "wsgi", **options: Any) -> SampleSite:
    return SampleSite(protocol, pages, marks=marks, base_url=BASE, **options)


def reason_for(sample: SampleSite, path: str) -> str:
    """The reason for which a path is listed or not; what the sitemap says agrees with it."""
    listed = f"{BASE}{path}" in sample.locs()  # first, because `explain` requests no robots.txt
    explanation = sample.app.explain(path)
    assert explanation.listed is listed
    return ("listed: " if explanation.listed else "not listed: ") + explanation.reason


# Static routes that nobody has visited


@BOTH
@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("/about", {}, STATIC),
        ("/about", {"list_unseen": False}, "not listed: it was not visited yet, and list_unseen is off"),
        ("/about", {"include": ["/about"], "list_unseen": False}, INCLUDED),
        ("/about", {"exclude": ["/a*"], "include": ["/about"]}, "not listed: the option exclude matches it: '/a*'"),
        (
            "/data.json",
            {},
            "not listed: its suffix stands for application/json, and no visit has shown yet that it is a page",
        ),
        ("/data.json", {"media_types": ["application/json"]}, STATIC),
        ("/map.xml", {"path": "/map.xml"}, "not listed: it is the sitemap itself"),
        ("/robots.txt", {"include": ["/*"], "robots": False}, "not listed: it is robots.txt, which is not a page"),
    ],
)
def test_unvisited_static_route(protocol: str, path: str, options: Any, reason: str) -> None:
    sample = site({path: Page(), "/other": Page()}, protocol=protocol, **options)
    assert reason_for(sample, path) == reason


@pytest.mark.parametrize("sample_pages", [10_000, 4], ids=["small site", "large site"])
@BOTH
def test_equal_pages_of_a_block_are_explained_as_they_are_listed(
    protocol: str, sample_pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", sample_pages)
    sample = SampleSite(protocol, {"/posts/{slug}": Page()}, learn=("/posts/*",), robots=False)
    paths = ["/posts/Rye", "/posts/rye", "/posts/007", "/posts/7", *(f"/posts/own-{number}" for number in range(4))]
    for number, path in enumerate(paths):
        body = f"<!doctype html><main><p>Text {'of two' if number < 2 else 'of bread' * (number // 2 + number)}"
        sample.pages["/posts/{slug}"] = Page(body=body.encode())
        sample.visit(path)
        sample.clock.pass_(1)
    listed_paths = {loc.removeprefix("http://testserver") for loc in sample.locs()}
    assert len(listed_paths) == len(paths) - 1
    assert {path for path in paths if sample.app.explain(path).listed} == listed_paths
    service = sample.app.service
    snapshot = service.snapshot(service.site_resolver.default_site())
    lines = service.url_report([snapshot])
    assert {line.url.removeprefix("http://testserver") for line in lines if line.listed} == listed_paths
    assert sample.app.explain("/posts/rye").reason == ("it has the same content as /posts/Rye, which is listed instead")
