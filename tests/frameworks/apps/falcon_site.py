from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "wsgi"
HOST = None
PEOPLE = "/people/{number:int}"


class Page:
    def on_get(self, request: falcon.Request, response: falcon.Response, **params: Any) -> None:
        response.content_type = falcon.MEDIA_HTML
        response.text = page(request.path)


class Pages(Page):
    @sitemap(lastmod="2026-05-01", priority=0.8)
    def on_get_about(self, request: falcon.Request, response: falcon.Response) -> None:
        Page.on_get(self, request, response)

    @sitemap(values=POSTS)
    def on_get_post(self, request: falcon.Request, response: falcon.Response, slug: str) -> None:
        if slug not in POSTS:
            raise falcon.HTTPNotFound
        Page.on_get(self, request, response)

    @sitemap(learn=True)
    def on_get_tagged(self, request: falcon.Request, response: falcon.Response, tag: str) -> None:
        Page.on_get(self, request, response)

    def on_get_moved(self, request: falcon.Request, response: falcon.Response) -> None:
        raise falcon.HTTPFound("/about")

    def on_get_gone(self, request: falcon.Request, response: falcon.Response) -> None:
        raise falcon.HTTPNotFound

    def on_get_members(self, request: falcon.Request, response: falcon.Response) -> None:
        raise falcon.HTTPForbidden

    def on_get_data(self, request: falcon.Request, response: falcon.Response) -> None:
        response.media = {"some": "data"}


@sitemap(changefreq="weekly")
class Contact(Page):
    """A class whose settings are those of its route."""


@sitemap(exclude=True)
class Login(Page):
    """The same."""


class Subscribe:
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.text = page("/subscribe")


def build(app: Any = None, change: Callable[[type], type] = lambda resource: resource) -> Any:
    """The site in an app, with changed resources."""
    app, pages = app or falcon.App(), change(Pages)()
    for path in ("/", "/people/{number:int}", "/drafts/one", "/blog/", "/blog/archive", "/shop/", "/shop/cart-help"):
        app.add_route(path, pages)
    for path, suffix in (("/posts/{slug}", "post"), ("/blog/tags/{tag}", "tagged")):
        app.add_route(path, pages, suffix=suffix)
    for name in ("about", "moved", "gone", "members", "data"):
        app.add_route(f"/{name}", pages, suffix=name)
    app.add_route("/contact", change(Contact)())
    app.add_route("/login", change(Login)())
    app.add_route("/subscribe", change(Subscribe)())
    return app


def add_page(app: falcon.App[Any, Any], path: str) -> None:
    app.add_route(path, Page())


INSTALL = {"outside": SitemapMiddleware}
