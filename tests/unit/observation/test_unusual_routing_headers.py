"""Headers that claim another URL, host or scheme: apps may believe them, so one stranger's request proves little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import Site
from sitemap_middleware.observation.unusual_routing_headers import MAX_COUNTED_ANSWERS, UsualHeaders, doubtful_evidence
from sitemap_middleware.request_filter.header_rules import MAX_CACHED_NAMES, HeaderRuleCache, is_routing_header
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.collection_sizes import collections_of
from ...support.sample_sites import Page, SampleSite
from .test_varying_content_prober import Site as ProbedSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("content-type", "text/html; charset=utf-8")]
BASE = "https://example.com"

CLAIMS = [
    ("x-original-url", "/nothing"),
    ("x-original-url", "https://example.com/nothing?a=b"),
    ("x-original-url", "http://["),
    ("x-original-uri", "/nothing"),
    ("x-rewrite-url", "/nothing"),
    ("x-forwarded-prefix", "/x"),
    ("x-forwarded-port", "81"),
    ("x-forwarded-proto", "gopher"),
    ("x-forwarded-proto", "http"),
    ("x-forwarded-scheme", "http"),
    ("x-forwarded-ssl", "off"),
    ("x-forwarded-path", "/nothing"),
    ("x-forwarded-uri", "/nothing"),
    ("x-forwarded-server", "example.org"),
    ("x-scheme", "http"),
    ("x-url-scheme", "http"),
    ("x-script-name", "/x"),
    ("script-name", "/x"),
    ("forwarded", "proto=http;for=192.0.2.7"),
    ("front-end-https", "off"),
    ("x-tenant", "nobody"),
    ("x-forwarded-host", "www.example.com"),
    ("x-original-host", "example.com."),
    ("forwarded", 'for=192.0.2.7;host="www.example.com"'),
]
ANSWERS = {
    "404": Page(404),
    "410": Page(410),
    "301": Page(301, [*HTML, ("location", "/elsewhere")]),
    "403": Page(403),
    "noindex": Page(200, [*HTML, ("x-robots-tag", "noindex")]),
    "private": Page(200, [*HTML, ("cache-control", "private")]),
    "download": Page(200, [*HTML, ("content-disposition", "attachment")]),
    "expiry": Page(200, [*HTML, ("x-robots-tag", "unavailable_after: 2000-01-01")]),
    "canonical": Page(200, [*HTML, ("link", "<https://example.com/x>; rel=canonical")]),
    "json": Page(200, [("content-type", "application/json")], b"{}"),
    "meta noindex": Page(body=b"<!doctype html><title>t</title><meta name=robots content=noindex><p>Nothing."),
    "link canonical": Page(body=b"<!doctype html><title>t</title><link rel=canonical href=/x><p>Nothing."),
    "refresh": Page(body=b'<!doctype html><title>t</title><meta http-equiv=refresh content="0;url=/x"><p>Nothing.'),
}


def site(protocol: str, **options: Any) -> SampleSite:
    pages = {
        path: Page(body=f"<!doctype html><title>t</title><p>The page {path}.".encode()) for path in ("/", "/a", "/b")
    }
    return SampleSite(protocol, pages, base_url=BASE, list_unseen=False, **options)


def asked(sample: SampleSite, path: str, answer: Page | None = None, **spec: Any) -> None:
    """Request a page ten seconds later, which answers this time in another way."""
    sample.clock.pass_(10)
    usual = sample.pages[path]
    sample.pages[path] = answer or usual
    sample.request(path, host=spec.pop("host", "example.com"), scheme="https", **spec)
    sample.app.flush()
    sample.pages[path] = usual


def listed(sample: SampleSite) -> list[str]:
    return [loc.removeprefix(BASE) for loc in sample.locs()]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("claim", CLAIMS, ids=": ".join)
@pytest.mark.parametrize("restarts", [False, True], ids=["", "first request after a restart"])
def test_one_request_with_an_unusual_header_delists_nothing(
    protocol: str, claim: tuple[str, str], *, restarts: bool
) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store)
    for path in sample.pages:
        asked(sample, path)
    if restarts:
        sample = site(protocol, store=store, clock=sample.clock)
    for answer in ANSWERS.values():
        asked(sample, "/a", answer, headers=[claim])
        assert listed(sample) == ["/", "/a", "/b"]
    sample.clock.pass_(3600)  # so that contents are read again
    before = sample.entries()
    asked(sample, "/a", Page(body=b"<!doctype html><title>t</title><p>Another text."), headers=[claim])
    assert sample.entries() == before, "its content is not news"


@BOTH
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_normal_request_delists_at_once_what_an_unusual_one_did_not(protocol: str, answer: Page) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, path)
    asked(sample, "/a", answer, headers=[("x-original-url", "/nothing")])
    for _ in range(2):  # some answers need another visitor
        sample.clock.pass_(3600)
        asked(sample, "/a", answer)
    assert listed(sample) == ["/", "/b"]
    asked(sample, "/a", headers=[("x-original-url", "/nothing")])
    assert listed(sample) == ["/", "/b"], "the answer may be another page's"
    sample.clock.pass_(3600)
    asked(sample, "/a")
    assert listed(sample) == ["/", "/a", "/b"]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("claim", CLAIMS, ids=": ".join)
@pytest.mark.parametrize("host", ["example.com", "app:8000"])
def test_a_proxy_that_always_sends_a_header_delists_at_once(protocol: str, claim: tuple[str, str], host: str) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, path, headers=[claim], host=host)
    assert listed(sample) == ["/", "/a", "/b"]
    asked(sample, "/a", Page(404), headers=[claim], host=host)
    assert listed(sample) == ["/", "/b"]
    asked(sample, "/b", ANSWERS["noindex"], headers=[claim], host=host)
    assert listed(sample) == ["/"]
    asked(sample, "/", Page(404), headers=[claim, ("x-real-url", "/nothing")], host=host)
    assert listed(sample) == ["/"], "the other header is a stranger's"


@BOTH
@pytest.mark.parametrize(
    "headers",
    [
        lambda number: [("forwarded", f"for=192.0.2.{number};by=proxy;proto=https;host=example.com")],
        lambda number: [("x-forwarded-port", str(40_000 + number))],
        lambda number: [("x-original-url", f"https://example.com/shop/{number}")],
        lambda number: [
            ("x-original-url", f"/shop{'/' if number % 3 == 0 else '/a' if number % 3 == 1 else '/b'}?q={number}")
        ],
    ],
    ids=["addresses", "a port of its own", "other paths", "the path below a prefix"],
)
def test_a_header_whose_value_always_differs_is_usual(protocol: str, headers: Any) -> None:
    sample = site(protocol)
    for number, path in enumerate([*sample.pages, *sample.pages]):
        asked(sample, path, headers=headers(number))
    asked(sample, "/a", Page(404), headers=headers(7))
    assert listed(sample) == ["/", "/b"]


@BOTH
@pytest.mark.parametrize(("header", "is_learned"), [("x-original-url", False), ("x-forwarded-proto", True)])
def test_a_page_is_not_learned_by_the_answer_of_another(protocol: str, header: str, *, is_learned: bool) -> None:
    sample = site(protocol)
    asked(sample, "/")
    asked(sample, "/a", headers=[(header, "http")])
    assert listed(sample) == (["/", "/a"] if is_learned else ["/"])


@BOTH
def test_unknown_pages_do_not_become_known_by_an_unusual_request_that_fails(protocol: str) -> None:
    store = MemoryStore()
    sample = site(protocol, store=store)
    asked(sample, "/")
    asked(sample, "/a", Page(404), headers=[("x-original-url", "/nothing")])
    assert [page.path for page in store.pages(Site("https", "example.com").store_key)] == ["/"]


@BOTH
def test_two_visitors_confirm_an_answer_to_unusual_requests(protocol: str) -> None:
    sample = site(protocol)
    for path in sample.pages:
        asked(sample, path)
    for agent in ("Ada", "Ben"):
        sample.clock.pass_(60)
        asked(sample, "/a", Page(404), headers=[("x-forwarded-prefix", "/x"), ("user-agent", agent)])
    assert listed(sample) == ["/", "/b"]


@BOTH
def test_learned_page_that_refuses_a_stranger_is_dropped_whatever_the_headers(protocol: str) -> None:
    sample = SampleSite(protocol, {"/p/{slug}": Page()}, learn="/p/{slug}", base_url=BASE)
    asked(sample, "/p/{slug}")
    sample.pages["/p/{slug}"] = Page(403)
    sample.request("/p/{slug}", host="example.com", headers=[("x-forwarded-prefix", "/x")])
    assert listed(sample) == []


@BOTH
@pytest.mark.parametrize("status", [404, 410, 403])
def test_probe_lists_a_page_again_that_an_odd_request_delisted(protocol: str, status: int) -> None:
    """No rule knows all headers by which an app decides: what it answers to a request of the middleware settles it."""
    probed = ProbedSite(protocol)
    probed.visit("/page", "/other")
    probed.clock.pass_(3600)
    bodies: list[str] = []

    def says(slug: str) -> str:
        bodies.append("The first content" if bodies or slug == "other" else "")
        return bodies[-1]

    probed.says, probed.refuses = says, status
    probed.visit("/page")
    assert len(bodies) > 1, "the visit, and our own request"
    assert probed.app.explain("/page").listed


# Names and counts


@pytest.mark.parametrize(
    "name",
    [
        *(name for name, _ in CLAIMS),
        *(
            "X-Forwarded-Prefix",
            "HTTP_X_FORWARDED_PREFIX".removeprefix("HTTP_"),
            "X-MS-Original-URL",
            "X-Waws-Unencoded-URL",
        ),
        *(
            "X-Real-URL",
            "X-Envoy-Original-Path",
            "X-Replaced-Path",
            "X-Original-Host",
            "X-Base-Path",
            "X-Forwarded-Root",
        ),
        *("X-Tenant-ID", "X_SITE", "X-Shop-Domain", "X-Store-Code", "X-Organization", "X-Org-Id", "X-Workspace"),
        *("CloudFront-Forwarded-Proto", "X-Scheme", "X-Proto", "Base-URL", "X-Forwarded-Protocol", "CF-Visitor"),
    ],
)
def test_headers_that_claim_another_url_are_known_by_their_words(name: str) -> None:
    assert is_routing_header(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Host",
            "Accept",
            "Accept-Language",
            "User-Agent",
            "Referer",
            "Origin",
            "X-Forwarded-For",
            "X-Real-IP",
            "Via",
        ),
        *("X-Forwarded-For-Original", "X-Request-ID", "X-Request-Start", "Traceparent", "CF-Ray", "CF-Connecting-IP"),
        *("X-Site-Speed", "X-Store-Password-Hint", "X-Restore", "Sec-Fetch-Site"),
        *("Upgrade-Insecure-Requests", "Sec-Fetch-Site", "Priority", "DNT", "Connection", "Cache-Control", "Pragma"),
    ],
)
def test_headers_of_ordinary_requests_claim_nothing(name: str) -> None:
    assert not is_routing_header(name)


def response(*headers: tuple[str, str], path: str = "/a") -> CapturedResponse:
    captured = CapturedResponse(Site("https", "example.com"), path, at=1.0, status=200)
    captured.routing_headers = headers
    return captured


@pytest.mark.parametrize(("digest", "kept"), [(7, 7), (8, None)])
def test_known_content_counts_and_new_one_does_not(digest: int, kept: int | None) -> None:
    page = merge(None, Observation("/a", "/a", 1, 200, "text/html", html=HtmlFacts(7)))
    seen = Observation("/a", "/a", 9, 200, "text/html", html=HtmlFacts(digest))
    proven = doubtful_evidence(seen, page, ["x-forwarded-port"])
    assert proven is not None
    assert proven.html == HtmlFacts(kept)


def test_requests_for_one_page_in_a_row_count_once() -> None:
    usual = UsualHeaders()
    usual.record(response())
    for _ in range(10):
        usual.record(response(("x-forwarded-port", "1"), path="/b"))
    assert usual.unusual_names(response(("x-forwarded-port", "1")))
    assert not usual.unusual_names(response())


def text_size(usual: UsualHeaders) -> int:
    """The characters of all that is kept, written out."""
    return sum(len(repr(collection)) for _, collection in collections_of(usual))


def test_later_answers_count_more_and_forgotten_values_take_no_memory() -> None:
    usual, before, after = UsualHeaders(), ("x-forwarded-prefix", "/old"), ("x-forwarded-prefix", "/new")
    for number in range(MAX_COUNTED_ANSWERS):
        usual.record(response(before, ("x-forwarded-port", str(number)), path=f"/{number}"))
    assert not usual.unusual_names(response(before))
    assert text_size(usual) < 500
    for number in range(MAX_COUNTED_ANSWERS):
        usual.record(response(after, path=f"/{number}"))
    assert not usual.unusual_names(response(after))
    assert usual.unusual_names(response(before))


def _names(count: int) -> Iterator[str]:
    return (f"HTTP_X_{number}" for number in range(count))


def test_names_of_hosts_stay_known_when_the_cache_is_emptied() -> None:
    cache = HeaderRuleCache({"HTTP_FORWARDED"})
    for name in ("HTTP_X_FORWARDED_PORT", *_names(MAX_CACHED_NAMES)):
        cache.find(name, name.removeprefix("HTTP_"))
    assert cache.routing == {"HTTP_FORWARDED"}
    cache.find("HTTP_X_FORWARDED_PORT", "X_FORWARDED_PORT")
    cache.find("X" * 200, "X-FORWARDED-" + "X" * 200)
    assert cache.routing == {"HTTP_FORWARDED", "HTTP_X_FORWARDED_PORT"}


def test_strangers_do_not_make_a_header_usual_by_sending_it_often() -> None:
    usual = UsualHeaders()
    for number in range(20):
        usual.record(response(path=f"/{number}"))
    for number in range(100):
        usual.record(response(("x-original-url", f"/nothing/{number}"), path=f"/{number % 2}"))
    assert usual.unusual_names(response(("x-original-url", "/nothing"), path="/3")) == ["x-original-url"]


def test_many_values_that_are_forgotten_leave_the_header_usual() -> None:
    usual = UsualHeaders()
    for number in range(3 * MAX_COUNTED_ANSWERS):
        answer = response(("x-forwarded-prefix", f"/{number}"), path=f"/{number}")
        usual.record(answer)
        assert usual.unusual_names(answer) == []


def test_a_percent_encoded_url_repeats_the_path() -> None:
    usual = UsualHeaders()
    for path in ("/k\u00e4se", "/brot", "/k\u00e4se", "/brot"):
        usual.record(response(("x-original-url", quote(path)), path=path))
    assert usual.unusual_names(response(("x-original-url", "/k%C3%A4se"), path="/k\u00e4se")) == []
    assert usual.unusual_names(response(("x-original-url", "/nothing"), path="/k\u00e4se")) == ["x-original-url"]


def is_usual_after(sent: tuple[Any, Any], later: tuple[Any, Any], path: str = "/a") -> bool:
    """Whether a header is usual after another one was sent for three pages."""
    usual = UsualHeaders()
    for page in (path, "/b", path):
        value = sent[1].replace("/a", "/b") if page == "/b" and isinstance(sent[1], str) else sent[1]
        usual.record(response((sent[0], value), path=page))
    return not usual.unusual_names(response(later, path=path))


@pytest.mark.parametrize(
    ("sent", "later"),
    [
        ("Proto=HTTPS;for=192.0.2.1;by=a;host=b", "proto=https;for=192.0.2.2;by=c;host=b"),
        ("for=192.0.2.1, for=192.0.2.2;proto=https", "proto=https,for=192.0.2.3"),
        ("proto=https;for=1;proto=http", "proto=http, for=2 ; proto=https"),
    ],
)
def test_forwarded_is_compared_without_what_differs_between_visitors(sent: str, later: str) -> None:
    assert is_usual_after(("forwarded", sent), ("forwarded", later))
    assert not is_usual_after(("forwarded", f"{sent};proto=gopher"), ("forwarded", later))


@pytest.mark.parametrize("later", ["", "FOR = 1", "by=2", ";,"])
def test_forwarded_that_names_visitors_alone_is_no_header(later: str) -> None:
    assert UsualHeaders().unusual_names(response(("forwarded", later))) == []


@pytest.mark.parametrize(
    ("sent", "later"),
    [
        ("/shop/a?q=1", "/shop/a#there"),
        ("https://one.example/a", "https://two.example/a?q=1"),
        ("http://[/a", "http://[/a"),
        ("/%61", "/a"),
    ],
)
def test_urls_are_compared_without_query_and_the_requested_path(sent: str, later: str) -> None:
    assert is_usual_after(("x-original-url", sent), ("x-original-url", later))
    assert not is_usual_after(("x-original-url", sent), ("x-original-url", f"{later}/c".replace("a", "other")))


def test_path_that_comes_twice_is_taken_away_at_the_end() -> None:
    assert not is_usual_after(("x-original-url", "/a/x/a"), ("x-original-url", "/x/a"))


@pytest.mark.parametrize("name", ["HTTP_X_FORWARDED_PREFIX", b"x-forwarded-prefix", "X-Forwarded-Prefix"])
@pytest.mark.parametrize("value", ["/shop", b" /shop ", "/k\xe4se"])
def test_headers_of_both_protocols_are_compared(name: Any, value: Any) -> None:
    text = value.decode().strip() if isinstance(value, bytes) else value
    assert is_usual_after((name, value), ("x-forwarded-prefix", text))
    assert UsualHeaders().unusual_names(response((name, value))) == ["x-forwarded-prefix"]
    latin = text.encode("latin-1")
    assert is_usual_after((name, value), (b"x-forwarded-prefix", latin))


@pytest.mark.parametrize("host", ["example.com", "app:8000"])
def test_hosts_that_headers_name_are_compared_unless_they_are_the_sites_or_the_requests(host: str) -> None:
    usual = UsualHeaders()
    named = response(("x-forwarded-host", host), ("forwarded", f'for=1;host={host},host="{host}"'))
    named.host = "app:8000"
    assert usual.unusual_names(named) == ["host"]
    for claim in (("x-forwarded-host", f"www.{host}"), ("x-host", "evil.example"), ("forwarded", f"host=www.{host}")):
        assert usual.unusual_names(response(claim)) == [claim[0]]


@pytest.mark.parametrize(("host", "host_of_site"), [("app:8000", "example.com"), (b"app:8000", b"example.com")])
def test_foreign_host_is_compared(host: str | bytes, host_of_site: str | bytes) -> None:
    usual = UsualHeaders()
    site = Site("https", "example.com").store_key
    assert not usual.has_counted(site)
    for host_sent, path in ((host, "/a"), ("app:8000", "/b"), (host, "/c")):
        answer = response(path=path)
        answer.host, answer.is_foreign_host = host_sent, True
        assert usual.unusual_names(answer) == ([] if usual.has_counted(site) else ["host"])
        usual.record(answer)
    assert usual.has_counted(site)
    answer = response()
    answer.host, answer.is_foreign_host = "evil.example", True
    assert usual.unusual_names(answer) == ["host"]
    answer.host, answer.is_foreign_host = host_of_site, False
    assert usual.unusual_names(answer) == []


def test_header_is_usual_if_more_than_nine_of_ten_answers_had_it_and_half_its_value() -> None:
    usual = UsualHeaders()
    for number in range(20):
        fields = [("x-forwarded-port", "80" if number < 11 else str(number))] if number < 19 else []
        usual.record(response(*fields, path=f"/{number}"))
    assert usual.unusual_names(response(("x-forwarded-port", "80"))) == []
    assert usual.unusual_names(response(("x-forwarded-port", "99"))) == ["x-forwarded-port"]
    usual.record(response(path="/more"))
    assert usual.unusual_names(response(("x-forwarded-port", "80"))) == [], "19 of 21"
    usual.record(response(path="/most"))
    assert usual.unusual_names(response(("x-forwarded-port", "80"))) == ["x-forwarded-port"], "19 of 22"


def test_many_headers_and_long_values_take_little_memory() -> None:
    usual = UsualHeaders()
    fields = [(f"x-forwarded-{number:02}", "y" * 10_000) for number in range(100)]
    for path in ("/a", "/b"):
        usual.record(response(*fields, path=path))
    assert text_size(usual) < 16 * 300, "sixteen headers, and two hundred characters of each"


@pytest.mark.parametrize("name", ["x-original-url", "x-original-uri", "x-forwarded-prefix", "script-name", "path-info"])
def test_header_that_names_a_path_proves_nothing_of_an_unknown_page(name: str) -> None:
    good = Observation("/a", "/a", 9, 200, "text/html", html=HtmlFacts(8))
    assert doubtful_evidence(good, None, [name]) is None
    assert doubtful_evidence(good, None, ["x-forwarded-port", name]) is None
    assert doubtful_evidence(good, None, ["x-forwarded-port"]) is good
    assert doubtful_evidence(good._replace(status=404), None, ["x-forwarded-port"]) is None
    gone = merge(None, good._replace(status=404))
    assert doubtful_evidence(good, gone, [name]) is None
    assert doubtful_evidence(good, gone, ["x-forwarded-port"]) is good


def test_answer_that_would_delist_a_page_is_unusual_and_unread() -> None:
    page = merge(None, Observation("/a", "/a", 1, 200, "text/html", html=HtmlFacts(7, stated_date="2025-01-01")))
    bad = Observation("/a", "/a", 9, 200, "text/html", noindex=True, html=HtmlFacts(7))
    assert doubtful_evidence(bad, page, ["x-forwarded-port"]) == bad._replace(html=None, is_unusual=True)
    new = Observation("/a", "/a", 9, 200, "text/html", html=HtmlFacts(9, stated_date="2025-02-02"))
    assert doubtful_evidence(new, page, ["host"]) == new._replace(html=HtmlFacts(None), is_unusual=True)
    unread = new._replace(html=None)
    assert doubtful_evidence(unread, page, ["host"]) == unread._replace(is_unusual=True)
