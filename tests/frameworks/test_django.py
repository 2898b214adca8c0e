"""What only Django has: URLconfs in several languages, the admin, Sitemap classes, sync and async middleware."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
from asgiref.sync import markcoroutinefunction
from django.apps import apps
from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.contrib.sitemaps import Sitemap
from django.contrib.sitemaps.views import sitemap as sitemap_view
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command, execute_from_command_line
from django.db import connections
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import AsyncClient, Client
from django.urls import include, path, re_path, reverse
from django.utils import translation
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic import RedirectView
from django.views.static import serve
from lxml import etree

from sitemap_middleware import OptionError, SitemapMiddleware, sitemap

from ..support.django_project import use
from ..support.documents import entries, locs
from ..support.waiting import until
from ..support.wire import DRIVERS, Answer, RequestSpec

BASE = "http://testserver"
ENTRY = "sitemap_middleware.django.SitemapMiddleware"


def view_of_page() -> Any:
    """A view of its own, for a mark of its own."""
    return lambda request, *words, **named: HttpResponse(f"<h1>{request.path_info}</h1><p>{words} {named}")


page = view_of_page()


class Project:
    """A project with the middleware in its settings, or around it."""

    def __init__(
        self, patterns: list[Any], *, handler: Any = WSGIHandler, outside: bool = False, **changes: Any
    ) -> None:
        options: dict[str, Any] = {"SITEMAP_BASE_URL": BASE, "SITEMAP_STORE": "memory://"}
        inside: list[str] = changes.pop("MIDDLEWARE", [])
        self.urls = use(patterns, MIDDLEWARE=inside if outside else [ENTRY, *inside], **(options | changes))
        self.protocol = "asgi" if handler is ASGIHandler else "wsgi"
        self.app = SitemapMiddleware(handler()) if outside else handler()

    def request(self, url: str, **changes: Any) -> Answer:
        return DRIVERS[self.protocol](self.app, RequestSpec(url, **changes))

    def visit(self, *urls: str) -> Project:
        for url in urls:
            self.request(url)
        self.middleware.flush()
        return self

    @property
    def middleware(self) -> SitemapMiddleware:
        return SitemapMiddleware.of(self.app)

    def listed(self, **changes: Any) -> list[str]:
        answer = self.request("/sitemap.xml", **changes)
        return [unquote(loc.removeprefix(BASE)) for loc in locs(answer.body)] if answer.status == 200 else []

    def entries(self) -> dict[str, dict[str, str]]:
        found = entries(self.request("/sitemap.xml").body)
        return {unquote(loc.removeprefix(BASE)): entry for loc, entry in found.items()}


@pytest.fixture(params=[WSGIHandler, ASGIHandler])
def handler(request: pytest.FixtureRequest) -> Any:
    return request.param


# Views


class ReadOnly(View):
    def get(self, request: Any) -> HttpResponse:
        return page(request)


class WriteOnly(View):
    def post(self, request: Any) -> HttpResponse:
        raise NotImplementedError


class OwnDispatch(View):
    def dispatch(self, request: Any, *_: Any, **__: Any) -> HttpResponse:
        return page(request)


VIEWS: dict[str, tuple[Any, bool]] = {
    "a function": (page, True),
    "a class": (ReadOnly.as_view(), True),
    "a class that dispatches itself": (OwnDispatch.as_view(), True),
    "require_http_methods with GET": (require_http_methods(["GET", "POST"])(page), True),
    "a class with post only": (WriteOnly.as_view(), False),
    "a class that as_view allows post only": (ReadOnly.as_view(http_method_names=["post"]), False),
    "require_POST below another decorator": (login_required(require_POST(page)), False),
    "a redirect": (RedirectView.as_view(url="/"), False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_listed_if_it_declares_nothing_else_than_a_page(name: str) -> None:
    """No view is requested here, so this is what the URLconf alone says."""
    view, listed = VIEWS[name]
    assert Project([path("it/", view)], SITEMAP_VERIFY=False).listed() == (["/it/"] if listed else [])


# URLconfs


def test_values_of_path_and_re_path() -> None:
    by_name = sitemap(values=[{"year": 2024, "slug": "a"}, {"year": 24, "slug": "b"}])(view_of_page())
    by_position = sitemap(values=["x", "y/z"])(view_of_page())
    by_converter = sitemap(values=[7, "nine"])(view_of_page())
    project = Project(
        [
            path("<int:number>/", by_converter),
            re_path(r"^(?P<year>[0-9]{4})/(?P<slug>\w+)/100%/$", by_name),
            re_path(r"^p/(\w)/$", by_position),
        ]
    )
    assert project.listed() == ["/7/", "/2024/a/100%/", "/p/x/"]
    assert "b" in str(project.middleware.explain("/24/b/100%/"))


def test_routes_that_another_route_shadows() -> None:
    project = Project(
        [path("<slug>/", page), path("about/", page), path("a/", include([path("b/", page)]))], SITEMAP_VERIFY=False
    )
    assert project.listed() == ["/a/b/"]


def test_of_a_catch_all_only_the_home_page_is_listed() -> None:
    pages: Any = Sitemap()
    pages.items, pages.location, pages.priority = lambda: ["/"], lambda path: path, 0.9
    project = Project([re_path(r"^(?P<anything>.*)$", page)], SITEMAP_SITEMAPS={"pages": pages})
    assert project.visit("/a/b/c", "/a").entries() == {"/": {"priority": "0.9"}}


def test_static_and_media_files_are_declared_as_such() -> None:
    media = re_path(r"^media/(?P<path>.*)$", serve, {"document_root": "/nowhere"})
    project = Project([path("", page), media])
    hidden = {route.path: route.hidden for route in project.middleware.service.app_routes.table.routes}
    assert hidden == {"/": None, "/media/<path:path>": ("it serves static files", True)}


def test_tools_of_operators_are_never_listed_and_pages_of_such_names_are() -> None:
    class SummaryView(ReadOnly):
        __module__ = "silk.views.summary"

    project = Project([path("", page), path("silk/", page), path("profile/", SummaryView.as_view())])
    assert project.visit("/profile/").listed() == ["/", "/silk/"]
    assert project.middleware.explain("/profile/").reason == "it is part of silk, a tool for the operators of the site"


def test_the_admin_is_never_listed() -> None:
    site, wagtail = admin.AdminSite(name="office"), ModuleType("wagtail.admin.urls")
    wagtail.urlpatterns = [path("", page)]  # type: ignore[attr-defined]
    below = {"admin/": admin.site.urls, "office/": site.urls, "cms/": include(wagtail)}
    project = Project([path("", page), *(path(root, urls) for root, urls in below.items())])
    assert project.listed() == ["/"]
    assert project.middleware.explain("/admin/login/").reason == "it is part of the admin"
    assert project.middleware.explain("/office/").reason == "it is part of the admin"
    assert project.middleware.explain("/cms/").reason == "it is part of the admin"


# Languages

LANGUAGES = {
    "LANGUAGES": [("en", "English"), ("de", "German"), ("pt-br", "Portuguese")],
    "MIDDLEWARE": ["django.middleware.locale.LocaleMiddleware"],
}


def test_translated_patterns_are_listed_as_each_language_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"en": "about/", "de": "ueber/", "pt-br": "sobre/"}
    translated = gettext_lazy("about/")
    monkeypatch.setattr(type(translated), "__str__", lambda _: words[translation.get_language() or "en"])
    monkeypatch.setattr(type(translated), "_proxy____cast", lambda _: words[translation.get_language() or "en"], False)
    assert Project(i18n_patterns(path(translated, page)), **LANGUAGES).listed() == [  # type: ignore[arg-type]
        "/de/ueber/",
        "/en/about/",
        "/pt-br/sobre/",
    ]


def test_a_place_behind_other_middleware_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    use([path("", page)], MIDDLEWARE=["django.middleware.common.CommonMiddleware", ENTRY], SITEMAP_STORE="memory://")
    WSGIHandler()
    (warning,) = [record.getMessage() for record in caplog.records if "MIDDLEWARE" in record.getMessage()]
    assert "is number 2 of MIDDLEWARE: make it the first" in warning


# Sitemap classes


class Posts(Sitemap):
    changefreq = "weekly"
    priority = 0.6
    slugs: tuple[str, ...] = ("first", "second", "k\u00e4se")

    def items(self) -> list[str]:
        return sorted(self.slugs)

    def location(self, item: str) -> str:
        return reverse("post", args=[item])

    def lastmod(self, item: str) -> datetime:
        return datetime(2026, 3, 4, 5, 6)  # noqa: DTZ001 (as without USE_TZ)


class Pages(Sitemap):
    def items(self) -> list[str]:
        return ["home", "about"]

    def location(self, item: str) -> str:
        return reverse(item)

    def priority(self, item: str) -> float:
        return 1.0 if item == "home" else 0.5


class Lost(Sitemap):
    def items(self) -> list[str]:
        return ["/nowhere/", "/posts/first/?page=2", "/hidden/1/", "/posts/first/"]

    def location(self, item: str) -> str:
        return item


@sitemap(exclude=True)
def hidden(request: Any, number: int) -> HttpResponse:
    return page(request)


SITE = [
    path("", page, name="home"),
    path("about/", page, name="about"),
    path("posts/<slug>/", page, name="post"),
    path("hidden/<int:number>/", hidden),
]
SECTIONS = {"posts": Posts, "pages": Pages()}
BY_NAME = {"posts": f"{__name__}.Posts", "pages": Pages()}


@pytest.mark.parametrize("outside", [False, True])
def test_sitemap_classes_enumerate_the_pages_of_their_views(handler: Any, outside: bool) -> None:
    project = Project(SITE, handler=handler, outside=outside, SITEMAP_SITEMAPS=f"{__name__}.BY_NAME")
    post = {"changefreq": "weekly", "priority": "0.6"}
    assert project.entries() == {
        "/": {"priority": "1.0"},
        "/about/": {"priority": "0.5"},
        "/posts/first/": {"lastmod": "2026-03-04T05:06:00Z", **post},
        "/posts/k\u00e4se/": {"lastmod": "2026-03-04T05:06:00Z", **post},
        "/posts/second/": {"lastmod": "2026-03-04T05:06:00Z", **post},
    }
    assert "/base/posts/first/" in project.listed(root="/base")


def test_locations_that_lead_nowhere_are_left_out_and_named() -> None:
    project = Project(SITE, SITEMAP_SITEMAPS={"lost": Lost})
    assert project.listed() == ["/", "/about/", "/posts/first/"]
    assert project.middleware.stats()["skipped"] == 2
    skipped = str(project.middleware.explain("/posts/first/"))
    assert "/posts/first/ is listed: SITEMAP_SITEMAPS['lost'] includes it, and no response forbids it" in skipped
    assert "/nowhere/ leads to no view" in skipped
    assert "?page=2 leads to no view" in skipped


def test_the_decorator_comes_before_a_sitemap_class() -> None:
    about = sitemap(priority=0.9)(view_of_page())
    project = Project([path("", page, name="home"), path("about/", about, name="about")], SITEMAP_SITEMAPS=SECTIONS)
    project.urls.append(path("posts/<slug>/", sitemap(values=["own"])(view_of_page()), name="post"))
    until(lambda: project.entries()["/"])
    assert project.entries() == {"/": {"priority": "1.0"}, "/about/": {"priority": "0.9"}, "/posts/own/": {}}


@pytest.mark.parametrize("value", [["posts"], {"posts": object()}, f"{__name__}.SITE", "json.sitemapz"])
def test_a_setting_that_holds_no_sitemaps_is_refused(value: Any) -> None:
    what = r"=.* is not a mapping of names to Sitemap classes| names 'json.sitemapz', which cannot be imported"
    with pytest.raises((OptionError, ImportError), match=f"SITEMAP_SITEMAPS({what})"):
        Project(SITE, SITEMAP_SITEMAPS=value)


def test_sitemap_classes_may_share_a_view() -> None:
    class Archive(Posts):
        slugs = ("old",)

    project = Project(SITE, SITEMAP_SITEMAPS={"posts": Posts, "archive": Archive})
    assert {"/posts/first/", "/posts/old/"} <= {*project.listed()}
    assert project.middleware.explain("/posts/old/").reason.startswith("SITEMAP_SITEMAPS['archive'] includes it")
    reason = project.middleware.explain("/posts/none/").reason
    assert "it is in none of SITEMAP_SITEMAPS['posts'], SITEMAP_SITEMAPS['archive']" in reason
    classes = {"posts": Posts, "a-b": Archive, "a_b": Posts, "static": Pages}
    project = Project(SITE, SITEMAP_SITEMAPS=classes, SITEMAP_SECTIONS=True)
    project.listed()
    assert locs(project.request("/sitemap-a-b.xml").body) == [f"{BASE}/posts/old/"]
    assert locs(project.request("/sitemap-static.xml").body) == [f"{BASE}/", f"{BASE}/about/"]


@pytest.mark.parametrize("in_test", [False, True])
def test_refresh_reads_the_sitemap_classes_that_may_give_a_path_and_then_requests_it(*, in_test: bool) -> None:
    """A test client, which has a middleware of its own, sees that at once, and without it."""

    class News(Posts):
        slugs = ("first",)

    def post(request: Any, slug: str) -> HttpResponse:
        return page(request) if slug in News.slugs else HttpResponse(status=404)

    project = Project([path("", page), path("posts/<slug>/", post, name="post")], SITEMAP_SITEMAPS={"news": News})
    client = Client()
    for slugs in (("first",), (), ("first", "new")):
        News.slugs = slugs
        if not slugs:
            client.get("/posts/first/")  # a 404, which an own request has to replace later
            project.visit("/posts/first/")
        paths = ["/", *(f"/posts/{slug}/" for slug in slugs)]
        if in_test:
            assert locs(client.get("/sitemap.xml").content) == [BASE + found for found in paths]
        else:
            project.middleware.refresh("/posts/first/")
            until(lambda paths=paths: project.listed() == paths)  # type: ignore[misc]


def test_sitemap_classes_run_in_a_language_that_the_project_has() -> None:
    class Translated(Sitemap):
        def items(self) -> list[str]:
            return ["home", "about"]

        def location(self, item: str) -> str:
            return reverse(item)

    changes = {**LANGUAGES, "LANGUAGE_CODE": "en-us", "SITEMAP_SITEMAPS": {"pages": Translated}}
    project = Project(i18n_patterns(path("", page, name="home"), path("about/", page, name="about")), **changes)
    project.listed()
    assert project.middleware.stats()["skipped"] == 0
    parts = [path("", page, name="home"), path("<slug>/", page, name="post")]
    parts = i18n_patterns(*parts, prefix_default_language=False)
    project = Project(parts, **{**changes, "SITEMAP_SITEMAPS": {"posts": Posts}})
    assert {"/", "/de/", "/first/"} <= {*project.listed()}


def sets(answer: Answer) -> dict[str, dict[str, str]]:
    """The alternates of each page of a document, by code in lower case."""
    found = {}
    for url in etree.fromstring(answer.body):
        links = url.findall("{http://www.w3.org/1999/xhtml}link")
        versions = {link.get("hreflang").lower(): link.get("href").removeprefix(BASE) for link in links}
        found[url[0].text.removeprefix(BASE)] = versions
    return found


@pytest.mark.parametrize("prefixed", [True, False])
def test_languages_of_i18n_patterns_are_versions(*, prefixed: bool) -> None:
    post = sitemap(values=["x"])(view_of_page())
    patterns = [path("", page, name="home"), path("about/", page), path("posts/<slug>/", post)]
    project = Project(
        [path("imprint/", page), *i18n_patterns(*patterns, prefix_default_language=prefixed)],
        SITEMAP_ALTERNATES="lang",
        SITEMAP_X_DEFAULT="de",
        **LANGUAGES,
    )
    english = "/en" if prefixed else ""
    expected: dict[str, dict[str, str]] = {"/imprint/": {}}
    for rest in ("/", "/about/", "/posts/x/"):
        versions = {"en": f"{english}{rest}", "de": f"/de{rest}", "pt-br": f"/pt-br{rest}", "x-default": f"/de{rest}"}
        expected |= {versions[code]: versions for code in ("en", "de", "pt-br")}
    assert sets(project.request("/sitemap.xml")) == expected


class Localized(Sitemap):
    """As the tests of Django's own sitemaps have them."""

    i18n = alternates = True

    def items(self) -> list[str]:
        return ["rye", "oat"]

    def location(self, item: Any) -> str:
        return reverse("post", args=[item[0] if isinstance(item, tuple) else item])


