"""Content as evidence, through the whole house: pages that send no Last-Modified are dated by what their readers see."""

from __future__ import annotations

import gzip
import zlib
from email.utils import formatdate
from importlib import import_module
from importlib.util import find_spec

import pytest

from sitemap_middleware.evidence.dates import w3c_from_timestamp

from ..support.sample_sites import Page, SampleSite
from ..support.wire import BOTH

DAY = 86_400


def html(content: str, head: str = "", token: object = 0) -> Page:
    return Page(
        body=f"<html><head>{head}</head><body><script>{token}</script><main>{content}</main></body></html>".encode()
    )


def home(site: SampleSite) -> dict[str, str] | None:
    return site.entries().get("http://testserver/")


@BOTH
def test_a_change_that_was_seen_twice_dates_the_page(protocol: str) -> None:
    site = SampleSite(protocol, {"/": html("One")})
    site.visit("/")
    site.clock.pass_(3600)
    site.visit("/")
    assert home(site) == {}, "the first visit is not a change"
    site.clock.pass_(3600)
    site.pages["/"] = html("Two")
    changed = int(site.clock())
    site.visit("/")
    assert home(site) == {}, "a content seen once may be an accident"
    site.clock.pass_(3600)
    site.visit("/")
    assert home(site) == {"lastmod": w3c_from_timestamp(changed)}


@BOTH
def test_content_that_comes_and_goes_dates_nothing(protocol: str) -> None:
    site = SampleSite(protocol, {"/": html("One")})
    for number in range(20):
        site.pages["/"] = html(f"Variant {number % 2}")
        site.visit("/")
        site.clock.pass_(3600)
        assert home(site) == {}


@BOTH
def test_a_template_that_changes_on_all_pages_dates_none_of_them(protocol: str) -> None:
    paths = [f"/{number}" for number in range(10)]
    site = SampleSite(protocol, {path: html(f"Page {path}") for path in paths})
    for _ in range(2):
        site.visit(*paths)
        site.clock.pass_(3600)
    for path in paths:
        site.pages[path] = html(f"Page {path} in a new frame")
    site.pages["/3"] = html("Page /3 in a new frame")
    for _ in range(3):
        for path in paths:
            site.visit(path)
            assert all("lastmod" not in entry for entry in site.entries().values())
            site.clock.pass_(60)
    site.clock.pass_(3600)
    site.pages["/3"] = html("Page 3, edited, in a new frame")
    edited = int(site.clock())
    for _ in range(2):
        site.visit(*paths)
        site.clock.pass_(3600)
    dated = {loc: entry["lastmod"] for loc, entry in site.entries().items() if "lastmod" in entry}
    assert dated == {"http://testserver/3": w3c_from_timestamp(edited)}


@BOTH
def test_overlapping_deployments_do_not_date_pages(protocol: str) -> None:
    paths = [f"/{number}" for number in range(6)]
    site = SampleSite(protocol, {path: Page() for path in paths})
    for number in range(3):
        deployed = formatdate(site.clock() - 7200, usegmt=True)
        for path in paths:
            site.pages[path] = Page().with_headers(("last-modified", deployed))
            site.visit(path)
            if number or path == paths[-1]:
                assert all("lastmod" not in entry for entry in site.entries().values())
        site.clock.pass_(30 * DAY)


@BOTH
def test_a_stated_date_is_believed_unless_it_is_that_of_the_answer(protocol: str) -> None:
    site = SampleSite(
        protocol, {"/": html("One", '<meta property="article:modified_time" content="2024-05-01T10:00:00Z">')}
    )
    site.visit("/")
    assert home(site) == {"lastmod": "2024-05-01T10:00:00Z"}
    for _ in range(3):
        site.clock.pass_(3600)
        now = w3c_from_timestamp(int(site.clock()))
        site.pages["/"] = html("One", f'<meta property="article:modified_time" content="{now}">')
        site.visit("/")
        assert home(site) == {}


@pytest.mark.parametrize("stated", ["2031-01-01", "2031-01-01T10:00:00Z", "1970-01-02"])
def test_stated_dates_in_the_future_or_before_1990_are_left_out_and_explained(stated: str) -> None:
    site = SampleSite("wsgi", {"/": html("One", f'<meta property="article:modified_time" content="{stated}">')})
    site.visit("/")
    assert home(site) == {}
    assert site.app.explain("/").lastmod_source == "the date that the page states cannot be true"


