"""A site of learned pages, and requests as a server hands them on: all through the middleware's front door."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

from sitemap_middleware import SitemapMiddleware

HOST: Final = "example.com"
BASE: Final = f"https://{HOST}"
SITEMAP: Final = "/sitemap.xml"
DAY: Final = 24 * 60 * 60
BEGAN: Final = 1_750_000_000
"""The time of the first visit, in POSIX seconds."""

BATCH: Final = 5_000
"""Visits between two flushes, which the middleware's buffer can hold."""

MAX_ATTEMPTS: Final = 100
"""Requests for a document that is still being rendered; each may wait for its 503."""

_ODD: Final = 2_654_435_761
"""Times this, numbers below 2**32 change places: pages come to be known in no order of their paths."""
_TEXT: Final = " ".join(f"word{number}" for number in range(60))


class LearnedSite:
    """Posts behind the middleware, by a clock of their own.

    Args:
        store: a URL.
        pages: how many posts there are.
    """

    def __init__(self, store: str, pages: int) -> None:
        self.pages, self.now = pages, float(BEGAN)
        self.editions: dict[str, int] = {}
        """The number of the last edition of each post that was edited."""
        self.middleware = SitemapMiddleware(
            self._app,
            base_url=BASE,
            learn="/posts/<slug>",
            store=store,
            verify=False,
            robots=False,
            max_pages=10**9,
            max_pages_per_route=10**9,
            clock=lambda: self.now,
        )

    def path(self, number: int) -> str:
        return f"/posts/{number * _ODD % 2**32:08x}-with-a-readable-name"

    def visit(self, numbers: Iterable[int]) -> None:
        """Request posts, and have what was observed stored."""
        for place, number in enumerate(numbers, 1):
            for _ in self.middleware(environ(self.path(number)), _ignore):
                pass
            if place % BATCH == 0:
                self.middleware.flush()
        self.middleware.flush()

    def edit(self, number: int) -> None:
        path = self.path(number)
        self.editions[path] = self.editions.get(path, 0) + 1

    def learn(self) -> None:
        """Visit every post on two days, and let a third pass."""
        for _ in range(2):
            self.visit(range(self.pages))
            self.now += DAY

    def read(self) -> int:
        """Read the sitemap and all that it names; return how many URLs it has."""
        return sum(b"".join(send_request(self.middleware, path)).count(b"<loc>") for path in self.documents())

    def documents(self) -> list[str]:
        """The paths of the documents that the sitemap index names; its own path if it is not an index."""
        locs = re.findall(rb"<sitemap><loc>([^<]+)", b"".join(send_request(self.middleware)))
        return [loc.decode().removeprefix(BASE) for loc in locs] or [SITEMAP]

    def _app(self, environ: Any, start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith("/posts/"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"Not found"]
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        edition = self.editions.get(path, 0)
        own = crc32(path.encode())  # pages that differ only by words of their paths count as soft 404s
        return [
            f"<!doctype html><title>{path}</title><p>{path}, edition {edition} of {edition}. o{own} {_TEXT}".encode()
        ]


def _ignore(status: str, headers: Any, exc_info: Any = None) -> None: ...


def environ(path: str, encoding: str = "identity") -> dict[str, Any]:
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


def send_request(app: Any, path: str = SITEMAP, encoding: str = "identity") -> Iterator[bytes]:
    """Yield the parts of a document as a server takes them; repeat the request while the document is being rendered."""
    for _ in range(MAX_ATTEMPTS):
        answered: list[str] = []
        parts = app(environ(path, encoding), lambda status, _, answered=answered: answered.append(status))
        if answered == ["200 OK"]:
            yield from parts
            return
        if not answered[0].startswith("503"):
            break
    raise RuntimeError(f"{path} was answered {answered}: {b''.join(parts)!r}")
