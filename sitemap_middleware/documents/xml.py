"""The XML of Sitemap 0.9. A new child of `<url>` is one field of `SitemapUrl` and one line in `render_url`."""

from __future__ import annotations

from typing import Final

from ..models import SitemapUrl

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET: Final = (f"{_HEAD}<urlset {_NAMESPACE}>\n", "</urlset>\n")
"""What is before and after the entries of a document."""
SITEMAPINDEX: Final = (f"{_HEAD}<sitemapindex {_NAMESPACE}>\n", "</sitemapindex>\n")
"""The same for an index."""
_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;"))


def priority_text(priority: float) -> str:
    """A priority as text: "0.8", "1.0", "0.25"."""
    return str(round(float(priority), 2))


def render_url(url: SitemapUrl) -> str:
    """The `<url>` of an entry, one line, its children in the order that the schema fixes."""
    loc, lastmod, changefreq, priority = url
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    changefreq_tag = f"<changefreq>{changefreq}</changefreq>" if changefreq else ""
    priority_tag = "" if priority is None else f"<priority>{priority_text(priority)}</priority>"
    return f"<url><loc>{_escaped(loc)}</loc>{lastmod_tag}{changefreq_tag}{priority_tag}</url>\n"


def render_sitemap(loc: str, lastmod: str | None) -> str:
    """The `<sitemap>` of one document in an index."""
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<sitemap><loc>{_escaped(loc)}</loc>{lastmod_tag}</sitemap>\n"


def _escaped(url: str) -> str:
    """A URL with entities. `xml.sax.saxutils.escape` would leave quotes, which the protocol wants escaped."""
    for character, entity in _ENTITIES:
        if character in url:
            url = url.replace(character, entity)
    return url
