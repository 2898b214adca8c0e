"""Decides whether a request to a WSGI app counts as evidence, by its environ."""

from __future__ import annotations

from typing import Any, Final, Protocol

from .accept_header import ignore_reason_of_accept, remember_harmless
from .header_rules import HOST_HEADERS, PREFETCH_HEADERS, HeaderRuleCache, rule_applies, rule_for_environ_key
from .reasons import UPTIME_MONITOR, IgnoreReason, ignore_reason_of_destination
from .sign_in import is_authenticated_user
from .uptime_monitors import is_monitor

harmless_agents: Final[set[str]] = set()
harmless_accepts: Final[set[str]] = set()
"""Values of User-Agent and Accept that do not count against a request."""

_KEYS_READ_BY_VALUE: Final = frozenset({"HTTP_ACCEPT", "HTTP_SEC_FETCH_DEST"})
_PREFETCH_KEYS: Final = tuple(f"HTTP_{name.upper().replace('-', '_')}" for name in PREFETCH_HEADERS)
rule_cache: Final = HeaderRuleCache([f"HTTP_{name.upper().replace('-', '_')}" for name in HOST_HEADERS])


class RoutedRequest(Protocol):
    """A request with headers that may state the requested URL."""

    def ignore_reason_of_routing(self, items: tuple[tuple[str, Any], ...], /) -> IgnoreReason | None:
        """Why the request does not count, by these items of the environ alone; None if they are no reason."""


def ignore_reason_of_environ(
    environ: dict[str, Any],
    original: dict[str, Any],
    request: RoutedRequest | None = None,
) -> IgnoreReason | None:
    """Why a request with this environ does not count; None if it does.

    Args:
        environ: as it is now. The app may have changed it; some apps put the user into it.
        original: a copy of the environ as it was when the request came.
        request: its method is called with the items of the headers that state the requested URL, if there are any and
            nothing else is a reason. An object, because Python makes a new one for a bound method.
    """
    routing: list[tuple[str, Any]] | None = None
    harmless, get = rule_cache.harmless, environ.get
    # A dict appends new keys, so the size and the last key show whether the app has added or removed any.
    is_changed = len(environ) != len(original) or next(reversed(environ), None) != next(reversed(original), None)
    if not harmless.issuperset(original) or (is_changed and not harmless.issuperset(environ)):
        if not is_changed and rule_cache.known.issuperset(original):
            routing = [(key, environ[key]) for key in environ.keys() & rule_cache.routing]
        else:
            routing = []
            for key in {*original, *environ}.difference(harmless):
                if key not in rule_cache.known and (
                    reason := _ignore_reason_of_key(key, get(key, "removed by the app"))
                    or _ignore_reason_of_key(key, original.get(key, ""))  # the app may have blanked it
                ):
                    return reason
                if key in rule_cache.routing and key in environ:
                    routing.append((key, environ[key]))
    destination = get("HTTP_SEC_FETCH_DEST", "document")
    if destination != "document" and destination and not any(key in environ for key in _PREFETCH_KEYS):
        return ignore_reason_of_destination(destination)
    agent = get("HTTP_USER_AGENT", "")
    if agent not in harmless_agents:
        if agent and is_monitor(agent):
            return UPTIME_MONITOR
        remember_harmless(harmless_agents, agent, len(agent))
    accept = original.get("HTTP_ACCEPT", "")
    if accept not in harmless_accepts:
        if accept and (reason := ignore_reason_of_accept(accept)):
            return reason
        remember_harmless(harmless_accepts, accept, len(accept))
    return request.ignore_reason_of_routing(tuple(routing)) if routing and request is not None else None


def _ignore_reason_of_key(key: Any, value: Any) -> IgnoreReason | None:
    """Why a request with this item in its environ does not count; None if the item is not a reason."""
    if not isinstance(key, str):
        return None
    if key.startswith("HTTP_") and key not in _KEYS_READ_BY_VALUE:
        rule = rule_cache.find(key, key.removeprefix("HTTP_"))
        return rule.reason if rule is not None and rule_applies(rule, key, str(value)) else None
    rule = None if key.startswith("HTTP_") else rule_for_environ_key(key)
    if rule is None:
        rule_cache.add(key, None)
        return None
    applies = rule_applies(rule, key, value) if isinstance(value, str) else is_authenticated_user(value)
    return rule.reason if applies else None