class XDefault(Localized):
    x_default = True


class Limited(Localized):
    languages = ("en", "de")


class ByItem(XDefault):
    def get_languages_for_item(self, item: str) -> list[str]:
        return {"rye": ["en", "pt-br"], "oat": ["de"]}[item]


class Static(XDefault):
    def items(self) -> list[str]:
        return ["home"]

    def location(self, item: Any) -> str:
        return reverse("home")


@pytest.mark.parametrize("sitemap_class", [Localized, XDefault, Limited, ByItem, Static])
def test_versions_are_those_of_djangos_own_view(sitemap_class: Any) -> None:
    maps = {"sitemaps": {"posts": sitemap_class}}
    translated = i18n_patterns(path("", page, name="home"), path("posts/<slug>/", page, name="post"))
    patterns = [path("theirs.xml", sitemap_view, maps, name="django.contrib.sitemaps.views.sitemap"), *translated]
    project = Project(patterns, SITEMAP_SITEMAPS=maps["sitemaps"], SITEMAP_EXCLUDE="/theirs.xml", **LANGUAGES)
    theirs = sets(project.request("/theirs.xml"))
    alone = {loc for loc, versions in theirs.items() if len(versions.keys() - {"x-default"}) < 2}
    project.listed()  # the sitemaps are read, and then the static pages have their versions
    expected = {loc: {} if loc in alone else versions for loc, versions in theirs.items()}
    until(lambda: {loc: sets(project.request("/sitemap.xml")).get(loc) for loc in theirs} == expected)


