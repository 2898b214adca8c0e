"""The namespaces and element names of sitemaps and their extensions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
OLD_SITEMAPS: Final = (
    "http://www.google.com/schemas/sitemap/0.84",
    "https://www.google.com/schemas/sitemap/0.84",
)
IMAGE: Final = "http://www.google.com/schemas/sitemap-image/1.1"
VIDEO: Final = "http://www.google.com/schemas/sitemap-video/1.1"
NEWS: Final = "http://www.google.com/schemas/sitemap-news/0.9"
XHTML: Final = "http://www.w3.org/1999/xhtml"
ATOM: Final = "http://www.w3.org/2005/Atom"

URL_FIELDS: Final = ("loc", "lastmod", "changefreq", "priority")
"""The children of `url`, in the order of the schema."""
SITEMAP_FIELDS: Final = ("loc", "lastmod")
"""The children of `sitemap`, in the order of the schema."""
CORE_ELEMENTS: Final = frozenset({"urlset", "sitemapindex", "url", "sitemap", *URL_FIELDS})


class Kind(StrEnum):
    """What a document is."""

    URLSET = "sitemap"
    INDEX = "index"
    FEED = "feed"
    """RSS or Atom: search engines take it as a sitemap of recent changes."""
    TEXT = "text"
    """A URL in each line."""


def local_name(name: str) -> str:
    """The name of an element without its namespace."""
    return name.rpartition(" ")[2]


def namespace(name: str) -> str:
    """The namespace of an element, or nothing."""
    return name.rpartition(" ")[0]
