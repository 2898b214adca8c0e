"""Sitemaps that are true: WSGI and ASGI middleware for Flask, Starlette, FastAPI and any other app."""

from __future__ import annotations

from .decorator import sitemap
from .entry import Entry
from .errors import OptionError, SitemapError, StoreError
from .middleware import SitemapMiddleware
from .model import Explanation
from .stores import Store

__all__ = ["Entry", "Explanation", "OptionError", "SitemapError", "SitemapMiddleware", "Store", "StoreError", "sitemap"]
