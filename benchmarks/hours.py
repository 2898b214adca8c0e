"""`python -m benchmarks.hours`: does memory grow? Hours of a worker's traffic in minutes, by a simulated clock.

A WSGI app answers, in process, as many requests as a worker gets in that time:
posts by Zipf's law, some of them edited; a crawler's sweep through many learned
pages; made-up URLs; and the sitemap. Nothing is killed and nothing waits, so any
growth is the middleware's. Linux only. The exit code says whether the target was met.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sitemap_middleware import SitemapMiddleware

from .site import BASE, environ
from .soak.processes import resident, slope
from .tables import Table

MAX_GROWTH_PERCENT: Final = 1.0
"""Percent an hour by which memory may grow once the worker is warm."""
POSTS: Final = 3_000
MB: Final = 2**20
BEGAN: Final = 1_750_000_000.0

_BODY: Final = (
    f"<!doctype html><title>{{0}}</title><main><h1>{{0}}</h1><p>{'bread flour water ' * 60}</p><p>{{1}}</p></main>"
)


class SimulatedWorker:
    """An app behind the middleware, its clock and its traffic."""

    def __init__(self, folder: Path, *, items: int, rate: float) -> None:
        self.now = BEGAN
        self.items = items
        self.rate = rate
        self.wrapped = SitemapMiddleware(
            self.app,
            base_url=BASE,
            learn=["/posts/*", "/items/*"],
            store=f"sqlite:///{folder}/hours.sqlite3",
            clock=lambda: self.now,
        )

    def app(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        if not path.startswith(("/posts/", "/items/")):
            start_response("404 Not Found", [("Content-Type", "text/html"), ("Content-Length", "0")])
            return [b""]
        edition = int(self.now // 1800) if path.endswith("7") and path.startswith("/posts/") else 0
        body = _BODY.format(path, edition).encode()
        start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(body)))])
        return [body]

    def get(self, path: str) -> None:
        body: Any = self.wrapped(environ(path), lambda *_: None)
        for _ in body:
            pass
        getattr(body, "close", bool)()

    def simulate(self, hours: float) -> Iterator[tuple[float, float]]:
        """Send the traffic; now and then yield the simulated seconds passed and the bytes of memory."""
        chance = random.Random(1)
        requests = int(hours * 3600 * self.rate)
        sample_every = max(1, requests // 1200)
        for number in range(requests):
            self.now += 1 / self.rate
            if (drawn := chance.random()) < 0.2:
                self.get(f"/items/item-{number // 5 % self.items}")
            elif drawn < 0.3:
                self.get(f"/nothing/{chance.randrange(10**9)}")
            else:
                self.get(f"/posts/post-{int(POSTS * chance.random() ** 3)}")
            if number % (2 * self.rate) == 0:
                self.wrapped.flush()  # the middleware's own thread does so every two seconds of the machine's clock
            if number % (5 * self.rate) == 0:
                self.get("/sitemap.xml")
            if number % sample_every == 0:
                yield self.now - BEGAN, resident(os.getpid())


def run(hours: float, items: int, rate: float) -> tuple[Table, bool]:
    """The table, and whether the target was met."""
    with TemporaryDirectory() as folder:
        site = SimulatedWorker(Path(folder), items=items, rate=rate)
        samples = list(site.simulate(hours))
        site.wrapped.close()
    table = Table(f"A worker's memory over {hours:g} hours, {rate:g} requests a second", ["hours", "MB"])
    for at, size in samples[:: max(1, len(samples) // 12)]:
        table.add(f"{at / 3600:.2f}", size / MB)
    line = slope([(at, size) for at, size in samples if at >= hours * 3600 / 3])
    if line is None:
        table.notes.append("Too short to tell whether it grows.")
        return table, True
    met = line.percent < MAX_GROWTH_PERCENT
    table.notes.append(
        f"From a third of the time on: {line.percent:.2f} % an hour ({line.low:.2f} to {line.high:.2f});"
        f" under {MAX_GROWTH_PERCENT:g} is wanted: {'met' if met else 'MISSED'}."
    )
    return table, met


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hours", description="Hours of traffic in minutes.")
    parser.add_argument("--hours", type=float, default=6, help="of traffic (6)")
    parser.add_argument("--items", type=int, default=30_000, help="pages of the part that is crawled (30000)")
    parser.add_argument("--rate", type=float, default=100, help="requests a second (100)")
    options = parser.parse_args()
    table, met = run(options.hours, options.items, options.rate)
    print(table)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
