"""base_url as a function of the Host: each tenant's pages are in its own sitemap and in no other."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, abort, request
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.routing.site_resolver import MAX_ASKED_HOSTS
from sitemap_middleware.stores.sqlite import MemoryStore
from sitemap_middleware.util import is_on_event_loop

from ...support.documents import locs
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.waiting import until
from ...support.wire import BOTH, RequestSpec, asgi_async, wsgi
from .test_hosts import HOSTILE, SITEMAP

TENANTS = 1000
POSTS = {"https://a.example": ["a"], "https://b.example": ["b"]}


def site_of(host: str) -> str | None:
    """The tenant of a host: each has two, and a public name of its own."""
    name, _, domain = host.partition(".")
    is_tenant = name.isdigit() and int(name) < TENANTS and domain in ("app.example", "old.example", "shop.example")
    return f"https://{int(name)}.shop.example" if is_tenant else None


def tenants(protocol: str, base_url: Any = site_of, **options: Any) -> SampleSite:
    return SampleSite(protocol, {"/": Page(), "/p/{x}": Page()}, learn="/p/{x}", base_url=base_url, **options)


VISITS = st.tuples(
    st.integers(0, TENANTS + 2) | st.integers(0, 3),
    st.sampled_from(["app.example", "old.example", "shop.example", "app.example:8000", "evil.example"]),
    st.sampled_from(["", "/a", "/b"]),
    st.integers(0, 5),
)


@pytest.mark.slow
@BOTH
@given(visits=st.lists(VISITS, max_size=30))
def test_no_tenant_sees_a_page_of_another(protocol: str, visits: list[tuple[int, str, str, int]]) -> None:
    site = tenants(protocol, list_unseen=False)
    expected: dict[tuple[str, str], set[str]] = {}
    for number, domain, root, page in visits:
        host = f"{number}.{domain}"
        site.request(SITEMAP, host=host)  # so that the host is known: on an event loop the first visit does not count
        site.request(f"/p/{page}", host=host, root=root)
        base = site_of(host)
        expected.setdefault((host, root), set())
        for other, other_root in expected:
            if base and site_of(other) == base and other_root == root:
                expected[other, root].add(f"{base}{root}/p/{page}")
        for (other, other_root), known in expected.items():
            if base and site_of(other) == base and other_root == root:
                expected[host, root] |= known
    site.app.flush()
    for (host, root), pages in expected.items():
        assert set(site.locs(host=host, root=root)) == pages


@BOTH
def test_function_is_called_once_a_minute_for_each_real_host(protocol: str) -> None:
    calls = Counter[str]()

    def count(host: str) -> str | None:
        calls[host] += 1
        return site_of(host)

    site = tenants(protocol, count)
    for host in (*HOSTILE, "1.app.example", "2.OLD.example:80", "evil.example"):
        for path in ("/", "/p/x", SITEMAP):
            site.request(path, host=host)
    once = ("1.app.example", "1.shop.example", "2.old.example", "2.shop.example", "evil.example")
    assert calls == Counter(once)
    site.clock.pass_(61)
    site.request(SITEMAP, host="1.app.example")
    assert calls == Counter([*once, "1.app.example", "1.shop.example"])


def test_function_is_called_on_no_event_loop_and_pages_wait_for_no_answer() -> None:
    loops, may_answer = list[bool](), threading.Event()

    def ask_database(host: str) -> str | None:
        loops.append(is_on_event_loop())
        may_answer.wait(10)
        return site_of(host)

    site = tenants("asgi", ask_database, list_unseen=False)

    async def visits() -> list[int]:
        specs = [RequestSpec("/p/early", host=f"{number}.app.example") for number in range(300)]
        return [(await asgi_async(site.app, spec)).status for spec in specs]

    assert asyncio.run(visits()) == [200] * 300
    until(lambda: len(loops) == MAX_ASKED_HOSTS)
    may_answer.set()
    until(lambda: len(loops) == 2 * MAX_ASKED_HOSTS)
    site.request("/p/late", host="1.app.example")
    site.app.flush()
    assert site.locs(host="1.app.example") == ["https://1.shop.example/p/late"]
    assert not any(loops)


@BOTH
def test_last_answer_counts_for_an_hour_while_the_function_fails(protocol: str) -> None:
    answers: dict[str, Any] = {"1.app.example": "https://1.shop.example", "1.shop.example": "https://1.shop.example"}
    site = tenants(protocol, lambda host: answers[host])

    def statuses(*pauses: float) -> list[int]:
        return [site.clock.pass_(pause) or site.request(SITEMAP, host="1.app.example").status for pause in pauses]

    assert statuses(0) == [200]
    known = answers.copy()
    answers.clear()
    assert statuses(61, 3_500, 61) == [200, 200, 404]
    answers.update(known)
    assert statuses(61) == [200]
    answers["1.app.example"] = None
    assert statuses(61) == [404]
    answers.clear()
    assert statuses(61) == [404], "the last answer was that it is no site"


@BOTH
def test_request_with_two_hosts_is_no_evidence(protocol: str) -> None:
    site = tenants(protocol, list_unseen=False)
    site.request(SITEMAP, host="1.app.example")
    site.request("/p/x", host="1.app.example", headers=[("host", "2.app.example")])
    assert site.app.stats()["ignored_host"] == 1
    site.app.flush()
    assert site.locs(host="1.app.example") == []


@pytest.mark.parametrize("options", [{"base_url": "https://{}".format}, {"allowed_hosts": [".example.com"]}])
def test_invented_hosts_get_no_sitemap_and_leave_nothing(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, app = MemoryStore(), Flask("tenants", static_folder=None)

    @app.get("/loaves/<name>")
    @sitemap(values=lambda: ["dark", "light"])
    def loaf(name: str) -> str:
        if request.host != "real.example.com":
            abort(404)
        return name

    middleware = SitemapMiddleware(app, store=store, clock=Clock(), **options)

    def answer(host: str) -> int:
        return wsgi(middleware, RequestSpec(SITEMAP, host=host)).status

    assert {answer(f"h{number}.example.com") for number in range(20)} == {404}
    assert [key for key in store.sites() if "h" in key.partition("://")[2].partition(".")[0]] == []
    assert answer("real.example.com") == 200


VARIABLE = contextvars.ContextVar("VARIABLE", default="empty")


@BOTH
@pytest.mark.parametrize(
    "answer", [KeyError("x"), "example.com", "https://example.com/shop", "https://a b.example", 3, b"https://a.example"]
)
def test_what_is_no_base_url_is_logged_once_and_gives_no_site(
    protocol: str, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(host: str) -> Any:
        assert VARIABLE.get() == "empty"
        if isinstance(answer, Exception):
            raise answer
        return answer

    token = VARIABLE.set("a visitor's")
    site = tenants(protocol, broken)
    for host in ("a.example", "b.example"):
        assert site.request("/", host=host).status == 200
        refused = site.request(SITEMAP, host=host)
        assert refused.status == 404
        assert "the function base_url gives no site for it" in refused.text
    VARIABLE.reset(token)
    assert caplog.text.count("the function base_url failed for the host a.example") == 1
    assert len(caplog.records) == 1


@BOTH
def test_a_host_that_moves_takes_none_of_its_pages_along(protocol: str) -> None:
    owner = {"blog.example": "https://a.example", "a.example": "https://a.example", "b.example": "https://b.example"}
    site = tenants(protocol, owner.get, list_unseen=False)
    site.request(SITEMAP, host="blog.example")
    site.request("/p/of-a", host="blog.example")
    site.app.flush()
    site.clock.pass_(2)
    site.request("/p/of-a", host="blog.example")  # pending while the host moves
    owner["blog.example"] = "https://b.example"
    site.clock.pass_(61)
    site.request("/p/of-a", host="blog.example")
    site.app.flush()
    site.request("/p/of-b", host="blog.example")
    site.app.flush()
    assert site.locs(host="a.example") == ["https://a.example/p/of-a"]
    assert site.locs(host="blog.example") == site.locs(host="b.example") == ["https://b.example/p/of-b"]
    del owner["blog.example"]
    site.clock.pass_(61)
    assert site.request(SITEMAP, host="blog.example").status == 404


@pytest.fixture
def shop() -> Iterator[tuple[Flask, SitemapMiddleware]]:
    """An app that knows its tenants by the Host alone, and takes any other Host for the first one's."""
    app = Flask("shop")
    public = {"a.internal": "https://a.example", "b.internal": "https://b.example"}

    @app.get("/only-<name>")
    @sitemap(values=lambda base_url: [base_url[8]])
    def only(name: str) -> str:
        return f"<h1>{name}</h1>"

    @app.get("/first")
    def first() -> str:
        if request.host == "b.internal":
            abort(404)
        return "<h1>The first</h1>"

    app.wsgi_app = middleware = SitemapMiddleware(  # type: ignore[method-assign]
        app.wsgi_app, base_url=public.get, store="memory://", report="/report", authorize=lambda _: True, clock=Clock()
    )
    yield app, middleware
    middleware.close()


