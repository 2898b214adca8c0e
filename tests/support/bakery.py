"""A site whose pages and dates a test changes, to see what is told of that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import feedparser
import flask

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from .sample_sites import Clock
from .wire import Answer, RequestSpec, wsgi

NOW = 1_750_000_000
DAY = 86_400
BASE = "https://example.com"


class Bakery:
    """A site with items that it enumerates and notes that are learned; one worker's view of it."""

    def __init__(self, **options: Any) -> None:
        self.base: str = options.setdefault("base_url", BASE)
        self.items: dict[str, int | None] = {}
        """When each was edited."""
        self.statuses: dict[str, int] = {}
        self.clock = options.setdefault("clock", Clock(NOW))
        app = self.flask = flask.Flask("bakery", static_folder=None)

        def page() -> flask.Response:
            status = self.statuses.get(flask.request.path, 200)
            headers = {"X-Robots-Tag": "noindex"} if status == 0 else {}
            return flask.Response(f"<!doctype html><main>{flask.request.path}", status or 200, headers)

        def items() -> list[Entry]:
            return [
                Entry({"slug": slug}, lastmod=None if at is None else datetime.fromtimestamp(at, UTC))
                for slug, at in self.items.items()
            ]

        app.add_url_rule("/", "home", page)
        app.add_url_rule("/items/<slug>", "items", sitemap(values=items)(lambda **_: page()))
        app.add_url_rule("/notes/<slug>", "notes", sitemap(learn=True)(lambda **_: page()))
        self.app = SitemapMiddleware(app, **{"store": "memory://", "verify": False, "feed": "/changes.atom", **options})

    def get(self, path: str = "/sitemap.xml", **headers: str) -> Answer:
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return wsgi(self.app, RequestSpec(path, host=self.base.partition("//")[2], headers=fields))

    def visit(self, *paths: str) -> None:
        for path in paths:
            self.get(path)
        self.app.flush()

    def pass_(self, seconds: float) -> None:
        """Let time pass, in which the sitemap is requested now and then."""
        for _ in range(3):
            self.clock.pass_(seconds / 3)
            self.app.flush()
            assert self.get().status == 200

    def told(self) -> dict[str, str]:
        feed = feedparser.parse(self.get("/changes.atom").body)
        assert not feed.bozo
        return {entry.link.removeprefix(self.base): entry.tags[0].term for entry in feed.entries}
