"""Parses robots.txt (RFC 9309) as crawlers do, and adds a Sitemap line to it. Pure."""

from __future__ import annotations

import re
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
_TEXT_TYPES: Final = ("text/", "application/octet-stream")
"""The media types of files to which a line may be added; others have another syntax."""


class RobotsRules:
    """The rules of one robots.txt.

    Args:
        text: the file, as `decode_robots` gives it.
        crawlers: the names of the crawlers whose rules count. Default: those of the large search engines.
    """

    def __init__(self, text: str = "", *crawlers: str) -> None:
        self.text = text
        self._crawlers = crawlers or _CRAWLERS
        self._parsed: Protego | None = None
        if not text.strip():
            return
        self._parsed = Protego.parse(_AGENT.sub(self._normalized_agent_line, text))

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


def decode_robots(body: bytes) -> str:
    """The text of a robots.txt up to `MAX_ROBOTS_BYTES`, with plain line ends. It is UTF-8 (RFC 9309, section 2.3)."""
    text = _CARRIAGE_RETURN.sub("\n", body[:MAX_ROBOTS_BYTES].decode("utf-8-sig", "replace"))
    # A rule that is cut off would forbid more than intended.
    return text[: text.rfind("\n") + 1] if len(body) > MAX_ROBOTS_BYTES else text


def is_robots(text: str, media_type: str) -> bool:
    """Whether a text is a robots.txt and no page: it has a rule, or else is plain text without markup."""
    if _RULE.search(text):
        return True
    return _is_amendable(media_type) and "html" not in media_type and not text.lstrip().startswith("<")


def with_sitemap(body: bytes, media_type: str, loc: str) -> bytes | None:
    """A robots.txt with a Sitemap line added; None if it has one, is no plain text, or exceeds `MAX_ROBOTS_BYTES`."""
    text = decode_robots(body)
    has_line = _SITEMAP.search(text) is not None
    if has_line or not _is_amendable(media_type) or len(body) > MAX_ROBOTS_BYTES or text.lstrip().startswith("<"):
        return None
    end = "" if not text or text.endswith("\n") else "\n"
    return body + f"{end}\nSitemap: {loc}\n".encode()


def _is_amendable(media_type: str) -> bool:
    return media_type == "" or media_type.startswith(_TEXT_TYPES)


def minimal_robots(loc: str) -> str:
    """A robots.txt that forbids nothing and names the sitemap."""
    return f"User-agent: *\nDisallow:\n\nSitemap: {loc}\n"
