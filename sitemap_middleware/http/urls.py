"""Validates and normalizes URLs and hosts. Requests are hostile input: nothing of them reaches a loc unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, quote, unquote_to_bytes, urljoin, urlsplit
from zlib import crc32

import idna

MIN_LOC_CHARS: Final = 12
"""The minimum of the official schema."""

MAX_LOC_CHARS: Final = 2047
""""Less than 2,048 characters" (Sitemap 0.9, `<loc>`)."""

_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;"))

UNREACHABLE_REASON: Final = "no loc can be written that would lead to this path again"
LOC_LENGTH_REASON: Final = "its loc would have 2,048 characters or more, or less than 12"

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LABEL: Final = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST: Final = re.compile(
    rf"(?P<name>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?P<root>\.)?(?::(?P<port>[0-9]{{1,5}}))?"
)
_LOOPBACK: Final = re.compile(
    r"(?:localhost|.+\.localhost|testserver|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|\[::1\])(?::[0-9]+)?"
)
CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f\ufffd\ud800-\udfff]")
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+/?")
"""Paths that need no encoding, as most: to see that is quicker than to encode one."""
_DOT_SEGMENT: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
SAFE_PATH_CHARS: Final = "/:@!$&'()*+,;=~-._"
"""Characters that a path may contain unencoded, besides letters and digits (RFC 3986, section 3.3)."""
_SAFE_URL_CHARS: Final = SAFE_PATH_CHARS + "%?"
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_TWICE: Final = re.compile(r"&(?:amp;)+")


def normal_host(raw: str, scheme: str) -> str | None:
    """Normalize a Host header: lower case, without a default port. None if it is not a valid host."""
    if len(raw) > 255 or not (match := _HOST.fullmatch(raw.lower())):
        return None
    if match["port"] is None:
        return match["name"]
    port = int(match["port"])
    if not 0 < port < 65_536:
        return None
    return match["name"] if port == DEFAULT_PORTS.get(scheme) else f"{match['name']}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a normalized host is this machine, or the name that test clients use for it."""
    return _LOOPBACK.fullmatch(host) is not None


def is_same_site_host(host: str, other: str) -> bool:
    """Whether two normalized hosts are equal, apart from the port and a leading `www.`."""
    return bare_host(host).removeprefix("www.") == bare_host(other).removeprefix("www.")


def bare_host(host: str) -> str:
    """Remove the port of a host."""
    return re.sub(r":[0-9]+$", "", host)


def is_host_allowed(host: str, patterns: Iterable[str]) -> bool:
    """Whether a normalized host matches a pattern.

    ``*.example.com`` matches the subdomains (Starlette), ``.example.com`` the domain itself
    as well (Django, Werkzeug).
    """
    name = bare_host(host)
    for pattern in patterns:
        if pattern.removeprefix(".") in (host, name):
            return True
        suffix = pattern.removeprefix("*")
        if suffix.startswith(".") and (name.endswith(suffix) or host.endswith(suffix)):
            return True
    return False


def wildcard_of(pattern: str) -> str | None:
    """The pattern ``*.example.com`` for that of the same subdomains; None if a pattern names one host."""
    return f"*{pattern.removeprefix('*')}" if pattern.startswith((".", "*.")) else None


def ascii_host(netloc: str) -> str:
    """Convert an internationalised host to ASCII, as browsers do (IDNA 2008). An invalid one is returned unchanged."""
    if netloc.isascii():
        return netloc
    host, port = bare_host(netloc), netloc[len(bare_host(netloc)) :]
    try:
        return idna.encode(host, uts46=True).decode("ascii") + port
    except idna.IDNAError:
        return netloc


def root_of(raw: str) -> str | None:
    """A decoded root path as it is written in a loc; None if no loc can express it."""
    root = raw.rstrip("/")
    return quote_path(root if root.startswith("/") else f"/{root}") if root else ""


def quote_path(path: str) -> str | None:
    """Percent-encode a decoded path, so that a request for it reaches the same path.

    None if that is impossible: for control characters, for bytes that were not UTF-8, and for dot segments, which
    clients remove (RFC 3986, section 5.2.4).
    """
    if _PLAIN_PATH.fullmatch(path):
        return path
    if not path.startswith("/") or CONTROL_CHARACTERS.search(path) or _DOT_SEGMENT.search(path):
        return None
    return quote(path, safe=SAFE_PATH_CHARS)


def has_loc_length(loc: str) -> bool:
    """Whether a loc is neither too long, as it is written in XML, nor too short."""
    return len(loc) >= MIN_LOC_CHARS and len(with_entities(loc)) <= MAX_LOC_CHARS


def with_entities(url: str) -> str:
    """A URL as it is written in XML. `xml.sax.saxutils.escape` would leave quotes, which the protocol wants escaped."""
    for character, entity in _ENTITIES:
        if character in url:
            url = url.replace(character, entity)
    return url


def is_page_url(loc: str, reference: str) -> bool:
    """Whether a URL in the page at `loc`, which may be relative, is a valid http or https URL."""
    return resolved_url(loc, reference) is not None


def absolute_url(base: str, reference: str) -> str | None:
    """A URL that may be relative to another, as a sitemap may name it: encoded, absolute, and without its fragment.

    None if it is not one of http or https, or too long. Text that was escaped for HTML twice is read as it was meant.
    """
    resolved = resolved_url(base, _ESCAPED_TWICE.sub("&", reference))
    if resolved is None:
        return None
    parts, host = resolved
    try:
        path, query = (
            _STRAY_PERCENT.sub("%25", quote(part, safe=_SAFE_URL_CHARS)) for part in (parts.path, parts.query)
        )
    except UnicodeEncodeError:  # half of a surrogate pair, from JSON
        return None
    url = f"{parts.scheme}://{host}{path or '/'}{query and '?'}{query}"
    return url if len(with_entities(url)) <= MAX_LOC_CHARS else None


def canonical_hint(path: str, canonical: str) -> str:
    """How to fix a page whose canonical link is another URL. `path` is percent-encoded."""
    resolved = resolved_url("", canonical)
    if resolved is not None and normalize_path(resolved[0].path).endswith(normalize_path(path)):
        return (
            f'if that is the page itself, give SitemapMiddleware base_url="{resolved[0].scheme}://{resolved[1]}",'
            " and let the server set the root path if its path is longer"
        )
    return "if that is not meant, correct the canonical links of the app"


def is_same_path(loc: str, reference: str) -> bool:
    """Whether a redirect keeps the path and only changes scheme or host, such as ``http`` to ``https``."""
    resolved = resolved_url(loc, reference)
    if resolved is None:
        return False
    return normalize_path(urlsplit(loc).path) == normalize_path(resolved[0].path) and not resolved[0].query


def resolved_url(base: str, reference: str) -> tuple[SplitResult, str] | None:
    """A URL, which may be relative to another, and its normalized host; None if it is no valid http or https URL."""
    try:
        parts = urlsplit(urljoin(base, reference.strip()))
        host = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError:
        return None
    return None if host is None or parts.scheme not in DEFAULT_PORTS else (parts, host)


def normalize_path(path: str) -> str:
    """Normalize the percent-encoding of a path (RFC 3986, section 6.2.2.2)."""
    return quote(unquote_to_bytes(path), safe=SAFE_PATH_CHARS) or "/"


def path_digest(path: str) -> str:
    """A digest of a percent-encoded path, 32 bits as 8 characters. Its last slash does not count."""
    normal = path if _PLAIN_PATH.fullmatch(path) else normalize_path(path)
    return f"{crc32(normal.rstrip('/').encode()):08x}"
