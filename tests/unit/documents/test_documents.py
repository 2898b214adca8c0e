"""Documents over the wire: index and parts, validators, compression, the last good document, and several workers."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from email.utils import formatdate
from pathlib import Path
from typing import Any

import flask
import pytest
from lxml import etree

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.documents import handler, xml
from sitemap_middleware.http.site_urls import loc_of
from sitemap_middleware.http.urls import MAX_LOC_CHARS
from sitemap_middleware.models import Site, SitemapUrl
from sitemap_middleware.stores.base import PART_PAGES, Store
from sitemap_middleware.stores.sqlite import MemoryStore, SQLiteStore

from ...support.documents import entries, locs
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.stores import FrailStore
from ...support.waiting import until
from ...support.wire import BOTH, Answer, RequestSpec, wsgi

NOW = 1_750_000_000
BASE = "https://example.com"
SCHEMAS = Path(__file__).parents[2] / "schemas"


class Shop:
    """An app with static routes and many items, seen by one worker."""

    def __init__(self, items: Callable[[], Any] = list, store: Store | str = "memory://", **options: Any) -> None:
        app = flask.Flask("shop", static_folder=None)
        app.add_url_rule("/", "home", lambda: "<!doctype html><p>Home")
        app.add_url_rule("/items/<slug>", "items", sitemap(values=items)(lambda slug: f"<!doctype html><p>{slug}"))
        self.clock = Clock(NOW)
        self.app = SitemapMiddleware(app, **{"base_url": BASE, "store": store, "clock": self.clock, **options})

    def get(self, path: str = "/sitemap.xml", *, threads: bool = True) -> Answer:
        def server(environ: dict[str, Any], start_response: Any) -> Any:
            return self.app({**environ, "wsgi.multithread": threads}, start_response)

        return wsgi(server, RequestSpec(path, host="example.com"))


def numbered(count: int) -> Callable[[], Iterator[str]]:
    return lambda: (f"n{number}" for number in range(count))


def header(answer: Answer, name: str) -> str | None:
    return dict(answer.headers).get(name)


def is_valid(answer: Answer, kind: str) -> bool:
    schema = etree.XMLSchema(etree.parse(str(SCHEMAS / f"{kind}.xsd")))
    return bool(schema.validate(etree.fromstring(answer.body)))


# One document, or an index


@pytest.mark.parametrize(("count", "documents"), [(9, 1), (10, 3), (21, 5)])
def test_a_document_has_a_bounded_number_of_urls(count: int, documents: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert xml.MAX_ENTRIES == PART_PAGES == 10_000
    monkeypatch.setattr(xml, "MAX_ENTRIES", 10)
    shop = Shop(numbered(count))
    answer = shop.get()
    assert shop.app.stats()["documents"] == documents
    assert is_valid(answer, "urlset" if documents == 1 else "sitemapindex")
    paths = ["/sitemap.xml"] if documents == 1 else [loc.removeprefix(BASE) for loc in locs(answer.body)]
    parts = [shop.get(path) for path in paths]
    assert all(is_valid(part, "urlset") for part in parts)
    found = [loc for part in parts for loc in locs(part.body)]
    assert found == [f"{BASE}/", *(f"{BASE}/items/n{number}" for number in range(count))]
    assert max(len(locs(part.body)) for part in parts) <= 10
    assert shop.get(f"/sitemap-items-{documents}.xml").status == 404


def test_the_index_has_the_latest_date_of_each_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 2)
    dates = [date(2024, 5, 1), datetime(2024, 5, 2, 10, tzinfo=UTC), None, None]
    shop = Shop(lambda: [Entry({"slug": f"n{number}"}, lastmod=day) for number, day in enumerate(dates)])
    found = entries(shop.get().body)
    assert found == {
        f"{BASE}/sitemap-routes-1.xml": {},
        f"{BASE}/sitemap-items-1.xml": {"lastmod": "2024-05-02T10:00:00Z"},
        f"{BASE}/sitemap-items-2.xml": {},
    }


@pytest.mark.parametrize("options", [{}, {"robots": "disallow"}, {"base_url": None, "allowed_hosts": "other.example"}])
def test_a_document_of_the_app_with_a_name_like_ours_is_left_to_the_app(options: dict[str, Any]) -> None:
    shop = Shop(numbered(1), **options)
    shop.app.app.add_url_rule("/<path:page>", "cms", lambda page: f"of the CMS: {page}")
    for _ in range(2):  # before anything was rendered, and when it is known what was
        assert shop.get("/sitemap-pages-1.xml").text == "of the CMS: sitemap-pages-1.xml"
        assert shop.get().status == (404 if options else 200)


def test_a_document_cannot_exceed_the_bytes_of_the_protocol() -> None:
    room = MAX_LOC_CHARS - len(f"{BASE}/")
    longest = loc_of(Site("https", "example.com"), "/" + "'" * (room // len("&apos;")))
    assert longest is not None
    assert loc_of(Site("https", "example.com"), f"{longest.removeprefix(BASE)}''") is None
    (made,) = xml.urlsets([SitemapUrl(longest, "2024-05-01T10:00:00Z", "monthly", 0.25)] * PART_PAGES, "pages-1")
    assert made.size <= 52_428_800


@pytest.mark.parametrize(
    ("url", "line"),
    [
        (SitemapUrl("https://x/a&'b"), "<url><loc>https://x/a&amp;&apos;b</loc></url>"),
        (
            SitemapUrl("https://x/", "2024-05-01", "daily", 0.0),
            "<url><loc>https://x/</loc><lastmod>2024-05-01</lastmod><changefreq>daily</changefreq><priority>0.0</priority></url>",
        ),
        (SitemapUrl("https://x/", priority=0.25), "<url><loc>https://x/</loc><priority>0.25</priority></url>"),
        (SitemapUrl("https://x/", priority=1), "<url><loc>https://x/</loc><priority>1.0</priority></url>"),
    ],
)
def test_children_are_in_the_order_of_the_schema(url: SitemapUrl, line: str) -> None:
    (made,) = xml.urlsets([url], "pages-1")
    assert gzip.decompress(made.gzipped).decode().splitlines()[2] == line


# HTTP; the tables of conditions and codings are in tests/integration/test_scenarios.py


@BOTH
def test_the_documents_of_an_index_have_validators_of_their_own(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 1)
    site = SampleSite(protocol, {"/": Page(), "/about": Page()})
    tags = set()
    for path in ("/sitemap.xml", "/sitemap-routes-1.xml", "/sitemap-routes-2.xml"):
        answer = site.request(path)
        tag = answer.header("etag") or ""
        tags.add(tag)
        assert answer.header("last-modified") == formatdate(NOW, usegmt=True)
        same = site.request(path, headers=[("if-none-match", tag)])
        assert (same.status, same.header("etag"), same.body) == (304, tag, b"")
        zipped = site.request(path, headers=[("accept-encoding", "gzip")])
        assert gzip.decompress(zipped.body) == answer.body
    assert len(tags) == 3


# When parts are rendered again


def test_values_are_read_again_after_max_age_and_after_refresh() -> None:
    calls: list[int] = []

    def items() -> list[str]:
        calls.append(1)
        return ["a"]

    shop = Shop(items, max_age=60)
    for seconds, count in ((0, 1), (30, 1), (40, 2), (10, 2)):
        shop.clock.pass_(seconds)
        assert shop.get().status == 200
        assert len(calls) == count, seconds
    shop.app.refresh()
    shop.get()
    assert len(calls) == 3


@BOTH
def test_a_change_while_slow_values_pause_shows_after_the_pause(protocol: str) -> None:
    def items() -> Iterator[str]:
        site.clock.pass_(5)
        yield from ("a", "b")

    mark = sitemap(values=items)
    site = SampleSite(protocol, {"/{x}": Page()}, marks={"/{x}": mark}, base_url=BASE, max_age=600)
    assert len(site.locs()) == 2
    site.pages["/{x}"] = Page(404)
    site.visit("/b")
    for seconds, count in ((2, 2), (50, 1)):
        site.clock.pass_(seconds)
        assert len(site.locs()) == count, seconds


def test_documents_outlive_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 10)

    def fails() -> list[str]:
        raise RuntimeError("the database is down")

    before = Shop(numbered(11), SQLiteStore(tmp_path / "a"))
    index, part = before.get(), before.get("/sitemap-items-2.xml")
    before.app.close()
    after = Shop(fails, SQLiteStore(tmp_path / "a"))
    assert after.get().body == index.body
    assert after.get("/sitemap-items-2.xml").body == part.body
    assert header(after.get("/sitemap-items-2.xml"), "last-modified") == header(part, "last-modified")


def test_what_a_deployment_no_longer_gives_leaves_with_the_first_sitemap() -> None:
    store, clock, calls = MemoryStore(), Clock(NOW), list[str]()

    def started(name: str, *items: str) -> Shop:
        clock.pass_(5)
        return Shop(lambda: calls.append(name) or items, store, clock=clock)

    before = started("before", "public", "secret")
    assert b"/items/secret" in before.get().body
    workers = [started(name, "public") for name in ("first", "second")]
    clock.pass_(5)
    for worker in workers * 2:
        assert b"/items/secret" not in worker.get().body
        clock.pass_(5)
    assert calls == ["before", "first"], "what another worker has read since they started is not read again"


# Faults


@pytest.mark.parametrize(("threads", "hangs"), [(True, "load"), (True, "version"), (False, "version")])
def test_a_store_that_hangs_delays_a_sitemap_until_its_deadline(
    hangs: str, monkeypatch: pytest.MonkeyPatch, *, threads: bool
) -> None:
    monkeypatch.setattr(handler, "DEADLINE_SECONDS", 0.05)
    items = ["a"]
    store = FrailStore()
    shop = Shop(lambda: list(items), store, robots=False, verify=False)
    good = shop.get()
    store.hangs = hangs
    items.append("b")
    shop.clock.pass_(400)
    assert shop.get(threads=threads).body == good.body
    store.answers.set()
    until(lambda: b"/items/b" in shop.get().body)


def test_damaged_xml_is_rendered_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 10)
    store = MemoryStore()
    shop = Shop(numbered(11), store)
    good = shop.get("/sitemap-items-1.xml")
    key = shop.app.service.site_resolver.sites()[0].base_url
    for damage in (b"", b"damaged", gzip.compress(b"<urlset/>")):
        assert store.load(key, ["documents/xml/items-1"])
        store.save(key, {"documents/xml/items-1": damage})
        other = Shop(numbered(11), store, clock=shop.clock)
        assert other.get("/sitemap-items-1.xml").status == 503
        shop.clock.pass_(400)
        assert other.get("/sitemap-items-1.xml").body == good.body


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'["k", "", 1, "x", []]', b'["k", "", 1, 2, [[1, 2]]]', b"\xff"])
def test_records_that_cannot_be_decoded_are_absent(record: bytes) -> None:
    store = MemoryStore()
    shop = Shop(numbered(2), store)
    good = shop.get()
    key = shop.app.service.site_resolver.sites()[0].base_url
    store.save(key, dict.fromkeys(("documents/values/items", "documents/routes", "documents/"), record))
    assert Shop(numbered(2), store).get().body == good.body


def test_the_request_that_finds_a_loss_gets_the_last_good_sitemap(caplog: pytest.LogCaptureFixture) -> None:
    store = FrailStore()
    shop = Shop(numbered(2), store)
    shop.get()
    shop.app.flush()
    good = shop.get()
    store.reset_after_fork()  # it is empty then
    shop.app.flush()
    assert shop.get().body == good.body
    assert "it was emptied" in caplog.text
    assert shop.get().body == good.body, "static routes are requested again"


# Several workers


def test_two_workers_have_equal_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 10)
    workers = [Shop(numbered(12), SQLiteStore(tmp_path / "a")) for _ in range(2)]
    for path in ("/sitemap.xml", "/sitemap-routes-1.xml", "/sitemap-items-1.xml", "/sitemap-items-2.xml"):
        first, second = (worker.get(path) for worker in workers)
        assert first.status == 200
        assert (first.body, first.headers) == (second.body, second.headers), path


def test_values_show_within_max_age_whichever_worker_read_them_last(tmp_path: Path) -> None:
    items, clock = ["a"], Clock(NOW)
    one, two = (Shop(lambda: items, SQLiteStore(tmp_path / "a"), max_age=300, clock=clock) for _ in range(2))
    for shop, seconds in ((one, 0), (two, 290)):
        clock.pass_(seconds)
        shop.get()
    items.append("b")
    clock.pass_(11)
    for shop in (one, two):
        until(lambda shop=shop: b"/b<" in shop.get().body)


def test_equal_entries_have_equal_etags_in_stores_of_their_own() -> None:
    shops = [Shop(numbered(10)) for _ in range(2)]
    assert len({header(shop.get(), "etag") for shop in shops}) == 1
