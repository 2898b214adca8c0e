"""Canonical links: which of them name the page itself, and what is reported if none does."""

from __future__ import annotations

import pytest

from sitemap_middleware.http.site_urls import is_same_page
from sitemap_middleware.http.urls import canonical_hint
from sitemap_middleware.models import Site

from ..support.sample_sites import Page, SampleSite
from ..support.wire import BOTH

SITE = Site("https", "example.com")
HTML = [("content-type", "text/html; charset=utf-8")]


def naming(url: str, how: str = "html") -> Page:
    if how == "header":
        return Page(200, [*HTML, ("link", f'<{url}>; rel="canonical"')])
    return Page(200, HTML, f'<!doctype html><link rel="canonical" href="{url}"><p>A page.'.encode())


@pytest.mark.parametrize(
    ("reference", "request_host", "same"),
    [
        ("https://example.com/page", "", True),
        ("http://example.com/page", "", True),
        ("https://example.com:443/page", "", True),
        ("https://example.com:8443/page", "", True),
        ("https://www.example.com/page", "", True),
        ("//example.com/page", "", True),
        ("/page", "", True),
        ("page", "", True),
        ("", "", True),
        ("https://example.com/p%61ge", "", True),
        ("https://example.com/page#top", "", True),
        ("https://example.com/page?utm_source=x&utm_medium=y&gclid=1", "", True),
        ("http://app:8000/page", "app:8000", True),
        ("https://shop.test/page", "www.shop.test", True),
        ("http://[2001:db8::1]/page", "[2001:DB8::1]:8000", True),
        ("https://bücher.example/page", "xn--bcher-kva.example", True),
        ("https://example.com/page/", "", False),
        ("https://example.com/other", "", False),
        ("https://example.com/page?lang=en", "", False),
        ("https://example.com/page?utm_source=x&id=1", "", False),
        ("https://example.org/page", "", False),
        ("https://shop.example.com/page", "", False),
        ("https://example.com.evil.example/page", "", False),
        ("https://example.com@evil.example/page", "", False),
        ("https://evil.example/page", "evil.example#", False),
        ("ftp://example.com/page", "", False),
        ("javascript:void(0)", "", False),
        ("https://[broken/page", "", False),
    ],
)
def test_canonical_of_the_page_itself_may_use_a_host_of_the_site_or_the_request(
    reference: str, request_host: str, *, same: bool
) -> None:
    assert is_same_page(SITE, "https://example.com/page", reference, request_host) is same


@pytest.mark.parametrize(
    ("url", "reference", "same"),
    [
        ("page", "https://example.com/shop/page", True),
        ("page", "https://example.com/page", True),
        ("page", "/page", True),
        ("page", "page", True),
        ("page", "https://example.com/shop/shop/page", False),
        ("page", "https://example.com/blog/page", False),
        ("", "https://example.com/", True),
    ],
)
def test_a_root_path_may_be_left_off(url: str, reference: str, *, same: bool) -> None:
    assert is_same_page(Site("https", "example.com", "/shop"), f"https://example.com/shop/{url}", reference) is same


@BOTH
@pytest.mark.parametrize("how", ["html", "header"])
@pytest.mark.parametrize("host", ["example.com", "app:8000", "localhost:5000"])
@pytest.mark.parametrize("named", ["https://example.com/a", "http://example.com/a", "http://{host}/a", "//{host}/a"])
def test_self_canonical_pages_are_listed_under_any_request_host(protocol: str, how: str, host: str, named: str) -> None:
    sample = SampleSite(
        protocol, {"/a": naming(named.format(host=host), how)}, base_url="https://example.com", verify=False
    )
    for _ in range(2):
        sample.request("/a", host=host)
        sample.app.flush()
        assert sample.locs() == ["https://example.com/a"]
        sample.clock.pass_(10_000)


@BOTH
@pytest.mark.parametrize("how", ["html", "header"])
def test_made_up_host_does_not_split_a_page_in_two(protocol: str, how: str) -> None:
    pages = {"/": Page(), "/a": naming("https://elsewhere.example/a", how)}
    sample = SampleSite(protocol, pages, base_url="https://example.com", verify=False)
    for host in ("example.com", "elsewhere.example", "example.com"):
        sample.request("/a", host=host)
        sample.request("/", host=host)
        sample.app.flush()
        sample.clock.pass_(600)
    assert sample.locs() == ["https://example.com/"]


@BOTH
@pytest.mark.parametrize("how", ["html", "header"])
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("named", "cure"),
    [
        ("https://real.example", 'base_url="https://real.example"'),
        ("https://real.example/shop", 'base_url="https://real.example"'),
        ("https://example.com/x", "let the server set the root path"),
        ("nonsense", "correct the canonical links"),
    ],
)
def test_log_and_response_report_that_every_page_names_another_canonical(
    protocol: str, how: str, named: str, cure: str, caplog: pytest.LogCaptureFixture, *, verify: bool
) -> None:
    pages = {path: naming(f"{named}{path}", how) for path in ("/a", "/b")}
    sample = SampleSite(protocol, pages, base_url="https://example.com", verify=verify)
    sample.visit("/a", "/b")
    for _ in range(2):
        answer = sample.request("/sitemap.xml")
        assert answer.status == 404
        assert "canonical" in answer.text
        assert named not in answer.text
        sample.clock.pass_(100)
    (warned,) = [message for message in caplog.messages if "canonical" in message]
    assert f"{named}/a" in warned
    assert cure in warned


@pytest.mark.parametrize("named", ["http://[", "/a", "", "https://real.example/other"])
def test_a_canonical_of_another_path_is_to_be_corrected(named: str) -> None:
    assert "correct the canonical links" in canonical_hint("/a", named)


@BOTH
@pytest.mark.parametrize("how", ["html", "header"])
@pytest.mark.parametrize(
    "named",
    ["", " ", "#", "#top", "javascript:void(0)", "JavaScript:x", "mailto:a@example.com", "data:text/html,x", "tel:1",
     "https://", "https://[broken/page"],
)  # fmt: skip
def test_canonical_that_is_not_a_page_url_is_ignored(protocol: str, how: str, named: str) -> None:
    site = SampleSite(protocol, {"/page": naming(named, how)})
    site.visit("/page")
    assert site.locs() == ["http://testserver/page"]
