"""Parses robots.txt (RFC 9309) as crawlers do, and adds a Sitemap line to it. Pure."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Final

from protego import Protego

ROBOTS_PATH: Final = "/robots.txt"

DISALLOW_ALL: Final = "User-agent: *\nDisallow: /\n"
"""A robots.txt that forbids everything."""

MAX_ROBOTS_BYTES: Final = 500 * 1024
"""Crawlers ignore bytes beyond this (RFC 9309, section 2.5; Google's limit), and so does the parser."""

_CRAWLERS: Final = ("Googlebot", "Bingbot")
"""The crawlers whose rules are obeyed; the rules for `*` apply to one that is not named."""

_SITEMAP: Final = re.compile(r"^\s*sitemap\s*:", re.IGNORECASE | re.MULTILINE)
_RULE: Final = re.compile(
    r"^[ \t]*(?:user[ -]?agent|disallow|allow|sitemap|crawl-delay)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
_CARRIAGE_RETURN: Final = re.compile(r"\r\n?")
_AGENT: Final = re.compile(r"^([ \t]*user[ -]?agent[ \t]*[: \t][ \t]*)([^#\n]*)", re.IGNORECASE | re.MULTILINE)
_TOKEN: Final = re.compile(r"\*(?=\s|$)|[a-zA-Z_-]+")
"""The product token of a user-agent line: "Googlebot/2.1" names Googlebot."""
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_TEXT_TYPES: Final = ("text/", "application/octet-stream")
"""The media types of files to which a line may be added; others have another syntax."""
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


class RobotsRules:
    """The rules of one robots.txt.

    Args:
        text: the file.
        crawlers: the names of the crawlers whose rules count. Default: those of the large search engines.
    """

    def __init__(self, text: str = "", *crawlers: str) -> None:
        self.text = text
        self._crawlers = crawlers or _CRAWLERS
        self._parsed: Protego | None = None
        if not text.strip():
            return
        lines = _AGENT.sub(self._normalized_agent_line, _CARRIAGE_RETURN.sub("\n", text))
        self._parsed = Protego.parse(lines)

    def allows(self, loc: str) -> bool:
        """Whether all of the crawlers may fetch this URL."""
        return self._parsed is None or all(self._parsed.can_fetch(loc, crawler) for crawler in self._crawlers)

    def crawl_delay(self) -> float:
        """Seconds that the crawlers are asked to wait between two requests; 0 if they are not asked."""
        if self._parsed is None:
            return 0.0
        return max(float(self._parsed.crawl_delay(crawler) or 0) for crawler in self._crawlers)

    def _normalized_agent_line(self, line: re.Match[str]) -> str:
        """A user-agent line that names one of the crawlers or `*` exactly, or else a crawler that does not exist.

        Protego matches prefixes of a crawler's name; crawlers match the whole name.
        """
        token = _TOKEN.match(line[2].strip())
        known = token is not None and token[0].lower() in ("*", *map(str.lower, self._crawlers))
        return f"{line[1]}{token[0] if token and known else 'another-crawler'}"


class RobotsFile:
    """A robots.txt as served: its text, and its bytes, to which a line can be added."""

    def __init__(self, body: bytes, codec: str) -> None:
        self._body = body
        self._codec = codec
        self.text: str = body[:MAX_ROBOTS_BYTES].decode(codec, "replace").removeprefix("\ufeff")
        if len(body) > MAX_ROBOTS_BYTES:  # a rule that is cut off would forbid more than intended
            self.text = self.text[: max(self.text.rfind("\n"), self.text.rfind("\r")) + 1]

    def is_robots(self, media_type: str) -> bool:
        """Whether it is a robots.txt and no page: it has a rule, or else is plain text without markup."""
        if _RULE.search(_CARRIAGE_RETURN.sub("\n", self.text)):
            return True
        return is_amendable(media_type) and "html" not in media_type and not self.text.lstrip().startswith("<")

    def with_sitemap(self, loc: str) -> bytes | None:
        """The bytes with a Sitemap line added; None if it has one, is markup, or exceeds `MAX_ROBOTS_BYTES`."""
        if len(self._body) > MAX_ROBOTS_BYTES or self.text.lstrip().startswith("<"):
            return None
        extended = with_sitemap(self.text, loc)
        return None if extended == self.text else self._body + extended[len(self.text) :].encode(self._codec)


def parse_robots_file(body: bytes, content_encoding: str = "", charset: str | None = None) -> RobotsFile | None:
    """Decode the body of a robots.txt response; None if it cannot be decompressed.

    Like crawlers, it ignores the media type. A parser skips lines that are not rules, so an HTML page forbids nothing.

    Args:
        body: the bytes as sent.
        content_encoding: the Content-Encoding header.
        charset: that of the Content-Type. A byte order mark takes precedence; without either it is UTF-8.
    """
    for coding in reversed(content_encoding.lower().split(",")):
        plain = _decompressed(body, coding.strip())
        if plain is None:
            return None
        body = plain
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return RobotsFile(body, codec)
    try:
        name = codecs.lookup(charset or "utf-8").name
        b"a".decode(name)  # fails for codecs that are not for text
    except (LookupError, ValueError):
        name = "utf-8"
    return RobotsFile(body, "utf-8" if name == "ascii" else name)


def _decompressed(body: bytes, coding: str) -> bytes | None:
    """Undo one content coding, up to `MAX_ROBOTS_BYTES`; None if that fails."""
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    for bits in (
        (_GZIP_OR_ZLIB, -zlib.MAX_WBITS) if coding == "deflate" else (_GZIP_OR_ZLIB,)
    ):  # some servers send raw deflate
        stream = zlib.decompressobj(bits)
        try:
            plain = stream.decompress(body, MAX_ROBOTS_BYTES + 1)
        except zlib.error:
            continue
        return plain if stream.eof or len(plain) > MAX_ROBOTS_BYTES else None
    return None


def is_amendable(media_type: str) -> bool:
    """Whether a line may be added to a file of this media type."""
    return media_type == "" or media_type.startswith(_TEXT_TYPES)


def with_sitemap(text: str, loc: str) -> str:
    """The text with a Sitemap line; unchanged if it has one."""
    if _SITEMAP.search(_CARRIAGE_RETURN.sub("\n", text)):
        return text
    end = "" if not text or text.endswith(("\n", "\r")) else "\n"
    return f"{text}{end}\nSitemap: {loc}\n"


def minimal_robots(loc: str) -> str:
    """A robots.txt that forbids nothing and names the sitemap."""
    return f"User-agent: *\nDisallow:\n\nSitemap: {loc}\n"
