"""Checks URLs: each by itself, those of a document against its own location, and those of all documents together."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit

from .database import UrlRow
from .findings import Finding, quoted

MAX_CHARS: Final = 2047
""""Less than 2,048 characters" (Sitemap 0.9, `<loc>`)."""

_MAX_HOST_CHARS: Final = 253
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ORDINARY: Final = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+)"
    r"((?:/(?!\.)(?:[A-Za-z0-9_~.-]++|%(?!25|2[Ee]|3[Cc]|5[Bb]|7[Bb])[0-9A-Fa-f]{2})++)*+/?)"
    r"(?:\?((?:[A-Za-z0-9_~.=&+-]++|%(?!25|7[Bb])[0-9A-Fa-f]{2})*+))?"
    r"(?:#([!-~]*))?"
)
"""A URL that breaks no rule but those that look at its host, its parameters, the ending of its file, its fragment."""
_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OTHER_SCHEME: Final = re.compile(r"(?:about|blob|data|javascript|mailto|sms|tel|urn):", re.IGNORECASE)
_LABEL: Final = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|[0-9a-f:.]{{2,45}}")
_BLANK: Final = re.compile(r"[\s\u200b\ufeff]")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TWICE_ENCODED: Final = re.compile(r"%25(?:2[0-9A-Fa-f]|[C-Ec-e][0-9A-Fa-f]%25[89ABab])")
_ESCAPED: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);")
_DOT_SEGMENT: Final = re.compile(r"/(?:\.|%2[Ee]){1,2}(?=/|\Z)")
_PLACEHOLDER: Final = re.compile(
    r"\$?\{\{?\s*[A-Za-z_$][\w.:$ -]*\}?\}"  # {id}, {{ slug }}, ${name}
    r"|(?<=/)(?:<[a-z_][\w:]*>|\[\[?(?:\.\.\.)?[A-Za-z_]\w*\]?\])(?=/|\Z)"  # <int:id>, [slug], [[...path]]
)
_SESSION: Final = re.compile(
    r"(?:jsessionid|phpsessid|aspsessionid\w*|asp\.net_sessionid|sessionid|session_id|sid|cfid|cftoken|zenid|oscsid)",
    re.IGNORECASE,
)
_SESSION_VALUE: Final = re.compile(r"[\w.!~*-]{8,}")
_PATH_SESSION: Final = re.compile(r";jsessionid=|/\([SAF]\([A-Za-z0-9_-]{8,}\)\)/", re.IGNORECASE)
_TRACKING: Final = re.compile(r"utm_\w+|gclid|gbraid|wbraid|fbclid|msclkid|dclid|yclid|mc_cid|mc_eid|_ga|_gl")
_SUSPECT: Final = re.compile(r"ses|sid|cf|zen|(?:\A|&)(?:utm_|g|w|fb|ms|dc|yc|mc_|_g|[^=&]*%)", re.IGNORECASE)
"""Every query with the parameter of a session or of tracking matches this; others may."""
_ASSETS: Final = frozenset(
    (
        "css",
        "js",
        "mjs",
        "map",
        "json",
        "xml",
        "rss",
        "atom",
        "ico",
        "woff",
        "woff2",
        "ttf",
        "otf",
        "eot",
        "webmanifest",
    )
)
_PERCENT_ENCODED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_REST: Final = re.compile(r"[/?]")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_LOCAL_NAMES: Final = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa", ".svc")
_IPV4_NETWORKS: Final = (ipaddress.IPv6Network("::/96"), ipaddress.IPv6Network("64:ff9b::/96"))
"""IPv6 networks whose addresses end with an IPv4 address."""
_MAX_CACHED_HOSTS: Final = 1024


class CheckedLoc(NamedTuple):
    """A URL, and what is wrong with it."""

    url: str
    """The URL without blanks around it."""
    findings: Sequence[Finding]
    scheme: str = ""
    host: str = ""
    """In lower case, with a port that is not the default one. Nothing, as the scheme, if the URL leads nowhere."""
    path: str = ""


def check_loc(text: str, *, is_page: bool = True) -> CheckedLoc:
    """Check the text of a `loc`: the URL of a page or of a sitemap."""
    if len(text) <= MAX_CHARS and (ordinary := _ORDINARY.fullmatch(text)):
        scheme, host, path, query, fragment = ordinary.groups()
        if len(host) <= _MAX_HOST_CHARS:
            is_suspect = is_page and (path.rpartition(".")[2].lower() in _ASSETS or (query and _SUSPECT.search(query)))
            if fragment is None and not is_suspect:
                return CheckedLoc(text, (), scheme, host, path)
            findings = [] if fragment is None else [_fragment_finding(fragment)]
            if is_suspect:
                findings += _page_findings(path, query or "")
            return CheckedLoc(text, findings, scheme, host, path)
    url = text.strip()
    findings = [] if url in (text, "") else [("loc-surrounding-space", "the URL has blanks or line breaks around it")]
    if (refusal := _refusal(url)) is not None:
        return CheckedLoc(url, [*findings, refusal])
    try:
        parts = urlsplit(url)
        host = _normal_host(parts)
    except ValueError as error:
        return CheckedLoc(url, [*findings, ("loc-invalid", f"{quoted(url)} is not a URL: {error}")])
    if not host:
        return CheckedLoc(url, [*findings, ("loc-invalid", f"{quoted(parts.netloc)} is not a host")])
    findings += [*_authority_findings(url, parts), *_path_findings(url, parts)]
    if is_page:
        findings += _page_findings(parts.path, parts.query)
    return CheckedLoc(url, findings, parts.scheme, host, parts.path)


def _refusal(url: str) -> Finding | None:
    """Why a URL is not looked at any further."""
    if not url:
        return "loc-missing", "the entry has no URL"
    if _BLANK.search(url):
        return "loc-blank", f"{quoted(url)} contains a blank"
    if len(url) > MAX_CHARS:
        return "loc-too-long", f"the URL has {len(url):,} characters or more; 2,047 are the most"
    if (absolute := _ABSOLUTE.match(url)) is None:
        if _OTHER_SCHEME.match(url):
            return "loc-scheme", f"{quoted(url)} is not of http or https"
        return "loc-relative", f"{quoted(url)} is not an absolute URL"
    if absolute[1].lower() not in _DEFAULT_PORTS:
        return "loc-scheme", f"{quoted(url)} is not of http or https"
    return None


def _normal_host(parts: SplitResult) -> str:
    """The host in lower case with a port that is not the default one; nothing if it is not valid."""
    name, port = (parts.hostname or "").rstrip("."), parts.port
    try:
        ascii_name = name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return ""
    if not _HOST.fullmatch(ascii_name) or len(ascii_name) > _MAX_HOST_CHARS:
        return ""
    name = f"[{name}]" if ":" in name else name
    return name if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{name}:{port}"


def _authority_findings(url: str, parts: SplitResult) -> Iterator[Finding]:
    if "@" in parts.netloc:
        yield "loc-credentials", "the URL has a user name or password before its host"
    host = parts.netloc.rpartition("@")[2]
    if parts.port == _DEFAULT_PORTS[parts.scheme]:
        yield "loc-default-port", f"the port :{parts.port} is the default one of {parts.scheme}"
    if host != host.lower() or not url.startswith(parts.scheme):
        yield "loc-host-case", f"{quoted(url[: len(parts.scheme) + 3] + host)} has upper case"


def _path_findings(url: str, parts: SplitResult) -> Iterator[Finding]:
    rest = url
    if "#" in url:
        rest, _, fragment = url.partition("#")
        yield _fragment_finding(fragment)
    if found := _ESCAPED.search(rest):
        yield "loc-double-escaped", f"the URL contains {found[0]}"
    if found := _TWICE_ENCODED.search(rest):
        yield "loc-double-encoded", f"the URL contains {found[0]}"
    if not rest.isascii():
        char = next(char for char in rest if not char.isascii())
        yield "loc-not-encoded", f"{quoted(char)} is not percent-encoded"
    if found := _BAD_PERCENT.search(rest):
        yield "loc-percent-invalid", f"{quoted(rest[found.start() : found.start() + 3])} encodes nothing"
    decoded = unquote(parts.path, errors="replace") + (f"?{parts.query}" if parts.query else "")
    if found := _PLACEHOLDER.search(decoded):
        yield "loc-placeholder", f"the URL contains {quoted(found[0])} in place of a value"
    elif found := _UNSAFE.search(rest):
        yield "loc-unsafe-character", f"the URL contains {quoted(found[0])}"
    if found := _DOT_SEGMENT.search(parts.path):
        yield "loc-dot-segment", f"the path contains {found[0]}"
    if "//" in parts.path:
        yield "loc-double-slash", "the path contains //"


def _fragment_finding(fragment: str) -> Finding:
    return "loc-fragment", f"the URL has the fragment {quoted('#' + fragment)}"


def _page_findings(path: str, query: str) -> Iterator[Finding]:
    if (ending := path.rpartition(".")[2]).lower() in _ASSETS:
        yield "loc-asset", f"a file .{ending} is not a page"
    if found := _PATH_SESSION.search(path):
        yield "loc-session-id", f"the path contains {found[0]}"
    for name, value in parse_qsl(query):
        if _SESSION.fullmatch(name) and _SESSION_VALUE.fullmatch(value):
            yield "loc-session-id", f"the parameter {name} is the id of a session"
        elif _TRACKING.fullmatch(name):
            yield "loc-tracking", f"the parameter {name} counts visits"


def resolved(base: str, reference: str) -> str:
    """A URL that may be relative, resolved (RFC 3986, section 5). Returned as it is if it is not a URL."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


