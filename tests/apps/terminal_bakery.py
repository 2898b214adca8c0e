"""A bakery's site with all that the command line reports, visited over ten days. Its store is in the working folder."""

from __future__ import annotations

from datetime import date
from typing import Any

import flask

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from ..support.wire import RequestSpec, wsgi

DAY = 86_400
OPENED = 1_750_000_000
"""2025-06-15, 15:06:40 UTC."""

NOW = OPENED + 10 * DAY
STORE = "bakery.sqlite3"
LONG = "breads-of-the-house-and-how-we-bake-them-in-the-old-stone-oven-behind-the-mill"

clock = [float(NOW)]
gone: list[str] = []


def page(text: str, **headers: str) -> flask.Response:
    return flask.Response(
        f"<!doctype html><title>{text}</title><main>{text}</main>",
        404 if flask.request.path in gone else 200,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


def posts() -> list[Entry]:
    return [
        Entry({"slug": "rye"}, lastmod=date(2025, 6, 24)),
        Entry({"slug": "spelt"}, lastmod=date(2024, 5, 1)),
        Entry({"slug": LONG}, lastmod=date(2024, 5, 1)),
    ]


app = flask.Flask(__name__, static_folder=None)
app.add_url_rule("/", "home", lambda: page("Bread", Last_Modified="Fri, 01 May 2020 06:30:00 GMT"))
app.add_url_rule("/menu", "menu", lambda: page("Menu"))
app.add_url_rule("/offers", "offers", lambda: page("Offers"))
app.add_url_rule("/opening", "opening", lambda: page("Opening hours"))
app.add_url_rule("/kitchen", "kitchen", lambda: ("Staff only", 403))
app.add_url_rule("/posts/<slug>", "post", sitemap(values=posts)(lambda slug: page(f"Post {slug}")))
app.add_url_rule("/authors/<name>", "author", sitemap(learn=True)(lambda name: page(f"Author {name}")))
app.add_url_rule("/orders/<int:number>", "order", lambda number: page(f"Order {number}"))
app.wsgi_app = SitemapMiddleware(  # type: ignore[method-assign] # as Flask's docs do
    app.wsgi_app,
    base_url="https://bakery.example",
    store=f"sqlite:///{STORE}",
    clock=lambda: clock[0],
    verify=False,
    robots=False,
    exclude=["/amdin/*", "/opening"],
)


def visit(at: int, *paths: str) -> None:
    """Visit pages as a crawler does, at a time, and write what was observed to the store."""
    clock[0] = at
    site: Any = app.wsgi_app
    for path in paths:
        wsgi(site, RequestSpec(path, host="bakery.example"))
    site.flush()


def visit_all() -> None:
    """The visits of ten days. `/offers` is gone on the ninth, `/menu` was first requested on the eighth."""
    visit(OPENED, "/", "/offers", "/kitchen", "/posts/spelt", "/authors/ada")
    visit(OPENED + 5 * DAY, "/", "/offers", "/posts/rye")
    visit(OPENED + 8 * DAY, "/", "/menu", "/authors/grace")
    gone.append("/offers")
    visit(OPENED + 9 * DAY, "/offers", "/menu", "/sitemap.xml")
    gone.clear()
    clock[0] = NOW
    app.wsgi_app.close()  # type: ignore[attr-defined]
