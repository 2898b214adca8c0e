from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.routing import Host

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "asgi"
HOST = "shop.testserver"
PEOPLE = "/people/{number}"


def build() -> FastAPI:
    app = FastAPI(default_response_class=HTMLResponse)

    @app.get("/about")
    @sitemap(lastmod="2026-05-01", priority=0.8)
    def about() -> str:
        return page("/about")

    @sitemap(changefreq="weekly")
    @app.get("/contact")
    async def contact() -> str:
        return page("/contact")

    @app.get("/posts/{slug}")
    @sitemap(values=POSTS)
    def post(slug: str) -> str:
        if slug not in POSTS:
            raise HTTPException(404)
        return page(f"/posts/{slug}")

    @app.get("/people/{number}")
    def person(number: int) -> str:
        return page(f"/people/{number}")

    @app.get("/login")
    @sitemap(exclude=True)
    def login() -> str:
        return page("/login")

    app.get("/")(lambda: page("/"))
    app.get("/drafts/one")(lambda: page("/drafts/one"))
    app.post("/subscribe")(lambda: page("/subscribe"))

    @app.get("/moved")
    def moved() -> RedirectResponse:
        return RedirectResponse("/about")

    @app.get("/gone")
    def gone() -> str:
        raise HTTPException(404)

    @app.get("/members")
    def members() -> str:
        raise HTTPException(403)

    @app.get("/data", response_model=None)
    def data() -> JSONResponse:
        return JSONResponse({"some": "data"})

    blog = APIRouter(prefix="/blog")
    blog.get("/")(lambda: page("/blog/"))
    blog.get("/archive")(lambda: page("/blog/archive"))

    @blog.get("/tags/{tag}")
    @sitemap(learn=True)
    def tagged(tag: str) -> str:
        return page(f"/blog/tags/{tag}")

    app.include_router(blog)

    shop = FastAPI(default_response_class=HTMLResponse)
    shop.get("/")(lambda: page("/shop/"))
    shop.get("/cart-help")(lambda: page("/shop/cart-help"))
    app.mount("/shop", shop)

    of_host = FastAPI(default_response_class=HTMLResponse)
    of_host.get("/of-host")(lambda: page("/of-host"))
    app.router.routes.insert(0, Host(HOST, of_host))
    return app


def add_page(app: FastAPI, path: str) -> None:
    app.get(path)(lambda: page(path))


def _inside(app: FastAPI, **options: Any) -> FastAPI:
    app.add_middleware(SitemapMiddleware, **options)
    return app


INSTALL = {"outside": SitemapMiddleware, "add_middleware": _inside}
