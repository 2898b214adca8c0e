"""Which rules of a Werkzeug URL map are pages: Flask's, Quart's, and a plain one."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from flask.views import MethodView
from werkzeug.routing import Map, Rule, Submount
from werkzeug.wrappers import Request, Response

from sitemap_middleware import SitemapMiddleware

from ...support.sample_sites import listed


def listed_at_once(app: Any) -> list[str]:
    return listed(SitemapMiddleware(app, store="memory://", verify=False))


def page(**_: Any) -> str:
    return "a page"


class Item(MethodView):
    def get(self) -> str:
        return "one"

    def delete(self) -> str:
        return "gone"


class Inbox(MethodView):
    def post(self) -> str:
        return "taken"


def flask_app(**options: Any) -> flask.Flask:
    return flask.Flask("site", **{"static_folder": None, **options})


@pytest.mark.parametrize(
    ("rule", "options", "expected"),
    [
        ("/about", {}, ["/about"]),
        ("/about/", {"strict_slashes": False}, ["/about/"]),
        ("/über uns", {}, ["/%C3%BCber%20uns"]),
        ("/posts/<slug>", {}, []),
        ("/posts/", {"defaults": {"page": 1}}, ["/posts/"]),
        ("/form", {"methods": ["POST"]}, []),
        ("/live", {"methods": ["GET"], "websocket": True}, []),
        ("/old", {"redirect_to": "new"}, []),
        ("/other-name", {"alias": True}, []),
    ],
)
def test_a_rule_is_listed_when_a_crawler_gets_one_page_by_it(
    rule: str, options: dict[str, Any], expected: list[str]
) -> None:
    app = flask_app()
    app.add_url_rule(rule, "page", page, **options)
    assert listed_at_once(app) == expected


def test_rule_and_its_default_form_are_one_page() -> None:
    app = flask_app()
    app.add_url_rule("/posts/", "posts", page, defaults={"page": 1})
    app.add_url_rule("/posts/page/<int:page>", "posts", page)
    assert listed_at_once(app) == ["/posts/"]


def test_view_classes_count_by_the_methods_they_have() -> None:
    app = flask_app()
    app.add_url_rule("/item", view_func=Item.as_view("item"))
    app.add_url_rule("/inbox", view_func=Inbox.as_view("inbox"))
    assert listed_at_once(app) == ["/item"]


# Hosts


def test_a_subdomain_rule_that_no_request_can_reach_is_not_listed() -> None:
    app = flask_app(subdomain_matching=True)
    app.add_url_rule("/", "home", page)
    app.add_url_rule("/posts", "posts", page, subdomain="blog")
    assert listed_at_once(app) == ["/"]


# Other apps with Werkzeug's map


class Shortener:
    """A plain Werkzeug app, as in Werkzeug's own tutorial."""

    def __init__(self) -> None:
        self.url_map = Map(
            [
                Rule("/", endpoint="new_url"),
                Rule("/imprint", endpoint=page, methods=["GET"]),
                Rule("/<short_id>", endpoint="follow"),
                Submount("/help", [Rule("/", endpoint="help"), Rule("/faq", endpoint="faq")]),
            ]
        )

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        self.url_map.bind_to_environ(environ).match()
        return Response(f"at {request.path}", mimetype="text/html")(environ, start_response)


def test_endpoints_are_explained_by_names_that_people_know() -> None:
    site = SitemapMiddleware(Shortener(), store="memory://", verify=False)
    assert listed(site) == ["/", "/help/", "/help/faq", "/imprint"]
    assert str(site.explain("/imprint")).endswith("route: /imprint (page)")
    assert str(site.explain("/help/faq")).endswith("route: /help/faq (faq)")
