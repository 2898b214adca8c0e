"""A whole sitemap of 50,000 URLs, by `values` and by learned rows, beside other packages with the same pages.

Ours end with the gzipped document of a middleware that was just made; the peers do not compress. Times are CPU time.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from zlib import decompressobj

import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from . import alternating_timing, site
from .peers import Post, peers, posts
from .tables import Table

SHORT = {"pages": 20, "rounds": 2}
FLASK, STARLETTE, ROWS = "ours, values of a Flask app", "ours, values of a Starlette app", "ours, learned rows"


def run(pages: int = 50_000, rounds: int = 5) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        items = posts(pages)
        ours: dict[str, Callable[[], bytes]] = {
            FLASK: partial(_document, _flask_app(items), _wsgi_response),
            STARLETTE: partial(_document, _starlette_app(items), _asgi_response),
            ROWS: partial(_rows_document, _learned(Path(folder), pages), count()),
        }
        theirs = peers(items)
        for name, document in (ours | theirs).items():
            text = decompressobj(31).decompress(document()) if name in ours else document()
            assert text.count(b"<loc>") == pages, f"{name} wrote {text.count(b'<loc>')} entries"
        variants = ours | theirs
        timed = alternating_timing.rounds({name: partial(_times, make) for name, make in variants.items()}, rounds, 0)
        best = min(theirs, key=lambda name: timed.of(name).middle)
        table = Table(f"A document of {pages:,} URLs", ["", "ms", "from", "to", f"times {best}"])
        for name in variants:
            taken = timed.of(name)
            table.add(name, taken.middle * 1e3, taken.low * 1e3, taken.high * 1e3, timed.ratio(name, best).middle)
        yield table


def _times(make: Callable[[], object], times: int) -> None:
    for _ in range(times):
        make()


def _entries(items: Sequence[Post]) -> Iterator[Entry]:
    return (Entry({"slug": item.slug}, lastmod=item.changed, priority=item.priority) for item in items)


def _flask_app(items: Sequence[Post]) -> Any:
    app = flask.Flask(__name__)

    @app.get("/posts/<slug>")
    @sitemap(values=lambda: _entries(items))
    def post(slug: str) -> str:
        return slug

    return app.wsgi_app


def _starlette_app(items: Sequence[Post]) -> Starlette:
    @sitemap(values=lambda: _entries(items))
    async def post(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.path_params["slug"])

    return Starlette(routes=[Route("/posts/{slug}", post)])


def _joined(read: Callable[[str], bytes]) -> bytes:
    """The sitemap, or all documents that its index names, as one."""
    first = read(site.SITEMAP)
    paths = re.findall(rb"<sitemap><loc>[a-z]+://[^/]+([^<]+)", gzip.decompress(first))
    if not paths:
        return first
    return gzip.compress(b"".join(gzip.decompress(read(path.decode())) for path in paths), 1)


def _document(app: Any, respond: Callable[[Any, str], bytes]) -> bytes:
    middleware = SitemapMiddleware(app, base_url=site.BASE, store="memory://", verify=False, robots=False)
    document = _joined(partial(respond, middleware))
    middleware.close()
    return document


def _wsgi_response(middleware: Any, path: str) -> bytes:
    return b"".join(site.send_request(middleware, path, "gzip"))


def _asgi_response(middleware: Any, path: str) -> bytes:
    headers = [(b"host", site.HOST.encode()), (b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "scheme": "https", "path": path, "query_string": b"", "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    for _ in range(site.MAX_ATTEMPTS):
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        asyncio.run(middleware(scope, receive, send))
        if sent[0]["status"] == 200:
            break
    assert sent[0]["status"] == 200, sent[0]
    return b"".join(message.get("body", b"") for message in sent[1:])


def _learned(folder: Path, pages: int) -> Path:
    """A store's file whose pages no sitemap has listed yet."""
    learned = site.LearnedSite(f"sqlite:///{folder / 'learned.sqlite3'}", pages)
    learned.learn()
    learned.middleware.close()
    return folder / "learned.sqlite3"


def _rows_document(file: Path, numbers: Iterator[int]) -> bytes:
    """The documents of a process that has just started, on a copy of the file: nothing in it is rendered."""
    copy = file.with_name(f"{next(numbers)}.sqlite3")
    shutil.copy(file, copy)
    learned = site.LearnedSite(f"sqlite:///{copy}", 0)
    learned.now += 2 * site.DAY
    document = _joined(partial(_wsgi_response, learned.middleware))
    learned.middleware.close()
    copy.unlink()
    return document
