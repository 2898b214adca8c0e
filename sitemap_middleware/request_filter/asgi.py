"""Decides whether a request to an ASGI app counts as evidence, by its scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from .accept_header import ignore_reason_of_accept, remember_harmless
from .header_rules import HOST_HEADERS, PREFETCH_HEADERS, HeaderRuleCache, rule_applies
from .reasons import (
    CLIENT_CERTIFICATE,
    COOKIE,
    SIGNED_IN,
    UPTIME_MONITOR,
    IgnoreReason,
    ignore_reason_of_destination,
)
from .sign_in import is_authenticated_user
from .uptime_monitors import is_monitor

Field = tuple[bytes, bytes]
"""Name and value of a header."""

harmless_fields: Final[set[tuple[bytes, bytes]]] = set()
"""Accept, User-Agent and Sec-Fetch-Dest headers with values that do not count against a request."""

HOST_NAMES: Final = frozenset(name.encode() for name in HOST_HEADERS)
"""Headers that may name another host than Host does."""

rule_cache: Final = HeaderRuleCache(HOST_NAMES)


class RoutedRequest(Protocol):
    """A request with headers that may state the requested URL."""

    def ignore_reason_of_routing(self, headers: tuple[Field, ...], /) -> IgnoreReason | None:
        """Why the request does not count, by these headers alone; None if they are no reason."""


def ignore_reason_of_headers(headers: Sequence[Field], request: RoutedRequest | None = None) -> IgnoreReason | None:
    """Why a request with these headers does not count; None if it does.

    Args:
        headers: those of the scope.
        request: its method is called with the headers that state the requested URL, if there are any and nothing else
            is a reason. An object, because Python makes a new one for a bound method.
    """
    if not headers:
        return None
    harmless_names, harmless = rule_cache.harmless, harmless_fields
    routing: list[Field] | None = None
    try:
        name, value = headers[-1]
        if name == b"cookie" and value:  # browsers send it last
            return COOKIE
        for field in headers:
            if field[0] not in harmless_names and field not in harmless:
                name, value = field
                if name in rule_cache.routing:
                    routing = [] if routing is None else routing
                    routing.append((name, value))
                elif name == b"cookie" and value:
                    return COOKIE
                else:
                    return _ignore_reason_of_unknown_headers(headers, request)
    except TypeError:  # the pairs may be lists (ASGI, "HTTP Connection Scope"), which have no hash
        return _ignore_reason_of_unknown_headers([(name, value) for name, value in headers], request)
    return None if routing is None or request is None else request.ignore_reason_of_routing(tuple(routing))


def _ignore_reason_of_unknown_headers(headers: Iterable[Field], request: RoutedRequest | None) -> IgnoreReason | None:
    """Do as `ignore_reason_of_headers` does, for headers that are not all known."""
    harmless_names, accept, destination, agent = rule_cache.harmless, b"", b"", b""
    is_prefetch, routing = False, list[Field]()
    for name, value in headers:
        if name in harmless_names:
            continue
        if name == b"accept":
            accept = accept + b"," + value if accept else value
        elif name == b"user-agent":
            agent = agent + b"," + value if agent else value
        elif name == b"sec-fetch-dest":
            destination = value
        elif name in rule_cache.routing:
            routing.append((name, value))
        else:
            text = name.decode("latin-1")
            if text.lower() in PREFETCH_HEADERS:
                is_prefetch = True
                continue
            rule = rule_cache.find(name, text)
            if rule is not None and rule_applies(rule, text, value.decode("latin-1")):
                return rule.reason
            if name in rule_cache.routing:
                routing.append((name, value))
    if destination and destination != b"document" and not is_prefetch:
        return ignore_reason_of_destination(destination.decode("latin-1"))
    if agent and is_monitor(agent):
        return UPTIME_MONITOR
    if accept and (reason := ignore_reason_of_accept(accept.decode("latin-1"))):
        return reason
    for field in ((b"accept", accept), (b"user-agent", agent), (b"sec-fetch-dest", b"document")):
        remember_harmless(harmless_fields, field, len(field[1]))
    return request.ignore_reason_of_routing(tuple(routing)) if routing and request is not None else None


def ignore_reason_of_scope(scope: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its scope holds besides headers; None if that is not a reason.

    Apps, and middleware outside this one, put the user who is signed in into the scope.
    """
    if "user" in scope and is_authenticated_user(scope["user"]):
        return SIGNED_IN
    extensions = scope.get("extensions")
    if extensions and "tls" in extensions:
        tls = extensions["tls"] or {}
        if tls.get("client_cert_chain") or tls.get("client_cert_name"):
            return CLIENT_CERTIFICATE
    return None
