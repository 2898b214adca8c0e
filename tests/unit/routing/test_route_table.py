"""Which route of an app the page of a path belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.models import Route, Site
from sitemap_middleware.routing.route_table import RouteTable

SITE = Site("https", "example.com")
PARAMETRISED = tuple(Route(path, "page", static=False) for path in ("/posts/<slug>", "/posts/reset/<token>"))


async def app(scope: Any, receive: Any, send: Any) -> None: ...


def table(*, match_template: Any = lambda *_: None, **options: Any) -> RouteTable:
    service = SitemapMiddleware(app, store="memory://", **options).service
    return RouteTable(PARAMETRISED, service.options, match_template)


@pytest.mark.parametrize(
    ("options", "learned"),
    [
        ({"learn": "/posts/*"}, [True, False]),
        ({"learn": "/posts/*", "include": "/posts/*"}, [True, True]),
        ({"learn": ["/posts/*", "/posts/reset/*"]}, [True, False]),
        ({"learn": "/posts/<slug>"}, [True, False]),
    ],
    ids=["a glob", "an included glob", "two globs", "a template"],
)
def test_no_page_of_a_route_with_a_secret_is_learned_unless_it_is_included(
    options: dict[str, Any], learned: list[bool]
) -> None:
    found = table(**options)
    assert [found.find_route(SITE, path) is not None for path in ("/posts/rye", "/posts/reset/abc")] == learned


def test_a_path_at_which_the_router_of_the_app_raises_matches_no_route() -> None:
    def match_template(path: str, host: str | None) -> str | None:
        if path == "/posts/bad":
            raise ValueError(path)
        return "/posts/<slug>" if path.startswith("/posts/") else None

    found = table(match_template=match_template)
    assert [found.matching_route(SITE, path) for path in ("/posts/rye", "/posts/bad", "/other")] == [
        PARAMETRISED[0],
        None,
        None,
    ]