def test_own_requests_and_values_are_those_of_the_tenant(shop: tuple[Flask, SitemapMiddleware]) -> None:
    def of(host: str) -> list[str]:
        return locs(wsgi(shop[0], RequestSpec(SITEMAP, host=host)).body)

    assert of("b.internal") == ["https://b.example/only-b"]
    assert of("a.internal") == ["https://a.example/first", "https://a.example/only-a"]


@pytest.mark.parametrize(
    "values", [lambda base_url: POSTS[base_url], lambda base_url=None: POSTS.get(base_url, ["a", "b"])]
)
def test_values_that_can_be_told_the_site_are_told_it(values: Any) -> None:
    app = Flask("posts")
    app.add_url_rule("/<name>", "post", sitemap(values=values)(lambda name: name))
    middleware = SitemapMiddleware(app, base_url="https://{}".format, store="memory://", clock=Clock())
    for base, (name,) in POSTS.items():
        assert locs(wsgi(middleware, RequestSpec(SITEMAP, host=base[8:])).body) == [f"{base}/{name}"]


def test_values_that_hand_on_their_arguments_are_told_nothing() -> None:
    app = Flask("posts")
    app.add_url_rule("/<name>", "post", sitemap(values=lambda **of: [str(of)])(lambda name: name))
    middleware = SitemapMiddleware(app, base_url="https://a.example", store="memory://", clock=Clock())
    assert locs(wsgi(middleware, RequestSpec(SITEMAP, host="a.example")).body) == ["https://a.example/%7B%7D"]


def test_unknown_host_gets_no_report_of_any_tenant(shop: tuple[Flask, SitemapMiddleware]) -> None:
    assert wsgi(shop[0], RequestSpec("/report", host="a.internal")).status == 200
    assert wsgi(shop[0], RequestSpec("/report", host="c.internal")).status == 404


def test_visit_that_names_another_tenant_by_a_header_counts_for_none(shop: tuple[Flask, SitemapMiddleware]) -> None:
    app, middleware = shop
    wsgi(app, RequestSpec("/first", host="a.internal", headers=[("x-forwarded-host", "b.internal")]))
    assert middleware.stats()["ignored_host"] == 1