@lru_cache(_MAX_CACHED_HOSTS)
def is_local(host: str) -> bool:
    """Whether a host, as in `CheckedLoc`, leads nowhere from other networks."""
    name = host.rpartition(":")[0] if re.search(r":\d+\Z", host) else host
    address = _address(name.strip("[]"))
    if address is None:
        return "." not in name or name.endswith(_LOCAL_NAMES)
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_site_local:
            return True
        address = _embedded_ipv4(address) or address
    return address.is_multicast or not address.is_global


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is written as; None if it is a name."""
    with suppress(ValueError):
        return ipaddress.ip_address(name)
    with suppress(OSError, ValueError):  # resolvers read 127.1, 0x7f.0.0.1 and 2130706433 as 127.0.0.1
        return ipaddress.IPv4Address(socket.inet_aton(name))
    return None


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to: mapped, compatible, 6to4, or by NAT64."""
    if any(address in network for network in _IPV4_NETWORKS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def page_key(loc: CheckedLoc) -> str:
    """A text that is equal for all spellings of a URL, with http or https, www or not, a slash at the end or not."""
    return page_keys(loc)[0]


def normal_url(loc: CheckedLoc) -> str:
    """A text that is equal for all spellings of a URL. Its scheme, `www.` and a slash at the end count."""
    return page_keys(loc)[1]


def page_keys(loc: CheckedLoc) -> tuple[str, str]:
    """Return `page_key` and `normal_url`."""
    if not loc.host:
        return loc.url, loc.url
    is_whole = len(loc.url) == len(loc.scheme) + len("://") + len(loc.host) + len(loc.path)
    rest = loc.path if is_whole else _after_host(loc.url)
    if not rest.isascii() or _UNSAFE.search(rest):
        rest = quote(rest, safe="%/?:@!$&'()*+,;=-._~")
    if "%" in rest:
        rest = _PERCENT_ENCODED.sub(_one_spelling, rest)
    return loc.host.removeprefix("www.") + rest.rstrip("/"), f"{loc.scheme}://{loc.host}{rest or '/'}"


def _after_host(url: str) -> str:
    """The path and the query of a URL."""
    rest = url.partition("://")[2].partition("#")[0]
    begin = _REST.search(rest)
    return rest[begin.start() :] if begin else ""


def _one_spelling(encoded: re.Match[str]) -> str:
    char = chr(int(encoded[1], 16))
    return char if char in _UNRESERVED else encoded[0].upper()


# The location of the document

_MAX_GROUPS: Final = 100
"""Groups of URLs of a document that are distinguished, such as those of one foreign host."""


class UrlGroup(NamedTuple):
    """URLs of a document that break one rule."""

    finding: Finding
    first: str
    line: int
    column: int
    """The first of them, and its place."""


class Locations:
    """Where the URLs of one document are: on its host, and below its folder. A mistake of all of them is one message.

    Args:
        location: the URL that the document is served at, if it is known.
        is_index: whether the URLs are those of sitemaps.
    """

    def __init__(self, location: str | None, *, is_index: bool) -> None:
        self._host = check_loc(location, is_page=False).host if location else ""
        path = urlsplit(location).path if location else "/"
        self._folder = path[: path.rfind("/") + 1] or "/"
        self._kind = "index" if is_index else "loc"
        self._groups: dict[tuple[str, str], tuple[str, int, int]] = {}
        """The first URL that is not where it should be, by the code and by what it has in place of that."""
        self._counts = Counter[tuple[str, str]]()

    def add(self, loc: CheckedLoc, line: int, column: int) -> None:
        """Take note of a URL."""
        if self._host and loc.host == self._host:
            if self._folder == "/" or f"{loc.path}/".startswith(self._folder):
                return
            key = (f"{self._kind}-outside-folder", self._folder)
        elif is_local(loc.host):
            key = ("loc-local", loc.host)
        elif self._host:
            key = (f"{self._kind}-other-host", loc.host)
        else:
            return
        if key in self._groups or len(self._groups) < _MAX_GROUPS:
            self._groups.setdefault(key, (loc.url, line, column))
            self._counts[key] += 1

    def findings(self) -> Iterator[UrlGroup]:
        """Return what is wrong, once all URLs were added."""
        for (code, name), (url, line, column) in self._groups.items():
            count = self._counts[code, name]
            many = "a URL is" if count == 1 else f"{count:,} URLs are"
            if code.endswith("-outside-folder"):
                text = f"{many} not below {name}, the folder of this document"
            elif code == "loc-local":
                text = f"{many} on {name}, which is not on the web"
            else:
                text = f"{many} on {name}, and this document on {self._host}"
            yield UrlGroup((code, text), url, line, column)


# All documents together


def duplicate_findings(similar: Iterable[UrlRow]) -> Iterator[tuple[Finding, UrlRow]]:
    """Return URLs that are listed more than once.

    Args:
        similar: URLs of which each shares its key with another one, those of one key after each other.
    """
    for _, rows in groupby(similar, lambda row: page_key(check_loc(row.loc))):
        known = dict[str, UrlRow]()
        spellings = dict[str, UrlRow]()
        for row in rows:
            if (same := known.setdefault(row.loc, row)) is not row:
                yield from _repeated(row, same)
                continue
            spelling = normal_url(check_loc(row.loc))
            if (alike := spellings.setdefault(spelling, row)) is not row:
                yield ("loc-duplicate-spelling", f"{alike.loc} is the same page"), row
            elif (pair := spellings.get(_other_slash(spelling))) is not None:
                yield ("loc-slash-pair", f"{pair.loc} is listed, too"), row


def _repeated(row: UrlRow, same: UrlRow) -> Iterator[tuple[Finding, UrlRow]]:
    if row.document == same.document:
        yield ("loc-duplicate", f"the URL is listed in line {same.line}, too"), row
    elif not row.is_extended and not same.is_extended:
        yield ("loc-duplicate-elsewhere", "another document lists the URL, too"), row


def _other_slash(url: str) -> str:
    return url[:-1] if url.endswith("/") else f"{url}/"
