"""Static routes that never get their GET requests: compared with what the app itself answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Host, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from sitemap_middleware import SitemapMiddleware

from ...support.sample_sites import listed
from ...support.wire import RequestSpec, asgi

PATHS = ["/", "/late", "/late/", "/a/late", "/7", "/a/7", "/en/"]
TEMPLATES = ["/{lang}", "/{lang}/", "/{n:int}", "/{p:path}", "/a/{x}", "/{x}/late", "/{x}/{n:int}", "/en{rest:path}"]


def route(path: str, kind: str, name: str = "") -> BaseRoute:
    """A route that answers with its own name."""

    async def page(_: Any) -> HTMLResponse:
        return HTMLResponse(name)

    class Posting(HTTPEndpoint):
        async def post(self, _: Any) -> HTMLResponse:
            return HTMLResponse(name)

    class Getting(HTTPEndpoint):
        async def get(self, _: Any) -> HTMLResponse:
            return HTMLResponse(name)

    async def socket(_: Any) -> None: ...

    return {
        "get": lambda: Route(path, page),
        "post": lambda: Route(path, page, methods=["POST"]),
        "posting": lambda: Route(path, Posting),
        "getting": lambda: Route(path, Getting),
        "socket": lambda: WebSocketRoute(path, socket),
    }[kind]()


KINDS = st.sampled_from(["get", "get", "post", "posting", "getting", "socket"])
ROUTES = st.lists(st.tuples(st.sampled_from(PATHS + TEMPLATES), KINDS), max_size=6)
MOUNTS = st.tuples(st.sampled_from(["", "/a", "/en", "/{x}"]), ROUTES)


@given(st.lists(st.one_of(st.tuples(st.sampled_from(PATHS + TEMPLATES), KINDS), MOUNTS), max_size=7))
def test_a_static_route_is_listed_if_the_app_hands_its_path_to_it(written: list[Any]) -> None:
    routes: list[BaseRoute] = []
    own: set[str] = set()
    for number, (path, what) in enumerate(written):
        if isinstance(what, str):
            routes.append(route(path, what, path))
            own.add(path)
        else:
            inner = [route(below, kind, f"{path}{below}") for below, kind in what]
            routes.append(Mount(path, routes=inner, name=str(number)))
            own.update(path + below for below, _ in what)
    app = Starlette(routes=routes)
    site = SitemapMiddleware(app, store="memory://", verify=False, robots=False)
    answers = {path: asgi(app, RequestSpec(path)) for path in own if "{" not in path}
    expected = {path for path, answer in answers.items() if (answer.status, answer.text) == (200, path)}
    assert {*listed(site)} == expected


def test_mounts_and_files_and_the_pages_of_a_host_may_be_shadowed(tmp_path: Path) -> None:
    (tmp_path / "late.html").write_text("<p>late")
    (tmp_path / "other.html").write_text("<p>other")
    routes = [
        route("/s/late.{x}", "get"),
        Host("other.example", Starlette(routes=[route("/s/late.html", "get")])),
        Mount("/s", StaticFiles(directory=tmp_path, html=True)),
    ]
    site = SitemapMiddleware(Starlette(routes=routes), store="memory://", verify=False)
    assert listed(site) == ["/s/other.html"]
    assert asgi(site, RequestSpec("/s/other.html", host="other.example")).status == 404
    assert asgi(site, RequestSpec("/sitemap.xml", host="other.example")).status == 404
