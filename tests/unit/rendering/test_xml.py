"""Documents: entries become XML within the protocol's limits, with an index if one document is not enough."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import w3c
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import CHANGEFREQS, Site, SitemapUrl, UrlColumns
from sitemap_middleware.rendering.chunked_document import sitemapindex, urlset
from sitemap_middleware.rendering.chunking import group_chunks, make_chunks
from sitemap_middleware.rendering.xml import priority_text, render_urls
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT, MAX_URLS_PER_DOCUMENT
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.urls import MAX_LOC_CHARS, loc_of, quote_path

from ...support.documents import entries, locs, parsed
from ...support.sample_sites import Clock, Page, SampleSite

SITE = Site("https", "example.com")
LONGEST = "https://example.com/" + "x" * (MAX_LOC_CHARS - 20)


def urlsets(
    entries: Iterable[SitemapUrl],
    max_urls: int = MAX_URLS_PER_DOCUMENT,
    max_bytes: int = MAX_BYTES_PER_DOCUMENT,
    run: int = 1000,
) -> list[bytes]:
    """As few documents as hold these entries."""
    rows = group_chunks(make_chunks([UrlColumns.of([*entries])], min(run, max_urls)), max_urls, max_bytes)
    return [b"".join(urlset(row).plain()) for row in rows]


@pytest.mark.parametrize(
    ("entry", "xml"),
    [
        (SitemapUrl("https://example.com/"), "<url><loc>https://example.com/</loc></url>\n"),
        (
            SitemapUrl("https://example.com/a?b=1&c='\"<>"),
            "<url><loc>https://example.com/a?b=1&amp;c=&apos;&quot;&lt;&gt;</loc></url>\n",
        ),
        (
            SitemapUrl("https://example.com/", "2024-05-01", "weekly", 0.0),
            (
                "<url><loc>https://example.com/</loc><lastmod>2024-05-01</lastmod>"
                "<changefreq>weekly</changefreq><priority>0.0</priority></url>\n"
            ),
        ),
    ],
)
def test_entry_has_ordered_children_and_an_escaped_loc(entry: SitemapUrl, xml: str) -> None:
    assert render_urls(UrlColumns.of([entry])) == xml


@pytest.mark.parametrize(
    ("priority", "text"),
    [(0, "0.0"), (0.0, "0.0"), (1.0, "1.0"), (0.8, "0.8"), (0.25, "0.25"), (1 / 3, "0.33"), (1e-9, "0.0")],
)
def test_a_priority_is_written_as_a_short_decimal(priority: float, text: str) -> None:
    assert priority_text(priority) == text


def test_no_entries_make_no_document() -> None:
    assert urlsets([]) == []


def test_a_document_knows_its_latest_lastmod() -> None:
    urls = [
        SitemapUrl("https://a.b/1", "2024-05-01"),
        SitemapUrl("https://a.b/2"),
        SitemapUrl("https://a.b/3", "2023-01-01"),
    ]
    document = urlset(list(make_chunks([UrlColumns.of([*urls])], 1)))
    assert document.lastmod == "2024-05-01"


@pytest.mark.parametrize(
    ("count", "parts"),
    [
        (MAX_URLS_PER_DOCUMENT - 1, [MAX_URLS_PER_DOCUMENT - 1]),
        (MAX_URLS_PER_DOCUMENT, [MAX_URLS_PER_DOCUMENT]),
        (MAX_URLS_PER_DOCUMENT + 1, [MAX_URLS_PER_DOCUMENT, 1]),
    ],
)
def test_no_document_holds_more_than_50_000_urls(count: int, parts: list[int]) -> None:
    documents = urlsets(SitemapUrl(f"https://example.com/{number}") for number in range(count))
    assert [document.count(b"<url>") for document in documents] == parts


@pytest.mark.parametrize(("spare", "parts"), [(0, 1), (1, 1), (-1, 2)])
def test_no_document_is_larger_than_the_limit(spare: int, parts: int) -> None:
    urls = [SitemapUrl(f"https://example.com/{number}", "2024-05-01") for number in range(10)]
    (content,) = urlsets(urls)
    documents = urlsets(urls, max_bytes=len(content) + spare, run=1)
    assert len(documents) == parts
    assert all(len(document) <= len(content) + spare for document in documents)


@pytest.mark.once
def test_the_limit_of_bytes_holds_with_the_longest_locs() -> None:
    count = MAX_BYTES_PER_DOCUMENT // len(LONGEST) + 100
    documents = urlsets(SitemapUrl(LONGEST[:-7] + f"{number:07}") for number in range(count))
    assert [len(document) <= MAX_BYTES_PER_DOCUMENT for document in documents] == [True, True]
    assert sum(document.count(b"<url>") for document in documents) == count


def test_an_index_gives_each_document_its_own_lastmod() -> None:
    index = sitemapindex(
        [("https://example.com/sitemap-1.xml", "2024-05-01"), ("https://example.com/sitemap-2.xml", None)]
    )
    assert entries(b"".join(index.plain())) == {
        "https://example.com/sitemap-1.xml": {"lastmod": "2024-05-01"},
        "https://example.com/sitemap-2.xml": {},
    }
    assert index.lastmod == "2024-05-01"


paths = st.text().map(lambda text: "/" + text)


@given(
    st.lists(
        st.tuples(
            paths,
            st.none() | st.dates().map(w3c) | st.datetimes().map(w3c),
            st.none() | st.sampled_from(CHANGEFREQS),
            st.none() | st.floats(0, 1),
        ),
        min_size=1,
        unique_by=lambda row: quote_path(row[0]),
    ),
    st.integers(1, 5),
)
def test_any_entry_is_valid_xml_with_its_meaning_kept(
    rows: list[tuple[str, str | None, str | None, float | None]], max_urls: int
) -> None:
    meant = {}
    urls = []
    for path, lastmod, changefreq, priority in rows:
        quoted = quote_path(path)
        loc = None if quoted is None else loc_of(SITE, quoted)
        if loc is None:
            continue
        urls.append(SitemapUrl(loc, lastmod, changefreq, priority))  # type: ignore[arg-type]
        fields = {
            "lastmod": lastmod,
            "changefreq": changefreq,
            "priority": None if priority is None else priority_text(priority),
        }
        meant[loc] = {name: value for name, value in fields.items() if value is not None}
    documents = urlsets(urls, max_urls=max_urls)
    read: dict[str, dict[str, str]] = {}
    for document in documents:
        part = entries(document)
        assert len(part) <= max_urls
        read |= part
    assert read == meant


@given(st.text(max_size=30))
def test_a_quoted_path_leads_back_to_the_path(text: str) -> None:
    quoted = quote_path("/" + text)
    if quoted is not None:
        assert quoted.isascii()
        assert unquote(urlsplit("https://example.com" + quoted).path) == "/" + text


@pytest.mark.parametrize(
    "path", ["", "x", "/a\x00", "/a\r\nb", "/\ud800", "/" + chr(0xFFFD), "/a/../b", "/.", "/..", "/a/./b", "/\x7f"]
)
def test_a_path_that_no_loc_leads_back_to_has_none(path: str) -> None:
    assert quote_path(path) is None


@pytest.mark.parametrize(("length", "fits"), [(MAX_LOC_CHARS, True), (MAX_LOC_CHARS + 1, False)])
def test_a_loc_has_less_than_2_048_characters(length: int, *, fits: bool) -> None:
    assert (loc_of(SITE, "/" + "x" * (length - 20)) is not None) is fits


# Past one document, through the middleware


def _large(protocol: str, count: int) -> SampleSite:
    store = MemoryStore()
    store.merge(
        "https://example.com",
        [
            Observation(
                f"/p/{n}",
                "/p/{n}",
                1_700_000_000,
                200,
                "text/html",
                last_modified=1_600_000_007 + 300 * n,
                html=HtmlFacts(None),
                learned=True,
            )
            for n in range(count)
        ],
    )
    return SampleSite(
        protocol,
        {"/p/{n}": Page()},
        store=store,
        learn="/p/{n}",
        base_url="https://example.com",
        clock=Clock(1_700_000_100),
    )


@pytest.mark.uncovered
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_past_50_000_urls_there_is_an_index_and_numbered_documents(protocol: str) -> None:
    site = _large(protocol, MAX_URLS_PER_DOCUMENT + 1)
    index = entries(site.request("/sitemap.xml").body)
    assert list(index) == [f"https://example.com/sitemap-pages-{number}.xml" for number in (1, 2)]
    listed = []
    for number, (loc, fields) in enumerate(index.items(), 1):
        answer = site.request(f"/sitemap-pages-{number}.xml", headers=[("accept-encoding", "gzip")])
        assert answer.header("content-encoding") == "gzip"
        body = gzip.decompress(answer.body)
        assert max(entry["lastmod"] for entry in entries(body).values()) == fields["lastmod"], loc
        listed += locs(body)
    assert len(listed) == len(set(listed)) == MAX_URLS_PER_DOCUMENT + 1
    assert listed == [f"https://example.com/p/{number}" for number in range(MAX_URLS_PER_DOCUMENT + 1)]
    assert [site.request(f"/sitemap-pages-{number}.xml").status for number in ("3", "99999")] == [404, 404]
    stats = site.app.stats()
    assert (stats["listed"], stats["documents"]) == (MAX_URLS_PER_DOCUMENT + 1, 3)


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_where_one_document_holds_all_there_are_no_numbered_ones(protocol: str) -> None:
    site = _large(protocol, 3)
    assert parsed(site.request("/sitemap.xml").body).tag.endswith("urlset")
    assert site.request("/sitemap-pages-1.xml").status == 404
    assert site.request("/sitemap-pages-0.xml").body == site.request("/no-such-page").body, (
        "no document can have this name: the app answers"
    )
