"""What only Litestar has: handlers that declare responses, `opt`, controllers, mounts, the plugin."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from litestar import Controller, Litestar, MediaType, Response, Router, WebSocket, asgi, get, post, websocket
from litestar.response import Redirect, Template
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route as StarletteRoute

from sitemap_middleware import OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.litestar import SitemapPlugin
from sitemap_middleware.models import Route
from sitemap_middleware.routing.route_discovery import discover_routes, trusted_hosts

from ..support.sample_sites import listed
from ..support.wire import DRIVERS, RequestSpec, asgi_async

BASE = "http://testserver"


def page(path: str = "/", **options: Any) -> Any:
    @get(path, media_type=MediaType.HTML, **options)
    async def shown() -> str:
        return f"<h1>{path}</h1>"

    return shown


def routes_of(*handlers: Any, **config: Any) -> dict[str, Route]:
    app = handlers[0] if isinstance(handlers[0], Litestar) else Litestar(handlers, openapi_config=None, **config)
    return {route.path: route for route in discover_routes(app)}


def with_plugin(*handlers: Any, **options: Any) -> Litestar:
    plugin = SitemapPlugin(**{"base_url": BASE, "store": "memory://"} | options)
    return Litestar(handlers, openapi_config=None, plugins=[plugin])


# What a handler declares


@get("/it", media_type=MediaType.HTML)
async def asks(word: str) -> str:
    return word


@get("/it", media_type=MediaType.HTML)
async def pages(page: int = 1) -> str:
    return str(page)


def answering(kind: Any, **options: Any) -> Any:
    async def answer() -> Any:
        """Never called."""

    answer.__annotations__["return"] = kind
    return get("/it", **options)(answer)


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # older ways, which the lowest version has
@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (answering(str), "it declares a response of text/plain"),
        (answering(dict[str, str]), "it declares a response of application/json"),
        (answering(Redirect), "it declares a redirect"),
        (answering(str, media_type=MediaType.HTML, status_code=201), "it declares the status 201"),
        (answering(Template), None),
        (answering(Response[str]), None),
        (answering(Template | Redirect), None),
        (answering(ASGIResponse), None),
        (answering(ASGIApp), None),
        (asks, "it needs a query parameter"),
        (pages, None),
    ],
)
def test_a_handler_that_declares_no_page_waits_for_a_response_that_is_one(handler: Any, reason: str | None) -> None:
    (route,) = routes_of(handler).values()
    assert (route.hidden.text if route.hidden else None) == reason


def test_other_methods_and_websockets_are_no_pages() -> None:
    @post("/form", media_type=MediaType.HTML)
    async def form() -> str:
        return ""

    @websocket("/socket")
    async def talk(socket: WebSocket[Any, Any, Any]) -> None:
        """Never called."""

    assert [*routes_of(form, talk, page("/html"))] == ["/html"]


def test_the_documentation_of_the_api_is_internal() -> None:
    internal = {route.path for route in routes_of(Litestar([page()])).values() if route.internal}
    assert internal >= {"/schema", "/schema/swagger", "/schema/openapi.json"}
    assert "/" not in internal


# Settings


def test_settings_are_inherited_from_controller_router_and_app() -> None:
    @sitemap(changefreq="monthly")
    class Shop(Controller):
        path = "/shop"
        opt = {"sitemap": {"priority": 0.3}}  # noqa: RUF012 # as Litestar has it

        @get("/own", media_type=MediaType.HTML, sitemap={"priority": 0.9})
        async def own(self) -> str:
            return ""

        @get("/plain", media_type=MediaType.HTML)
        async def plain(self) -> str:
            return ""

    router = sitemap(changefreq="yearly", exclude=True)(Router("/in", route_handlers=[Shop]))
    app = Litestar([router], opt={"sitemap": {"lastmod": "2026-01-01", "priority": 0.1}}, openapi_config=None)
    found = {path: route.settings for path, route in routes_of(app).items()}
    assert found["/in/shop/own"].priority == 0.9
    assert found["/in/shop/plain"].priority == 0.3
    for settings in found.values():
        assert (settings.changefreq, settings.exclude, str(settings.lastmod)) == ("monthly", True, "2026-01-01")


def test_a_wrong_setting_in_opt_is_an_error_when_the_app_is_made() -> None:
    with pytest.raises(OptionError, match=r"""opt\["sitemap"\] of .*shown: there is no option 'prio'; did you mean"""):
        with_plugin(page("/", opt={"sitemap": {"prio": 1}}))
    with pytest.raises(OptionError, match=r"""opt\["sitemap"\] of .*shown: True is not a mapping; give """):
        with_plugin(page("/", opt={"sitemap": True}))


# Paths


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("str", "käse", "/p/käse"),
        ("int", 7, "/p/7"),
        ("date", date(2026, 5, 1), "/p/2026-05-01"),
        ("datetime", datetime(2026, 5, 1, 6), "/p/2026-05-01T06:00:00"),  # noqa: DTZ001 # as in a path
        ("path", "/a/b/", "/p/a/b"),
    ],
)
def test_values_of_every_type_make_a_path_that_leads_back(kind: str, value: object, path: str) -> None:
    handler = get("/p/{it:" + kind + "}", media_type=MediaType.HTML, sitemap={"values": [value]})(_no_arguments)
    builder: Any = routes_of(handler)["/p/{it:" + kind + "}"].builder
    assert builder.build({"it": value}) == path
    assert builder.matches(path)
    assert not builder.matches(f"{path}/")
    assert builder.context() is None


async def _no_arguments() -> str:
    return ""


# Mounted apps


def mounting(inner: Any, path: str = "/sub") -> list[Any]:
    return [asgi(path, is_mount=True, copy_scope=True)(inner), page("/sub/own")]


async def _answer(request: Any) -> HTMLResponse:
    return HTMLResponse("<h1>Below</h1>")


def test_a_mounted_app_is_reached_with_a_slash_at_the_end_unless_it_is_litestars() -> None:
    inner: Any = Starlette(
        routes=[StarletteRoute(path, _answer) for path in ("/", "/a/", "/b", "/own/", "/p/{it}/", "/q/{it}")]
    )
    app = with_plugin(*mounting(inner))
    assert listed(app) == ["/sub/", "/sub/a/", "/sub/own"]
    assert DRIVERS["asgi"](app, RequestSpec("/sub/a/")).status == 200
    inner = Litestar([page(), page("/a"), get("/p/{it:str}")(_no_arguments)], openapi_config=None)
    assert listed(with_plugin(*mounting(inner))) == ["/sub/", "/sub/a", "/sub/own"]


# Hosts


def test_allowed_hosts_are_the_apps_trusted_hosts() -> None:
    app = Litestar([page()], allowed_hosts=["*.Example.com", "example.org"])
    assert trusted_hosts(app) == (".example.com", "example.org")
    assert trusted_hosts(Litestar([page()])) == ()


# The plugin


def test_the_plugin_answers_without_and_with_a_lifespan_and_saves_when_it_ends() -> None:
    app = with_plugin(page())
    assert listed(app) == ["/"]
    middleware = app.state.sitemap
    assert SitemapMiddleware.of(app) is middleware
    middleware.flush()
    sent: list[str] = []

    async def run() -> None:
        messages = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> Any:
            message = next(messages)
            if message == "lifespan.shutdown":
                assert (await asgi_async(app, RequestSpec("/"))).status == 200
                assert middleware.stats()["pending"] > 0
            return {"type": message}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await app({"type": "lifespan", "app": app}, receive, send)  # type: ignore[arg-type, typeddict-item] # any app's

    asyncio.run(run())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert middleware.stats()["pending"] == 0


def test_a_wrong_option_of_the_plugin_is_an_error() -> None:
    with pytest.raises(OptionError, match="there is no option 'base_ulr'; did you mean base_url"):
        SitemapPlugin(base_ulr=BASE)
    with pytest.raises(OptionError, match="base_url"):
        with_plugin(page(), base_url="example.com")


# The command line


def test_the_command_line_of_litestar_has_the_commands(tmp_path: Path) -> None:
    (tmp_path / "bakery.py").write_text(
        "from litestar import Litestar, MediaType, get\n"
        "from sitemap_middleware.litestar import SitemapPlugin\n"
        "@get('/', media_type=MediaType.HTML)\n"
        "async def home() -> str:\n"
        "    return '<h1>Home</h1>'\n"
        "app = Litestar([home], plugins=[SitemapPlugin(base_url='https://bakery.example', store='memory://')])\n"
    )
    command = [sys.executable, "-m", "litestar", "--app", "bakery:app", "sitemap", "routes", "--json"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = {
        route["route"]: route["reason"] for route in json.loads(result.stdout[result.stdout.index("{") :])["routes"]
    }
    assert found["/"] == "it answered 200 with text/html"
