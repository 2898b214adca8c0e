"""The URL of a Redis store: what redis-py takes, and the option `prefix` of this package."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

DEFAULT_KEY_PREFIX: Final = "sitemap"
"""Prefix of the names of all keys."""

_OWN_OPTIONS: Final = {"prefix"}
_CLIENT_OPTIONS: Final = {
    *("db", "username", "password", "client_name", "protocol", "max_connections", "health_check_interval"),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive"),
}
"""Options of redis-py that a URL may contain. Those that begin with `ssl_` are allowed as well."""


def split_url(url: str) -> tuple[str, str]:
    """The URL for redis-py, and the prefix of our keys. Raises ValueError, whose message shows no password."""
    base, _, query = url.partition("?")
    try:
        urlsplit(url).port  # noqa: B018 (it raises)
    except ValueError:
        raise ValueError("has a port that is not a number; in a password, write @ as %40, / as %2F, # as %23") from None
    options = parse_qsl(query, keep_blank_values=True)
    for name, _ in options:
        if name not in _OWN_OPTIONS | _CLIENT_OPTIONS and not name.startswith("ssl_"):
            known = ", ".join(sorted(_OWN_OPTIONS | _CLIENT_OPTIONS))
            raise ValueError(f"has an unknown option {name!r}; the options are {known} and those of TLS, ssl_...")
    prefix = dict(options).get("prefix", DEFAULT_KEY_PREFIX)
    if not prefix or set(prefix) & set("{}"):
        raise ValueError("has a prefix that is empty or contains a brace")
    rest = urlencode([(name, value) for name, value in options if name not in _OWN_OPTIONS])
    return f"{base}?{rest}", prefix
