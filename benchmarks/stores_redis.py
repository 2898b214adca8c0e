"""Folding into Redis: a site's pages packed in one hash, beside a hash of fields for each page."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import redis

from sitemap_middleware.history import packed, unpacked
from sitemap_middleware.model import Observation, Page, Reading
from sitemap_middleware.pages.evidence import REFRESH
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import NO_MORE
from sitemap_middleware.stores.census import Census
from tests.support.redis_servers import RedisServer

from .tables import Table

SITE = "https://example.com"
PAGES = 20_000
ROUNDS = 7
FOLDS = 10


def observation(number: int, at: int) -> Observation:
    return Observation(
        f"/posts/a-page-of-this-site-{number}", "/posts/<slug>", at, 200, "text/html", learned=True,
        reading=Reading(number),
    )  # fmt: skip


class HashAPage:
    """What a store may look like that keeps each page as a hash of fields: as far as `fold` goes, without places."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)

    def fold(self, site: str, observations: Sequence[Observation]) -> int:
        with self._client.pipeline() as pipeline:
            paths = list({seen.path for seen in observations})
            for path in paths:
                pipeline.hgetall(f"{{{site}}}:{path}")
            found = pipeline.execute()
            known = {path: self._page(path, fields) for path, fields in zip(paths, found, strict=True) if fields}
            census = Census({}, NO_MORE)
            changed = census.take(known, observations)
            for path, page in changed.items():
                fields = {
                    name: self._value(value) for name, value in zip(page._fields[1:], page[1:], strict=True)
                    if value is not None
                }  # fmt: skip
                pipeline.hset(f"{{{site}}}:{path}", mapping=fields)
            pipeline.incr(f"{{{site}}}:version")
            pipeline.execute()
        return len(changed)

    @staticmethod
    def _value(value: Any) -> Any:
        if isinstance(value, tuple):
            return packed(value)
        return int(value) if isinstance(value, bool) else value

    @staticmethod
    def _page(path: str, fields: dict[bytes, bytes]) -> Page:
        def text(name: str) -> str | None:
            value = fields.get(name.encode())
            return None if value is None else value.decode()

        def number(name: str) -> int:
            return int(fields[name.encode()])

        return Page(
            path, text("route") or "", number("first_seen"), number("last_seen"), number("status"),
            text("media_type") or "", bool(number("noindex")), bool(number("private")), text("canonical"),
            number("modified") if b"modified" in fields else None, unpacked(fields[b"moments"]), number("read_at"),
            bool(number("html_noindex")), text("html_canonical"), text("stated"), unpacked(fields[b"contents"]),
            bool(number("learned")),
        )  # fmt: skip


def memory(server: RedisServer) -> int:
    told = server.ask("INFO", "memory")
    assert isinstance(told, dict)
    return int(told["used_memory"])


def run() -> list[Table]:
    table = Table(
        f"Folding into Redis over a socket, a site of {PAGES:,} pages: observations of so many pages a fold",
        ["", "folds/s", "from", "to", "bytes a page"],
        notes=["a hash a page: pipelined, in MULTI/EXEC; no places, counts or blocks are kept there"],
    )
    folds: dict[str, Callable[[str, list[Observation]], object]] = {}
    bytes_: dict[str, float] = {}
    servers = [RedisServer(), RedisServer()]
    try:
        packed_, plain = (server.url for server in servers)
        folds = {"one hash, packed": open_store(packed_, "store").fold, "a hash a page": HashAPage(plain).fold}
        for (name, fold), server in zip(folds.items(), servers, strict=True):
            before = memory(server)
            for start in range(0, PAGES, 1000):
                fold(SITE, [observation(number, 1000) for number in range(start, start + 1000)])
            bytes_[name] = (memory(server) - before) / PAGES
        at, chosen = 1000, Random(1)
        for size in (10, 100, 1000):
            rates: dict[str, list[float]] = {name: [] for name in folds}
            for _ in range(ROUNDS):
                batches = []
                for _ in range(FOLDS):
                    at += REFRESH
                    batches.append([observation(number, at) for number in chosen.sample(range(PAGES), size)])
                for name, fold in folds.items():
                    began = time.perf_counter()
                    for batch in batches:
                        fold(SITE, batch)
                    rates[name].append(FOLDS / (time.perf_counter() - began))
            for name, found in rates.items():
                low, middle, high = statistics.quantiles(found, n=4)
                table.add(f"{name}, {size} pages", middle, low, high, round(bytes_[name]))
            first, second = (statistics.median(found) for found in rates.values())
            table.add(f"  {first / second:.1f} times as many")
    finally:
        for server in servers:
            server.remove()
    return [table]
