"""Why there is no sitemap, as clients are told and as the log says once."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from werkzeug.middleware.proxy_fix import ProxyFix

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import Site
from sitemap_middleware.no_sitemap_reasons import MAX_LOGGED_HOST_CHARS, NoSitemapReasons
from sitemap_middleware.routing.route_table import RouteTable
from sitemap_middleware.stores.sqlite.memory import MemoryStore

SITE = Site("https", "example.com")


class Case:
    """The reasons of an app with one page, and its routes."""

    def __init__(self, *paths: str, store: MemoryStore | None = None, **options: Any) -> None:
        app = flask.Flask("shop", static_folder=None)
        for path in paths:
            app.add_url_rule(path, path, lambda: "A page")
        self.store = store or MemoryStore()
        service = SitemapMiddleware(app, **{"store": self.store, "base_url": "https://example.com", **options}).service
        self.options = service.options
        self.table: RouteTable = service.app_routes.reload()
        self.reasons = NoSitemapReasons(self.options, self.store)

    def reason(self) -> str:
        return self.reasons.reason(SITE, self.table)


def observed(path: str, **more: Any) -> Observation:
    return Observation(path, path, 1_750_000_000, 200, "text/html")._replace(**more)


def test_app_without_routes(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    reason = (
        "There is nothing to list in /sitemap.xml, and no routes of the app could be found:"
        " give SitemapMiddleware routes=app, or name pages by include and learn."
    )
    assert [case.reason(), case.reason()] == [reason, reason]
    case.reasons.warn_of_no_routes(case.table)
    assert caplog.messages == [
        (
            "there is no sitemap, and no routes of the app could be found: give SitemapMiddleware routes=app,"
            " or name pages by include and learn."
        )
    ]


def test_app_with_routes_of_which_nothing_is_to_be_listed(caplog: pytest.LogCaptureFixture) -> None:
    case = Case("/a", path="/pages.xml")
    case.reasons.warn_of_no_routes(case.table)
    assert case.reason().startswith("There is nothing to list in /pages.xml: no page is known")
    assert not caplog.messages


CANONICALS = {
    "header": {"canonical": "https://www.example.com/caf%C3%A9"},
    "HTML": {"html": HtmlFacts(7, canonical="https://www.example.com/caf%C3%A9")},
}


@pytest.mark.parametrize("canonical", CANONICALS.values(), ids=CANONICALS.keys())
def test_pages_whose_canonical_links_name_another_host(canonical: Any, caplog: pytest.LogCaptureFixture) -> None:
    case = Case("/café")
    case.store.merge(SITE.store_key, [observed("/gone", status=404), observed("/caf%C3%A9", **canonical)])
    reason = "There is nothing to list in /sitemap.xml: its pages name other URLs as canonical. The log says which."
    assert [case.reason(), case.reason()] == [reason, reason]
    assert caplog.messages == [
        (
            "no page of https://example.com is listed: pages name other URLs as canonical, such as /café,"
            " which names https://www.example.com/caf%C3%A9; if that is the page itself, give SitemapMiddleware"
            ' base_url="https://www.example.com", and let the server set the root path if its path is longer'
        )
    ]


class PrefixFix:
    """A middleware like ProxyFix, as an object."""

    def __init__(self, prefix: int = 0) -> None:
        self.x_prefix = prefix


@pytest.mark.parametrize(
    ("middleware", "options", "name"),
    [
        (None, {"base_url": None}, None),
        (ProxyFix, {"base_url": None}, "ProxyFix"),
        (PrefixFix(), {"base_url": None}, "PrefixFix"),
        (PrefixFix(), {}, None),
        (PrefixFix(1), {}, "PrefixFix"),
        (object(), {}, None),
    ],
    ids=["none", "class", "object", "base_url", "base_url and a prefix", "no prefix"],
)
def test_proxy_middleware_inside_is_warned_of_if_it_matters(
    middleware: Any, options: Any, name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case("/a", **options)
    for _ in range(2):
        case.reasons.warn_of_proxy_fix(middleware)
    assert caplog.messages == (
        [
            (
                f"{name} runs inside SitemapMiddleware, which therefore sees neither the public host and scheme nor the"
                " prefix: wrap it around SitemapMiddleware instead"
            )
        ]
        if name
        else []
    )


@pytest.mark.parametrize(
    ("host", "logged"),
    [
        ("other.example", "other.example"),
        ("", ""),
        ("a\nb\x1b[0m\u202e.example", "a?b?[0m?.example"),
        ("a" * (MAX_LOGGED_HOST_CHARS + 1), "a" * MAX_LOGGED_HOST_CHARS),
    ],
    ids=["usual", "empty", "control characters", "long"],
)
def test_unknown_host_is_logged_once_as_harmless_text(host: str, logged: str, caplog: pytest.LogCaptureFixture) -> None:
    case = Case("/a", base_url=None)
    case.reasons.warn_of_host(host)
    case.reasons.warn_of_host("another.example")
    assert caplog.messages == [
        (
            f"no sitemap for the host '{logged}': it is not in allowed_hosts and base_url is not set;"
            " set SITEMAP_BASE_URL, or pass base_url or allowed_hosts to SitemapMiddleware"
        )
    ]


def test_patterns_that_match_no_route_are_warned_of_once_each(caplog: pytest.LogCaptureFixture) -> None:
    case = Case("/about", "/team", exclude=("/abuot", "/nothing"), include="/taem")
    case.reasons.warn_of_unmatched(case.table)
    messages = [
        "the option exclude has /abuot, which matches no route of the app; did you mean /about?",
        "the option exclude has /nothing, which matches no route of the app; correct it, or leave it out",
        "the option include has /taem, which matches no route of the app; did you mean /team?",
    ]
    assert caplog.messages == messages
    case.reasons.warn_of_unmatched(case.table)
    case.reasons.warn_of_unmatched(RouteTable(case.table.routes, case.options))
    assert caplog.messages == messages
    case.reasons.warn_of_unmatched(RouteTable(case.table.routes[1:], case.options))
    assert caplog.messages == messages
