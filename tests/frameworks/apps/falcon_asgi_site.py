from __future__ import annotations

from typing import Any

import falcon.asgi

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "asgi"
HOST = None
ROOT_PATH = False
PEOPLE = "/people/{number:int}"


class Page:
    async def on_get(self, request: falcon.asgi.Request, response: falcon.asgi.Response, **params: Any) -> None:
        response.content_type = falcon.MEDIA_HTML
        response.text = page(request.path)


class Pages(Page):
    @sitemap(lastmod="2026-05-01", priority=0.8)
    async def on_get_about(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        await self.on_get(request, response)

    @sitemap(values=POSTS)
    async def on_get_post(self, request: falcon.asgi.Request, response: falcon.asgi.Response, slug: str) -> None:
        if slug not in POSTS:
            raise falcon.HTTPNotFound
        await self.on_get(request, response)

    @sitemap(learn=True)
    async def on_get_tagged(self, request: falcon.asgi.Request, response: falcon.asgi.Response, tag: str) -> None:
        await self.on_get(request, response)

    async def on_get_moved(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        raise falcon.HTTPFound("/about")

    async def on_get_gone(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        raise falcon.HTTPNotFound

    async def on_get_members(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        raise falcon.HTTPForbidden

    async def on_get_data(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        response.media = {"some": "data"}


@sitemap(changefreq="weekly")
class Contact(Page):
    """A class whose settings are those of its route."""


@sitemap(exclude=True)
class Login(Page):
    """The same."""


class Subscribe:
    async def on_post(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        response.text = page("/subscribe")


def build() -> falcon.asgi.App[Any, Any]:
    app = falcon.asgi.App()
    pages = Pages()
    for path in ("/", "/people/{number:int}", "/drafts/one", "/blog/", "/blog/archive", "/shop/", "/shop/cart-help"):
        app.add_route(path, pages)
    for path, suffix in (("/posts/{slug}", "post"), ("/blog/tags/{tag}", "tagged")):
        app.add_route(path, pages, suffix=suffix)
    for name in ("about", "moved", "gone", "members", "data"):
        app.add_route(f"/{name}", pages, suffix=name)
    app.add_route("/contact", Contact())
    app.add_route("/login", Login())
    app.add_route("/subscribe", Subscribe())
    return app


def add_page(app: falcon.asgi.App[Any, Any], path: str) -> None:
    app.add_route(path, Page())


INSTALL = {"outside": SitemapMiddleware}
