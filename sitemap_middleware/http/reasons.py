"""The reasons why a request does not count as evidence."""

from __future__ import annotations

from typing import Final, NamedTuple

IGNORE_REASONS: Final = {
    "method": "with another method than GET",
    "query": "with a query string",
    "range": "for a range of bytes",
    "credentials": "with credentials",
    "partial": "for a part of a page",
    "accept": "that want something else than HTML",
    "host": "for a Host that is not the site's own",
    "monitor": "of a health check or an uptime monitor",
}
"""The reasons, and how requests ignored for each are described."""

MAX_NAME_CHARS: Final = 100
"""Characters of a header's name, or of a value that is shown, that are read."""


class IgnoreReason(NamedTuple):
    """Why a request does not count as evidence."""

    reason: str
    """One of `IGNORE_REASONS`."""
    detail: str
    """What about the request is the reason, in words that follow "it"."""


COOKIE: Final = IgnoreReason("credentials", "carried cookie")
"""Of a request with a Cookie header: the most frequent reason by far."""

SIGNED_IN: Final = IgnoreReason("credentials", "came from a visitor who is signed in")
CLIENT_CERTIFICATE: Final = IgnoreReason("credentials", "came with a client certificate")
UPTIME_MONITOR: Final = IgnoreReason("monitor", "was of a health check or an uptime monitor, by its User-Agent")
FOREIGN_HOST: Final = IgnoreReason("host", "was for a Host that is not the site's own")
_OTHER_METHOD: Final = IgnoreReason("method", "was no GET")
_QUERY: Final = IgnoreReason("query", "had a query string")


def ignore_reason_of_line(method: str, *, query: bool) -> IgnoreReason | None:
    """Why a request with this method, and perhaps a query string, does not count; None if it does."""
    if method != "GET":
        return _OTHER_METHOD
    return _QUERY if query else None


def ignore_reason_of_destination(destination: str) -> IgnoreReason:
    """Why a request with this Sec-Fetch-Dest, which is not ``document``, does not count."""
    return IgnoreReason("partial", f"was sent by a page for a part of it: Sec-Fetch-Dest is {printable(destination)!r}")


def printable(text: str) -> str:
    """A text that a client sent, shortened and safe to show."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text[:MAX_NAME_CHARS])
