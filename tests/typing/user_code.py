"""The public API as users write it. Type checkers read this file; nothing imports it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import falcon
import falcon.asgi
from bottle import Bottle
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from flask import Blueprint, Flask
from litestar import Controller, Litestar, MediaType, Router, get
from litestar.middleware import DefineMiddleware
from pyramid.config import Configurator
from quart import Quart
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sitemap_middleware import Entry, News, SitemapMiddleware, Video, sitemap
from sitemap_middleware.django import SitemapMiddleware as DjangoMiddleware
from sitemap_middleware.flask import Sitemap
from sitemap_middleware.litestar import SitemapPlugin
from sitemap_middleware.pytest_plugin.sitemap_in_test import SitemapOf

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from starlette.types import Receive, Scope, Send

# Flask

flask_app = Flask(__name__)


def all_posts() -> Iterator[Entry]:
    yield Entry({"slug": "rye"}, lastmod=date(2024, 5, 1), priority=0.8, changefreq="weekly")
    news = News(name="The Loaf", language="en", publication_date=date(2024, 5, 1), title="Rye")
    video = Video(thumbnail_loc="/t.jpg", title="Rye", description="How to", player_loc="/player", tags=["rye"])
    yield Entry({"slug": "oat"}, images=["/oat.jpg"], videos=[video], news=news, alternates={"de": "/de/hafer"})


@flask_app.route("/posts/<slug>")
@sitemap(values=all_posts)
def post(slug: str) -> str:
    return slug


@sitemap(exclude=True)
@flask_app.route("/drafts")
def drafts() -> tuple[str, int]:
    return "Not yet", 403


admin = Blueprint("admin", __name__, url_prefix="/admin")
flask_app.register_blueprint(sitemap(exclude=True)(admin))
flask_app.wsgi_app = SitemapMiddleware(  # type: ignore[method-assign] # mypy refuses any value for a method
    flask_app.wsgi_app, base_url="https://example.com"
)

# The Flask extension

extension = Sitemap(exclude=["/login"], priority="auto")


def create_app() -> Flask:
    app = Flask(__name__)
    extension.init_app(app, base_url="https://example.com", robots="disallow")
    return app


with create_app().app_context():
    extension.middleware.flush()
Sitemap(flask_app)
Sitemap(flask_app, base_url="https://example.com", store=None, clock=lambda: 0.0)

# Starlette


async def about(request: Request) -> Response:
    return HTMLResponse("<h1>About us</h1>")


starlette_app = Starlette(
    routes=[Route("/about", about)],
    middleware=[Middleware(SitemapMiddleware, base_url="https://example.com", priority="auto")],
)
starlette_app.add_middleware(
    SitemapMiddleware, base_url="https://example.com", learn=("/posts/{slug}",), robots="disallow", enabled=False
)

# FastAPI

fastapi_app = FastAPI()


async def all_users() -> AsyncIterator[dict[str, str]]:
    yield {"name": "ada"}


@fastapi_app.get("/users/{name}", response_class=HTMLResponse)
@sitemap(values=all_users, priority=0.5)
async def user(name: str) -> str:
    return name


fastapi_app.add_middleware(SitemapMiddleware, base_url="https://example.com")

# Litestar


@get("/bread/{name:str}", media_type=MediaType.HTML)
@sitemap(values=["rye"])
async def loaf(name: str) -> str:
    return name


@sitemap(exclude=True)
@get("/staff", media_type=MediaType.HTML, opt={"sitemap": {"priority": 0.5}})
async def staff() -> str:
    return "Staff"


@sitemap(changefreq="weekly")
class Blog(Controller):
    path = "/blog"


litestar_app = Litestar(
    [loaf, staff, Blog, sitemap(priority=0.2)(Router("/in", route_handlers=[]))],
    plugins=[SitemapPlugin(base_url="https://example.com", learn=["/posts/{slug:str}"])],
)
Litestar([loaf], middleware=[DefineMiddleware(SitemapMiddleware, base_url="https://example.com")])
wrapped_litestar = SitemapMiddleware(litestar_app, base_url="https://example.com")

# Quart

quart_app = Quart(__name__)


quart_app.asgi_app = SitemapMiddleware(  # type: ignore[method-assign] # as in Flask
    quart_app.asgi_app, base_url="https://example.com"
)

# Falcon


class Bread:
    @sitemap(values=["rye"])
    def on_get(self, request: falcon.Request, response: falcon.Response, name: str) -> None:
        response.text = name


falcon_app = falcon.App()
falcon_app.add_route("/bread/{name}", Bread())
wrapped_falcon = SitemapMiddleware(falcon_app, base_url="https://example.com")
wrapped_async_falcon = SitemapMiddleware(falcon.asgi.App(), base_url="https://example.com")

# Django, Bottle and Pyramid


def django_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> DjangoMiddleware:
    return DjangoMiddleware(get_response)


@sitemap(values=["rye"])
def django_loaf(request: HttpRequest, name: str) -> HttpResponse:
    return HttpResponse(name.encode())


wrapped_django = SitemapMiddleware(WSGIHandler(), base_url="https://example.com")
wrapped_bottle = SitemapMiddleware(Bottle(), base_url="https://example.com")
wrapped_pyramid = SitemapMiddleware(Configurator().make_wsgi_app(), base_url="https://example.com")

# Any app, from outside


def wsgi_site(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/html")])
    return [b"<h1>Hello</h1>"]


async def asgi_site(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"Hello"})


wrapped_wsgi = SitemapMiddleware(wsgi_site, base_url="https://example.com", include="/")
wrapped_asgi = SitemapMiddleware(asgi_site, base_url="https://example.com", include="/")
wrapped_flask = SitemapMiddleware(flask_app)


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    await wrapped_asgi(scope, receive, send)


def serve_wsgi(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    return wrapped_wsgi(environ, start_response)


# values and sections, in every form


@dataclass
class Guide:
    loc: str
    lastmod: datetime


async def all_slugs() -> list[str]:
    return ["rye"]


def all_guides() -> Iterator[Guide | Entry | str | dict[str, object]]:
    yield Guide("/guides/rye", datetime(2024, 5, 1, tzinfo=UTC))
    yield Entry(loc="/guides/cake", lastmod="2024-05-01")
    yield "/guides/buns"
    yield {"loc": "/guides/pies", "priority": 0.3}


def page(slug: str) -> str:
    return slug


sitemap(values=["rye", UUID(int=7), date(2024, 5, 1), 7])(page)
sitemap(values=({"slug": slug} for slug in "ab"))(page)
sitemap(values=lambda: (Guide(slug, datetime.now(UTC)) for slug in "ab"))(page)
sitemap(values=all_slugs)(page)
sitemap(values=range(3))(page)
wrapped_sections = SitemapMiddleware(flask_app, sections={"guides": all_guides, "users": all_users, "pies": ["/pies"]})

# What an instance tells

wrapped_flask.refresh()
wrapped_flask.refresh("/posts/rye")

wrapped_flask.flush()
listed: bool = wrapped_flask.explain("/posts/rye").listed
reason: str = wrapped_flask.explain("/posts/rye").reason
seen: float = wrapped_flask.stats()["seen"]
wrapped_flask.close()

verified: object = wrapped_flask.settings["verify"].value

for site in (flask_app, starlette_app, fastapi_app, wrapped_asgi, serve):
    SitemapMiddleware.of(site).flush()


class ShopSitemap(SitemapMiddleware):
    pass


shop: ShopSitemap = ShopSitemap.of(flask_app)

# A test with the pytest plugin


def test_it(sitemap_of: SitemapOf) -> None:
    sitemap = sitemap_of(flask_app, base_url="https://example.com")
    assert "/posts/rye" in sitemap
    assert sitemap.paths == [] or sitemap.dates.get("/") or sitemap.reasons["/"]


# Mistakes that type checkers find


def mistakes() -> None:
    SitemapMiddleware(flask_app, base_urls="https://example.com")  # type: ignore[call-arg]
    SitemapMiddleware(flask_app, "https://example.com")  # type: ignore[call-arg]
    Sitemap(flask_app, "https://example.com")  # type: ignore[call-arg]
    Sitemap(starlette_app)  # type: ignore[arg-type]
    Sitemap(base_urls="https://example.com")  # type: ignore[call-arg]
    Sitemap().init_app(flask_app, max_age="300")  # type: ignore[arg-type]
    SitemapPlugin(base_urls="https://example.com")  # type: ignore[call-arg]
    SitemapPlugin(max_age="300")  # type: ignore[arg-type]
    SitemapMiddleware(flask_app, robots="forbid")  # type: ignore[arg-type]
    SitemapMiddleware(flask_app, max_age="300")  # type: ignore[arg-type]
    starlette_app.add_middleware(SitemapMiddleware, base_urls="https://example.com")  # type: ignore[call-arg]
