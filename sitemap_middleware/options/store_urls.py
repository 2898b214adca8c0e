"""The URLs of stores: read so that a password in them is never shown."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote

_HOST_AND_PORT = r"(?:\[[0-9a-fA-F:.%]+\]|[\w.~%-]+)(?::[0-9]{0,5})?|:[0-9]{1,5}|"
_STORE_URL: Final = re.compile(
    rf"(?:(?P<user>[^@/?#\s]*)@)?(?P<shown>(?:{_HOST_AND_PORT})(?:,(?:{_HOST_AND_PORT}))*(?:/[^@?#=\s]*)?)(?:\?(?P<query>[^@#\s]*))?"
)
"""What follows `engine://` in the URL of a store on a server: each part ends where every parser sees its end."""
_ENGINE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}")
_PLAIN_TEXT: Final = re.compile(r"[\w./\\-]*(?::[0-9]{1,5}(?![^/]))?")
_USER_INFO: Final = re.compile(r"(?<=://)[^?]*?(?::(?P<password>.*))?@", re.DOTALL)


def without_password(url: object) -> str:
    """The URL of a store as people may see it: without user, password and query, which may contain a password, too.

    What cannot be told from a password is left out: all that follows the scheme, if the URL is malformed.
    """
    if not isinstance(url, str):
        return f"<{type(url).__name__}>"
    scheme, separator, rest = url.partition("://")
    if not separator:
        shown = (_PLAIN_TEXT.match(url) or [""])[0]
        return url if shown == url else f"{shown}***"
    if scheme in ("sqlite", "memory") and "@" not in rest:
        return url
    matched = _STORE_URL.fullmatch(rest)
    if matched is None or _ENGINE.fullmatch(scheme) is None:
        return f"{(_ENGINE.match(scheme) or [''])[0]}://***"
    user, shown_url, query = matched.group("user", "shown", "query")
    return f"{scheme}://{'***@' if user is not None else ''}{shown_url}{'?***' if query else ''}"


def check_store_url(url: str) -> None:
    """Raise ValueError if parsers may disagree on where the password of a store's URL ends. It is not repeated."""
    if _STORE_URL.fullmatch(url.partition("://")[2]) is None:
        raise ValueError(
            "is not a URL of the form engine://user:password@host:port/name; in a user or password, write"
            " @ as %40, / as %2F, # as %23, ? as %3F"
        )


def hide_passwords(message: str, url: str) -> str:
    """A message without the passwords of a URL, which a driver may quote."""
    match, (_, _, query) = _USER_INFO.search(url), url.partition("?")
    secrets = [match["password"] or ""] if match else []
    secrets += [value for name, value in parse_qsl(query) if "password" in name]
    for secret in filter(None, {*secrets, *map(unquote, secrets)}):
        message = message.replace(secret, "***")
    return message
