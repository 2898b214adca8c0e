"""Decides by the Accept header whether a request asks for HTML; only then it is evidence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from werkzeug.http import parse_accept_header

from .reasons import IgnoreReason, printable

MAX_ACCEPT_CHARS: Final = 512
"""Characters of the longest Accept header that is parsed. No crawler sends a longer one."""

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
"""The value of a parameter. Werkzeug before 2.3 takes a comma in it for the end of the media type."""


def ignore_reason_of_accept(accept: str) -> IgnoreReason | None:
    """Why a request with this Accept header does not count; None if it wants HTML at least as much as anything else.

    At the same quality, a type that is named is wanted more than HTML that only a
    wildcard covers: `application/json, */*` wants JSON.
    """
    if len(accept) <= MAX_ACCEPT_CHARS and _prefers_html(accept):
        return None
    return IgnoreReason("accept", f"asked for {printable(accept)!r}, not for HTML")


@lru_cache(500)
def _prefers_html(accept: str) -> bool:
    html = any_type = any_text = -1.0
    others = -1.0, False
    for value, quality in parse_accept_header(_QUOTED.sub("x", accept)):
        media_type = value.partition(";")[0].strip().lower()
        if media_type in _HTML_TYPES:
            html = max(html, quality)
        elif media_type in {"*/*", "*"}:
            any_type = max(any_type, quality)
        elif media_type == "text/*":
            any_text = max(any_text, quality)
        elif media_type == "text/event-stream":  # sent by scripts, which accept HTML for errors only
            return False
        elif media_type and "=" not in media_type:  # old versions of Werkzeug yield parameters and empty elements too
            others = max(others, (quality, True))
    wildcard = any_text if any_text >= 0 else any_type
    quality = html if html >= 0 else wildcard
    if quality < 0:
        return others[0] < 0  # a header that names no type means the same as no header
    return quality > 0 and (quality, html >= 0) >= others and quality >= max(any_text, any_type)