def test_version_that_is_gone_is_no_alternate_of_djangos_sitemap_classes() -> None:
    translated = i18n_patterns(path("posts/<slug>/", page_but_german_rye, name="post"))
    project = Project(translated, SITEMAP_SITEMAPS={"posts": Localized}, **LANGUAGES)
    assert "/de/posts/rye/" in project.listed()
    project.visit("/de/posts/rye/")
    until(lambda: "/de/posts/rye/" not in project.listed())
    found = sets(project.request("/sitemap.xml"))
    assert found["/en/posts/rye/"] == {"en": "/en/posts/rye/", "pt-br": "/pt-br/posts/rye/"}
    assert found["/en/posts/oat/"].keys() == {"en", "de", "pt-br"}


def page_but_german_rye(request: Any, slug: str) -> HttpResponse:
    gone = request.path_info == "/de/posts/rye/"
    return HttpResponse(f"<h1>{request.path_info}</h1>", status=404 if gone else 200)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[None]:
    """A database that all threads share."""
    connections["default"].close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.databases["default"], "NAME", str(tmp_path / "project.sqlite3"))
        yield
        connections["default"].close()


@pytest.fixture
def sites(database: None) -> Iterator[Any]:
    """The model of django.contrib.sites."""
    apps.set_installed_apps([*settings.INSTALLED_APPS, "django.contrib.sites"])
    call_command("migrate", "sites", verbosity=0)
    from django.contrib.sites.models import Site

    yield Site
    Site.objects.clear_cache()
    apps.unset_installed_apps()


