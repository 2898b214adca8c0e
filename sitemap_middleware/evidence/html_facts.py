"""Parses a page's HTML: its robots meta tags, canonical links, refresh and dates, and the digest of its content.

Runs on the background thread. selectolax (lexbor) does the parsing; `_bounded` keeps from it what would take it more
than linear time. Of a page that is too large or too deeply nested, only the first 64 kB are read. They hold its
metadata; it gets no digest, because a digest of a part would change with what surrounds the part.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..http.captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES
from .content_digest import content_digest, dates_modified, parse_scripts
from .dates import w3c
from .observations import HtmlFacts
from .robots_directives import SEARCH_ENGINES, RobotsDirectives, parse_robots, refresh_target

HEAD_CHARS: Final = KEPT_BODY_BYTES // 4
"""Characters read of a larger page, of up to four bytes. They hold its robots meta tags and its canonical link."""

MAX_TAGS: Final = 50_000
"""The `<` of a page. Of a page with more, the first 64 kB are read, up to `MAX_TAGS` / 10."""
MAX_DEPTH: Final = 400
MAX_OPTIONS: Final = 2_000
MAX_ATTRIBUTES: Final = 500

_MAX_URL_CHARS: Final = 2048
_PRESCANNED_BYTES: Final = 1024
"""Where a charset may be declared."""
_COMMENT: Final = re.compile(rb"<!--(?:-?>|.*?(?:-->|\Z))", re.DOTALL)
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UTF_16: Final = {
    **dict.fromkeys(
        ("utf-16", "utf-16le", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicode", "unicodefeff"), "utf-16-le"
    ),
    **dict.fromkeys(("utf-16be", "unicodefffe"), "utf-16-be"),
}
"""The labels of UTF-16 (WHATWG Encoding, section 4.2), and the Python codec of each."""
_ASCII_CODECS: Final = frozenset(
    {"utf-8", "big5", "big5hkscs", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "shift_jis"}
    | {"cp866", "cp874", "cp932", "cp949", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman", "tis-620"}
    | {f"cp125{number}" for number in range(9)}
    | {f"iso8859-{number}" for number in range(1, 17) if number != 12}
)
"""The other Python codecs of charsets that browsers know. ASCII text, such as a meta tag, reads the same in each."""
_ASCII_CODEC_OF_MODULE: Final = {
    codec.replace("-", "_"): codecs.lookup(codec).name for codec in (*_ASCII_CODECS, "latin-1")
}
"""By the modules of `encodings`. All are imported here: a page must not have the thread that parses it import one."""
_MARKUP: Final = re.compile(r"\s*<[!?a-zA-Z]")
_NO_TEXT: Final = re.compile(r"[\0-\x08\x0e-\x1f\ufffd]")
_XML_TEXT_ELEMENT: Final = re.compile(
    r"<((script|style|title|textarea|iframe|noembed|noframes|xmp)(?=[\t\n\f\r /])"
    r"(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)(?<=/)>"
)
"""An element of XHTML that has no content, and would hold all that follows if it were HTML."""
_XML_META: Final = re.compile(r"<[a-zA-Z_][\w.-]{0,99}:meta(?=[\t\n\f\r /])")
_CANONICAL_EXCLUSIONS: Final = ("hreflang", "lang", "media", "type")
"""Search engines ignore a canonical link with one of these attributes."""

_FORMATTING_TAG: Final = re.compile(
    r"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\t\n\f\r /][^>]{0,2000}+>", re.IGNORECASE
)
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_LONG_TAG: Final = re.compile(r"<[a-zA-Z](?:[^<>\"']|\"[^\"]*+\"|'[^']*+'){1000}[^>]*+")
_METADATA: Final = re.compile(r"<(?:meta|link|base)\b[^<>]{0,8000}+>", re.IGNORECASE)
_FLAT_ELEMENTS: Final = frozenset(
    {"area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option", "p"}
    | {"param", "source", "td", "th", "tr", "track", "wbr", "path", "circle", "rect", "line", "use", "g"}
)
"""Elements that have no end tag, or need none."""


def parse_html(
    body: bytes, charset: str | None = None, *, path: str = "", is_truncated: bool = False, is_xml: bool = False
) -> HtmlFacts:
    """Parse an HTML body in bounded time.

    Args:
        body: the bytes, not content-encoded.
        charset: of the Content-Type, if it names one.
        path: that of the page, percent-encoded.
        is_truncated: whether `body` is only the beginning of a longer body.
        is_xml: whether browsers read it as XML: its type is application/xhtml+xml.
    """
    unread = ""
    if is_truncated or len(body) > MAX_HTML_BYTES:
        unread = f"is larger than {MAX_HTML_BYTES // 1024:,} kB"
        body = body[:KEPT_BODY_BYTES]
    text = decode_html(body, charset)
    if is_xml:  # an HTML parser reads it, so its robots meta tag has to be one of HTML
        text = _XML_META.sub("<meta", _XML_TEXT_ELEMENT.sub(r"<\1></\2>", text))
    if unread:
        text = text[:HEAD_CHARS]
    text, reason = _bounded(text)
    unread = unread or reason
    tree = LexborHTMLParser(text)
    if tree.body is None:
        unread = unread or "has no body"
    head = _Head(tree)
    data = parse_scripts(script.text() for script in tree.css("script[type*='ld+json' i]"))
    robots = head.robots()  # before the digest, which takes the tree apart
    facts = HtmlFacts(
        None,
        robots.noindex,
        head.canonical(),
        next(filter(None, map(_w3c, (*head.stated(), *dates_modified(data), *head.times()))), None),
        head.instant_refresh(),
        robots.expires_at,
    )
    content = None if unread else content_digest(tree, data, path)
    if content is None:
        return facts._replace(unread_reason=unread or "says more than can be compared in time")
    return facts._replace(digest=content.digest, without_path=content.without_path)


def _bounded(text: str) -> tuple[str, str]:
    """The text as far as a parser can read it in linear time, and why that is not all; "" if it is.

    A parser takes more than linear time if elements nest deeply, if one has very many attributes or options, or if
    formatting elements with different attributes stay open: each block opens them again. The attributes of these are
    left out, as they mean nothing here. The depth is counted without regard to comments and scripts: who can write
    these into a page owns it anyway.
    """
    text = _FORMATTING_TAG.sub(r"<\1>", text)
    tags = text.count("<")
    reason = f"has more than {MAX_TAGS:,} tags" if tags > MAX_TAGS else ""
    if not reason and tags > MAX_OPTIONS and text.count("<option") > MAX_OPTIONS:
        reason = f"has more than {MAX_OPTIONS:,} options"
    if not reason and any(len(tag[0].split()) > MAX_ATTRIBUTES for tag in _LONG_TAG.finditer(text)):
        reason = f"has an element with more than {MAX_ATTRIBUTES} attributes"
    if not reason and tags > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        reason = "nests too many elements"
    if not reason:
        return text, ""
    start = "<".join(text[:HEAD_CHARS].split("<")[: MAX_TAGS // 10])
    # The metadata may follow, so that it is read as if it came first.
    metadata = "".join(_METADATA.findall(text[:HEAD_CHARS]))
    return metadata + _LONG_TAG.sub("<p", start), reason


def _depth(text: str) -> int:
    """How deeply the elements of a text nest, about."""
    depth = deepest = 0
    for slash, name in _TAG.findall(text):
        if name.lower() not in _FLAT_ELEMENTS:
            depth += -1 if slash else 1
            deepest = max(deepest, depth)
    return deepest


def decode_html(body: bytes, charset: str | None) -> str:
    """Decode a body by its byte order mark, the header's charset, its meta tag, or else as UTF-8.

    That is the order of WHATWG HTML, "determining the character encoding". A charset that browsers do not know does not
    count. A header may declare UTF-16, a meta tag that can be read may not.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    start = body[:_PRESCANNED_BYTES]
    # A search engine may read a page without NUL bytes as ASCII, whatever its header says.
    codec = charset and ((b"\0" in start and _UTF_16.get(charset.lower())) or _ascii_codec(charset))
    if not codec:
        if b"<!--" in start:
            start = _COMMENT.sub(b"", start)
        declared = (_ascii_codec(match[1].decode("ascii")) for match in _CHARSET.finditer(start))
        codec = next(filter(None, declared), "utf-8")
    return body.decode(codec, "replace")


