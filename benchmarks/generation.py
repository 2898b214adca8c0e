"""The time that a document of 50,000 entries takes, beside the peers given the same 50,000 pages.

Ours is measured three ways: from entries that are ready (the writer alone), from
the same Python objects that the peers are given, and from an SQLite file in
which 50,000 learned pages stand, by one request to a middleware that was just
made. The last holds everything: reading the pages, judging and dating each,
writing the document, compressing it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.dates import w3c
from sitemap_middleware.document import urlsets
from sitemap_middleware.model import URL

from . import pairs
from .peers import HOST, Post, peers
from .tables import Table

ROUNDS, COUNT = 7, 50_000
READY, OBJECTS, STORE = "ours, ready entries", "ours, Python objects", "ours, SQLite store"
OURS = (READY, OBJECTS, STORE)


def run() -> Iterator[Table]:
    began = datetime(2015, 1, 1, 6, 30, tzinfo=UTC)
    posts = [
        Post(f"a-post-with-a-readable-name-{number:05}", began + timedelta(hours=number), number % 10 / 10 + 0.1)
        for number in range(COUNT)
    ]
    with tempfile.TemporaryDirectory() as folder:
        documents = {**_ours(posts, Path(folder, "sitemap.sqlite3")), **peers(posts)}
        for name, document in documents.items():
            found = document().count(b"<loc>https://example.com/posts/")
            assert found == COUNT, f"{name} wrote {found} entries"
        timed = pairs.rounds({name: _times(document) for name, document in documents.items()}, ROUNDS, batch=0)
    table = Table(
        f"A document of {COUNT:,} entries, with lastmod and priority",
        ["", "ms", "from", "to", *(f"/ {name}" for name in OURS)],
        notes=["From the store, compressing is part of it; the others do not compress. No peer had to be adapted."],
    )
    for name in documents:
        taken = timed.of(name)
        table.add(
            name,
            taken.middle * 1e3,
            taken.low * 1e3,
            taken.high * 1e3,
            *(timed.ratio(name, ours).middle for ours in OURS),
        )
    yield table


def _times(document: Callable[[], bytes]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            document()

    return run


def _ours(posts: list[Post], file: Path) -> dict[str, Callable[[], bytes]]:
    base = f"https://{HOST}"

    def entries() -> Iterator[URL]:
        for post in posts:
            yield URL(base + post.path, w3c(post.changed), priority=post.priority)

    ready = list(entries())
    _learn(posts, file)

    def from_store() -> bytes:
        middleware = _wrapped(_nothing, file)
        document = _get(middleware, "/sitemap.xml")
        middleware.close()
        return document

    return {READY: lambda: _only(urlsets(ready)), OBJECTS: lambda: _only(urlsets(entries())), STORE: from_store}


def _only(documents: Iterable[Any]) -> bytes:
    (document,) = documents
    body: bytes = document.body
    return body


def _wrapped(app: Any, file: Path) -> SitemapMiddleware:
    return SitemapMiddleware(
        app, base_url=f"https://{HOST}", learn="/posts/<slug>", priority=0.5, store=f"sqlite:///{file}"
    )


def _learn(posts: list[Post], file: Path) -> None:
    """Have every page seen once, as it would be in use."""
    dates = {post.path: format_datetime(post.changed, usegmt=True) for post in posts}

    def app(environ: Any, start_response: Any) -> list[bytes]:
        modified = dates[environ["PATH_INFO"]]
        start_response("200 OK", [("Content-Type", "text/html"), ("Last-Modified", modified)])
        return [f"<!doctype html><title>A post</title><p>{environ['PATH_INFO']}".encode()]

    middleware = _wrapped(app, file)
    for number, path in enumerate(dates, 1):
        _get(middleware, path)
        if number % 5_000 == 0:
            middleware.flush()
    middleware.close()


def _nothing(_: Any, start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [])
    return []


def _get(app: SitemapMiddleware, path: str) -> bytes:
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "HTTP_HOST": HOST,
        "wsgi.url_scheme": "https",
    }
    return b"".join(app(environ, lambda *_: None))
