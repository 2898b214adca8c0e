"""A site of learned pages, as traffic leaves it in a store, and how it is asked for its sitemap."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.packed_content_size import content_mark, content_size
from sitemap_middleware.models import PageLimits
from sitemap_middleware.stores.base import Store

HOST: Final = "example.com"
BASE: Final = f"https://{HOST}"
SITEMAP: Final = "/sitemap.xml"
ROUTE: Final = "/posts/<slug>"
HOUR: Final = 60 * 60
DAY: Final = 24 * HOUR

BATCH: Final = 10_000
"""Observations merged at one time."""

MAX_ATTEMPTS: Final = 100
"""Requests for a document that is still being rendered; each may wait ten seconds for its 503."""

_ROOM: Final = PageLimits(10**9, 10**9)
_ODD: Final = 2_654_435_761
"""Times this, numbers below 2**32 change places: pages come to be known in no order of their paths."""
_OLDEST: Final = 1_500_000_000
_YEARS: Final = 150_000_000
"""Seconds over which the pages were edited."""


def seen(number: int, at: int, edition: int = 0) -> Observation:
    """An observation of a page: each page and each edition has its own Last-Modified and content."""
    return Observation(
        path=f"/posts/{number * _ODD % 2**32:08x}-with-a-readable-name",
        route=ROUTE,
        at=at,
        status=200,
        media_type="text/html",
        last_modified=_OLDEST + number * _ODD % _YEARS + edition * DAY,
        html=HtmlFacts(digest := hash((number, edition)), content_mark=content_mark(digest, _size(number))),
        learned=True,
    )


def _size(number: int) -> int:
    """The size of a page's content: 100 to 1,000 words, and up to 40 links, as on pages that somebody wrote."""
    return content_size(100 + number * _ODD % 901, number * _ODD % 41)


def merge(store: Store, observations: Iterable[Observation]) -> int:
    """Merge observations into a store; return how many pages are new or changed."""
    return store.merge(BASE, list(observations), _ROOM).changed


def fill(store: Store, pages: int) -> None:
    """Have every page seen yesterday and the day before; one in ten has changed in between."""
    now = int(time.time())
    for start in range(0, pages, BATCH):
        numbers = range(start, min(start + BATCH, pages))
        merge(store, (seen(number, now - 2 * DAY) for number in numbers))
        merge(store, (seen(number, now - DAY, number % 10 == 0) for number in numbers))


def clear(file: Path) -> None:
    """Delete the documents, records and leases from a store's file, but not its pages."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for table in ("record", "document", "lease"):
            connection.execute(f"DELETE FROM {table}")


def wrapped(store: Store | str) -> SitemapMiddleware:
    """The middleware as a process that has just started sets it up."""
    return SitemapMiddleware(_nothing, base_url=BASE, learn=ROUTE, store=store, priority=0.5, verify=False)


def _nothing(_: Any, start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [])
    return []


def environ(path: str, encoding: str = "gzip") -> dict[str, Any]:
    """A request as a WSGI server hands it on."""
    return {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "HTTP_HOST": HOST,
        "HTTP_ACCEPT_ENCODING": encoding,
        "wsgi.url_scheme": "https",
    }


class Unanswered(Exception):
    """The answer is not a document."""


def send_request(app: Any, path: str = SITEMAP, encoding: str = "gzip") -> Iterator[bytes]:
    """Yield the parts of a document as a server takes them; repeat the request while the document is being rendered."""
    for _ in range(MAX_ATTEMPTS):
        answered: list[str] = []
        parts = app(environ(path, encoding), lambda status, _, answered=answered: answered.append(status))
        if answered == ["200 OK"]:
            yield from parts
            return
        if not answered[0].startswith("503"):
            break
    raise Unanswered(f"{path} was answered {answered}: {b''.join(parts)!r}")


def read_document(app: Any, path: str = SITEMAP) -> int:
    """Read a gzipped document without keeping it; return its size in bytes."""
    return sum(map(len, send_request(app, path)))


def documents(app: Any) -> list[str]:
    """The paths of the documents that the sitemap index names; its own path if it is not an index."""
    locs = re.findall(rb"<sitemap><loc>([^<]+)", b"".join(send_request(app, encoding="identity")))
    return [loc.decode().removeprefix(BASE) for loc in locs] or [SITEMAP]
