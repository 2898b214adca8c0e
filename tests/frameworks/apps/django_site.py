from __future__ import annotations

from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseForbidden, JsonResponse
from django.shortcuts import redirect
from django.urls import include, path
from django.views import View
from django.views.decorators.http import require_GET, require_POST

from sitemap_middleware import SitemapMiddleware, sitemap

from ...support.django_project import use
from . import POSTS, page

PROTOCOL = "wsgi"
HOST = None
PEOPLE = "/people/<int:number>"


def shown(request: HttpRequest, **_: Any) -> HttpResponse:
    return HttpResponse(page(request.path_info))


@require_GET
@sitemap(lastmod="2026-05-01", priority=0.8)
def about(request: HttpRequest) -> HttpResponse:
    return shown(request)


@sitemap(changefreq="weekly")
class Contact(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return shown(request)


@sitemap(values=POSTS)
def post(request: HttpRequest, slug: str) -> HttpResponse:
    if slug not in POSTS:
        raise Http404
    return shown(request)


@sitemap(learn=True)
def tagged(request: HttpRequest, tag: str) -> HttpResponse:
    return shown(request)


@sitemap(exclude=True)
@require_GET
def login(request: HttpRequest) -> HttpResponse:
    return shown(request)


def gone(request: HttpRequest) -> HttpResponse:
    raise Http404


def patterns() -> list[Any]:
    blog = [path("", shown), path("archive", shown), path("tags/<tag>", tagged)]
    shop = ([path("", shown, name="shelves"), path("cart-help", shown, name="cart_help")], "shop")
    return [
        path("", shown),
        path("about", about),
        path("contact", Contact.as_view()),
        path("posts/<slug>", post),
        path("people/<int:number>", shown),
        path("login", login),
        path("drafts/one", shown),
        path("subscribe", require_POST(shown)),
        path("moved", lambda _: redirect("/about")),
        path("gone", gone),
        path("members", lambda _: HttpResponseForbidden(page("/members"))),
        path("data", lambda _: JsonResponse({"some": "data"})),
        path("blog/", include(blog)),
        path("shop/", include(shop)),
    ]


def build() -> Any:
    URLS[:] = [use(patterns())]
    return WSGIHandler()


URLS: list[list[Any]] = []


def add_page(_: Any, url: str) -> None:
    URLS[0].append(path(url.removeprefix("/"), shown))


def in_settings(handler: Any, **options: Any) -> Any:
    settings = {f"SITEMAP_{name.upper()}": value for name, value in options.items()}
    URLS[:] = [use(patterns(), MIDDLEWARE=["sitemap_middleware.django.SitemapMiddleware"], **settings)]
    return type(handler)()


INSTALL = {"outside": SitemapMiddleware, "MIDDLEWARE": in_settings}