def _ascii_codec(charset: str) -> str | None:
    """One of `_ASCII_CODECS`, or None if the charset has none of them."""
    name = encodings.normalize_encoding(charset.lower())
    name = encodings.aliases.aliases.get(name) or encodings.aliases.aliases.get(name.replace(".", "_")) or name
    return "utf-8" if name in ("ascii", "utf_8_sig") else _ASCII_CODEC_OF_MODULE.get(name)


def is_text(body: bytes, charset: str | None) -> bool:
    """Whether the start of a body is text that a browser shows, and not bytes in some content coding."""
    text = decode_html(body[:HEAD_CHARS], charset)
    return bool(text) and (_MARKUP.match(text) is not None or _NO_TEXT.search(text) is None)


def has_whole_head(body: bytes, charset: str | None) -> bool:
    """Whether the start of a body contains the whole head of the page, and something after it."""
    text = decode_html(body[:HEAD_CHARS], charset)
    tag = text.rfind("<")
    if text.rfind(">") < tag:  # it is cut within a tag, which a parser may take for text
        text = text[:tag]
    tree = LexborHTMLParser(_bounded(text)[0])
    return is_text(body, charset) and tree.body is not None and tree.body.child is not None


class _Head:
    """Reads the metadata of a parsed page."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        base = tree.css_first("base[href]")
        self._base = "" if base is None else (base.attributes["href"] or "").strip()[:_MAX_URL_CHARS]

    def robots(self) -> RobotsDirectives:
        metas = [meta.attributes for meta in self._tree.css("meta[name][content]")]
        return parse_robots(
            [meta["content"] or "" for meta in metas if (meta["name"] or "").strip().lower() in SEARCH_ENGINES],
            agents=False,
        )

    def canonical(self) -> str | None:
        """The canonical link in the head. Search engines ignore those in the body, and those that contradict others."""
        canonical = None
        for link in self._tree.css("head > link[rel][href]"):
            attributes = link.attributes
            if "canonical" not in (attributes["rel"] or "").lower().split() or any(
                map(attributes.get, _CANONICAL_EXCLUSIONS)
            ):
                continue
            target = (attributes["href"] or "").strip()
            if target and (target := self._resolved(target)) != canonical:
                if canonical is not None:
                    return None
                canonical = target
        return canonical

    def instant_refresh(self) -> str | None:
        """The target of an instant refresh. One in a noscript element does not count: search engines run scripts."""
        for meta in self._tree.css("meta[http-equiv][content]"):
            attributes = meta.attributes
            if (attributes["http-equiv"] or "").strip().lower() == "refresh" and not _is_in_noscript(meta):
                target = refresh_target(attributes["content"] or "")
                return None if target is None else self._resolved(target)
        return None

    def _resolved(self, target: str) -> str:
        """A URL resolved against the page's base element."""
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
    """A stated date or datetime in UTC. Without a zone a time may be half a day off, so only its date is kept."""
    if not isinstance(raw, str):
        return None
    try:
        if len(raw := raw.strip()) == len("2024-05-01"):
            return date.fromisoformat(raw).isoformat()
        moment = datetime.fromisoformat(raw)
        return w3c(moment.date() if moment.tzinfo is None else moment)
    except (ValueError, OverflowError):
        return None
