from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Flask, abort, redirect
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "wsgi"
HOST = "shop.testserver"
PEOPLE = "/people/<int:number>"


def with_pages(app: Any, blog: Any, as_view: Callable[[Any], Any] = lambda view: view) -> None:
    """Add the pages of the site to an app and a blueprint, whose API Flask and Quart share."""
    app.config["SERVER_NAME"] = "testserver"

    @app.route("/about")
    @sitemap(lastmod="2026-05-01", priority=0.8)
    @as_view
    def about() -> str:
        return page("/about")

    @sitemap(changefreq="weekly")
    @app.route("/contact")
    @as_view
    def contact() -> str:
        return page("/contact")

    @app.route("/posts/<slug>")
    @sitemap(values=POSTS)
    @as_view
    def post(slug: str) -> str:
        return page(f"/posts/{slug}") if slug in POSTS else abort(404)

    @app.route("/people/<int:number>")
    @as_view
    def person(number: int) -> str:
        return page(f"/people/{number}")

    @app.route("/login")
    @sitemap(exclude=True)
    @as_view
    def login() -> str:
        return page("/login")

    for path in ("/", "/drafts/one"):
        app.add_url_rule(path, path, lambda path=path: page(path))
    app.add_url_rule("/subscribe", "subscribe", lambda: page("/subscribe"), methods=["POST"])
    app.add_url_rule("/moved", "moved", lambda: redirect("/about"))
    app.add_url_rule("/gone", "gone", lambda: abort(404))
    app.add_url_rule("/members", "members", lambda: abort(403))
    app.add_url_rule("/data", "data", lambda: {"some": "data"})
    app.add_url_rule("/of-host", "of_host", lambda: page("/of-host"), subdomain="shop")

    blog.add_url_rule("/", "posts", lambda: page("/blog/"))
    blog.add_url_rule("/archive", "archive", lambda: page("/blog/archive"))

    @blog.route("/tags/<tag>")
    @sitemap(learn=True)
    @as_view
    def tagged(tag: str) -> str:
        return page(f"/blog/tags/{tag}")

    app.register_blueprint(blog)


def build() -> Flask:
    app = Flask("contract", static_folder=None, subdomain_matching=True)
    with_pages(app, Blueprint("blog", __name__, url_prefix="/blog"))
    shop = Flask("shop", static_folder=None)
    shop.add_url_rule("/", "shelves", lambda: page("/shop/"))
    shop.add_url_rule("/cart-help", "cart_help", lambda: page("/shop/cart-help"))
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/shop": shop})  # type: ignore[method-assign]
    return app


def add_page(app: Flask, path: str) -> None:
    app.view_functions["later"] = lambda: page(path)
    app.url_map.add(app.url_rule_class(path, endpoint="later", methods=["GET"]))


def _inside(app: Flask, **options: Any) -> Flask:
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, **options)  # type: ignore[method-assign]
    return app


INSTALL = {"outside": SitemapMiddleware, "wsgi_app": _inside}
