"""URLs and hosts: what a loc may be made of. Pure text work; every part of it is hostile until checked here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urljoin, urlsplit

from .exceptions import OptionError
from .models import Site

MIN_LOC_CHARS: Final = 12
"""Characters: the official schema takes none that is shorter."""

MAX_LOC_CHARS: Final = 2047
"""Characters: "less than 2,048" (Sitemap 0.9, `<loc>`)."""

UNREACHABLE_REASON: Final = "no loc can be written that would lead to this path again"
LOC_LENGTH_REASON: Final = "its loc would have 2,048 characters or more, or less than 12"

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LABEL: Final = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST: Final = re.compile(
    rf"(?P<name>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?P<root>\.)?(?::(?P<port>[0-9]{{1,5}}))?"
)
_LOOPBACK: Final = re.compile(
    r"(?:localhost|.+\.localhost|testserver|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|\[::1\])(?::[0-9]+)?"
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ufffd\ud800-\udfff]")
_DOT_SEGMENT: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
_CAMPAIGN_PARAMETER: Final = re.compile(r"utm_|(?:gclid|fbclid|msclkid|dclid)$")
_SAFE_PATH_CHARS: Final = "/:@!$&'()*+,;=~-._"
"""What RFC 3986, section 3.3, lets stand in a path beside letters and digits."""


def normal_host(raw: str, scheme: str) -> str | None:
    """A Host header in one spelling (lower case, no default port), or None where it is no host at all."""
    if len(raw) > 255 or not (match := _HOST.fullmatch(raw.lower())):
        return None
    if match["port"] is None:
        return match["name"]
    port = int(match["port"])
    if not 0 < port < 65_536:
        return None
    return match["name"] if port == _DEFAULT_PORTS.get(scheme) else f"{match['name']}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a normal host can only be this machine, or a test client's stand-in for it."""
    return _LOOPBACK.fullmatch(host) is not None


def is_same_site_host(host: str, other: str) -> bool:
    """Whether two normal hosts are one site's: the same but for the port and a www in front."""
    return bare_host(host).removeprefix("www.") == bare_host(other).removeprefix("www.")


def is_other_host(site: Site, asked: str, scheme: str) -> bool:
    """Whether a Host that was asked for is a host, and another one than the site's."""
    return normal_host(asked, scheme) not in (None, site.host)


def is_site_host(site: Site, asked: str, host: str) -> bool:
    """Whether a host that a proxy tells is the site's, or the Host that was asked for; its port may be left off."""
    for scheme in (site.scheme, "http", "https"):
        normal = normal_host(host, scheme)
        if normal is not None and (normal == site.host or normal in (normal_host(asked, scheme), bare_host(asked))):
            return True
        if normal is not None and bare_host(normal) == normal and is_same_site_host(normal, site.host):
            return True
    return False


def bare_host(host: str) -> str:
    """A host without its port."""
    return re.sub(r":[0-9]+$", "", host)


def is_host_allowed(host: str, patterns: Iterable[str]) -> bool:
    """Whether a normal host is one of these; ``*.example.com`` and ``.example.com`` stand for subdomains."""
    name = bare_host(host)
    for pattern in patterns:
        if pattern in (host, name):
            return True
        suffix = pattern.removeprefix("*")
        if suffix.startswith(".") and (name.endswith(suffix) or host.endswith(suffix)):
            return True
    return False


def parse_base_url(base_url: object, place: str) -> Site:
    """The site that a base_url names.

    Internationalised hosts are written in their ASCII form (RFC 5891). A path is
    kept as the site's root. Raises `OptionError` naming the value, the place it
    was given and the cure.
    """
    cure = 'give scheme and host alone, such as "https://example.com"'
    if not isinstance(base_url, str):
        raise OptionError(f"{place}={base_url!r} is not a string; {cure}")
    shown = f"***@{base_url.rpartition('@')[2]}" if "@" in base_url else base_url

    def refuse(reason: str) -> OptionError:
        return OptionError(f"{place}={shown!r} {reason}; {cure}")

    if _CONTROL.search(base_url) or base_url != base_url.strip() or "\\" in base_url:
        raise refuse("holds a character that no URL may hold")
    try:
        parts = urlsplit(base_url)
        netloc, host, _ = parts.netloc, parts.hostname, parts.port
    except ValueError as error:
        raise refuse(f"is no URL ({error})") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise refuse("does not begin with http:// or https://")
    if "@" in netloc:
        raise refuse("holds a user name or a password, which a sitemap would publish")
    if "?" in base_url or "#" in base_url:
        raise refuse("holds a query or a fragment, which no base can have")
    if not host:
        raise refuse("names no host")
    normal = normal_host(ascii_host(netloc), parts.scheme)
    if normal is None:
        raise refuse(f"names a host, {netloc!r}, that is none")
    return Site(parts.scheme, normal, quote(parts.path.rstrip("/"), safe=_SAFE_PATH_CHARS + "%"), is_loopback(normal))


def ascii_host(netloc: str) -> str:
    """An internationalised host in the form that DNS and a loc take (IDNA 2008, as browsers do); an odd one as is."""
    if netloc.isascii():
        return netloc
    import idna

    host, port = bare_host(netloc), netloc[len(bare_host(netloc)) :]
    try:
        return idna.encode(host, uts46=True).decode("ascii") + port
    except idna.IDNAError:
        return netloc


