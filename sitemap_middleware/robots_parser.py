"""robots.txt (RFC 9309): what it forbids, as crawlers read it, and where it says the sitemap is."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Final

from protego import Protego

ROBOTS_PATH: Final = "/robots.txt"

MAX_ROBOTS_BYTES: Final = 500 * 1024
"""Crawlers read no more than this (RFC 9309, section 2.5; Google's limit), and neither do we."""

_CRAWLERS: Final = ("Googlebot", "Bingbot")
"""The crawlers that sitemaps are written for; the rules for all stand in where there are none for one."""

_SITEMAP: Final = re.compile(r"^\s*sitemap\s*:", re.IGNORECASE | re.MULTILINE)
_CARRIAGE_RETURN: Final = re.compile(r"\r\n?")
_AGENT: Final = re.compile(r"^([ \t]*user[ -]?agent[ \t]*[: \t][ \t]*)([^#\n]*)", re.IGNORECASE | re.MULTILINE)
_TOKEN: Final = re.compile(r"\*(?=\s|$)|[a-zA-Z_-]+")
"""What of a user-agent line names a crawler: "Googlebot/2.1" is Googlebot, as Google reads it."""
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_TEXT_TYPES: Final = ("text/", "application/octet-stream")
"""The media types of files that may be given one more line. Any other has a syntax of its own."""
_GZIP: Final = zlib.MAX_WBITS | 32  # a zlib stream is taken too


class RobotsRules:
    """What one robots.txt allows."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        lines = _AGENT.sub(_normalized_agent_line, _CARRIAGE_RETURN.sub("\n", text))
        self._parsed = Protego.parse(lines) if text.strip() else None

    def allows(self, loc: str) -> bool:
        """Whether those who read sitemaps may fetch this URL."""
        return self._parsed is None or all(self._parsed.can_fetch(loc, crawler) for crawler in _CRAWLERS)


def _normalized_agent_line(line: re.Match[str]) -> str:
    """A user-agent line with the bare name of a crawler that counts, or with a name that is none's.

    Protego takes a name for any crawler whose name begins so; crawlers take it for one whose name it is.
    """
    token = _TOKEN.match(line[2].strip())
    known = token is not None and token[0].lower() in ("*", *map(str.lower, _CRAWLERS))
    return f"{line[1]}{token[0] if token and known else 'another-crawler'}"


class RobotsFile:
    """A robots.txt as it was served: its text, and its bytes, to which a line can be added."""

    def __init__(self, body: bytes, codec: str) -> None:
        self._body = body
        self._codec = codec
        self.text = body[:MAX_ROBOTS_BYTES].decode(codec, "replace").removeprefix("\ufeff")
        if len(body) > MAX_ROBOTS_BYTES:  # half a rule would forbid more than the whole one
            self.text = self.text[: max(self.text.rfind("\n"), self.text.rfind("\r")) + 1]

    def with_sitemap(self, loc: str) -> bytes | None:
        """The bytes with a Sitemap line; None if it has one, is markup, or is longer than crawlers read."""
        if len(self._body) > MAX_ROBOTS_BYTES or self.text.lstrip().startswith("<"):
            return None
        whole = with_sitemap(self.text, loc)
        return None if whole == self.text else self._body + whole[len(self.text) :].encode(self._codec)


def parse_robots_file(body: bytes, content_encoding: str = "", charset: str | None = None) -> RobotsFile | None:
    """The robots.txt in a body; None if the body cannot be decompressed.

    Crawlers do not look at the media type, and they pass over every line that is
    no rule. So an HTML page forbids nothing, unless it has lines that are rules.

    Args:
        body: the bytes as they were sent.
        content_encoding: as the response names it.
        charset: as the Content-Type names it. A byte order mark goes before it, and UTF-8 is meant without either.
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
        b"a".decode(name)  # codecs that are of no text fail
    except (LookupError, ValueError):
        name = "utf-8"
    return RobotsFile(body, "utf-8" if name == "ascii" else name)


def _decompressed(body: bytes, coding: str) -> bytes | None:
    """A body without one of its content codings: as much as is read of it; None if it cannot be read."""
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    for bits in (_GZIP, -zlib.MAX_WBITS) if coding == "deflate" else (_GZIP,):  # some servers send deflate bare
        stream = zlib.decompressobj(bits)
        try:
            plain = stream.decompress(body, MAX_ROBOTS_BYTES + 1)
        except zlib.error:
            continue
        return plain if stream.eof or len(plain) > MAX_ROBOTS_BYTES else None
    return None


def is_amendable(media_type: str) -> bool:
    """Whether a file of this media type may be given one more line."""
    return media_type == "" or media_type.startswith(_TEXT_TYPES)


def with_sitemap(text: str, loc: str) -> str:
    """The text with a Sitemap line; as it is where it has one."""
    if _SITEMAP.search(_CARRIAGE_RETURN.sub("\n", text)):
        return text
    end = "" if not text or text.endswith(("\n", "\r")) else "\n"
    return f"{text}{end}\nSitemap: {loc}\n"


def minimal_robots(loc: str) -> str:
    """A robots.txt that forbids nothing."""
    return f"User-agent: *\nDisallow:\n\nSitemap: {loc}\n"
