"""Documents: entries into the XML of Sitemap 0.9, within its limits of count and size. Text in, bytes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from ..models import SitemapUrl

_HEAD: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET_FRAME: Final = (_HEAD + b"<urlset " + _NAMESPACE + b">\n", b"</urlset>\n")
"""What stands before and after the entries of a document."""
INDEX_FRAME: Final = (_HEAD + b"<sitemapindex " + _NAMESPACE + b">\n", b"</sitemapindex>\n")
"""The same, of an index of documents."""
_QUOTE_ENTITIES: Final = {"'": "&apos;", '"': "&quot;"}


def priority_text(priority: float) -> str:
    """A priority as it is written: "0.8", "1.0", "0.25"."""
    return str(round(float(priority), 2))


def render_urls(entries: Sequence[SitemapUrl]) -> list[str]:
    """A `<url>` for each of some entries, one at least, its children in the order that the schema fixes.

    It is made column by column, which takes a quarter of the time.
    """
    locs, lastmods, changefreqs, priorities = zip(*entries, strict=True)
    written = "\n".join(locs)  # no URL has a line's end in it
    if (escaped := escape(written, _QUOTE_ENTITIES)) != written:
        locs = tuple(escaped.split("\n"))
    words = {one: "" if one is None else f"<changefreq>{one}</changefreq>" for one in set(changefreqs)}
    ranks = {one: "" if one is None else f"<priority>{priority_text(one)}</priority>" for one in set(priorities)}
    return [
        f"<url><loc>{loc}</loc>{'' if lastmod is None else f'<lastmod>{lastmod}</lastmod>'}"
        f"{words[changefreq]}{ranks[priority]}</url>\n"
        for loc, lastmod, changefreq, priority in zip(locs, lastmods, changefreqs, priorities, strict=True)
    ]


def render_sitemap(loc: str, lastmod: str | None) -> bytes:
    """One `<sitemap>` of an index."""
    dated = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<sitemap><loc>{escape(loc, _QUOTE_ENTITIES)}</loc>{dated}</sitemap>\n".encode("ascii")
