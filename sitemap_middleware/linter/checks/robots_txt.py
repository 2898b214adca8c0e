"""Checks the text of a robots.txt, and returns the sitemaps that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...robots_parser import MAX_ROBOTS_BYTES
from ..message import Finding
from ..message_collector import quoted
from ..rules import robots_txt as rules
from .loc import check_loc, normal_url, resolved

_SITEMAP_LINE: Final = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
_CARRIAGE_RETURN: Final = re.compile(r"\r\n?")
_MAX_NAMED: Final = 100


def named_sitemaps(text: str) -> list[str]:
    """Return what the Sitemap lines of a robots.txt name, as written, each once."""
    return [*dict.fromkeys(_SITEMAP_LINE.findall(_CARRIAGE_RETURN.sub("\n", text)))][:_MAX_NAMED]


def check_robots_file(text: str, url: str, documents: Sequence[str], *, is_too_large: bool) -> Iterator[Finding]:
    """Check a robots.txt that answered 200.

    Args:
        text: its text.
        url: its URL.
        documents: the URLs of the sitemaps that are being checked. If one of them is named, all is well.
        is_too_large: whether it has more than `MAX_ROBOTS_BYTES`.
    """
    if text.lstrip().startswith("<"):
        yield rules.HTML, "the response is an HTML page"
        return
    if is_too_large:
        yield rules.TOO_LARGE, f"the file has more than {MAX_ROBOTS_BYTES // 1024} KiB"
    own_host, found = check_loc(url).host, set[str]()
    for name in named_sitemaps(text):
        loc = check_loc(name, is_page=False)
        if not loc.host:
            yield rules.RELATIVE, f"the line names {quoted(name)}, which is not an absolute URL"
            loc = check_loc(resolved(url, name), is_page=False)
        elif loc.host != own_host:
            yield rules.OTHER_HOST, f"the line names {quoted(name)}"
        found.add(normal_url(loc))
    if not found & {normal_url(check_loc(document, is_page=False)) for document in documents}:
        yield rules.MISSING_LINE, "no Sitemap line names this sitemap"
