"""Learned pages whose entries are built a block at a time are listed as the policy lists each, which `explain` shows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote, unquote

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.dates import SECONDS_PER_DAY, w3c_day_from_timestamp, w3c_from_timestamp
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import PageLimits, Site
from sitemap_middleware.rendering.xml import priority_text
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.value_history import VOLATILE

from ...support.documents import entries, locs
from ...support.sample_sites import Clock
from ...support.wire import RequestSpec, wsgi

NOW = 1_750_000_013
BASE = "https://example.com"


def observed(fault: dict[str, Any], **fields: Any) -> Observation:
    return Observation(
        **{"route": "/p/<slug>", "status": 200, "media_type": "text/html", "learned": True, **fields, **fault}
    )


PATHS = st.sampled_from(
    [
        "/p/a",
        "/p/b",
        "/p/c",
        "/p/d",
        "/p/e",
        "/p/e/",
        "/p/Foo",
        "/p/foo",
        "/p/007",
        "/p/7",
        "/p/é",
        "/p/ü-ß",
        "/p/private",
        "/p/sitemap.xml",
        "/p/report/x",
        "/p/<long>",
        "/q/a",
        "/q/b/c",
    ]
) | st.just("/p/" + "x" * 2100)
AGES = st.sampled_from(
    [500 * SECONDS_PER_DAY, 90 * SECONDS_PER_DAY, SECONDS_PER_DAY, 8000, 4000, 50, 1, 0, -100, -1000]
)
MOMENTS = (AGES | st.sampled_from([10**9, 13, 13 + 4 * SECONDS_PER_DAY, 7 * SECONDS_PER_DAY])).map(
    lambda age: NOW - age
)
STATED = st.builds(lambda write, at: write(at), st.sampled_from([w3c_from_timestamp, w3c_day_from_timestamp]), MOMENTS)
EXPIRIES = st.sampled_from([NOW - 1, NOW, NOW + 1])
HTML_FAULTS = st.one_of(
    st.builds(dict, noindex=st.just(True)),
    st.builds(dict, canonical=st.just(f"{BASE}/other")),
    st.builds(dict, instant_refresh=st.just("/b")),
    st.builds(dict, expires_at=EXPIRIES),
    st.builds(dict, unread_reason=st.just("is too long"), digest=st.none()),
    st.builds(dict, digest=st.just(VOLATILE)),
    st.builds(dict, stated_date=STATED),
)
READINGS = st.builds(
    lambda digest, fault: HtmlFacts(**{"digest": digest, **fault}), st.integers(1, 40), st.just({}) | HTML_FAULTS
)
FAULTS = st.one_of(
    st.builds(dict, status=st.sampled_from([404, 302, 403])),
    st.builds(dict, media_type=st.sampled_from(["application/pdf", "text/plain"])),
    st.builds(dict, noindex=st.just(True)),
    st.builds(dict, private=st.just(True)),
    st.builds(dict, obstacle=st.just("redirects at once")),
    st.builds(dict, expires_at=EXPIRIES),
    st.builds(dict, canonical=st.just(f"{BASE}/other")),
)
OBSERVATIONS = st.lists(
    st.builds(
        observed,
        path=PATHS.map(quote),
        at=AGES.map(lambda age: NOW - age),
        last_modified=st.none() | MOMENTS,
        html=st.none() | READINGS,
        visitor=st.integers(0, 1),
        may_be_provided=st.booleans(),  # then a page is kept although nothing lists it any more
        fault=st.just({}) | FAULTS,
    ),
    min_size=1,
    max_size=40,
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "learn": st.sampled_from(["/p/*", "/q/*", "*/a"]),
        "exclude": st.sampled_from(["/p/a", "/q/*"]),
        "priority": st.sampled_from([0.3, "auto"]),
        "changefreq": st.sampled_from(["daily", "auto"]),
        "max_age_days": st.just(60),
        "media_types": st.just(["text/html", "text/plain"]),
        "path": st.just("/p/sitemap.xml"),
        "report": st.just("/p/report"),
    },
)
ROBOTS = st.sampled_from(["", "User-agent: *\nDisallow: /p/private\n", "User-agent: *\nDisallow: /admin\n"])
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.just(0.7),
        "changefreq": st.just("monthly"),
        "lastmod": st.sampled_from([date(2020, 1, 1), datetime(2099, 1, 1, tzinfo=UTC), lambda: None]),
    },
)


ALIKE = st.lists(
    st.builds(
        lambda kind, sights, paths: [
            kind._replace(
                path=quote(path),
                at=NOW - age - place,
                last_modified=None if kind.last_modified is None else kind.last_modified - place * apart,
                html=None if kind.html is None else kind.html._replace(digest=digest(kind.html.digest, place * apart)),
            )
            for place, path in enumerate(paths)
            for age, apart in sights
        ],
        st.builds(
            observed,
            path=st.just(""),
            at=st.just(0),
            last_modified=st.none() | MOMENTS,
            html=st.none() | READINGS,
            may_be_provided=st.just(True),
            fault=st.just({}) | FAULTS,
        ),
        st.lists(st.tuples(AGES, st.sampled_from([0, 1, 700])), min_size=1, max_size=3),
        st.lists(PATHS | st.integers(1, 30).map(lambda number: f"/p/page-{number}"), max_size=12, unique=True),
    ),
    min_size=1,
    max_size=4,
).map(lambda kinds: [observation for kind in kinds for observation in kind])
"""Observations of many pages that are alike. A worker whose clock is ahead made those from the future."""


def digest(content: int | None, more: int) -> int | None:
    return content if content in {None, VOLATILE} else content + more


@pytest.mark.slow
@given(ALIKE, ROBOTS, st.just({}) | OPTIONS, st.just({}) | SETTINGS)
def test_pages_that_are_alike_are_listed_as_the_policy_lists_each_alone(
    observations: list[Observation], robots: str, options: Any, settings: Any
) -> None:
    check(observations, robots, options, settings)


@given(OBSERVATIONS, ROBOTS, st.just({}) | OPTIONS, st.just({}) | SETTINGS)
def test_every_page_is_listed_as_the_policy_lists_it_alone(
    observations: list[Observation], robots: str, options: Any, settings: Any
) -> None:
    check(observations, robots, options, settings)


GOOD = {"path": "/p/a", "at": NOW - 9000, "html": HtmlFacts(1), "may_be_provided": True}
LATER = {**GOOD, "at": NOW - 8000}


@pytest.mark.parametrize(
    ("observations", "options"),
    [
        ([observed({"private": True}, **LATER)], {}),
        ([observed({"html": HtmlFacts(1, noindex=True)}, **LATER)], {}),
        ([observed({"html": HtmlFacts(1, canonical=f"{BASE}/b")}, **LATER)], {}),
        ([observed({"html": HtmlFacts(1, instant_refresh="/b")}, **LATER)], {}),
        ([observed({"html": HtmlFacts(1, expires_at=NOW)}, **LATER)], {}),
        ([observed({"status": 302, "visitor": 1}, **LATER)], {}),
        ([observed({"status": 302, "visitor": visitor, "at": NOW - 1000 * visitor}, **GOOD) for visitor in (1, 2)], {}),
        ([observed({"path": "/p/a/"}, **LATER)], {"learn": "/p/*"}),
        ([observed({"path": f"/p/{number}", "at": NOW - 10 * number}, **GOOD) for number in range(1, 5)], {}),
        ([observed({"path": "/p/sitemap.xml"}, **GOOD)], {"path": "/p/sitemap.xml"}),
        ([], {"report": "/p/a"}),
        ([], {"exclude": "/p/a"}),
    ],
)
def test_a_page_with_a_flaw_is_listed_as_the_policy_lists_it_alone(
    observations: list[Observation], options: dict[str, Any]
) -> None:
    check([observed({}, **GOOD), *observations, observed({}, path="/p/other", at=NOW - 5)], "", options, {})


@pytest.mark.parametrize(
    "settings", [{}, *({"lastmod": given} for given in (date(2020, 1, 1), datetime(2099, 1, 1, tzinfo=UTC)))]
)
@pytest.mark.parametrize("modified", [NOW - 10**6, NOW - 13, NOW + 10**6, None])
@pytest.mark.parametrize("stated", [None, "2024-05-01"])
def test_a_page_with_a_date_is_dated_as_the_policy_dates_it_alone(
    settings: dict[str, Any], modified: int | None, stated: str | None
) -> None:
    html = HtmlFacts(1, stated_date=stated)
    seen = [observed({}, path="/p/a", at=at, last_modified=modified, html=html) for at in (NOW - 9000, NOW - 8000)]
    check([*seen, observed({}, path="/p/b", at=NOW - 7000)], "", {}, settings)


@pytest.mark.parametrize("ahead", [1, 500, 2000, 10**6])
@pytest.mark.parametrize("options", [{}, {"changefreq": "auto"}])
@pytest.mark.parametrize("late_pages", [5, 9])
def test_contents_that_become_equal_in_the_future_are_no_soft_404s_until_then(
    ahead: int, options: dict[str, Any], late_pages: int
) -> None:
    seen = [
        observed({}, path=f"/p/{number}", at=at, html=HtmlFacts(content), last_modified=modified)
        for number in range(9)
        for at, content, modified in [
            (NOW - 9000, 1000 + 77 * number, NOW - 10**6),
            (NOW - 8000, 1000 + 77 * number, NOW - 10**6),
            *[(NOW + ahead + later, 5, NOW + ahead - 90) for later in (0, 100) if number < late_pages],
        ]
    ]
    check(seen, "", options, {})


@pytest.mark.parametrize("ahead", [1, 350, 2000])
def test_a_date_from_the_future_counts_once_its_time_has_come(ahead: int) -> None:
    sights = [(NOW - 9000, None), (NOW + ahead, NOW - 10**6), (NOW + ahead + 3000, NOW - 10**6)]
    check([observed({}, path="/p/a", at=at, last_modified=modified) for at, modified in sights], "", {}, {})


def test_pages_of_several_kinds_keep_their_order() -> None:
    kinds: list[dict[str, Any]] = [{"last_modified": NOW - 10**6}, {}, {"html": HtmlFacts(VOLATILE)}, {"obstacle": ""}]
    paths = [f"/p/{number:02}" for number in range(20)]
    seen = [
        observed(kinds[number % 4], path=path, at=at - number, may_be_provided=True)
        for at in (NOW - 9000, NOW - 8000)
        for number, path in enumerate(paths)
    ]
    store = MemoryStore()
    store.merge(Site("https", "example.com").store_key, seen, PageLimits())
    app = SitemapMiddleware(site("", {}), base_url=BASE, store=store, verify=False, clock=Clock(NOW))
    assert locs(wsgi(app, RequestSpec("/sitemap.xml", host="example.com")).body)[-20:] == [
        BASE + path for path in paths
    ]
    app.close()
    check(seen, "", {}, {})


def test_many_pages_that_are_alike_are_all_listed_in_their_order() -> None:
    paths = [f"/p/{number:03}" for number in range(600)]
    seen = [observed({}, path=path, at=NOW - 9000 - number) for number, path in enumerate(paths)]
    store = MemoryStore()
    store.merge(Site("https", "example.com").store_key, seen, PageLimits())
    app = SitemapMiddleware(site("", {}), base_url=BASE, store=store, verify=False, clock=Clock(NOW))
    listed = locs(wsgi(app, RequestSpec("/sitemap.xml", host="example.com")).body)
    assert [loc for loc in listed if "/p/" in loc] == [BASE + path for path in paths]
    app.close()


def alike(*ages: int, content: int = 1000, apart: int = 77) -> list[Observation]:
    """Observations of twelve pages with as many contents, or with the same one, each seen at these ages in seconds."""
    return [
        observed({}, path=f"/p/{number}", at=NOW - age, html=HtmlFacts(content + apart * number), may_be_provided=True)
        for age in ages
        for number in range(12)
    ]


@pytest.mark.parametrize("lastmod", [date(2020, 1, 1), datetime(2099, 1, 1, tzinfo=UTC), lambda: None])
def test_pages_that_are_alike_have_the_date_of_their_route(lastmod: Any) -> None:
    check(alike(9000, 8000), "", {}, {"lastmod": lastmod})


@pytest.mark.parametrize(
    ("observations", "options"),
    [(alike(9000, 8000, apart=0), {}), (alike(91 * SECONDS_PER_DAY, 90 * SECONDS_PER_DAY), {"max_age_days": 60})],
    ids=["soft 404s", "not visited any more"],
)
def test_of_pages_that_are_alike_none_may_be_listed(observations: list[Observation], options: dict[str, Any]) -> None:
    check(observations, "", options, {})


def check(observations: list[Observation], robots: str, options: Any, settings: Any) -> None:
    store = MemoryStore()
    store.merge(Site("https", "example.com").store_key, observations, PageLimits())
    clock = Clock(NOW)
    app, other = (
        SitemapMiddleware(site(robots, settings), base_url=BASE, store=store, verify=False, clock=clock, **options)
        for _ in range(2)
    )
    for seconds in (0, 400, 5000):  # past `max_age`, so that a document is checked again
        clock.pass_(seconds)
        compare(app, other, {observation.path for observation in observations}, options)
    app.close()
    other.close()


def compare(app: SitemapMiddleware, other: SitemapMiddleware, paths: set[str], options: Any) -> None:
    """Compare the documents of a process with what `explain` says in another."""
    answer = wsgi(app, RequestSpec(options.get("path", "/sitemap.xml"), host="example.com"))
    listed = entries(answer.body) if answer.status == 200 else {}
    for path in paths:
        explained = other.explain(unquote(path))
        written = listed.pop(BASE + path, None)
        assert (written is not None) == explained.listed, explained
        if written is not None:
            entry = explained.entry
            assert entry is not None
            priority = None if entry.priority is None else priority_text(entry.priority)
            expected = entry.lastmod, entry.changefreq, priority
            assert (written.get("lastmod"), written.get("changefreq"), written.get("priority")) == expected, explained
    assert listed.keys() <= {f"{BASE}/robots.txt"}


def site(robots: str, settings: Any) -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/robots.txt", "robots", lambda: (robots, {"Content-Type": "text/plain"}))

    @app.get("/p/<slug>")
    @sitemap(learn=True, **settings)
    def page(slug: str) -> str:
        return slug

    return app