class OfTheSite(Sitemap):
    """As that of django CMS: its items are rows that refer to the record of their site."""

    def get_urls(self, page: int | str = 1, site: Any = None, protocol: str | None = None) -> list[dict[str, Any]]:
        if site.pk is None:
            raise ValueError("'site' must be a saved record")
        self.site_number = site.pk
        return super().get_urls(page, site, protocol)

    def items(self) -> list[str]:
        return [f"of-{self.site_number}"] if hasattr(self, "site_number") else ["any"]

    def location(self, item: str) -> str:
        return reverse("post", args=[item])


@pytest.mark.parametrize("setting", [{"SITE_ID": 7}, {}])
def test_sitemap_classes_are_given_the_record_of_the_site(handler: Any, sites: Any, setting: dict[str, Any]) -> None:
    sites.objects.create(pk=7, domain="testserver", name="The Corner Bakery")
    project = Project(SITE, handler=handler, SITEMAP_SITEMAPS={"posts": OfTheSite}, **setting)
    assert project.listed() == ["/", "/about/", "/posts/of-7/"]


def test_a_sitemap_class_that_fails_leaves_the_other_pages(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Sitemap):
        def items(self) -> list[str]:
            raise RuntimeError("no database")

    project = Project(SITE, SITEMAP_SITEMAPS={"news": Failing, "posts": Posts})
    assert project.listed() == ["/", "/about/", "/posts/first/", "/posts/k\u00e4se/", "/posts/second/"]
    assert "SITEMAP_SITEMAPS['news']" in caplog.text
    assert "no database" in caplog.text


