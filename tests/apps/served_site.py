"""What the framework versions of the served site share: learned pages, values, verify."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path

from sitemap_middleware import Entry

DAY = 24 * 60 * 60
STATIC = ("/", "/about", "/terms")
SHOPS = ("bread", "cake", "tea")
POSTS = ("first", "second", "third")
VISITED = (*STATIC, *(f"/posts/{slug}" for slug in POSTS))
PAGES = {
    path: 1_600_000_000 + number * number * DAY
    for number, path in enumerate((*VISITED, *(f"/shops/{name}" for name in SHOPS)))
}
"""Each page, and when it was last modified: of the shops the app says so itself, and nobody visits them."""

_HANGS = os.environ.get("SITE_VALUES")


def hangs() -> bool:
    """Whether the shops are never all told: then a file, named in the environment, says that they were asked for."""
    if _HANGS:
        Path(_HANGS).touch()
    return bool(_HANGS)


def body(path: str) -> str:
    return f"<!doctype html><title>{path}</title><main><p>All that there is to say of {path}.</main>"


def headers(path: str) -> dict[str, str]:
    return {"Last-Modified": formatdate(PAGES.get(path, 0), usegmt=True)}


def entry(name: str) -> Entry:
    return Entry({"name": name}, lastmod=datetime.fromtimestamp(PAGES[f"/shops/{name}"], UTC))
