"""The XML of Sitemap 0.9: entries rendered as documents, which are compressed once and kept as they are sent.

Equal entries give equal documents with equal ETags, in every process.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import date
from hashlib import blake2b
from html import unescape
from itertools import chain
from typing import Final, NamedTuple

from ..evidence.dates import w3c
from ..http.urls import with_entities
from ..models import SitemapUrl
from ..protocol.extensions import MAX_NEWS, NAMESPACES, News, Video
from ..util import in_pieces

MAX_ENTRIES: Final = 10_000
"""Entries in one document. The protocol allows 50,000; smaller ones are rendered and read again sooner."""

MAX_BYTES: Final = 52_000_000
"""Bytes of XML in one document: those that the protocol allows, but for its frame."""

PIECE_ENTRIES: Final = 200
"""Entries that are rendered at a time, in about a millisecond: then other threads, such as an event loop, may run."""

MARKED: Final = "marked/"
"""How the names of documents begin whose pages have marks in place of the links to their versions in other languages.
"""

HYPHEN: Final = "&#45;"
"""A hyphen in a mark that follows another one: a comment may not have two in a row."""

LINK_BYTES: Final = 64
"""What a link to a version needs besides its language and URL."""

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_URLSET: Final = (f"{_HEAD}<urlset {_NAMESPACE}>\n", "</urlset>\n")
"""What is before and after the entries of a document, if they are of the protocol alone."""
_SITEMAPINDEX: Final = (f"{_HEAD}<sitemapindex {_NAMESPACE}>\n", "</sitemapindex>\n")
"""The same for an index."""
_URL_END: Final = "</url>\n"
_ENTRY: Final = re.compile("<url><loc>([^<]*)</loc>(?:<lastmod>([^<]*)</lastmod>)?")


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
    news: int = 0
    """Articles."""
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


def urlsets(entries: Iterable[SitemapUrl], name: str, *, may_split: bool = True) -> Iterator[Document]:
    """Render entries, in their order, as documents of `MAX_ENTRIES`, `MAX_NEWS` articles and `MAX_BYTES` at most.

    The first one has this name. The others end in "-2", "-3" and so on, in place of "-1" if it has that. If there may
    be no others, as there are few enough entries, those that would need one are written without extensions.
    """
    most = MAX_BYTES if may_split else MAX_BYTES // 2  # the other half is enough for all entries without extensions
    lines: list[str] = []
    lastmod, number, size, news, prefix = "", 1, 0, 0, ""
    for entry in in_pieces(entries, PIECE_ENTRIES):
        line, articles = render_url(entry), int(entry.news is not None)
        added = len(line.encode()) + LINK_BYTES * len(entry.alternates)
        if len(lines) == MAX_ENTRIES or size + added > most or news + articles > MAX_NEWS:
            if may_split:
                yield urlset(prefix + numbered(name, number), "".join(lines), len(lines), lastmod)
                lines, lastmod, number, size, news, prefix = [], "", number + 1, 0, 0, ""
            else:
                entry = SitemapUrl(*entry[:4])
                line, added, articles = render_url(entry), 0, 0
        lines.append(line)
        prefix = MARKED if entry.alternates or entry.version is not None else prefix
        size, news = size + added, news + articles
        lastmod = max(lastmod, entry.lastmod or "")
    if lines:
        yield urlset(prefix + numbered(name, number), "".join(lines), len(lines), lastmod)


def sitemapindex(documents: Iterable[tuple[str, str | None]]) -> Document:
    """The index of documents, given as pairs of loc and lastmod."""
    pairs = list(documents)
    lastmod = max((lastmod or "" for _, lastmod in pairs), default="")
    head, tail = _SITEMAPINDEX
    body = "".join(render_sitemap(*pair) for pair in pairs)
    return compressed("", f"{head}{body}{tail}", len(pairs), lastmod)


def fit_together(documents: Sequence[Document]) -> bool:
    """Whether one document can hold the entries of all."""
    return (
        sum(document.entries for document in documents) <= MAX_ENTRIES
        and sum(document.size for document in documents) <= MAX_BYTES
        and sum(document.news for document in documents) <= MAX_NEWS
    )


def joined(documents: Sequence[Document]) -> Document:
    """The one document of all entries of these, which have their XML."""
    entries = sum(document.entries for document in documents)
    lastmod = max((document.lastmod or "" for document in documents), default="")
    return urlset("", "".join(map(entries_of, documents)), entries, lastmod)


def etag_of(xml: bytes) -> str:
    """The digest of some XML."""
    return blake2b(xml, digest_size=16).hexdigest()


def dated_locs(xml: bytes) -> dict[str, str | None]:
    """The loc of each entry of an urlset that was rendered here, and its lastmod."""
    return {unescape(loc): lastmod or None for loc, lastmod in _ENTRY.findall(xml.decode())}


def render_url(url: SitemapUrl) -> str:
    """The `<url>` of an entry, one line, its children in the order that the schema fixes."""
    loc, lastmod, changefreq, priority, images, videos, news, alternates, version = url
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    changefreq_tag = f"<changefreq>{changefreq}</changefreq>" if changefreq else ""
    priority_tag = "" if priority is None else f"<priority>{round(float(priority), 2)}</priority>"
    more = _extension_tags(url) if images or videos or news else ""
    if alternates or version is not None:  # a mark, see `language_links`
        words = (
            list(chain.from_iterable(alternates))
            if version is None
            else [version.code, f"{version.rank}", version.default]
        )
        mark = " ".join([version.group if version else "=", *map(with_entities, words)])
        more += f"<!--{mark.replace('--', f'-{HYPHEN}')} -->"
    return f"<url><loc>{with_entities(loc)}</loc>{lastmod_tag}{changefreq_tag}{priority_tag}{more}</url>\n"


def _extension_tags(url: SitemapUrl) -> str:
    """The images, videos and news of an entry, as XML."""
    tags = [f"<image:image><image:loc>{with_entities(image)}</image:loc></image:image>" for image in url.images]
    tags += [f"<video:video>{''.join(_children('video', video))}</video:video>" for video in url.videos]
    if url.news is not None:
        name, language, *others = _children("news", url.news)
        publication = f"<news:publication>{name}{language}</news:publication>"
        tags.append(f"<news:news>{publication}{''.join(others)}</news:news>")
    return "".join(tags)


def _children(prefix: str, owner: Video | News) -> list[str]:
    """The children of a video or of news: the fields that are given, in their order."""
    tags = []
    for field in fields(owner):
        name, value = field.name, getattr(owner, field.name)
        if value is None:
            continue
        if name in ("restriction", "platform"):
            relationship, listed = value
            tags.append(f'<{prefix}:{name} relationship="{relationship}">{listed}</{prefix}:{name}>')
        elif name == "tags":
            tags += [f"<{prefix}:tag>{with_entities(tag)}</{prefix}:tag>" for tag in value]
        else:
            tags.append(f"<{prefix}:{name}>{_text_of(value)}</{prefix}:{name}>")
    return tags


def _text_of(value: object) -> str:
    """A value as the text of an element."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(round(value, 2))
    return with_entities(w3c(value) if isinstance(value, date) else str(value))


