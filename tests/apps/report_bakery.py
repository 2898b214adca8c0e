"""A bakery's site with a year of history, for the report: in the browser's tests and in the screenshots."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final

import flask

from sitemap_middleware import Entry, SitemapMiddleware, sitemap
from sitemap_middleware.evidence.dates import SECONDS_PER_DAY

from ..support.sample_sites import Clock
from ..support.wire import RequestSpec, wsgi

NOW: Final = 1_795_400_000
"""2026-11-23."""
REPORT: Final = "/sitemap-report"
BASE: Final = "https://bakery.example"
LINKED: Final = ("/", "/menu", "/about", "/opening-hours", "/contact", "/kitchen", "/summer-menu")
HOSTILE: Final = '"><script>alert(document.domain)</script>'

_BREADS: Final = ("rye", "sourdough", "baguette", "ciabatta", "focaccia", "pumpernickel", "brioche", "challah", "spelt",
                  "soda", "pita", "naan", "bagel", "pretzel", "miche", "babka")  # fmt: skip


def make(**options: Any) -> flask.Flask:
    """The app, in debug mode, with what was seen of it."""
    clock = Clock(NOW - 150 * SECONDS_PER_DAY)
    app = flask.Flask("bakery", static_folder=None)
    app.debug = True
    content: dict[str, Any] = {}
    today = date(2026, 11, 23)
    posts = [
        Entry({"slug": f"{bread}-{number}"}, lastmod=today - timedelta(days=2 + 5 * (16 * number + index) % 400))
        for number in range(1, 12)
        for index, bread in enumerate(_BREADS)
    ]

    def page(path: str) -> Any:
        status, text, headers = content.get(path, (200, path, {}))
        links = "".join(f"<a href='{link}'>{link}</a>" for link in LINKED)
        html = f"<!doctype html><title>{path}</title><nav>{links}</nav><main><h1>{path}</h1><p>{text}</p></main>"
        return html, status, headers

    for path in ("/", "/menu", "/about", "/opening-hours", "/contact", "/kitchen", "/jobs", "/press", "/summer-menu"):
        app.add_url_rule(path, path, lambda path=path: page(path))
    app.add_url_rule("/staff", "staff", sitemap(exclude=True)(lambda: page("/staff")))
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=lambda: posts)(lambda slug: page(f"/posts/{slug}")))
    app.add_url_rule("/authors/<name>", "author", sitemap(learn=True)(lambda name: page(f"/authors/{name}")))
    app.wsgi_app = SitemapMiddleware(  # type: ignore[method-assign]
        app.wsgi_app, base_url=BASE, store="memory://", report=REPORT, clock=clock, verify=False,
        robots=False, **options,
    )  # fmt: skip
    middleware: Any = app.wsgi_app

    def visit(*paths: str) -> None:
        for path in paths:
            wsgi(middleware, RequestSpec(path, host="bakery.example"))
        middleware.flush()

    content["/kitchen"] = 403, "Staff only", {}
    content["/press"] = 200, "Press", {"X-Robots-Tag": "noindex"}
    content["/about"] = 200, "About", {"Last-Modified": "Fri, 01 May 2026 06:30:00 GMT"}
    content["/contact"] = 200, "Contact", {"Link": f'<{BASE}/about>; rel="canonical"'}
    static = ("/", "/menu", "/about", "/opening-hours", "/contact", "/kitchen", "/press", "/summer-menu")
    for day in range(0, 150, 5):
        season = day // 40
        content["/menu"] = 200, f"The menu of season {_BREADS[season]}", {}
        content["/opening-hours"] = 200, "Open all day" if day < 95 else "Closed on Mondays", {}
        if day > 120:
            content["/summer-menu"] = 410, "Gone", {}
        if day > 60:
            visit("/jobs")
        visit(*static, *(f"/authors/{name}" for name in ("eve", "noor", "zoë")[: 1 + day // 60]))
        clock.pass_(3600)
        visit(*static)
        clock.pass_(5 * SECONDS_PER_DAY - 3600)
    visit(f"/authors/{HOSTILE.replace('/', '')}")
    return app
