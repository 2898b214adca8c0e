"""HTML: what a page says of itself, and a digest of what its reader sees. Off the request path; hostile until read.

selectolax (lexbor) does the parsing. What it is given is limited first, so that no page
takes it long: see `nesting`. A page that is too large, or nests too deeply, is read as far as its
first 64 kB go, which hold what it says of itself; it has no digest, for that would be one of a part.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import date, datetime
from functools import cached_property
from typing import Final, NamedTuple
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..dates import w3c
from .content_digest import content_digest
from .html_limits import safe_length
from .robots_directives import SEARCH_ENGINES, RobotsDirectives, parse_robots, refresh_target
from .structured_data import dates_modified, parse_scripts

MAX_HTML_BYTES: Final = 640 * 1024
"""A body larger than this is not read as a whole. One as large takes about 50 ms."""
HEAD_CHARS: Final = 64 * 1024
"""Characters of any page that are read: they hold its robots meta tags and its canonical link."""
KEPT_BODY_BYTES: Final = 4 * HEAD_CHARS
"""Bytes of a longer body that are kept. They hold as many characters as are read, compressed or not."""
_MAX_URL_CHARS: Final = 2048

_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NON_TEXT_CODECS: Final = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"})
"""Codecs of Python's that no page is written in; some take long."""
_CANONICAL_EXCLUSIONS: Final = ("hreflang", "lang", "media", "type")
"""Attributes with which search engines take no canonical link for one."""


class HtmlMetadata(NamedTuple):
    """What the HTML of a page says, wherever the page is."""

    digest: int | None = None
    """As `model.HtmlFacts` has it."""
    robots: RobotsDirectives = RobotsDirectives()
    canonicals: tuple[str, ...] = ()
    """The URL that it names as canonical, which may be relative to the page; two of them if it names several."""
    refresh: str | None = None
    """The URL that it leads to at once, likewise."""
    stated_date: str | None = None
    unread_reason: str = ""


def parse_html(body: bytes, charset: str | None = None, *, cut: bool = False) -> HtmlMetadata:
    """Read an HTML body, as far as that takes a bounded time.

    Args:
        body: the bytes, not content-encoded.
        charset: that of the Content-Type, if it names one.
        cut: whether this is the beginning of a longer body.
    """
    unread = ""
    if cut or len(body) > MAX_HTML_BYTES:
        unread = f"is larger than {MAX_HTML_BYTES // 1024:,} kB"
        body = body[:KEPT_BODY_BYTES]
    text = decode_html(body, charset)
    if unread:
        text = text[:HEAD_CHARS]
    end, reason = safe_length(text)
    if reason:
        unread = unread or reason
        text = text[: min(end, HEAD_CHARS)]
    tree = LexborHTMLParser(text)
    if tree.body is None:
        unread = unread or "has no body"
    head = _Head(tree)
    data = parse_scripts(script.text() for script in tree.css("script[type*='ld+json' i]"))
    canonicals, refresh = head.canonicals(), head.refresh()
    stated = next(filter(None, map(_w3c, (*head.stated(), *dates_modified(data), *head.times()))), None)
    told = head.robots()
    said = None if unread else content_digest(tree, data)
    if said is None:
        unread = unread or "says more than can be compared in time"
    return HtmlMetadata(said, told, canonicals, refresh, stated, unread)


def decode_html(body: bytes, charset: str | None) -> str:
    """The text of a body, by its byte order mark, the header's charset, its meta, or as UTF-8 (WHATWG HTML)."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = charset or ((found := _CHARSET.search(body, 0, 1024)) and found[1].decode("ascii"))
    try:
        name = codecs.lookup(declared or "utf-8").name
        return body.decode("utf-8" if name in ("ascii", "utf-16") or name in _NON_TEXT_CODECS else name, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


class _Head:
    """What a page's metadata says."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree

    def robots(self) -> RobotsDirectives:
        metas = [meta.attributes for meta in self._tree.css("meta[name][content]")]
        return parse_robots(
            [meta["content"] or "" for meta in metas if (meta["name"] or "").strip().lower() in SEARCH_ENGINES],
            agents=False,
        )

    def canonicals(self) -> tuple[str, ...]:
        """Those of the head: search engines take none of the body."""
        found: list[str] = []
        for link in self._tree.css("head > link[rel][href]"):
            attributes = link.attributes
            if "canonical" not in (attributes["rel"] or "").lower().split() or any(
                map(attributes.get, _CANONICAL_EXCLUSIONS)
            ):
                continue
            target = (attributes["href"] or "").strip()
            if target and (target := self._resolved(target)) not in found:
                found.append(target)
            if len(found) > 1:
                break
        return tuple(found)

    def refresh(self) -> str | None:
        """Not that of a noscript element: search engines run scripts."""
        for meta in self._tree.css("meta[http-equiv][content]"):
            attributes = meta.attributes
            if (attributes["http-equiv"] or "").strip().lower() == "refresh" and not _is_in_noscript(meta):
                target = refresh_target(attributes["content"] or "")
                return None if target is None else self._resolved(target)
        return None

    @cached_property
    def _base(self) -> str:
        base = self._tree.css_first("base[href]")
        return "" if base is None else (base.attributes["href"] or "").strip()[:_MAX_URL_CHARS]

    def _resolved(self, target: str) -> str:
        """A URL as the page's base has it."""
        target = target[:_MAX_URL_CHARS]
        try:
            return urljoin(self._base, target)[:_MAX_URL_CHARS]
        except ValueError:
            return target

    def stated(self) -> Iterator[object]:
        for meta in self._tree.css("meta[property='article:modified_time'], meta[itemprop=dateModified]"):
            yield meta.attributes.get("content")

    def times(self) -> Iterator[object]:
        for time in self._tree.css("time[itemprop=dateModified]"):
            yield time.attributes.get("datetime")


def _is_in_noscript(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag == "noscript"


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