def render_sitemap(loc: str, lastmod: str | None) -> str:
    """The `<sitemap>` of one document in an index."""
    lastmod_tag = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<sitemap><loc>{with_entities(loc)}</loc>{lastmod_tag}</sitemap>\n"


def numbered(name: str, number: int) -> str:
    """The name of a further document of the same pages."""
    return name if number == 1 else f"{name.removesuffix('-1')}-{number}"


def urlset(name: str, body: str, entries: int, lastmod: str) -> Document:
    """A document of entries, which declares the namespaces that they use: none if they are of the protocol alone."""
    head, tail = _URLSET
    used = [prefix for prefix in NAMESPACES if f"<{prefix}:" in body]
    declared = "".join(f' xmlns:{prefix}="{NAMESPACES[prefix]}"' for prefix in used)
    document = compressed(name, f"{head[:-2]}{declared}>\n{body}{tail}", entries, lastmod)
    return document._replace(news=body.count("<news:news>"))


def selected(document: Document, select: Callable[[Collection[str]], Collection[str]]) -> Document | None:
    """A document, which has its XML, with those entries whose locs `select` returns; None if there are none."""
    lines = {unescape(at[1]): line for line in entries_of(document).split(_URL_END) if (at := _ENTRY.match(line))}
    locs = select(lines)
    if len(locs) == len(lines):
        return document
    body = "".join(line + _URL_END for loc, line in lines.items() if loc in locs)
    lastmod = max((date or "" for date in dated_locs(body.encode()).values()), default="")
    return urlset(document.name, body, len(locs), lastmod) if locs else None


def entries_of(document: Document) -> str:
    """The entries of a document, which has its XML."""
    text = gzip.decompress(document.gzipped).decode()
    return text[text.index(">\n", len(_HEAD)) + 2 : -len(_URLSET[1])]


def compressed(name: str, text: str, entries: int, lastmod: str) -> Document:
    """A document of some XML."""
    xml = text.encode()
    gzipped = gzip.compress(xml, 6, mtime=0)
    return Document(name, etag_of(xml), entries, len(xml), len(gzipped), lastmod or None, gzipped=gzipped)
