"""The XML of Sitemap 0.9: entries rendered as documents, which are compressed once and kept as they are sent.

Equal entries give equal documents with equal ETags, in every process. A new child of `<url>` is one field of
`SitemapUrl` and one line in `render_url`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from ..http.urls import with_entities
from ..models import SitemapUrl
from ..util import in_pieces

MAX_ENTRIES: Final = 10_000
"""Entries in one document. The protocol allows 50,000; smaller ones are rendered and read again sooner. So many cannot
exceed its 50 MB, because a loc is short enough with its entities, too.
"""

PIECE_ENTRIES: Final = 200
"""Entries that are rendered at a time, in about a millisecond: then other threads, such as an event loop, may run."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_URLSET: Final = (f"{_HEAD}<urlset {_NAMESPACE}>\n", "</urlset>\n")
"""What is before and after the entries of a document."""
_SITEMAPINDEX: Final = (f"{_HEAD}<sitemapindex {_NAMESPACE}>\n", "</sitemapindex>\n")
"""The same for an index."""


class Document(NamedTuple):
    """One XML file."""

    name: str
    """The part of its path after the sitemap's own name, without ".xml": "routes-1"; empty for the sitemap itself."""
    etag: str
    """A digest of the XML."""
    entries: int
    """URLs; in an index, documents."""
    size: int
    """Bytes of plain XML."""
    gzipped_size: int
    lastmod: str | None
    """The latest lastmod of its entries."""
    since: int = 0
    """Since when it has been this document, in POSIX seconds: its Last-Modified."""
    gzipped: bytes = b""
    """The XML, gzipped; empty while it is in the store."""

    @property
    def figures(self) -> Document:
        """The document without its XML."""
        return self._replace(gzipped=b"")

    def with_date(self, earlier: Document | None, now: int) -> Document:
        """The document, dated: the date of an equal earlier one, else now, but no second stands for two documents."""
        if earlier is None:
            return self._replace(since=now)
        return self._replace(since=earlier.since if earlier.etag == self.etag else max(now, earlier.since + 1))


def urlsets(entries: Iterable[SitemapUrl], name: str) -> Iterator[Document]:
    """Render entries, in their order, as documents of `MAX_ENTRIES` at most.

    The first one has this name. The others end in "-2", "-3" and so on, in place of "-1" if it has that.
    """
    lines: list[str] = []
    lastmod, number = "", 1
    for entry in in_pieces(entries, PIECE_ENTRIES):
        if len(lines) == MAX_ENTRIES:
            yield _document(numbered(name, number), _URLSET, lines, lastmod)
            lines, lastmod, number = [], "", number + 1
        lines.append(render_url(entry))
        if entry.lastmod is not None and entry.lastmod > lastmod:
            lastmod = entry.lastmod
    if lines:
        yield _document(numbered(name, number), _URLSET, lines, lastmod)


def sitemapindex(documents: Iterable[tuple[str, str | None]]) -> Document:
    """The index of documents, given as pairs of loc and lastmod."""
    pairs = list(documents)
    lastmod = max((lastmod or "" for _, lastmod in pairs), default="")
    return _document("", _SITEMAPINDEX, [render_sitemap(*pair) for pair in pairs], lastmod)


def fit_together(documents: Sequence[Document]) -> bool:
    """Whether one document can hold the entries of all."""
    return sum(document.entries for document in documents) <= MAX_ENTRIES


def joined(documents: Sequence[Document]) -> Document:
    """The one document of all entries of these, which have their XML."""
    head, tail = _URLSET
    lines = [gzip.decompress(document.gzipped).decode()[len(head) : -len(tail)] for document in documents]
    lastmod = max((document.lastmod or "" for document in documents), default="")
    whole = _document("", _URLSET, lines, lastmod)
    return whole._replace(entries=sum(document.entries for document in documents))


def etag_of(xml: bytes) -> str:
    """The digest of some XML."""
    return blake2b(xml, digest_size=16).hexdigest()


def render_url(url: SitemapUrl) -> str:
    """The `<url>` of an entry, one line, its children in the order that the schema fixes."""
    loc, lastmod, changefreq, priority = url
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    changefreq_tag = f"<changefreq>{changefreq}</changefreq>" if changefreq else ""
    priority_tag = "" if priority is None else f"<priority>{round(float(priority), 2)}</priority>"
    return f"<url><loc>{with_entities(loc)}</loc>{lastmod_tag}{changefreq_tag}{priority_tag}</url>\n"


def render_sitemap(loc: str, lastmod: str | None) -> str:
    """The `<sitemap>` of one document in an index."""
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<sitemap><loc>{with_entities(loc)}</loc>{lastmod_tag}</sitemap>\n"


def numbered(name: str, number: int) -> str:
    """The name of a further document of the same pages."""
    return name if number == 1 else f"{name.removesuffix('-1')}-{number}"


def _document(name: str, frame: tuple[str, str], lines: list[str], lastmod: str) -> Document:
    head, tail = frame
    xml = "".join([head, *lines, tail]).encode("ascii")
    gzipped = gzip.compress(xml, 6, mtime=0)
    return Document(name, etag_of(xml), len(lines), len(xml), len(gzipped), lastmod or None, gzipped=gzipped)
