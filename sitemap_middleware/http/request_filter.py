"""Decides whether a request counts as evidence: whether an anonymous crawler could have sent it for a whole page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .accept_header import ignore_reason_of_accept
from .header_rules import PREFETCH_HEADERS, rule_applies, rule_for_environ_key, rule_for_header
from .reasons import (
    CLIENT_CERTIFICATE,
    COOKIE,
    SIGNED_IN,
    UPTIME_MONITOR,
    IgnoreReason,
    ignore_reason_of_destination,
)
from .uptime_monitors import is_monitor


def ignore_reason_of_headers(headers: Iterable[tuple[str, str]]) -> IgnoreReason | None:
    """Why a request with these headers does not count; None if they are no reason.

    Args:
        headers: with names in lower case.
    """
    accept = agent = destination = ""
    is_prefetch = False
    for name, value in headers:
        if name == "accept":
            accept = f"{accept},{value}" if accept else value
        elif name == "user-agent":
            agent = f"{agent},{value}" if agent else value
        elif name == "sec-fetch-dest":
            destination = value
        elif name == "cookie":
            if value:
                return COOKIE
        elif name in PREFETCH_HEADERS:
            is_prefetch = True
        elif (rule := rule_for_header(name)) is not None and rule_applies(rule, name, value):
            return rule.reason
    if destination and destination != "document" and not is_prefetch:
        return ignore_reason_of_destination(destination)
    if agent and is_monitor(agent):
        return UPTIME_MONITOR
    return ignore_reason_of_accept(accept) if accept else None


def ignore_reason_of_environ(environ: Mapping[str, Any], original: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its environ holds besides the headers it came with; None if nothing does.

    Args:
        environ: as it is now. The app may have changed it; some apps put the user into it.
        original: a copy of the environ as it was when the request came.
    """
    for key, value in original.items():
        reason = None if str(key).startswith("HTTP_") else _reason_of_item(key, value)
        if reason is None and key not in environ:
            reason = _reason_of_item(key, "removed by the app")
        if reason is not None:
            return reason
    for key, value in environ.items():
        if original.get(key) is not value and (reason := _reason_of_item(key, value)) is not None:
            return reason
    return None


def _reason_of_item(key: Any, value: Any) -> IgnoreReason | None:
    if not isinstance(key, str):
        return None
    is_header = key.startswith("HTTP_")
    rule = rule_for_header(key[5:]) if is_header else rule_for_environ_key(key)
    if rule is None:
        return None
    applies = (
        rule_applies(rule, key, str(value)) if is_header or isinstance(value, str) else is_authenticated_user(value)
    )
    return rule.reason if applies else None


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


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # raised by the app's own code: the page is taken to be private
        return True