def test_the_projects_own_sitemap_view_comes_first(caplog: pytest.LogCaptureFixture) -> None:
    project = Project([path("sitemap.xml", sitemap_view, {"sitemaps": SECTIONS}), *SITE])
    assert "http://testserver/posts/first/" in project.request("/sitemap.xml").text
    assert "/sitemap.xml" in caplog.text


# The middleware


class SyncOnly:
    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        return self.get_response(request)


class AsyncOnly:
    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: Any) -> Any:
        return await self.get_response(request)


STACKS = pytest.mark.parametrize(
    ("handler", "inside"),
    [
        (WSGIHandler, []),
        (ASGIHandler, []),
        (ASGIHandler, [f"{__name__}.SyncOnly"]),
        (ASGIHandler, [f"{__name__}.AsyncOnly"]),
    ],
)
"""The handler of the server, and middleware inside of ours, which may change its mode."""


# robots.txt


def robots(request: Any) -> HttpResponse:
    body = f"# for {request.COOKIES.get('user', 'anybody')}\nUser-agent: *\nDisallow: /private\n"
    answer = HttpResponse(body, content_type="text/plain")
    if "user" in request.COOKIES:
        answer.set_cookie("user", request.COOKIES["user"], max_age=60, httponly=True, samesite="Lax")
        answer.set_cookie("seen", "yes")
    return answer


