"""A site whose store fails: its pages, what it lists, and what it logs."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sitemap_middleware import sitemap

from .engines import Engine
from .sample_sites import Clock, Page, SampleSite
from .wire import DRIVERS, RequestSpec

PAGES = {"/": Page(), "/a": Page(), "/gone": Page(404), "/login": Page(302), "/posts/{slug}": Page()}
POSTS = [f"/posts/{letter * 1500}" for letter in "abcd"]
"""Learned pages, whose long paths need room in the store."""
VISITED = ["/", "/a", "/gone", "/login", *POSTS]
LISTED = sorted(f"http://testserver{path}" for path in ("/", "/a", *POSTS))
LISTED_UNSEEN = sorted(f"http://testserver{path}" for path in ("/", "/a", "/gone", "/login"))
"""The locs before any page was visited."""


class RunningClock(Clock):
    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def __call__(self) -> float:
        return super().__call__() + time.monotonic() - self._began


@contextlib.contextmanager
def site_of(engine: Engine, protocol: str = "wsgi", **options: Any) -> Iterator[SampleSite]:
    options = {"clock": RunningClock(), "store": engine.store(), **options}
    site = SampleSite(protocol, PAGES, marks={"/posts/{slug}": sitemap(learn=True)}, **options)
    try:
        yield site
    finally:
        site.app.close()


def pages_unchanged(site: SampleSite) -> bool:
    return all(site.request(path) == DRIVERS[site.protocol](site.bare, RequestSpec(path)) for path in VISITED)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [record for record in caplog.records if record.name == "sitemap_middleware"]
    assert {record.levelno for record in ours} <= {logging.WARNING}
    return [record.getMessage() for record in ours]
