"""Which routes of Starlette and FastAPI are pages: mounts, hosts, folders of files, routers, response classes."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Mount, Route, Router, WebSocketRoute
from starlette.staticfiles import StaticFiles

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.routing.starlette_routes import RECHECK_SECONDS

from ...support.documents import entries
from ...support.sample_sites import Clock, listed
from ...support.wire import RequestSpec, asgi

NOW = 1_750_000_000


async def page(request: Any = None) -> HTMLResponse:
    return HTMLResponse("a page")


def html() -> HTMLResponse:
    return HTMLResponse("a page")


def data() -> dict[str, str]:
    return {"a": "datum"}


class Counter:
    """An ASGI app that stands as an endpoint."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await HTMLResponse("a page")(scope, receive, send)


class Lazy(BaseRoute):
    """A custom route class of which no attribute can be read yet."""

    def matches(self, _: Any) -> tuple[Match, Any]:
        return Match.NONE, {}

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


async def socket(websocket: Any) -> None: ...


# Starlette


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([Route("/about", page)], ["/about"]),
        ([Route("/über uns", page)], ["/%C3%BCber%20uns"]),
        ([Route("/posts/{slug}", page)], []),
        ([Route("/form", page, methods=["POST"])], []),
        ([Route("/form", page, methods=["GET", "POST"])], ["/form"]),
        ([Route("/counter", Counter())], ["/counter"]),
        ([WebSocketRoute("/ws", socket)], []),
        ([Route("/hidden", page, include_in_schema=False)], []),
        ([Mount("/m", routes=[Route("/", page), Route("/a", page)])], ["/m/", "/m/a"]),
        ([Mount("/m", app=GZipMiddleware(Starlette(routes=[Route("/a", page)])))], ["/m/a"]),
        ([Mount("/m", routes=[Route("/a", page)], middleware=[Middleware(GZipMiddleware)])], ["/m/a"]),
        ([Mount("/m", routes=[Route("/a", page)]), Route("/m/b", page), Route("/mb", page), Route("/m", page)],
         ["/m", "/m/a", "/mb"]),
        ([Mount("/{lang}", routes=[Route("/a", page)]), Route("/de/b", page), Route("/b", page)], ["/b"]),
    ],
)  # fmt: skip
def test_a_route_is_listed_when_a_crawler_gets_one_page_by_it(routes: list[Any], expected: list[str]) -> None:
    app = Starlette(routes=routes)
    assert visited(app) == expected
    for path in expected:
        assert asgi(app, RequestSpec(path.replace("%C3%BC", "ü").replace("%20", " "))).text == "a page"


@pytest.mark.parametrize("make", [Starlette, FastAPI])
def test_a_route_that_cannot_be_read_costs_itself_only(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Lazy):  # each class is warned of once
        pass

    Odd.__qualname__ = f"LazyBelow{make.__name__}"
    app = make(routes=[Route("/", page), Odd(), Route("/a", page), Odd(), Route("/posts/{slug}", page)])
    marked = sitemap(priority=0.3)(Router(routes=[Odd(), Route("/b", page)]))
    app.mount("/m", marked)
    site = SitemapMiddleware(app, store="memory://", verify=False, learn=("/posts/*",))
    asgi(site, RequestSpec("/posts/x"))
    site.flush()
    for _ in range(3):
        expected = ["/", "/a", "/m/b", "/posts/x"]
        assert listed(site) == expected
    (record,) = caplog.records
    expected_start = (
        f"a route of the class {__name__}.{Odd.__qualname__} cannot be read (RuntimeError) and is left out;"
    )
    assert record.getMessage().startswith(expected_start)


# Folders of files


def folder(top: Path, *files: str) -> Path:
    """Files in a folder, each a day older than the one before."""
    for number, name in enumerate(files):
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a page")
        moment = NOW - 86_400 * (number + 1)
        os.utime(file, (moment, moment))
    return top


def files(top: Path, path: str = "", **options: Any) -> Starlette:
    return Starlette(routes=[Mount(path, StaticFiles(directory=top, **{"html": True, **options}))])


def test_html_files_are_pages_dated_by_their_modification(tmp_path: Path) -> None:
    site = SitemapMiddleware(
        files(folder(tmp_path, "index.html", "about.html", "docs/index.html", "docs/a b.htm")),
        store="memory://",
        clock=Clock(NOW),
        verify=False,
    )
    answer = asgi(site, RequestSpec("/sitemap.xml"))
    assert entries(answer.body) == {
        "http://testserver/": {"lastmod": "2025-06-14T15:06:40Z"},
        "http://testserver/about.html": {"lastmod": "2025-06-13T15:06:40Z"},
        "http://testserver/docs/": {"lastmod": "2025-06-12T15:06:40Z"},
        "http://testserver/docs/a%20b.htm": {"lastmod": "2025-06-11T15:06:40Z"},
    }


def test_a_folder_is_read_again_after_a_minute_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, app = [0.0], files(folder(tmp_path, "a.html"))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert visited(app) == ["/a.html"]
    folder(tmp_path, "b.html")
    now[0] = RECHECK_SECONDS - 1
    assert visited(app) == ["/a.html"]
    now[0] = RECHECK_SECONDS
    assert visited(app) == ["/a.html", "/b.html"]


def test_what_is_no_page_is_not_listed(tmp_path: Path) -> None:
    folder(tmp_path, "404.html", "style.css", "app.js", "logo.svg", ".hidden.html", ".git/index.html", "notes.txt")
    folder(tmp_path, "a.html", "deep/404.html", "deep/.well-known/b.html")
    assert visited(files(tmp_path)) == ["/a.html", "/deep/404.html"]
    assert visited(files(tmp_path, html=False)) == []
    assert visited(files(tmp_path / "later", check_dir=False)) == []


