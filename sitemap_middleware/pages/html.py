"""HTML: what a page says of itself, and a digest of what its reader sees. Off the request path; hostile until read.

selectolax (lexbor) does the parsing. Its time grows with the square of nesting,
so a page nested deeper than any that people read teaches nothing.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..dates import w3c
from ..model import Reading
from .headers import forbids_indexing

MAX_BYTES: Final = 512 * 1024
"""A body larger than this is not read: its digest would be one of a part."""
MAX_DEPTH: Final = 1500
MAX_TAGS: Final = 50_000

COMMON: Final = 8192
SHORT: Final = 32
"""Words whose numbers are kept at hand, and how long they may be."""

_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ALONE: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "rp", "rt"}
)
"""Elements that nest nothing: void ones, and those that the next of their kind ends."""
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UNSEEN: Final = (
    "script, style, noscript, template, nav, header, footer, aside, iframe, svg, input[type=hidden], [hidden],"
    " [role=navigation], [role=banner], [role=contentinfo], time"
)
_ROBOTS: Final = frozenset({"robots", "googlebot", "bingbot"})
_AGO: Final = re.compile(
    r"\b(?:just now|(?:about |almost |over )?(?:an?|one|\d+) ?"
    r"(?:s|sec|second|min|minute|h|hour|day|week|month|year)s?\.? ago)\b",
    re.IGNORECASE,
)
"""Ages change by themselves. Where a page writes them in `<time>`, that is left out whole."""
_MOMENT: Final = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
"""A title that names a moment is that of an age: "now", "a second ago"."""


def read(body: bytes, charset: str | None = None) -> Reading | None:
    """Read a whole HTML body; None for one that is too large, too deep, or nothing a parser likes.

    Args:
        body: the bytes, not content-encoded.
        charset: that of the Content-Type, where it names one.
    """
    if len(body) > MAX_BYTES:
        return None
    text = decoded(body, charset)
    if not _shallow(text):
        return None
    tree = LexborHTMLParser(text)
    if tree.root is None or tree.body is None:
        return None
    head = _Head(tree)
    noindex, canonical, stated = head.noindex(), head.canonical(), head.stated()
    return Reading(_digest(tree), noindex, canonical, stated)


def decoded(body: bytes, charset: str | None) -> str:
    """The text of a body, by its byte order mark, the header's charset, its meta, or as UTF-8 (WHATWG HTML)."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = charset or ((found := _CHARSET.search(body, 0, 1024)) and found[1].decode("ascii"))
    try:
        name = codecs.lookup(declared or "utf-8").name
        return body.decode("utf-8" if name in ("ascii", "utf-16") else name, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _shallow(text: str) -> bool:
    depth = 0
    for count, tag in enumerate(_TAG.finditer(text)):
        if count > MAX_TAGS:
            return False
        if tag[2].lower() in _ALONE:
            continue
        depth += -1 if tag[1] and depth else 1
        if depth > MAX_DEPTH:
            return False
    return True


class _Head:
    """What a page's metadata says; the first of each kind that says anything."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree

    def noindex(self) -> bool:
        return any(
            (meta.attributes.get("name") or "").strip().lower() in _ROBOTS
            and forbids_indexing(meta.attributes.get("content") or "")
            for meta in self._tree.css("meta[name][content]")
        )

    def canonical(self) -> str | None:
        for link in self._tree.css("link[rel][href]"):
            if "canonical" in (link.attributes.get("rel") or "").lower().split():
                return (link.attributes.get("href") or "").strip()[:2048] or None
        return None

    def stated(self) -> str | None:
        return next(filter(None, map(_w3c, self._stated())), None)

    def _stated(self) -> Iterator[object]:
        for meta in self._tree.css("meta[property='article:modified_time'], meta[itemprop=dateModified]"):
            yield meta.attributes.get("content")
        for script in self._tree.css("script[type='application/ld+json']"):
            yield from _dates_modified(_json(script.text()), 0)
        for time in self._tree.css("time[itemprop=dateModified]"):
            yield time.attributes.get("datetime")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dates_modified(data: Any, depth: int) -> Iterator[object]:
    """JSON-LD's dateModified, of the thing itself or of the first in its graph that has one."""
    if isinstance(data, dict):
        yield data.get("dateModified")
        yield from _dates_modified(data.get("@graph"), depth)
    elif isinstance(data, list) and depth < 2:
        for item in data[:50]:
            yield from _dates_modified(item, depth + 1)


def _w3c(raw: object) -> str | None:
    """A stated moment in UTC. One with a time and no zone may be half a day off, so that its date alone is kept."""
    if not isinstance(raw, str):
        return None
    try:
        if len(raw := raw.strip()) == len("2024-05-01"):
            return date.fromisoformat(raw).isoformat()
        moment = datetime.fromisoformat(raw)
        return w3c(moment.date() if moment.tzinfo is None else moment)
    except (ValueError, OverflowError):
        return None


def _digest(tree: LexborHTMLParser) -> int:
    """The sum, in 64 bits, over every word that is shown and every target: the order in which they stand is left out.

    So the same words put in or taken out make the same difference on every page,
    whatever else these say: that is how a template's change is known.
    """
    body = tree.body
    assert body is not None
    for node in body.css(_UNSEEN):
        node.decompose()
    for node in body.css("[title]"):
        if _MOMENT.match(node.attributes.get("title") or "") and len(node.text()) <= SHORT:
            node.decompose()
    roots = body.css("main, [role=main]") or body.css("article") or [body]
    counted = Counter[str]()
    for root in roots:
        counted.update(_words(root.text(separator=" ")))
        counted.update(map("\n".__add__, _targets(root)))  # no word begins so
    total = sum(_number(item) * count for item, count in counted.items())
    return (total + 2**63) % 2**64 - 2**63


def _words(text: str) -> list[str]:
    words = text.split()
    text = " ".join(words)
    lowered = text.lower()
    return _AGO.sub("", text).split() if "ago" in lowered or "just now" in lowered else words


def _number(item: str) -> int:
    return _common_number(item) if len(item) <= SHORT else _any_number(item)


def _any_number(item: str) -> int:
    return int.from_bytes(blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


_common_number = lru_cache(COMMON)(_any_number)


def _targets(root: LexborNode) -> Iterator[str]:
    """Where links and images lead, without queries: tokens and the versions of a deployment stand there."""
    for node in root.css("a[href], img[src]"):
        target = node.attributes.get("href") or node.attributes.get("src") or ""
        try:
            parts = urlsplit(target)
        except ValueError:
            continue
        yield f"{parts.netloc}{parts.path}"
