"""The peers, each as its own documentation sets it up, in one process and with the same pages.

Nothing is adapted: every one imports with the frameworks of today. Each returns
the whole document as bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import asgi_sitemaps
import flask
import flask_sitemapper

HOST = "example.com"


@dataclass(frozen=True, slots=True)
class Post:
    """A page as an app has it: what its database says, in Python's own types."""

    slug: str
    changed: datetime
    priority: float

    @property
    def path(self) -> str:
        return f"/posts/{self.slug}"


def posts(many: int) -> list[Post]:
    """So many pages, edited one an hour."""
    began = datetime(2015, 1, 1, 6, 30, tzinfo=UTC)
    return [
        Post(f"a-post-with-a-readable-name-{number:05}", began + timedelta(hours=number), number % 10 / 10 + 0.1)
        for number in range(many)
    ]


def peers(posts: Sequence[Post]) -> dict[str, Callable[[], bytes]]:
    return {
        "flask-sitemapper": _flask_sitemapper(posts),
        "asgi-sitemaps": _asgi_sitemaps(posts),
    }


def _app() -> flask.Flask:
    app = flask.Flask(__name__)

    @app.get("/posts/<slug>")
    def post(slug: str) -> str:
        return slug

    return app


def _in_request(app: flask.Flask, make: Callable[[], Any]) -> Callable[[], bytes]:
    def document() -> bytes:
        with app.test_request_context(base_url=f"https://{HOST}"):
            document_bytes: bytes = make().get_data()
            return document_bytes

    return document


def _flask_sitemapper(posts: Sequence[Post]) -> Callable[[], bytes]:
    app = _app()
    sitemapper = flask_sitemapper.Sitemapper(app)
    sitemapper.add_endpoint(
        "post",
        lastmod=[post.changed for post in posts],
        priority=[post.priority for post in posts],
        url_variables={"slug": [post.slug for post in posts]},
    )
    return _in_request(app, sitemapper.generate)


def _asgi_sitemaps(posts: Sequence[Post]) -> Callable[[], bytes]:
    class Posts(asgi_sitemaps.Sitemap[Post]):
        def items(self) -> Sequence[Post]:
            return posts

        def location(self, item: Post) -> str:
            return item.path

        def lastmod(self, item: Post) -> datetime:
            return item.changed

        def priority(self, item: Post) -> float:
            return item.priority

    app = asgi_sitemaps.SitemapApp(Posts(), domain=HOST)
    scope = {"type": "http", "method": "GET", "scheme": "https", "path": "/sitemap.xml", "headers": []}
    loop = asyncio.new_event_loop()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    def document() -> bytes:
        sent: list[bytes] = []

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        loop.run_until_complete(app(scope, receive, send))
        return b"".join(sent)

    return document
