"""What is common to the middleware's own requests over both protocols: their headers, and which responses count.

Some apps show pages only to certain addresses, such as an office's. So the address of the live request's visitor is
never repeated: the middleware's own requests come from an address that nobody has. Nor is a host, a port or a prefix
repeated that a client may have made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..http.messages import PROBE_USER_AGENT, ProbeRequest, Request, Response
from ..http.proxies import ADDRESS_HEADERS, SCHEME_HEADERS

PROBE_ACCEPT: Final = "text/html,application/xhtml+xml,*/*;q=0.8"
"""The Accept header of the middleware's own requests. Some apps answer `*/*` alone with JSON."""

PROBE_CLIENT_ADDRESS: Final = "192.0.2.1"
"""The client address of the middleware's own requests. It is reserved for documentation (RFC 5737)."""

_SCHEME: Final = re.compile(
    r"""\s*(?:\{\s*"scheme"\s*:\s*"https?"\s*\}|(?:https?|on|off|[01])(?:\s*,\s*(?:https?|on|off|[01]))*)\s*""",
    re.IGNORECASE,
)
"""The values that proxies write into a header about the scheme."""

_ENDLESS_TYPES: Final = ("text/event-stream", "multipart/x-mixed-replace", "application/x-ndjson", "application/jsonl")


def probe_headers(probe: ProbeRequest, live: Request) -> list[tuple[str, str]]:
    """The headers of a request of the middleware itself, which a live request starts; with names in lower case.

    What a proxy says of the connection is repeated, so that an app that reads it answers alike.
    """
    headers = [("user-agent", PROBE_USER_AGENT), ("accept", PROBE_ACCEPT)]
    if host := probe.host or live.host:
        headers.append(("host", host))
    for name, value in live.headers:
        if name in ADDRESS_HEADERS:
            headers.append((name, PROBE_CLIENT_ADDRESS))
        elif name in SCHEME_HEADERS and probe.scheme is None and _SCHEME.fullmatch(value):
            headers.append((name, value))
    if probe.scheme is not None:
        headers.append(("x-forwarded-proto", probe.scheme))
    return headers


def probe_client_address(live: Iterable[tuple[str, str]], address: str | None) -> str:
    """The client address of a request of the middleware itself: the proxy's, if there is a proxy before the app.

    The live request's address is the visitor's if no header states another one, or if a
    header states the same one: then the server, or a middleware outside this one, took it
    from the header.
    """
    stated = [value for name, value in live if name in ADDRESS_HEADERS]
    if not stated or not address or any(address in value for value in stated):
        return PROBE_CLIENT_ADDRESS
    return address


def is_endless(media_type: str) -> bool:
    """Whether responses of this media type have no end, so that only their headers are worth waiting for."""
    return media_type.startswith(_ENDLESS_TYPES)


def truncated_response(response: Response, *, too_long: bool) -> Response | None:
    """What counts of a response whose body was not read to its end; None if nothing does.

    The beginning of one that is too long is enough. Of others that are no text the status and the headers count.
    """
    if too_long:
        return response
    media_type = dict(response.headers).get("content-type", "").lower()
    is_text = not media_type or "text/" in media_type or "xml" in media_type
    if response.status == 0 or (is_text and not is_endless(media_type)):
        return None
    return Response(response.status, response.headers)