def root_of(raw: str) -> str | None:
    """A root path as it stands in a loc, or None where it cannot stand in one."""
    root = raw.rstrip("/")
    if not root:
        return ""
    return quote_path(root if root.startswith("/") else f"/{root}")


def quote_path(path: str) -> str | None:
    """A decoded path, percent-encoded so that a crawler who asks for it reaches this very path again.

    None where no loc can do that: control characters, bytes that were not UTF-8,
    dot segments (a client folds them away, RFC 3986, section 5.2.4).
    """
    if not path.startswith("/") or _CONTROL.search(path) or _DOT_SEGMENT.search(path):
        return None
    return quote(path, safe=_SAFE_PATH_CHARS)


def loc_of(site: Site, path: str) -> str | None:
    """The loc of a percent-encoded path, or None where it would be 2,048 characters or more, or too short."""
    loc = site.base_url + path
    return loc if MIN_LOC_CHARS <= len(loc) <= MAX_LOC_CHARS else None


def toggle_trailing_slash(path: str) -> str:
    """The same path with a slash at its end, or without."""
    return path[:-1] if path.endswith("/") else f"{path}/"


def has_slash_like(path: str, template: str) -> bool:
    """Whether a path ends with a slash where the template of its route does."""
    return path.endswith("/") == template.endswith("/")


def is_same_page(site: Site, loc: str, reference: str, asked: str | bytes = "") -> bool:
    """Whether a URL, perhaps a relative one, that a page at `loc` names is the page itself.

    It is if it has the page's path, on the site's host or on the one that was asked
    for. Scheme, port, a `www.` in front, the spelling of percent-encoding, a fragment
    and parameters of campaigns make no difference, nor does a root path that was left
    off. A slash at the end does, and so does any other query. On a development machine
    the host is not compared, since pages name their public one.

    Args:
        site: the site.
        loc: of the page.
        reference: the URL that it names.
        asked: the Host of the request, as it came.
    """
    try:
        own, other = urlsplit(loc), urlsplit(urljoin(loc, reference.strip()))
        host = normal_host(ascii_host(other.netloc), other.scheme)
    except ValueError:
        return False
    path = normalize_path(own.path)
    if normalize_path(other.path) not in (path, path.removeprefix(site.root) or "/") or not _is_campaign(other.query):
        return False
    if other.scheme not in _DEFAULT_PORTS or host is None:
        return False
    if site.loopback or is_same_site_host(host, site.host):
        return True
    named = normal_host(asked if isinstance(asked, str) else asked.decode("latin-1"), other.scheme)
    return named is not None and is_same_site_host(host, named)


def is_page_url(loc: str, reference: str) -> bool:
    """Whether a URL, perhaps a relative one, that a page at `loc` names could be a page's: not mailto: or malformed."""
    try:
        other = urlsplit(urljoin(loc, reference.strip()))
        return other.scheme in _DEFAULT_PORTS and normal_host(ascii_host(other.netloc), other.scheme) is not None
    except ValueError:
        return False


def canonical_hint(path: str, named: str) -> str:
    """What to do about a page of this percent-encoded path that names another URL as canonical."""
    try:
        parts = urlsplit(named)
        host = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError:
        host = None
    if (
        host is not None
        and parts.scheme in _DEFAULT_PORTS
        and normalize_path(parts.path).endswith(normalize_path(path))
    ):
        return (
            f'if that is the page itself, give SitemapMiddleware base_url="{parts.scheme}://{host}",'
            " and let the server set the root path if its path is longer"
        )
    return "if that is not meant, correct the canonical links of the app"


def _is_campaign(query: str) -> bool:
    """Whether a query only tells where a visitor came from."""
    return all(_CAMPAIGN_PARAMETER.match(name) for name, _ in parse_qsl(query, keep_blank_values=True))


def is_same_path(loc: str, reference: str) -> bool:
    """Whether a redirect only moves the same path to another scheme or host (``http`` to ``https``, say)."""
    try:
        own, other = urlsplit(loc), urlsplit(urljoin(loc, reference.strip()))
    except ValueError:
        return False
    return normalize_path(own.path) == normalize_path(other.path) and not other.query


def redirect_target(site: Site, scheme: str, host: str, path: str, target: str) -> tuple[str, str, str] | None:
    """Scheme, normal host and decoded path that a redirect leads to; None if it leads to another host than the site's.

    Args:
        site: the site.
        scheme: that was asked with; and so on.
        host: a normal one.
        path: decoded.
        target: the Location.
    """
    try:
        parts = urlsplit(urljoin(f"{scheme}://{host}{quote(path)}", target.strip()))
        found = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError:
        return None
    if found is None or parts.scheme not in _DEFAULT_PORTS or parts.query:
        return None
    if found != host and not is_same_site_host(found, site.host):
        return None
    return parts.scheme, found, unquote(parts.path) or "/"


def normalize_path(path: str) -> str:
    """A path with percent-encoding in one spelling (RFC 3986, section 6.2.2.2)."""
    return quote(unquote_to_bytes(path), safe=_SAFE_PATH_CHARS) or "/"
