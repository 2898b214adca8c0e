from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Host, Mount, Route

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "asgi"
HOST = "shop.testserver"
PEOPLE = "/people/{number:int}"


async def shown(request: Request) -> Response:
    return HTMLResponse(page(request.url.path))


@sitemap(lastmod="2026-05-01", priority=0.8)
async def about(request: Request) -> Response:
    return await shown(request)


@sitemap(changefreq="weekly")
async def contact(request: Request) -> Response:
    return await shown(request)


@sitemap(values=POSTS)
async def post(request: Request) -> Response:
    if request.path_params["slug"] not in POSTS:
        raise HTTPException(404)
    return await shown(request)


@sitemap(learn=True)
async def tagged(request: Request) -> Response:
    return await shown(request)


@sitemap(exclude=True)
async def login(request: Request) -> Response:
    return await shown(request)


async def moved(request: Request) -> Response:
    return RedirectResponse("/about")


async def gone(request: Request) -> Response:
    raise HTTPException(404)


async def members(request: Request) -> Response:
    raise HTTPException(403)


async def data(request: Request) -> Response:
    return JSONResponse({"some": "data"})


def build() -> Starlette:
    blog = [Route("/", shown), Route("/archive", shown), Route("/tags/{tag}", tagged)]
    shop = Starlette(routes=[Route("/", shown), Route("/cart-help", shown)])
    return Starlette(
        routes=[
            Host(HOST, Starlette(routes=[Route("/of-host", shown)])),
            Route("/", shown),
            Route("/about", about),
            Route("/contact", contact),
            Route("/posts/{slug}", post),
            Route("/people/{number:int}", shown),
            Route("/login", login),
            Route("/drafts/one", shown),
            Route("/subscribe", shown, methods=["POST"]),
            Route("/moved", moved),
            Route("/gone", gone),
            Route("/members", members),
            Route("/data", data),
            Mount("/blog", routes=blog),
            Mount("/shop", shop),
        ]
    )


def add_page(app: Starlette, path: str) -> None:
    app.router.routes.append(Route(path, shown))


def _inside(app: Starlette, **options: Any) -> Starlette:
    app.add_middleware(SitemapMiddleware, **options)
    return app


INSTALL = {"outside": SitemapMiddleware, "add_middleware": _inside}
