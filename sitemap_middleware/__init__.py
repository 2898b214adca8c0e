"""WSGI and ASGI middleware that serves an accurate /sitemap.xml for Flask, Starlette, FastAPI and other apps."""

from __future__ import annotations

from typing import Any

from .decorator import sitemap
from .entry import Entry
from .exceptions import MiddlewareLookupError, OptionError, SitemapError, StoreError
from .middleware import SitemapMiddleware
from .models import Explanation
from .stores import Store

__all__ = [
    "Entry",
    "Explanation",
    "MiddlewareLookupError",
    "OptionError",
    "SitemapError",
    "SitemapMiddleware",
    "Store",
    "StoreError",
    "sitemap",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # read on first use, because it takes milliseconds
        from importlib.metadata import version

        return version("sitemap-middleware")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
