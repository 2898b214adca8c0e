from __future__ import annotations

from typing import Any

from quart import Blueprint, Quart, abort, redirect, websocket

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "asgi"
HOST = "shop.testserver"
PEOPLE = "/people/<int:number>"


def build() -> Quart:
    app = Quart("contract", static_folder=None, subdomain_matching=True)
    app.config["SERVER_NAME"] = "testserver"

    @app.route("/about")
    @sitemap(lastmod="2026-05-01", priority=0.8)
    async def about() -> str:
        return page("/about")

    @sitemap(changefreq="weekly")
    @app.route("/contact")
    async def contact() -> str:
        return page("/contact")

    @app.route("/posts/<slug>")
    @sitemap(values=POSTS)
    async def post(slug: str) -> str:
        return page(f"/posts/{slug}") if slug in POSTS else abort(404)

    @app.route("/people/<int:number>")
    async def person(number: int) -> str:
        return page(f"/people/{number}")

    @app.route("/login")
    @sitemap(exclude=True)
    async def login() -> str:
        return page("/login")

    @app.websocket("/live")
    async def live() -> None:
        await websocket.send("news")

    for path in ("/", "/drafts/one"):
        app.add_url_rule(path, path, lambda path=path: page(path))
    app.add_url_rule("/subscribe", "subscribe", lambda: page("/subscribe"), methods=["POST"])
    app.add_url_rule("/gone", "gone", lambda: abort(404))
    app.add_url_rule("/members", "members", lambda: abort(403))
    app.add_url_rule("/moved", "moved", lambda: redirect("/about"))
    app.add_url_rule("/data", "data", lambda: {"some": "data"})
    app.add_url_rule("/of-host", "of_host", lambda: page("/of-host"), subdomain="shop")

    blog = Blueprint("blog", __name__, url_prefix="/blog")
    blog.add_url_rule("/", "posts", lambda: page("/blog/"))
    blog.add_url_rule("/archive", "archive", lambda: page("/blog/archive"))

    @blog.route("/tags/<tag>")
    @sitemap(learn=True)
    async def tagged(tag: str) -> str:
        return page(f"/blog/tags/{tag}")

    app.register_blueprint(blog)

    shop = Blueprint("shop", __name__, url_prefix="/shop")
    shop.add_url_rule("/", "shelves", lambda: page("/shop/"))
    shop.add_url_rule("/cart-help", "cart_help", lambda: page("/shop/cart-help"))
    app.register_blueprint(shop)
    return app


def add_page(app: Quart, path: str) -> None:
    async def later() -> str:
        return page(path)

    app.view_functions["later"] = later
    app.url_map.add(app.url_rule_class(path, endpoint="later", methods=["GET"]))


def _inside(app: Quart, **options: Any) -> Quart:
    app.asgi_app = SitemapMiddleware(app.asgi_app, **options)  # type: ignore[method-assign] # as Quart has it
    return app


INSTALL = {"outside": SitemapMiddleware, "asgi_app": _inside}