# FastAPI


def api(**options: Any) -> FastAPI:
    app = FastAPI(**options)
    app.get("/data")(data)
    app.get("/html", response_class=HTMLResponse)(html)
    return app


def visited(app: Any, *paths: str) -> list[str]:
    site = from_outside(app)
    for path in paths:
        asgi(site, RequestSpec(path))
    site.flush()
    return listed(site)


class ProblemResponse(Response):
    media_type = "application/problem+json"


class Page(HTMLResponse):
    media_type = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("response_class", "expected"),
    [(HTMLResponse, ["/x"]), (Page, ["/x"]), (JSONResponse, []), (ProblemResponse, []), (RedirectResponse, [])],
)
@pytest.mark.parametrize("level", ["route", "router", "include", "app"])
def test_a_declared_response_class_tells_pages_from_data(response_class: Any, expected: list[str], level: str) -> None:
    settings = {"default_response_class": response_class}
    app = FastAPI(**settings if level == "app" else {})
    router = APIRouter(**settings if level == "router" else {})
    router.get("/x", **{"response_class": response_class} if level == "route" else {})(html)
    app.include_router(router, **settings if level == "include" else {})
    assert visited(app) == expected


class Filter(BaseModel):
    word: str = ""


class Search(BaseModel):
    word: str


def asks(word: str) -> str:
    return word


def optional(word: str | None = None, page: Annotated[int, Query()] = 1) -> str:
    return str(page)


def filters(given: Annotated[Filter, Query()]) -> str:
    return given.word


def searches(given: Annotated[Search, Query()]) -> str:
    return given.word


def depends(word: Annotated[str, Depends(asks)]) -> str:
    return word


@pytest.mark.parametrize("prefix", ["", "/in"])
def test_a_route_that_needs_a_query_parameter_is_not_listed_before_a_visit(prefix: str) -> None:
    app, router = FastAPI(), APIRouter(default_response_class=HTMLResponse)
    for view in (asks, optional, filters, searches, depends):
        router.get(f"/{view.__name__}")(view)
    app.include_router(router, prefix=prefix)
    assert visited(app) == [f"{prefix}/filters", f"{prefix}/optional"]


def test_routers_are_listed_at_any_depth_under_all_their_prefixes() -> None:
    routers = [APIRouter(prefix=f"/{number}") for number in range(4)]
    for router in routers:
        router.get("", response_class=HTMLResponse)(html)
        router.get("/", response_class=HTMLResponse)(html)
    for outer, inner in reversed([*itertools.pairwise(routers)]):
        outer.include_router(inner, prefix="/in")
    app = FastAPI()
    app.include_router(routers[0], prefix="/w1")
    app.include_router(routers[3], prefix="/w2")
    below = ["/w1/0", "/w1/0/in/1", "/w1/0/in/1/in/2", "/w1/0/in/1/in/2/in/3", "/w2/3"]
    assert visited(app) == sorted(path + end for path in below for end in ("", "/"))


@pytest.mark.parametrize("level", ["route", "router", "include"])
def test_what_is_left_out_of_the_schema_is_listed_once_it_was_seen(level: str) -> None:
    settings = {"include_in_schema": False}
    router = APIRouter(**settings if level == "router" else {})
    router.get("/x", response_class=HTMLResponse, **settings if level == "route" else {})(html)
    app = FastAPI()
    app.include_router(router, **settings if level == "include" else {})
    assert visited(app) == []
    assert visited(app, "/x") == ["/x"]


def from_outside(app: Any) -> Any:
    return SitemapMiddleware(app, store="memory://", verify=False)


def by_add_middleware(app: FastAPI) -> Any:
    app.add_middleware(SitemapMiddleware, store="memory://", verify=False)
    return app


DOCS = ("/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect")


@pytest.mark.parametrize("wrap", [from_outside, by_add_middleware])
@pytest.mark.parametrize("mount", ["", "/sub"])
def test_the_documentation_of_the_api_is_never_listed(wrap: Any, mount: str) -> None:
    app = inner = api()
    if mount:
        app = FastAPI()
        app.mount(mount, inner)
    site = wrap(app)
    for path in DOCS:
        assert asgi(site, RequestSpec(mount + path)).status == 200
    assert listed(site) == [f"{mount}/html"]


@pytest.mark.filterwarnings("ignore:The `root_path` parameter is deprecated")  # and still in use
def test_a_declared_root_path_stands_in_every_loc() -> None:
    assert visited(api(root_path="/api")) == ["/api/html"]
    assert listed(by_add_middleware(api(root_path="/api"))) == ["/api/html"]
    assert listed(by_add_middleware(api()), root="/api") == ["/api/html"]


if hasattr(FastAPI, "frontend"):

    @pytest.mark.parametrize("prefix", ["", "/admin"])
    def test_the_pages_of_a_frontend_are_listed_where_no_route_is(tmp_path: Path, prefix: str) -> None:
        folder(tmp_path, "index.html", "404.html", "assets/app.js", "guide/index.html")
        app, router = api(), APIRouter()
        router.frontend("/", directory=tmp_path)
        app.include_router(router, prefix=prefix)
        app.frontend("/other", directory=tmp_path)
        below = [f"{prefix}/", f"{prefix}/guide/", "/other/", "/other/guide/"]
        assert visited(app) == sorted([*below, "/html"])
        assert {asgi(app, RequestSpec(path)).status for path in below} == {200}
