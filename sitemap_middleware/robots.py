"""robots.txt (RFC 9309): what it forbids, and where it says the sitemap is."""

from __future__ import annotations

import re
from typing import Final

from protego import Protego

PATH: Final = "/robots.txt"

MAX_BYTES: Final = 500 * 1024
"""More than this a crawler need not read (RFC 9309, section 2.5), and we do not."""

_CRAWLERS: Final = ("Googlebot", "Bingbot")
"""The crawlers that sitemaps are written for; the rules for all stand in where there are none for one."""

_SITEMAP: Final = re.compile(r"^\s*sitemap\s*:", re.IGNORECASE | re.MULTILINE)


class Rules:
    """What one robots.txt allows."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._parsed = Protego.parse(text) if text.strip() else None

    def allow(self, loc: str) -> bool:
        """Whether those who read sitemaps may fetch this URL."""
        return self._parsed is None or all(self._parsed.can_fetch(loc, crawler) for crawler in _CRAWLERS)


def with_sitemap(text: str, loc: str) -> str:
    """The text with a Sitemap line; as it is where it has one."""
    if _SITEMAP.search(text):
        return text
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}\nSitemap: {loc}\n"


def minimal(loc: str) -> str:
    """A robots.txt that forbids nothing."""
    return f"User-agent: *\nDisallow:\n\nSitemap: {loc}\n"
