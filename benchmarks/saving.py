"""The CPU time that saving takes on the background thread: reading the bodies, and merging them into the store.

A raw WSGI app answers pages of an article each. Requests are not timed, only `flush`, which does at once what the
background thread does every two seconds. Pages are new, or are read again after a month, with or without an edit;
the last ones are requested again before their bodies are read again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from sitemap_middleware import SitemapMiddleware

from .site import BASE, DAY, environ
from .tables import Table

PAGES: Final = 200
"""Pages requested before each flush: their bodies wait in memory until then."""
ROUNDS: Final = 25
SHORT: Final = {"pages": 5, "rounds": 2}
BEGAN: Final = 1_750_000_000.0
WORDS: Final = 400
LINKS: Final = 30
NEW, UNCHANGED, CHANGED, CONFIRMED, UNREAD = (
    "new, body read",
    "unchanged for a month, body read",
    "edited within a month, body read",
    "the edit again, body read",
    "unchanged, body not read",
)
VOCABULARY: Final = [f"word{number}" for number in range(1000)]


class _Site:
    """An app behind the middleware, its clock, and the editions of its articles."""

    def __init__(self, folder: Path) -> None:
        self.now = BEGAN
        self.edition = 0
        self.middleware: Any = SitemapMiddleware(
            self.app,
            base_url=BASE,
            learn="/posts/*",
            store=f"sqlite:///{folder}/pages.sqlite3",
            clock=lambda: self.now,
            verify=False,
        )

    def app(self, request: dict[str, Any], start_response: Any) -> list[bytes]:
        body = _article(request["PATH_INFO"], self.edition)
        start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    def saved(self, paths: list[str], later: float) -> float:
        """Request pages so many seconds later; return the CPU seconds that saving takes."""
        self.now += later
        for path in paths:
            body = self.middleware(environ(path, "identity"), lambda *_: None)
            b"".join(body)
            getattr(body, "close", bool)()
        began = time.process_time()
        self.middleware.flush()
        return time.process_time() - began


def _article(path: str, edition: int) -> bytes:
    """An article of about 5 kB; each edition ends with another sentence."""
    words = random.Random(path)
    text = " ".join(words.choices(VOCABULARY, k=WORDS))
    links = "".join(
        f'<li><a href="/posts/{words.randrange(10**6)}">{words.choice(VOCABULARY)}</a></li>' for _ in range(LINKS)
    )
    return (
        f"<!doctype html><html lang=en><head><title>{path}</title><meta name=description content='{text[:80]}'>"
        f"<link rel=stylesheet href=/site.css></head><body><nav><ul>{links}</ul></nav>"
        f"<main><h1>{path}</h1><p>{text}</p><p>Edition {edition} of this article.</p></main></body></html>"
    ).encode()


def run(pages: int = PAGES, rounds: int = ROUNDS) -> Iterator[Table]:
    """Measure so many rounds of so many pages each."""
    taken: dict[str, list[float]] = {name: [] for name in (NEW, UNCHANGED, CHANGED, CONFIRMED, UNREAD)}
    with TemporaryDirectory() as folder:
        site = _Site(Path(folder))
        for number in range(rounds):
            paths = [f"/posts/{number}-{page}" for page in range(pages)]
            taken[NEW].append(site.saved(paths, 60))
            taken[UNCHANGED].append(site.saved(paths, 30 * DAY))
            site.edition += 1
            taken[CHANGED].append(site.saved(paths, 30 * DAY))
            taken[CONFIRMED].append(site.saved(paths, 5))
            taken[UNREAD].append(site.saved(paths, 2))
        site.middleware.close()
    table = Table(
        "Saving what was observed, in an SQLite file: CPU time",
        ["", "µs a page", "from", "to"],
        notes=[f"Articles of {len(_article('/posts/0-0', 0)):,} bytes; {pages} pages are saved at once."],
    )
    for name, seconds in taken.items():
        low, middle, high = (each / pages * 1e6 for each in quantiles(seconds, n=4))
        table.add(name, middle, low, high)
    yield table
