"""Checks the response with a document: redirects, a login page, its status and Content-Type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ..message import Finding
from ..message_collector import quoted
from ..rules import fetch as rules
from ..sitemap_element_names import Kind

_LOGIN_PATH: Final = re.compile(r"(?:^|[/_-])(?:log-?in|sign-?in|sso|wp-login\.php)(?:$|[/._-])", re.IGNORECASE)
_XML: Final = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?xml")
_GZIP: Final = frozenset({"application/gzip", "application/x-gzip", "application/octet-stream", "binary/octet-stream"})
_MAX_NAMED: Final = 5


def check_redirects(redirects: tuple[str, ...], final: str) -> Iterator[Finding]:
    """Check where redirects led.

    Args:
        redirects: the URLs that redirected, in their order.
        final: the URL after them.
    """
    if not redirects:
        return
    if is_login(final) and not is_login(redirects[0]):
        yield rules.LOGIN, f"the URL redirects to {final}"
    else:
        yield rules.REDIRECT, f"the URL redirects to {' to '.join([*redirects[1:], final][-_MAX_NAMED:])}"


def is_login(url: str) -> bool:
    """Whether a URL is probably that of a login page."""
    return _LOGIN_PATH.search(urlsplit(url).path) is not None


def check_status(status: int) -> Finding | None:
    """Check the status of a response that is not a redirect."""
    if status == 200:
        return None
    if status == 401:
        return rules.LOGIN, "the server answers 401"
    return rules.STATUS, f"the server answers {status}"


def check_content_type(content_type: str, kind: Kind | None) -> Finding | None:
    """Check the Content-Type of a document that was read."""
    media_type = content_type.partition(";")[0].strip().lower()
    if kind is None or _XML.fullmatch(media_type) or media_type in _GZIP or media_type == "text/plain":
        return None
    said = f"the media type is {quoted(media_type)}" if media_type else "the response has no Content-Type"
    return rules.CONTENT_TYPE, said
