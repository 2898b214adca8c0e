"""Parses a page's HTML: its robots meta tags, canonical links, refresh and dates, and the digest of its content.

Runs on the background thread. selectolax (lexbor) does the parsing; `_bounded` keeps from it what would take it more
than linear time. A page that is too large or too deeply nested is read for its metadata, and gets no digest, because a
digest of a part would change with what surrounds the part.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from contextlib import suppress
from datetime import date, datetime
from typing import Final, NamedTuple
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from ..http.messages import KEPT_BODY_BYTES, MAX_HTML_BYTES
from .content_digest import content_digest, parse_scripts, things
from .dates import w3c
from .images_and_versions import NOTHING, Wanted, image_references, version_references
from .response_headers import MAX_URL_CHARS, SEARCH_ENGINES, RobotsDirectives, parse_robots, refresh_target

MAX_DEPTH: Final = 400
MAX_LINKS: Final = 64
"""Links that are read at the beginning of a page, and as many at its end, where sites link to their main pages."""

_PRESCANNED_BYTES: Final = 1024
"""Where a charset may be declared."""
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_ASCII_CODECS: Final = frozenset(
    {"utf_8", "latin_1", "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9", "iso8859_15", "koi8_r", "koi8_u"}
    | {f"cp125{number}" for number in range(9)}
    | {"big5", "euc_jp", "euc_kr", "cp949", "gb18030", "gb2312", "gbk", "iso2022_jp", "shift_jis", "cp932", "tis_620"}
)
"""The codecs of charsets in which ASCII text, such as a meta tag, reads the same; by the modules of `encodings`."""
for _codec in _ASCII_CODECS:
    codecs.lookup(_codec)  # imports it: a page must not have the thread that parses it import one
_NO_TEXT: Final = re.compile(r"[\0-\x08\x0e-\x1f\ufffd]")
_XML_TEXT_ELEMENT: Final = re.compile(r"<((script|style|title|textarea|iframe|noframes)(?:\s[^<>]*)?)/>")
"""An element of XHTML that has no content, and would hold all that follows if it were HTML."""
_API_FILES: Final = (
    *("swagger-ui", "oauth2-redirect.", "redoc.", "rapidoc", "graphiql"),
    *("@scalar/api-reference", "@stoplight/elements"),
)
_API_CALLS: Final = ("SwaggerUIBundle(", "createApiReference(", "Redoc.init(", ".swaggerUIRedirectOauth2")
_API_DOCUMENTATION: Final = ", ".join(
    [
        *(f"script[src^='{name}' i], script[src*='/{name}' i]" for name in _API_FILES),
        *(f"script:not([type*=json i]):lexbor-contains('{call}')" for call in _API_CALLS),
        "redoc, rapi-doc, elements-api, api-reference, script#api-reference, div#swagger-ui:blank",
    ]
)
"""Scripts and elements of API documentation. Headings of ordinary pages may have the ids, too: theirs are not empty."""
_CANONICAL_EXCLUSIONS: Final = ("hreflang", "lang", "media", "type")
"""Search engines ignore a canonical link with one of these attributes."""

_COSTLY_TAG: Final = re.compile(
    r"</?(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u|option|optgroup)(?:[\t\n\f\r /][^>]{0,2000}+)?>",
    re.IGNORECASE,
)
"""A tag that means nothing here. If it is not closed, each block opens it again; options take quadratic time."""
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_METADATA: Final = re.compile(r"<(?:meta|link|base)\b[^<>]{0,8000}+>", re.IGNORECASE)
_FLAT_ELEMENTS: Final = frozenset(
    {"area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "p", "param"}
    | {"source", "td", "th", "tr", "track", "wbr", "path", "circle", "rect", "line", "use", "g"}
)
"""Elements that have no end tag, or need none."""


class HtmlFacts(NamedTuple):
    """What one reading of a page's HTML says. Its URLs are absolute or relative to the page, as the HTML has them."""

    digest: int | None
    """A signed 64-bit digest of the content (see `content_digest`); None if it could not be read completely."""
    noindex: bool = False
    canonical: str | None = None
    """The canonical URL it names; None if it names several."""
    stated_date: str | None = None
    """When the page says it was modified: a W3C date, or a W3C datetime in UTC."""
    instant_refresh: str | None = None
    """The target of an instant refresh."""
    expires_at: int | None = None
    """The unavailable_after of its robots meta tag, in POSIX seconds."""
    unread_reason: str = ""
    """Why its content was not read completely, such as "nests too many elements"; empty if it was."""
    without_path: int = 0
    """A digest of the content without the words of the page's own path; 0 if unknown."""
    links: tuple[str, ...] = ()
    """The targets of its first and its last links."""
    is_api_documentation: bool = False
    images: tuple[tuple[str, str], ...] = ()
    """Each image, and what it is a link to; empty if to nothing."""
    versions: tuple[tuple[str, str], ...] = ()
    """Its versions in other languages: codes and URLs."""


