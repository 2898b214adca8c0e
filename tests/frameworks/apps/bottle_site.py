from __future__ import annotations

from typing import Any

from bottle import Bottle, abort, redirect

from sitemap_middleware import SitemapMiddleware, sitemap

from . import POSTS, page

PROTOCOL = "wsgi"
HOST = None
PEOPLE = "/people/<number:int>"


def build() -> Bottle:
    app = Bottle()

    @app.get("/about")
    @sitemap(lastmod="2026-05-01", priority=0.8)
    def about() -> str:
        return page("/about")

    @sitemap(changefreq="weekly")
    @app.route("/contact", method=["GET", "POST"])
    def contact() -> str:
        return page("/contact")

    @app.route("/posts/<slug>")
    @sitemap(values=POSTS)
    def post(slug: str) -> Any:
        return page(f"/posts/{slug}") if slug in POSTS else abort(404)

    @app.route("/people/<number:int>")
    def person(number: int) -> str:
        return page(f"/people/{number}")

    @app.route("/login")
    @sitemap(exclude=True)
    def login() -> str:
        return page("/login")

    for path in ("/", "/drafts/one"):
        app.route(path, callback=lambda path=path: page(path))
    app.post("/subscribe", callback=lambda: page("/subscribe"))
    app.route("/moved", callback=lambda: redirect("/about"))
    app.route("/gone", callback=lambda: abort(404))
    app.route("/members", callback=lambda: abort(403))
    app.route("/data", callback=lambda: {"some": "data"})

    blog = Bottle()
    blog.route("/", callback=lambda: page("/blog/"))
    blog.route("/archive", callback=lambda: page("/blog/archive"))

    @blog.route("/tags/<tag>")
    @sitemap(learn=True)
    def tagged(tag: str) -> str:
        return page(f"/blog/tags/{tag}")

    app.mount("/blog/", blog)

    shop = Bottle()
    shop.route("/", callback=lambda: page("/shop/"))
    shop.route("/cart-help", callback=lambda: page("/shop/cart-help"))
    app.mount("/shop/", shop)
    return app


def add_page(app: Bottle, path: str) -> None:
    app.route(path, callback=lambda: page(path))


INSTALL = {"outside": SitemapMiddleware}
