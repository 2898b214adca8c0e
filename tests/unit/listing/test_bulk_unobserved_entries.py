"""Entries that are built in batches are those that the policy gives each item, which `explain` shows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.rendering.xml import priority_text

from ...support.documents import entries
from ...support.sample_sites import Clock
from ...support.wire import RequestSpec, asgi, wsgi

NOW = 1_750_000_000
TODAY = datetime.fromtimestamp(NOW, UTC)
BASE = "https://example.com"
HTML = [("accept", "text/html")]

SLUGS = st.sampled_from(
    ["a", "b", "new", "private", "seen", "gone", "é", "a b", "a/b", "", ".", "x" * 3000, "sitemap.xml", 7]
)
DATES = st.none() | st.sampled_from(
    [
        TODAY,
        TODAY.replace(tzinfo=None),
        TODAY + timedelta(microseconds=500),
        TODAY + timedelta(seconds=60),
        TODAY + timedelta(days=2),
        TODAY - timedelta(days=400),
        (TODAY - timedelta(hours=1)).astimezone(timezone(timedelta(hours=14))),
        TODAY.date(),
        TODAY.date() + timedelta(days=1),
        date(999, 1, 1),
        "2024-05-01",
        "soon",
    ]
)  # fmt: skip
WORDS = st.sampled_from([None, "weekly", "never", "auto"])
PRIORITIES = st.sampled_from([None, 0, 0.0, 0.25, 1])
ITEMS = st.lists(
    st.builds(
        lambda slug, lastmod, word, priority: Entry({"slug": slug}, lastmod=lastmod, changefreq=word, priority=priority),
        SLUGS, DATES, WORDS, PRIORITIES,
    )
    | st.fixed_dictionaries({"slug": SLUGS}, optional={"lastmod": DATES, "other": st.just(1)})
    | SLUGS,
    max_size=9,
)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "exclude": st.sampled_from(["/posts/a", "/posts/*", "/other"]),
        "priority": st.sampled_from([0.3, "auto"]),
        "changefreq": st.sampled_from(["daily", "auto"]),
        "path": st.just("/posts/sitemap.xml"),
    },
)
ROBOTS = st.sampled_from(
    [
        "",
        "User-agent: *\nDisallow:\n",
        "User-agent: *\nDisallow: /admin # staff\nAllow: /posts/\nSitemap: https://example.com/s.xml\n",
        "User-agent: *\nDisallow: /posts/private\n",
        "User-agent: *\ndisallow /posts/a\n",
        "User-agent: *\nDisallow: *private\n",
        "User-agent: *\nDisallow: /\n",
    ]
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.just(0.7),
        "changefreq": st.just("monthly"),
        "lastmod": st.sampled_from([date(2020, 1, 1), lambda: None]),
    },
)


def on_flask(values: Any, robots: str, **settings: Any) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/robots.txt", "robots", lambda: (robots, {"Content-Type": "text/plain"}))
    app.add_url_rule("/posts/new", "form", lambda: "a form")

    @app.get("/posts/<slug>")
    @sitemap(values=values, **settings)
    def post(slug: str) -> Any:
        return ("a post", 404 if slug == "gone" else 200)

    return app


def on_starlette(values: Any, robots: str, **settings: Any) -> Any:
    @sitemap(values=values, **settings)
    async def post(request: Any) -> HTMLResponse:
        return HTMLResponse("a post", 404 if request.path_params["slug"] == "gone" else 200)

    async def robots_txt(_: Any) -> PlainTextResponse:
        return PlainTextResponse(robots)

    async def form(_: Any) -> HTMLResponse:
        return HTMLResponse("a form")

    return Starlette(routes=[Route("/robots.txt", robots_txt), Route("/posts/new", form), Route("/posts/{slug}", post)])


def slug_of(item: Any) -> Any:
    return item if isinstance(item, str | int) else getattr(item, "params", item)["slug"]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "request_of"), [(on_flask, wsgi), (on_starlette, asgi)], ids=["flask", "starlette"])
@given(ITEMS, ROBOTS, OPTIONS, SETTINGS, st.booleans())
def test_every_item_is_listed_as_the_policy_lists_it_alone(
    make: Any, request_of: Any, items: Any, robots: str, options: Any, settings: Any, visited: bool
) -> None:
    app = SitemapMiddleware(
        make(items, robots, **settings), base_url=BASE, store="memory://", verify=False, clock=Clock(NOW), **options
    )
    if visited:
        for path in ("/posts/seen", "/posts/gone"):
            request_of(app, RequestSpec(path, host="example.com", headers=HTML))
        app.flush()
    answer = request_of(app, RequestSpec(options.get("path", "/sitemap.xml"), host="example.com"))
    listed = entries(answer.body) if answer.status == 200 else {}
    for path in {f"/posts/{slug_of(item)}" for item in items}:
        explained = app.explain(path)
        written = listed.get(explained.loc or "")
        assert (written is not None) == explained.listed, explained
        if written is not None:
            entry = explained.entry
            assert entry is not None
            priority = None if entry.priority is None else priority_text(entry.priority)
            assert (written.get("lastmod"), written.get("changefreq"), written.get("priority")) == (
                entry.lastmod,
                entry.changefreq,
                priority,
            )
    assert all(app.explain(unquote(loc.removeprefix(BASE))).listed for loc in listed)
    app.close()


@pytest.mark.parametrize(("make", "request_of"), [(on_flask, wsgi), (on_starlette, asgi)], ids=["flask", "starlette"])
def test_items_of_several_batches_are_listed_in_their_order(make: Any, request_of: Any) -> None:
    slugs = [f"post-{number}" for number in range(1200)]
    app = SitemapMiddleware(make(slugs, ""), base_url=BASE, store="memory://", verify=False)
    answer = request_of(app, RequestSpec("/sitemap.xml", host="example.com"))
    assert [loc for loc in entries(answer.body) if "post-" in loc] == [f"{BASE}/posts/{slug}" for slug in slugs]


@pytest.mark.parametrize("slug", ["plain", 2.5], ids=["in bulk", "by the router"])
def test_an_item_whose_lastmod_is_not_a_date_is_counted(slug: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = SitemapMiddleware(
        on_flask([{"slug": slug, "lastmod": "soon"}], ""), base_url=BASE, store="memory://", verify=False
    )
    answer = wsgi(app, RequestSpec("/sitemap.xml", host="example.com"))
    assert f"{BASE}/posts/{slug}" in entries(answer.body)
    assert "1 of the 1 items" in caplog.text
    assert "lastmod that is not a date" in caplog.text


OLD, TOMORROW = date(2020, 2, 3), TODAY.date() + timedelta(days=1)


@pytest.mark.parametrize(
    ("items", "options", "expected"),
    [
        ([Entry({"slug": "a"}, lastmod=OLD)], {}, {"lastmod": "2020-02-03"}),
        ([Entry({"slug": "a"}, lastmod=OLD), Entry({"slug": "b"}, lastmod=TOMORROW)], {}, {"lastmod": "2020-02-03"}),
        ([Entry({"slug": "a"}, lastmod=OLD), {"slug": "b"}], {}, {"lastmod": "2020-02-03"}),
        ([Entry({"slug": "a"}, lastmod=TOMORROW)], {}, {}),
        ([{"slug": "a"}], {}, {}),
        ([{"slug": "a"}], {"priority": "auto"}, {"priority": "0.6"}),
        ([{"slug": "a"}], {"changefreq": "auto"}, {}),
        ([{"slug": "a"}], {"changefreq": "daily", "priority": 0.3}, {"changefreq": "daily", "priority": "0.3"}),
        ([Entry({"slug": "a"}, changefreq="never")], {"changefreq": "daily"}, {"changefreq": "never"}),
    ],
)
def test_an_entry_has_what_the_item_and_the_options_say(items: Any, options: Any, expected: dict[str, str]) -> None:
    app = SitemapMiddleware(
        on_flask(items, ""), base_url=BASE, store="memory://", verify=False, clock=Clock(NOW), **options
    )
    answer = wsgi(app, RequestSpec("/sitemap.xml", host="example.com"))
    assert entries(answer.body)[f"{BASE}/posts/a"] == expected
