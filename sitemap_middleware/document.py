"""Documents: entries into the XML of Sitemap 0.9, within its limits of count and size. Text in, bytes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from xml.sax.saxutils import escape

from .model import URL

MAX_URLS: Final = 50_000
"""Entries in one document, and documents in one index (Sitemap 0.9, "Using Sitemap index files")."""
MAX_BYTES: Final = 52_428_800
"""Bytes of one document before compression, "50 MB" (the same section)."""

_HEAD: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_URLSET: Final = (_HEAD + b"<urlset " + _NAMESPACE + b">\n", b"</urlset>\n")
_INDEX: Final = (_HEAD + b"<sitemapindex " + _NAMESPACE + b">\n", b"</sitemapindex>\n")
_QUOTES: Final = {"'": "&apos;", '"': "&quot;"}


@dataclass(frozen=True, slots=True)
class Document:
    """One XML file, ready to be served."""

    body: bytes
    etag: str
    """A digest of the body: the same bytes have the same one wherever they are made."""
    lastmod: str | None = None
    """The latest lastmod within."""


def priority_text(priority: float) -> str:
    """A priority as it is written: "0.8", "1.0", "0.25"."""
    return str(round(priority, 2))


def url(entry: URL) -> bytes:
    """One `<url>`, its children in the order that the schema fixes."""
    parts = [f"<url><loc>{escape(entry.loc, _QUOTES)}</loc>"]
    if entry.lastmod is not None:
        parts.append(f"<lastmod>{entry.lastmod}</lastmod>")
    if entry.changefreq is not None:
        parts.append(f"<changefreq>{entry.changefreq}</changefreq>")
    if entry.priority is not None:
        parts.append(f"<priority>{priority_text(entry.priority)}</priority>")
    parts.append("</url>\n")
    return "".join(parts).encode("ascii")


def urlsets(entries: Iterable[URL], max_urls: int = MAX_URLS, max_bytes: int = MAX_BYTES) -> Iterator[Document]:
    """As few urlset documents as hold these entries; none where there are none."""
    head, tail = _URLSET
    room = max_bytes - len(head) - len(tail)
    chunks: list[bytes] = []
    size, latest = 0, ""
    for entry in entries:
        chunk = url(entry)
        if chunks and (len(chunks) == max_urls or size + len(chunk) > room):
            yield _document(head, chunks, tail, latest)
            chunks, size, latest = [], 0, ""
        chunks.append(chunk)
        size += len(chunk)
        latest = max(latest, entry.lastmod or "")
    if chunks:
        yield _document(head, chunks, tail, latest)


def sitemapindex(documents: Iterable[tuple[str, str | None]]) -> Document:
    """The index of documents, each given as its loc and its lastmod."""
    lines, latest = [], ""
    for loc, lastmod in documents:
        dated = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        lines.append(f"<sitemap><loc>{escape(loc, _QUOTES)}</loc>{dated}</sitemap>\n".encode("ascii"))
        latest = max(latest, lastmod or "")
    return _document(_INDEX[0], lines, _INDEX[1], latest)


def _document(head: bytes, chunks: list[bytes], tail: bytes, latest: str) -> Document:
    body = b"".join((head, *chunks, tail))
    return Document(body, blake2b(body, digest_size=16).hexdigest(), latest or None)