BROTLI = next(filter(find_spec, ("brotli", "brotlicffi")), None)
NOINDEX = '<meta name="robots" content="noindex">'


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, deflate", *(["br"] if BROTLI else [])])
@pytest.mark.parametrize("size", [10, 3_000_000])
def test_page_head_is_read_at_any_size_and_with_any_compression(protocol: str, coding: str, size: int) -> None:
    def compressed(page: Page) -> Page:
        body = page.body
        for name in coding.split(", "):
            compress = {"gzip": gzip.compress, "deflate": zlib.compress}.get(name)
            body = compress(body) if compress else import_module(BROTLI or "").compress(body, quality=1)
        return Page(body=body).with_headers(("content-encoding", coding))

    filler = "".join(f"<p>{number}" for number in range(size // 10))
    site = SampleSite(
        protocol, {"/": compressed(html(filler, NOINDEX)), "/about": compressed(html(filler))}, verify=False
    )
    site.visit("/", "/about")
    assert site.locs() == ["http://testserver/about"]
    assert ("larger than" in site.app.explain("/about").reason) is (size > 640 * 1024)


@BOTH
def test_undecodable_page_is_listed_and_reported_in_log_and_explain(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    page = Page(body=bytes(255 - byte for byte in html("One").body)).with_headers(("content-encoding", "mystery"))
    site = SampleSite(protocol, {"/": page, "/about": page}, verify=False)
    site.visit("/", "/about")
    assert site.locs() == ["http://testserver/", "http://testserver/about"]
    assert [record.message.partition(" (it")[0] for record in caplog.records] == [
        "the HTML of http://testserver/ cannot be read"
    ]
    assert "compressed with 'mystery', for which no decoder is installed" in site.app.explain("/").reason


@BOTH
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (("content-disposition", 'attachment; filename="a.html"'), "it is a download"),
        (("content-disposition", "inline; filename=attachment"), None),
        (("vary", "*"), "(Vary: *)"),
        (("vary", "Accept-Encoding, *"), "(Vary: *)"),
        (("refresh", "0; url=/other"), "it leads to another page at once: /other"),
        (("refresh", "60; url=/other"), None),
        (("refresh", "0; url=/"), None),
        (("x-robots-tag", "unavailable_after: 25 Jun 2010 15:00:00 PST"), "its unavailable_after has passed"),
        (("x-robots-tag", "otherbot: unavailable_after: 25 Jun 2010 15:00:00 PST"), None),
        (("x-robots-tag", "unavailable_after: 31 Dec 2099 00:00:00 GMT"), None),
        ('<meta http-equiv="refresh" content="0;url=/other">', "it leads to another page at once: /other"),
        ('<meta http-equiv="refresh" content="0;url=/">', None),
        ('<meta name="robots" content="unavailable_after: 2010-06-25">', "its unavailable_after has passed"),
        ('<meta name="robots" content="unavailable_after: 2099-06-25">', None),
        ('<base href="/deep/"><link rel="canonical" href="..">', None),
        ('<link rel="canonical" href="/other"><link rel="canonical" href="/another">', None),
    ],
)
def test_headers_and_heads_that_keep_a_page_out(protocol: str, said: str | tuple[str, str], reason: str | None) -> None:
    page = html("One", said) if isinstance(said, str) else html("One").with_headers(said)
    site = SampleSite(protocol, {"/": page, "/about": html("About")}, verify=False)
    site.visit("/", "/about")
    assert ("http://testserver/" in site.locs()) is (reason is None)
    assert reason is None or reason in site.app.explain("/").reason


@BOTH
@pytest.mark.parametrize("where", ["header", "meta"])
@pytest.mark.parametrize("path", ["/", "/posts/one"])
def test_page_is_dropped_when_it_expires_without_a_visit(protocol: str, where: str, path: str) -> None:
    site = SampleSite(protocol, {"/": html("Home"), "/posts/{slug}": html("Post")}, learn="/posts/*", verify=False)
    rule = f"unavailable_after: {formatdate(site.clock() + 2 * DAY, usegmt=True)}"
    head = f'<meta name="robots" content="{rule}">' if where == "meta" else ""
    page = html("One", head)
    site.pages["/" if path == "/" else "/posts/{slug}"] = (
        page if where == "meta" else page.with_headers(("x-robots-tag", rule))
    )
    site.visit(path)
    assert f"http://testserver{path}" in site.locs()
    site.clock.pass_(DAY)
    assert f"http://testserver{path}" in site.locs()
    site.clock.pass_(DAY + 1)
    assert f"http://testserver{path}" not in site.locs()
    assert site.app.explain(path).reason == "its unavailable_after has passed"


@BOTH
def test_a_price_in_json_ld_dates_the_page_and_a_counter_does_not(protocol: str) -> None:
    def priced(price: str, votes: int) -> Page:
        data = f'{{"offers": {{"price": "{price}"}}, "aggregateRating": {{"ratingCount": {votes}}}}}'
        return html("One", f'<script type="application/ld+json">{data}</script>')

    site = SampleSite(protocol, {"/": priced("10", 0)}, verify=False)
    for votes in range(10):
        site.pages["/"] = priced("10", votes)
        site.visit("/")
        site.clock.pass_(3600)
        assert home(site) == {}
    changed = int(site.clock())
    for votes in range(2):
        site.pages["/"] = priced("9.50", votes)
        site.visit("/")
        site.clock.pass_(3600)
    assert home(site) == {"lastmod": w3c_from_timestamp(changed)}
