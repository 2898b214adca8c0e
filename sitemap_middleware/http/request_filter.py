"""Decides whether a request counts as evidence: whether an anonymous crawler could have sent it for a whole page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from werkzeug.http import parse_accept_header

from .visitor_headers import (
    PREFETCH_HEADERS,
    IgnoreReason,
    ignore_reason_of_environ_key,
    ignore_reason_of_header,
    printable,
)

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

COOKIE: Final = IgnoreReason("credentials", "carried cookie")
"""Of a request with a Cookie header: the most frequent reason by far."""

FOREIGN_HOST: Final = IgnoreReason("host", "was for a Host that is not the site's own")

MAX_ACCEPT_CHARS: Final = 512
"""Characters of the longest Accept header that is parsed. No crawler sends a longer one."""

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
"""The value of a parameter. Werkzeug before 2.3 takes a comma in it for the end of the media type."""

MAX_AGENT_CHARS: Final = 300
"""Characters of a User-Agent that are searched."""

_MONITOR_WORDS: Final = (
    *("googlehc/", "google-hc", "kube-probe", "envoy/hc", "consul health", "load balancer agent"),
    *("alwayson", "uptime", "pingdom", "statuscake", "site24x7", "newrelicpinger", "freshping", "hetrixtools"),
    *("updown.io", "check_http", "nagios", "icinga", "zabbix", "cloudflare-traffic-manager", "jetmon"),
)
_MONITOR_PREFIXES: Final = ("prometheus/", "monit/", "haproxy", "render/", "checkly", "gatus")
_MONITOR_PATTERN: Final = re.compile(r"health[-_ ]?(?:check|probe)|blackbox[-_ ]exporter|datadog/?[ ]?synthetics")
"""Parts of the User-Agents of load balancers, orchestrators and uptime monitors, in lower case. They request the same
path day and night, whether it is a page or not."""


def ignore_reason_of_line(method: str, *, query: bool) -> IgnoreReason | None:
    """Why a request with this method, and perhaps a query string, does not count; None if it does."""
    if method != "GET":
        return IgnoreReason("method", "was no GET")
    return IgnoreReason("query", "had a query string") if query else None


def ignore_reason_of_headers(headers: Iterable[tuple[str, str]]) -> IgnoreReason | None:
    """Why a request with these headers, whose names are in lower case, does not count; None if they are no reason."""
    accept = agent = destination = ""
    is_prefetch = has_host = False
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
        elif name == "host":
            if has_host:
                return IgnoreReason("host", "named two hosts")
            has_host = True
        elif (reason := ignore_reason_of_header(name, value)) is not None:
            return reason
    if destination and destination != "document" and not is_prefetch:
        shown = printable(destination)
        return IgnoreReason("partial", f"was sent by a page for a part of it: Sec-Fetch-Dest is {shown!r}")
    if agent and _is_monitor(agent[:MAX_AGENT_CHARS].lower()):
        return IgnoreReason("monitor", "was of a health check or an uptime monitor, by its User-Agent")
    return ignore_reason_of_accept(accept) if accept else None


def ignore_reason_of_accept(accept: str) -> IgnoreReason | None:
    """Why a request with this Accept header does not count; None if it wants HTML at least as much as anything else.

    At the same quality, a type that is named is wanted more than HTML that only a
    wildcard covers: `application/json, */*` wants JSON.
    """
    if len(accept) <= MAX_ACCEPT_CHARS and _prefers_html(accept):
        return None
    return IgnoreReason("accept", f"asked for {printable(accept)!r}, not for HTML")


def ignore_reason_of_environ(environ: Mapping[str, Any], original: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its environ holds besides the headers it came with; None if nothing does.

    `original` is a copy from before the app, which may have changed it: some apps put the user into it.
    """
    items = [(key, value) for key, value in original.items() if not str(key).startswith("HTTP_")]
    items += [(key, "removed by the app") for key in original if key not in environ]
    items += [(key, value) for key, value in environ.items() if original.get(key) is not value]
    reasons = (_ignore_reason_of_item(key, value) for key, value in items)
    return next((reason for reason in reasons if reason is not None), None)


def _ignore_reason_of_item(key: Any, value: Any) -> IgnoreReason | None:
    if not isinstance(key, str):
        return None
    if key.startswith("HTTP_"):
        return ignore_reason_of_header(key[5:], str(value))
    if isinstance(value, str):
        return ignore_reason_of_environ_key(key, value)
    reason = ignore_reason_of_environ_key(key, "an object")
    return reason if reason is not None and is_authenticated_user(value) else None


def ignore_reason_of_scope(scope: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its scope holds besides headers; None if that is not a reason.

    Apps, and middleware outside this one, put the user who is signed in into the scope.
    """
    if "user" in scope and is_authenticated_user(scope["user"]):
        return IgnoreReason("credentials", "came from a visitor who is signed in")
    tls = (scope.get("extensions") or {}).get("tls") or {}
    if tls.get("client_cert_chain") or tls.get("client_cert_name"):
        return IgnoreReason("credentials", "came with a client certificate")
    return None


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # raised by the app's own code: the page is taken to be private
        return True


@lru_cache(500)
def _is_monitor(agent: str) -> bool:
    is_named = agent.startswith(_MONITOR_PREFIXES) or any(word in agent for word in _MONITOR_WORDS)
    return is_named or _MONITOR_PATTERN.search(agent) is not None


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