def streamed_robots(request: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse([b"User-agent: *\n", b"Disallow: /private\n"], content_type="text/plain")


def test_an_async_only_middleware_needs_an_asgi_server(caplog: pytest.LogCaptureFixture) -> None:
    project = Project([path("", page)], MIDDLEWARE=[f"{__name__}.AsyncOnly"])
    assert project.request("/").status == 200
    assert project.request("/sitemap.xml").status == 404
    assert "is async only, which needs an ASGI server" in caplog.text


@STACKS
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume:Warning")
def test_robots_txt_is_the_projects_with_a_line_more(handler: Any, inside: list[str]) -> None:
    line = f"\nSitemap: {BASE}/sitemap.xml\n"
    project = Project([path("", page), path("robots.txt", robots)], handler=handler, MIDDLEWARE=inside)
    answer = project.request("/robots.txt", headers=[("cookie", "user=alice")])
    assert answer.text == f"# for alice\nUser-agent: *\nDisallow: /private\n{line}"
    cookies = sorted(text.strip() for name, text in answer.headers if name == "set-cookie")
    assert [text.partition(";")[0] for text in cookies] == ["seen=yes", "user=alice"]
    assert all(part in cookies[1] for part in ("HttpOnly", "Max-Age=60", "SameSite=Lax"))
    project = Project([path("", page), path("robots.txt", streamed_robots)], handler=handler, MIDDLEWARE=inside)
    assert project.request("/robots.txt").text == f"User-agent: *\nDisallow: /private\n{line}"
    assert project.listed() == ["/"]


@STACKS
def test_a_redirect_to_the_slash_is_no_robots_txt(
    handler: Any, inside: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    middleware = ["django.middleware.common.CommonMiddleware", *inside]
    project = Project([path("", page), path("<str:lang>/", page)], handler=handler, MIDDLEWARE=middleware)
    for _ in range(2):
        answer = project.request("/robots.txt")
        assert (answer.status, answer.text) == (200, f"User-agent: *\nDisallow:\n\nSitemap: {BASE}/sitemap.xml\n")
    assert ["(route /<str:lang>/" in text for text in caplog.messages if "is no robots.txt" in text] == [True]


# The report


def with_the_key(request: Any) -> bool:
    if "x-broken" in request.headers:
        raise RuntimeError("the door is stuck")
    return bool(request.headers.get("x-key") == "yes" and (request.environ or request.scope))


@STACKS
def test_the_report_is_shown_to_whom_authorize_lets_in(handler: Any, inside: list[str]) -> None:
    project = Project(
        [path("", page)],
        handler=handler,
        MIDDLEWARE=inside,
        SITEMAP_REPORT="/reports/sitemap",
        SITEMAP_AUTHORIZE=f"{__name__}.with_the_key",
    )
    assert project.request("/reports/sitemap").status == 404
    assert project.request("/reports/sitemap", headers=[("x-broken", "1")]).status == 404
    for url in ("/reports/sitemap", "/reports/sitemap/pages"):
        answer = project.request(url, headers=[("x-key", "yes")])
        assert (answer.status, b"<html" in answer.body) == (200, True)
    assert project.request("/reports/sitemapped", headers=[("x-key", "yes")]).status == 404
    assert project.request("/reports/sitemap", method="POST", headers=[("x-key", "yes")]).status == 404
    assert project.listed() == ["/"]


def test_the_word_staff_stands_for_a_session_of_a_member_of_staff(handler: Any, database: None) -> None:
    from django.contrib.auth.models import User

    call_command("migrate", verbosity=0)
    project = Project([path("", page)], handler=handler, SITEMAP_REPORT="/report", SITEMAP_AUTHORIZE="staff")
    for is_staff, is_active, status in ((True, True, 200), (False, True, 404), (True, False, 404)):
        client, user = Client(), User.objects.create_user(f"{is_staff} {is_active}", is_staff=is_staff)
        client.force_login(user)
        User.objects.filter(pk=user.pk).update(is_active=is_active)
        cookies = ["theme=dark", f"sessionid={client.cookies['sessionid'].value}"]
        if handler is WSGIHandler:
            cookies = ["; ".join(cookies)]  # over HTTP/2, each is a header
        assert project.request("/report", headers=[("cookie", cookie) for cookie in cookies]).status == status
    assert project.request("/report").status == 404


@pytest.mark.parametrize("value", ["no.such.module", f"{__name__}.missing", f"{__name__}.BASE", 7])
def test_an_authorize_that_cannot_be_called_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match=rf"settings.SITEMAP_AUTHORIZE='?{value}'? cannot be (called|imported)"):
        Project([path("", page)], SITEMAP_REPORT="/report", SITEMAP_AUTHORIZE=value)


# manage.py


class Nested(Posts):
    """As of a content management system: one view has pages at any depth."""

    def location(self, item: str) -> str:
        return f"/shop/{item}/all/"


def test_manage_py_has_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    patterns = [
        re_path(r"^files/(\d+)/([^/]+)/(.*)$", page),
        re_path(r"^(?P<code>(a|b)\))/$", page),
        re_path(r"^((?:[\w-]+/)*)$", page),
    ]
    Project(patterns, SITEMAP_SITEMAPS={"posts": Nested})
    call_command("sitemap", "routes", "--json")
    undecided = "it has parameters, and neither values nor learn"
    assert {row["route"]: row["reason"] for row in json.loads(capsys.readouterr().out)["routes"]} == {
        "/files/<_0>/<_1>/<path:_2>": undecided,
        "/<code>/": undecided,
        "/<path:_0>": "listed by SITEMAP_SITEMAPS['posts']: 3 of its pages",
        "/": "it answered 200 with text/html",
    }
    with pytest.raises(SystemExit, match="1"):
        execute_from_command_line(["manage.py", "sitemap", "explain", "/files/", "--no-color"])
    assert "/files/ is not listed" in capsys.readouterr().out


# Responses


def streamed(request: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter([b"<meta name=robots", b" content=noindex>", page(request).content]))


def streamed_async(request: Any) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"<meta name=robots"
        yield b" content=noindex>"

    return StreamingHttpResponse(parts())


def filed(request: Any) -> FileResponse:
    return FileResponse(io.BytesIO(b"<meta name=robots content=noindex>"), content_type="text/html")


def whole(request: Any) -> HttpResponse:
    return HttpResponse(b"<meta name=robots content=noindex>")


STREAMED = {"whole": whole, "parts": streamed, "file": filed, "async parts": streamed_async}


@pytest.mark.parametrize("kind", STREAMED)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume:Warning")
def test_pages_of_any_kind_are_read_and_pass_unchanged(handler: Any, kind: str) -> None:
    patterns = [path("", page), path("it/", STREAMED[kind])]
    if handler is WSGIHandler and kind == "async parts":
        patterns = [path("", page), path("it/", whole)]
    bare = Project(patterns, handler=handler, MIDDLEWARE=[], SITEMAP_ENABLED=False).request("/it/")
    project = Project(patterns, handler=handler)
    assert project.visit("/it/").request("/it/") == bare
    assert project.listed() == ["/"]
    assert "noindex" in project.middleware.explain("/it/").reason


def test_force_script_name_is_the_root_path(handler: Any) -> None:
    project = Project([path("", page), path("about/", page)], handler=handler, FORCE_SCRIPT_NAME="/app")
    url = "/sitemap.xml" if handler is WSGIHandler else "/app/sitemap.xml"
    assert locs(project.request(url).body) == [f"{BASE}/app/", f"{BASE}/app/about/"]


def test_allowed_hosts_are_sites_and_no_others_are() -> None:
    project = Project([path("", page)], ALLOWED_HOSTS=["example.com", ".example.org"], SITEMAP_BASE_URL=None)
    hosts = ("example.com", "example.org", "www.example.org", "www.example.com", "evil.example")
    statuses = [project.request("/sitemap.xml", host=host).status for host in hosts]
    assert statuses == [200, 200, 200, 404, 404]
    any_host = Project([path("", page)], ALLOWED_HOSTS=["*"], SITEMAP_BASE_URL=None)
    assert any_host.request("/sitemap.xml", host="evil.example").status == 404


def test_a_fault_of_the_middleware_is_logged_and_the_page_is_served(
    handler: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    project = Project([path("", page)], handler=handler)
    inner: Any = project.middleware

    def fail(*_: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(inner.service, "observe", fail)
    assert project.request("/").status == 200
    assert "a request could not be looked at" in caplog.text


def failing(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("this view fails")


def forbidden(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied


def test_of_the_middlewares_own_requests_only_faults_are_in_djangos_log(
    handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    project = Project([path("", page), path("members/", forbidden), path("broken/", failing)], handler=handler)
    assert project.listed() == ["/"]
    assert {record.getMessage() for record in caplog.records if record.name == "django.request"} == {
        "Internal Server Error: /broken/"
    }
    project.request("/robots")
    assert "Not Found: /robots" in caplog.text


async def fetch_with_async_client() -> bytes:
    answer: Any = await AsyncClient().get("/sitemap.xml")
    return b"".join([part async for part in answer]) if answer.streaming else answer.content


def test_a_view_that_fails_a_probe_does_not_fail_the_request_of_a_test_client() -> None:
    patterns = [path("", page), path("broken/", failing)]
    Project(patterns)
    assert locs(Client().get("/sitemap.xml").content) == [f"{BASE}/"]
    Project(patterns)
    assert locs(asyncio.run(fetch_with_async_client())) == [f"{BASE}/"]
    with pytest.raises(RuntimeError, match="this view fails"):
        Client().get("/broken/")


def test_a_named_section_closes_the_database_connection_of_its_thread() -> None:
    used: dict[int, Any] = {}

    def paths() -> list[str]:
        own = used[threading.get_ident()] = connections["default"]  # each thread has its own
        with own.cursor() as cursor:
            cursor.execute("SELECT '/a/'")
            assert own.connection is not None
            return [row[0] for row in cursor.fetchall()]

    project = Project([path("<name>/", page)], SITEMAP_SECTIONS={"letters": paths})
    assert project.request("/sitemap.xml").status == 200
    assert b"/a/" in project.request("/sitemap-letters.xml").body
    assert used
    assert all(own.connection is None for own in used.values())
    assert threading.get_ident() not in used