def parse_html(
    body: bytes,
    charset: str | None = None,
    *,
    path: str = "",
    is_truncated: bool = False,
    is_xml: bool = False,
    max_links: int = MAX_LINKS,
    wanted: Wanted = NOTHING,
) -> HtmlFacts:
    """Parse an HTML body, or the beginning of one, in bounded time.

    `charset` is that of the Content-Type, and `path` the page's own. `is_xml` says whether browsers read it as XML,
    `max_links` says how many links are read from its beginning and from its end, and `wanted` whether its images and
    versions are.
    """
    unread = ""
    if is_truncated or len(body) > MAX_HTML_BYTES:
        unread = f"is larger than {MAX_HTML_BYTES // 1024:,} kB"
        body = body[:KEPT_BODY_BYTES]
    text = decode_html(body, charset)
    text, reason = _bounded(_XML_TEXT_ELEMENT.sub(r"<\1></\2>", text) if is_xml else text)
    unread = unread or reason
    tree = LexborHTMLParser(text)
    if tree.body is None:
        unread = unread or "has no body"
    data = parse_scripts(script.text() for script in tree.css("script[type*='ld+json' i]"))
    robots, base = _robots(tree), _base(tree)
    facts = HtmlFacts(
        None,
        robots.noindex,
        _canonical(tree, base),
        _stated_date(tree, data),
        _instant_refresh(tree, base),
        robots.expires_at,
        links=_links(tree, base, max_links),
        is_api_documentation=tree.css_first(_API_DOCUMENTATION) is not None,
    )
    with suppress(Exception):  # an odd image must not hide what the page says of itself
        if wanted.images and not unread:
            # An image without a source, such as "#", would be the page itself, or its base.
            found = (
                (_resolved(image.strip(), base), link and _resolved(link, base))
                for image, link in image_references(tree, data)
                if image.partition("#")[0].strip()
            )
            facts = facts._replace(images=tuple(found))
        if wanted.alternates:
            versions = ((code, _resolved(url.strip(), base)) for code, url in version_references(tree))
            facts = facts._replace(versions=tuple(versions))
    content = None if unread else content_digest(tree, data, path)  # last, because it takes the tree apart
    if content is None:
        return facts._replace(unread_reason=unread or "says more than can be compared in time")
    return facts._replace(digest=content[0], without_path=content[1])


def _bounded(text: str) -> tuple[str, str]:
    """The text as far as a parser can read it in linear time, and why that is not all; "" if it is.

    A parser takes more than linear time if elements nest deeply. The depth is counted without regard to comments and
    scripts: who can write these into a page owns it anyway.
    """
    text = _COSTLY_TAG.sub(" ", text)
    if text.count("<") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return "".join(_METADATA.findall(text)), "nests too many elements"
    return text, ""


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

    That is the order of WHATWG HTML, "determining the character encoding". A charset in which ASCII text reads
    otherwise does not count, but for UTF-16 in a header, because a meta tag that can be read is not in it.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    start = body[:_PRESCANNED_BYTES]
    if charset and b"\0" in start and _ascii_codec(charset) is None:  # UTF-16 has more names, such as "unicode"
        return body.decode("utf-16-be" if charset.lower().endswith("be") else "utf-16-le", "replace")
    labels = [charset or "", *(match[1].decode("ascii") for match in _CHARSET.finditer(start))]
    return body.decode(next(filter(None, map(_ascii_codec, labels)), "utf-8"), "replace")


def _ascii_codec(charset: str) -> str | None:
    """One of `_ASCII_CODECS`, or None if the charset has none of them."""
    name = encodings.normalize_encoding(charset.lower())
    codec = encodings.aliases.aliases.get(name, name)
    return codec if codec in _ASCII_CODECS else None


def is_text(body: bytes, charset: str | None) -> bool:
    """Whether the start of a body is text that a browser shows, and not bytes in some content coding."""
    text = decode_html(body[:KEPT_BODY_BYTES], charset)
    return bool(text) and _NO_TEXT.search(text) is None


# The metadata of a parsed page


def _robots(tree: LexborHTMLParser) -> RobotsDirectives:
    metas = [meta.attributes for meta in tree.css("meta[name][content]")]
    return parse_robots(
        [meta["content"] or "" for meta in metas if (meta["name"] or "").strip().lower() in SEARCH_ENGINES],
        agents=False,
    )


def _base(tree: LexborHTMLParser) -> str:
    base = tree.css_first("base[href]")
    return "" if base is None else (base.attributes["href"] or "").strip()[:MAX_URL_CHARS]


def _canonical(tree: LexborHTMLParser, base: str) -> str | None:
    """The canonical link in the head. Search engines ignore those in the body, and those that contradict others."""
    found: set[str] = set()
    for link in tree.css("head > link[rel][href]"):
        attributes = link.attributes
        is_canonical = "canonical" in (attributes["rel"] or "").lower().split()
        target = (attributes["href"] or "").strip()
        if is_canonical and target and not any(map(attributes.get, _CANONICAL_EXCLUSIONS)):
            found.add(_resolved(target, base))
    return found.pop() if len(found) == 1 else None


def _instant_refresh(tree: LexborHTMLParser, base: str) -> str | None:
    """The target of an instant refresh. One in a noscript element does not count: search engines run scripts."""
    for meta in tree.css("meta[http-equiv][content]"):
        is_refresh = (meta.attributes["http-equiv"] or "").strip().lower() == "refresh"
        if is_refresh and (meta.parent is None or meta.parent.tag != "noscript"):
            target = refresh_target(meta.attributes["content"] or "")
            return None if target is None else _resolved(target, base)
    return None


def _links(tree: LexborHTMLParser, base: str, most: int) -> tuple[str, ...]:
    links = tree.css("a[href]")
    read = [*links[:most], *links[most:][-most:]]
    return tuple(_resolved((link.attributes["href"] or "").strip(), base) for link in read)


def _resolved(target: str, base: str) -> str:
    """A URL resolved against the page's base element."""
    target = target[:MAX_URL_CHARS]
    try:
        return urljoin(base, target)[:MAX_URL_CHARS]
    except ValueError:
        return target


def _stated_date(tree: LexborHTMLParser, data: list[object]) -> str | None:
    metas = tree.css("meta[property='article:modified_time'], meta[itemprop=dateModified]")
    found = [
        *(meta.attributes.get("content") for meta in metas),
        *(thing.get("dateModified") for thing in things(data)),
        *(time.attributes.get("datetime") for time in tree.css("time[itemprop=dateModified]")),
    ]
    return next(filter(None, map(_w3c, found)), None)


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
