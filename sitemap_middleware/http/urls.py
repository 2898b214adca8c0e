"""Validates and normalizes URLs and hosts. Requests are hostile input: nothing of them reaches a loc unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, unquote_to_bytes, urljoin, urlsplit
from zlib import crc32

import idna

from ..exceptions import OptionError
from ..models import Site

MIN_LOC_CHARS: Final = 12
"""The minimum of the official schema."""

MAX_LOC_CHARS: Final = 2047
""""Less than 2,048 characters" (Sitemap 0.9, `<loc>`)."""

_ENTITIES: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;"))

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
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+/?")
"""Paths that need no encoding, as most: to see that is quicker than to encode one."""
_DOT_SEGMENT: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
_CAMPAIGN_PARAMETER: Final = re.compile(r"utm_|(?:gclid|fbclid|msclkid|dclid)$")
_SAFE_PATH_CHARS: Final = "/:@!$&'()*+,;=~-._"
"""Characters that a path may contain unencoded, besides letters and digits (RFC 3986, section 3.3)."""
_SAFE_URL_CHARS: Final = _SAFE_PATH_CHARS + "%?"
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_TWICE: Final = re.compile(r"&(?:amp;)+")

_HOST_AND_PORT = r"(?:\[[0-9a-fA-F:.%]+\]|[\w.~%-]+)(?::[0-9]{0,5})?|:[0-9]{1,5}|"
_STORE_URL: Final = re.compile(
    rf"(?:(?P<user>[^@/?#\s]*)@)?(?P<shown>(?:{_HOST_AND_PORT})(?:,(?:{_HOST_AND_PORT}))*(?:/[^@?#=\s]*)?)(?:\?(?P<query>[^@#\s]*))?"
)
"""What follows `engine://` in the URL of a store on a server: each part ends where every parser sees its end."""
_ENGINE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}")
_PLAIN_TEXT: Final = re.compile(r"[\w./\\-]*(?::[0-9]{1,5}(?![^/]))?")


def normal_host(raw: str, scheme: str) -> str | None:
    """Normalize a Host header: lower case, without a default port. None if it is not a valid host."""
    if len(raw) > 255 or not (match := _HOST.fullmatch(raw.lower())):
        return None
    if match["port"] is None:
        return match["name"]
    port = int(match["port"])
    if not 0 < port < 65_536:
        return None
    return match["name"] if port == _DEFAULT_PORTS.get(scheme) else f"{match['name']}:{port}"


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


def parse_base_url(base_url: object, place: str) -> Site:
    """Parse a base_url. An internationalised host is converted to ASCII (RFC 5891); a path becomes the root path."""
    fix = 'give scheme and host alone, such as "https://example.com"'
    if not isinstance(base_url, str):
        raise OptionError(f"{place}={base_url!r} is not a string; {fix}")
    shown = f"***@{base_url.rpartition('@')[2]}" if "@" in base_url else base_url

    def refuse(reason: str) -> OptionError:
        return OptionError(f"{place}={shown!r} {reason}; {fix}")

    if _CONTROL.search(base_url) or base_url != base_url.strip() or "\\" in base_url:
        raise refuse("contains a character that is not allowed in URLs")
    try:
        parts = urlsplit(base_url)
        netloc, host, _ = parts.netloc, parts.hostname, parts.port
    except ValueError as error:
        raise refuse(f"is not a URL ({error})") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise refuse("does not begin with http:// or https://")
    if "@" in netloc:
        raise refuse("contains a user name or password, which the sitemap would publish")
    if "?" in base_url or "#" in base_url:
        raise refuse("contains a query or a fragment")
    if not host:
        raise refuse("has no host")
    normal = normal_host(ascii_host(netloc), parts.scheme)
    if normal is None:
        raise refuse(f"has an invalid host, {netloc!r}")
    return Site(parts.scheme, normal, quote(parts.path.rstrip("/"), safe=_SAFE_PATH_CHARS + "%"), is_loopback(normal))


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
    if not path.startswith("/") or _CONTROL.search(path) or _DOT_SEGMENT.search(path):
        return None
    return quote(path, safe=_SAFE_PATH_CHARS)


def loc_of(site: Site, path: str) -> str | None:
    """The loc of a percent-encoded path; None if it would be too long, as it is written in XML, or too short."""
    loc = site.base_url + path
    return loc if _has_loc_length(loc) else None


def _has_loc_length(loc: str) -> bool:
    return len(loc) >= MIN_LOC_CHARS and len(with_entities(loc)) <= MAX_LOC_CHARS


def with_entities(url: str) -> str:
    """A URL as it is written in XML. `xml.sax.saxutils.escape` would leave quotes, which the protocol wants escaped."""
    for character, entity in _ENTITIES:
        if character in url:
            url = url.replace(character, entity)
    return url


def resolve_loc(site: Site, given: str) -> tuple[str, str]:
    """The path below the site's root, and the loc, of a page that the developer names.

    It is named by its URL, or by its path as in a link: from the root of the host, percent-encoded or not. The path
    returned is percent-encoded; it is the loc itself if the page is not below the site's root.

    Raises:
        ValueError: it is not a page of this host.
    """
    origin = f"{site.scheme}://{site.host}"
    fix = f'give a path such as "/about", or a URL of {origin}'
    if not given.startswith(("/", "http://", "https://")):
        raise ValueError(f"{given!r} is neither a path nor a URL; {fix}")
    if _CONTROL.search(given):
        raise ValueError(f"{given!r} contains a character that is not allowed in URLs; {fix}")
    try:
        names_host = given.startswith("/") or bool(urlsplit(given).netloc)
        parts = urlsplit(urljoin(f"{origin}/", given))
        host = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError as error:
        raise ValueError(f"{given!r} is not a URL ({error}); {fix}") from None
    if not names_host:
        raise ValueError(f"{given!r} is a URL without a host; {fix}")
    if host != site.host or parts.scheme != site.scheme:
        raise ValueError(f"{given!r} is on another host; a sitemap lists pages of its own host only, so {fix}")
    path = quote_path(unquote(parts.path or "/"))
    if path is None or parts.query:
        raise ValueError(f"{given!r}: {'it has a query string' if parts.query else UNREACHABLE_REASON}")
    loc = f"{origin}{path}"
    if not _has_loc_length(loc):
        raise ValueError(f"{given!r:.40}: {LOC_LENGTH_REASON}")
    if not f"{path}/".startswith(f"{site.root}/"):
        return loc, loc
    return path.removeprefix(site.root) or "/", loc


def is_same_page(site: Site, loc: str, reference: str, request_host: str = "") -> bool:
    """Whether a URL in a page, such as its canonical link, is the URL of the page itself.

    The path must be equal, and the host that of the site or of the request. Ignored
    are scheme, port, a leading `www.`, differences of percent-encoding, fragments, campaign
    parameters and a missing root path. A trailing slash and any other query count. On a
    development machine hosts are not compared, since pages name their public host.
    """
    resolved = _resolved(loc, reference)
    if resolved is None:
        return False
    other, host = resolved
    path = normalize_path(urlsplit(loc).path)
    names = (name for name, _ in parse_qsl(other.query, keep_blank_values=True))
    if normalize_path(other.path) not in (path, path.removeprefix(site.root) or "/") or not all(
        map(_CAMPAIGN_PARAMETER.match, names)
    ):
        return False
    if site.loopback or is_same_site_host(host, site.host):
        return True
    requested = normal_host(request_host, other.scheme)
    return requested is not None and is_same_site_host(host, requested)


def is_page_url(loc: str, reference: str) -> bool:
    """Whether a URL in the page at `loc`, which may be relative, is a valid http or https URL."""
    return _resolved(loc, reference) is not None


def absolute_url(base: str, reference: str) -> str | None:
    """A URL that may be relative to another, as a sitemap may name it: encoded, absolute, and without its fragment.

    None if it is not one of http or https, or too long. Text that was escaped for HTML twice is read as it was meant.
    """
    resolved = _resolved(base, _ESCAPED_TWICE.sub("&", reference))
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


def own_reference(site: Site, loc: str, reference: str) -> str | None:
    """The encoded path and query of a URL in the page at `loc`; None if its host or port is another.

    Behind a proxy, apps often write http in the URLs of a site that has https.
    """
    _, _, rest = (absolute_url(loc, reference) or "").partition("://")
    return rest.removeprefix(site.host) if rest.startswith(f"{site.host}/") else None


def canonical_hint(path: str, canonical: str) -> str:
    """How to fix a page whose canonical link is another URL. `path` is percent-encoded."""
    resolved = _resolved("", canonical)
    if resolved is not None and normalize_path(resolved[0].path).endswith(normalize_path(path)):
        return (
            f'if that is the page itself, give SitemapMiddleware base_url="{resolved[0].scheme}://{resolved[1]}",'
            " and let the server set the root path if its path is longer"
        )
    return "if that is not meant, correct the canonical links of the app"


def is_same_path(loc: str, reference: str) -> bool:
    """Whether a redirect keeps the path and only changes scheme or host, such as ``http`` to ``https``."""
    resolved = _resolved(loc, reference)
    if resolved is None:
        return False
    return normalize_path(urlsplit(loc).path) == normalize_path(resolved[0].path) and not resolved[0].query


def redirect_target(site: Site, path: str, target: str) -> str | None:
    """The decoded path of a redirect's target; None if it leaves the site or has a query."""
    resolved = _resolved(f"{site.base_url}{quote(path)}", target)
    if resolved is None or resolved[0].query or not is_same_site_host(resolved[1], site.host):
        return None
    return unquote(resolved[0].path) or "/"


