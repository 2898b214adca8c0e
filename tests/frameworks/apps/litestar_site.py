from __future__ import annotations

from typing import Any

from litestar import Controller, Litestar, MediaType, Response, Router, asgi, get, post
from litestar.exceptions import NotFoundException, PermissionDeniedException
from litestar.middleware import DefineMiddleware
from litestar.response import Redirect

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.litestar import SitemapPlugin

from . import POSTS, page

PROTOCOL = "asgi"
HOST = None
PEOPLE = "/people/{number:int}"
SPELLED = {"/blog/": "/blog"}


def plain(path: str, shown: str = "", method: Any = get) -> Any:
    """A handler of a path, which shows that of the whole app."""

    @method(path, media_type=MediaType.HTML)
    async def handler() -> str:
        return page(shown or path)

    return handler


@get("/about", media_type=MediaType.HTML)
@sitemap(lastmod="2026-05-01", priority=0.8)
async def about() -> str:
    return page("/about")


@sitemap(changefreq="weekly")
@get("/contact", media_type=MediaType.HTML)
async def contact() -> str:
    return page("/contact")


@get("/posts/{slug:str}", media_type=MediaType.HTML, opt={"sitemap": {"values": POSTS}})
async def blog_post(slug: str) -> str:
    if slug not in POSTS:
        raise NotFoundException
    return page(f"/posts/{slug}")


@get("/people/{number:int}", media_type=MediaType.HTML)
async def person(number: int) -> str:
    return page(f"/people/{number}")


@get("/login", media_type=MediaType.HTML, sitemap={"exclude": True})
async def login() -> str:
    return page("/login")


@get("/drafts/one", sync_to_thread=False)
def draft() -> Response[str]:
    return Response(page("/drafts/one"), media_type=MediaType.HTML)


@get("/moved")
async def moved() -> Redirect:
    return Redirect("/about")


@get("/gone", media_type=MediaType.HTML)
async def gone() -> str:
    raise NotFoundException


def nobody(connection: Any, handler: Any) -> None:
    raise PermissionDeniedException


@get("/members", media_type=MediaType.HTML, guards=[nobody])
async def members() -> str:
    return page("/members")


@get("/data")
async def data() -> dict[str, str]:
    return {"some": "data"}


class Blog(Controller):
    @get("/tags/{tag:str}", media_type=MediaType.HTML)
    @sitemap(learn=True)
    async def tagged(self, tag: str) -> str:
        return page(f"/blog/tags/{tag}")


def _handlers() -> list[Any]:
    shop = Litestar([plain("/", "/shop/"), plain("/cart-help", "/shop/cart-help")], openapi_config=None)
    return [
        plain("/"), plain("/subscribe", method=post), about, contact, blog_post, person, login, draft, moved, gone, members,
        data,
        Router("/blog", route_handlers=[plain("/", "/blog/"), plain("/archive", "/blog/archive"), Blog]),
        asgi("/shop", is_mount=True, copy_scope=True)(shop),
    ]  # fmt: skip


def build(**config: Any) -> Litestar:
    return Litestar(_handlers(), **config)


def add_page(app: Litestar, path: str) -> None:
    app.register(plain(path))


INSTALL = {
    "outside": SitemapMiddleware,
    "plugin": lambda _, **options: build(plugins=[SitemapPlugin(**options)]),
    "middleware": lambda _, **options: build(middleware=[DefineMiddleware(SitemapMiddleware, **options)]),
}
