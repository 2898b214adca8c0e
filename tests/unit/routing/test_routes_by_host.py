"""Which routes answer on which host: compared with what the app itself answers for a Host header.

A host that routes name has the pages of these routes alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Host, Mount, Route
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware

from ...support.sample_sites import listed
from ...support.wire import RequestSpec, asgi, wsgi

HOST, OTHER = "www.example", "other.example"
HOSTS = [HOST, "Www.example", "www.example:8000", OTHER, "{name}.example", "{name}.test"]
SEGMENTS = ["/a", "/b", "/"]
PATHS = ["/", *SEGMENTS[:2], *("".join(pair) for pair in product(SEGMENTS[:2], SEGMENTS))]


def page(path: str) -> Route:
    """A page that says whether its route has parameters."""

    async def answer(_: Any) -> HTMLResponse:
        return HTMLResponse("parametrised" if "{" in path else "static")

    return Route(path, answer)


def listed_on(host: str, app: Any, **options: Any) -> list[str]:
    site = SitemapMiddleware(app, **{"base_url": f"http://{HOST}", "store": "memory://", "verify": False, **options})
    return sorted(listed(site, host))


PAGES = st.sampled_from([*SEGMENTS, "/{slug}", "/a/{slug}"]).map(page)
ROUTES = st.recursive(
    st.lists(PAGES, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            PAGES,
            st.builds(lambda path, routes: Mount(path, routes=routes), st.sampled_from(["", "/a", "/b"]), inner),
            st.builds(lambda host, routes: Host(host, Starlette(routes=routes)), st.sampled_from(HOSTS), inner),
        ),
        max_size=5,
    ),
    max_leaves=12,
)


@given(ROUTES)
def test_a_site_lists_only_static_routes_that_answer_on_its_host(routes: list[BaseRoute]) -> None:
    app = Starlette(routes=routes)
    for host in (HOST, OTHER):
        found = listed_on(host, app, base_url=f"http://{host}")
        answers = {path: asgi(app, RequestSpec(path, host=host)) for path in {*PATHS, *found}}
        static = {path for path, answer in answers.items() if (answer.status, answer.text) == (200, "static")}
        assert {*found} <= static


TENANTS = Host("{name}.example", Starlette(routes=[page("/tenant"), page("/both")]))
KNOWN = Host(HOST, Starlette(routes=[page("/known"), page("/both")]))


@pytest.mark.parametrize("allowed", ["*.example", ".example"])
@pytest.mark.parametrize("base_url", [None, f"http://{HOST}", "http://another.test"])
@pytest.mark.parametrize(
    "routes",
    [
        [TENANTS, page("/after")],
        [KNOWN, TENANTS, page("/after")],
        [TENANTS, KNOWN, page("/after")],
        [page("/tags/{tag}"), KNOWN, page("/after")],
        [Host("{name}.test", Starlette(routes=[page("/test")])), page("/")],
    ],
)
def test_a_host_that_settings_name_by_a_pattern_has_the_pages_that_answer_on_it(
    routes: list[BaseRoute], base_url: str | None, allowed: str
) -> None:
    app = Starlette(routes=routes)
    for host in (HOST, OTHER):
        found = listed_on(host, app, base_url=base_url, allowed_hosts=[allowed])
        paths = {"/", "/a/b", "/a/both", "/a/known", "/after", "/both", "/known", "/tenant", "/test", *found}
        assert found == sorted(path for path in paths if asgi(app, RequestSpec(path, host=host)).status == 200)


def test_rules_of_a_subdomain_hide_those_of_the_main_host_alone() -> None:
    main, mounted = flask.Flask("main", static_folder=None), flask.Flask("mounted", static_folder=None)
    main.config["SERVER_NAME"], main.subdomain_matching = "example.test", True
    main.url_map.default_subdomain = ""
    main.add_url_rule("/", "home", lambda: "home")
    main.add_url_rule("/docs", "docs", lambda: "docs", subdomain="api")
    mounted.add_url_rule("/page", "page", lambda: "page")
    main.wsgi_app = DispatcherMiddleware(main.wsgi_app, {"/m": mounted})  # type: ignore[method-assign]
    site = SitemapMiddleware(main, base_url="http://example.test", store="memory://", verify=False)
    for host, expected in {"example.test": ["/", "/m/page"], "api.example.test": ["/docs"]}.items():
        assert listed(site, host) == expected
        assert {wsgi(main, RequestSpec(path, host=host)).status for path in expected} == {200}