def _resolved(base: str, reference: str) -> tuple[SplitResult, str] | None:
    """A URL, which may be relative to another, and its normalized host; None if it is no valid http or https URL."""
    try:
        parts = urlsplit(urljoin(base, reference.strip()))
        host = normal_host(ascii_host(parts.netloc), parts.scheme)
    except ValueError:
        return None
    return None if host is None or parts.scheme not in _DEFAULT_PORTS else (parts, host)


def normalize_path(path: str) -> str:
    """Normalize the percent-encoding of a path (RFC 3986, section 6.2.2.2)."""
    return quote(unquote_to_bytes(path), safe=_SAFE_PATH_CHARS) or "/"


def path_digest(path: str) -> str:
    """A digest of a percent-encoded path, 32 bits as 8 characters. Its last slash does not count."""
    normal = path if _PLAIN_PATH.fullmatch(path) else normalize_path(path)
    return f"{crc32(normal.rstrip('/').encode()):08x}"


def own_paths(site: Site, loc: str, links: Iterable[str], request_host: str) -> Iterator[str]:
    """The percent-encoded paths of those links in the page at `loc` that stay on its site."""
    for link in links:
        if link[:1] == "/" != link[1:2]:
            yield link.partition("#")[0].partition("?")[0]
        elif resolved := _resolved(loc, link):
            host = resolved[1]
            if is_same_site_host(host, site.host) or host == normal_host(request_host, resolved[0].scheme):
                yield resolved[0].path


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


_USER_INFO: Final = re.compile(r"(?<=://)[^?]*?(?::(?P<password>.*))?@", re.DOTALL)


def hide_passwords(message: str, url: str) -> str:
    """A message without the passwords of a URL, which a driver may quote."""
    match, (_, _, query) = _USER_INFO.search(url), url.partition("?")
    secrets = [match["password"] or ""] if match else []
    secrets += [value for name, value in parse_qsl(query) if "password" in name]
    for secret in filter(None, {*secrets, *map(unquote, secrets)}):
        message = message.replace(secret, "***")
    return message
