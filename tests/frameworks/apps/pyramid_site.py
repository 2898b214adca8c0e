from __future__ import annotations

from typing import Any

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPForbidden, HTTPFound, HTTPNotFound
from pyramid.request import Request
from pyramid.response import Response

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "wsgi"
HOST = None
PEOPLE = r"/people/{number}"
add_page = None


def shown(request: Request) -> Response:
    return Response(page(request.path_info))


@sitemap(lastmod="2026-05-01", priority=0.8)
def about(request: Request) -> Response:
    return shown(request)


class Contact:
    def __init__(self, request: Request) -> None:
        self.request = request

    @sitemap(changefreq="weekly")
    def form(self) -> Response:
        return shown(self.request)


@sitemap(values=POSTS)
def post(request: Request) -> Response:
    if request.matchdict["slug"] not in POSTS:
        raise HTTPNotFound
    return shown(request)


@sitemap(learn=True)
def tagged(request: Request) -> Response:
    return shown(request)


@sitemap(exclude=True)
def login(request: Request) -> Response:
    return shown(request)


def gone(_: Request) -> Response:
    raise HTTPNotFound


def members(_: Request) -> Response:
    raise HTTPForbidden


def build() -> Any:
    with Configurator() as config:
        routes: list[tuple[str, Any, dict[str, Any]]] = [
            ("/", shown, {}),
            ("/about", about, {"request_method": "GET"}),
            ("/contact", Contact, {"attr": "form"}),
            ("/posts/{slug}", post, {}),
            (r"/people/{number:\d+}", shown, {}),
            ("/login", login, {}),
            ("/drafts/one", shown, {}),
            ("/subscribe", shown, {"request_method": "POST"}),
            ("/moved", lambda _: HTTPFound("/about"), {}),
            ("/gone", gone, {}),
            ("/members", members, {}),
        ]
        for pattern, view, options in routes:
            config.add_route(pattern, pattern)
            config.add_view(view, route_name=pattern, **options)
        config.add_route("data", "/data", request_method="GET")
        config.add_view(lambda _: {"some": "data"}, route_name="data", renderer="json")
        config.include(blog, route_prefix="/blog")
        config.include(shop, route_prefix="/shop")
        return config.make_wsgi_app()


def blog(config: Configurator) -> None:
    for name, pattern, view in (("posts", "/", shown), ("archive", "/archive", shown), ("tags", "/tags/{tag}", tagged)):
        config.add_route(name, pattern)
        config.add_view(view, route_name=name)


def shop(config: Configurator) -> None:
    for name, pattern in (("shelves", "/"), ("cart_help", "/cart-help")):
        config.add_route(name, pattern)
        config.add_view(shown, route_name=name)


INSTALL = {"outside": SitemapMiddleware}
