"""Makes the headers of the middleware's own requests: those of the live request, without its visitor and its Host.

Some apps show pages only to certain addresses, such as an office's. So the address
of the live request's visitor is never repeated: the middleware's requests come from
an address that nobody has. Nor is a public host, a port or a prefix repeated that a client may have made up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from ..http.forwarded_hosts import HOST_PARAMETER
from ..http.messages import PROBE_USER_AGENT, ProbeRequest, Request
from ..http.proxy_header_names import ADDRESS_HEADERS, FORWARDING_HEADERS, SCHEME_HEADERS

PROBE_ACCEPT: Final = "text/html,application/xhtml+xml,*/*;q=0.8"
"""The Accept header of the middleware's own requests. Some apps answer `*/*` alone with JSON."""

PROBE_CLIENT_ADDRESS: Final = "192.0.2.1"
"""The client address of the middleware's own requests. It is reserved for documentation (RFC 5737)."""

_PROTO_PARAMETER: Final = re.compile(r'proto\s*=\s*"?(https?)\b', re.IGNORECASE)
_FOR_PARAMETER: Final = re.compile(r"\bfor\s*=", re.IGNORECASE)

_HOSTS_REWRITTEN: Final = frozenset({"x-forwarded-host", "x-forwarded-server"})
_PREFIXES: Final = frozenset({"x-forwarded-prefix", "x-script-name"})
_PORT: Final = re.compile(r":([0-9]+)$")
_SCHEME: Final = re.compile(
    r"""\s*(?:\{\s*"scheme"\s*:\s*"https?"\s*\}|(?:https?|on|off|[01])(?:\s*,\s*(?:https?|on|off|[01]))*)\s*""",
    re.IGNORECASE,
)
"""The values that proxies write into a header about the scheme."""


class Connection(NamedTuple):
    """The connection of the live request, according to the server rather than to headers."""

    scheme: str
    roots: Collection[str]
    """The decoded root paths of the request and of the site."""

    def has(self, prefix: str) -> bool:
        """Whether a prefix that a header states is the end of a known root path."""
        prefix = "/" + prefix.strip().strip("/")
        return any(f"/{root.strip('/')}".endswith(prefix) for root in self.roots if root.strip("/"))


def headers_of_probe(probe: ProbeRequest, request: Request, app_root: str) -> list[tuple[str, str]]:
    """The headers of a probe that a live request starts, with names in lower case.

    Args:
        probe: the probe.
        request: the live request.
        app_root: the root path that the app itself declares.
    """
    public_host = probe.host or request.host
    return _probe_headers(
        request.headers,
        Connection(request.scheme, (request.root, app_root)),
        host=request.host if probe.keep_host else public_host,
        public_host=public_host,
        scheme=probe.scheme,
    )


def _probe_headers(
    live: Iterable[tuple[str, str]], connection: Connection, *, host: str, public_host: str, scheme: str | None
) -> list[tuple[str, str]]:
    """The headers of a request of the middleware itself, with names in lower case.

    Args:
        live: the live request's headers.
        connection: the live request's.
        host: the Host header; none is sent if it is empty.
        public_host: the host to name in the headers of a proxy.
        scheme: replaces the scheme that the live request's headers state.
    """
    live = list(live)
    headers = [("user-agent", PROBE_USER_AGENT), ("accept", PROBE_ACCEPT)]
    if host:
        headers.append(("host", host))
    for name, value in live:
        if name not in FORWARDING_HEADERS and name not in ADDRESS_HEADERS:
            continue
        if name in SCHEME_HEADERS and (scheme is not None or not _repeats_scheme(name, value)):
            continue
        if name in _PREFIXES and not all(map(connection.has, value.split(","))):
            continue
        count = len(value.split(","))
        if name in _HOSTS_REWRITTEN:
            value = public_host
        elif name == "forwarded":
            value = ", ".join(_rewritten_forwarded(element, public_host) for element in value.split(","))
        elif name in ADDRESS_HEADERS:
            value = ", ".join([PROBE_CLIENT_ADDRESS] * count)  # apps count the proxies by them
        elif name == "x-forwarded-port":
            value = ", ".join([_port(live, connection, public_host)] * count)
        headers.append((name, value))
    if scheme is not None:
        headers.append(("x-forwarded-proto", scheme))
    return headers


def probe_client_address(live: Iterable[tuple[str, str]], address: str | None) -> str:
    """The client address of a request of the middleware itself: the proxy's, if there is a proxy before the app.

    The live request's address is the visitor's if no header states another one, or if a
    header states the same one: then the server, or a middleware outside this one, took it
    from the header.
    """
    stated = [
        value
        for name, value in live
        if name in ADDRESS_HEADERS or (name == "forwarded" and _FOR_PARAMETER.search(value))
    ]
    if not stated or not address or any(address in value for value in stated):
        return PROBE_CLIENT_ADDRESS
    return address


def _repeats_scheme(name: str, value: str) -> bool:
    """Whether a header about the scheme can be repeated: proxies write it like this, or its value is replaced."""
    return name in ("forwarded", "x-forwarded-port") or _SCHEME.fullmatch(value) is not None


def _port(live: Iterable[tuple[str, str]], connection: Connection, public_host: str) -> str:
    """The port of the public host."""
    if named := _PORT.search(public_host):
        return named[1]
    secure = connection.scheme == "https" or any(
        name in SCHEME_HEADERS and "https" in value.lower() for name, value in live
    )
    return "443" if secure else "80"


def _rewritten_forwarded(element: str, public_host: str) -> str:
    """Rewrite an element of a Forwarded header (RFC 7239), because parsers disagree on unusual spellings."""
    parts = [f"for={PROBE_CLIENT_ADDRESS}"] if _FOR_PARAMETER.search(element) else []
    if proto := _PROTO_PARAMETER.search(element):
        parts.append(f"proto={proto[1].lower()}")
    if HOST_PARAMETER.search(element):
        parts.append(f'host="{public_host}"')  # a port needs the quotes
    return ";".join(parts)
