"""Checks the values of an entry, each by itself: `<loc>`, `<lastmod>`, `<changefreq>` and `<priority>`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit

from ..evidence.dates import CLOCK_SKEW_SECONDS, EARLIEST_DATE_SECONDS, SECONDS_PER_DAY
from ..http.urls import DEFAULT_PORTS, MAX_LOC_CHARS, ascii_host, bare_host, normal_host
from ..protocol.value_checks import CHANGEFREQS
from .findings import Problem, quoted

_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OTHER_SCHEME: Final = re.compile(r"(?:about|blob|data|javascript|mailto|sms|tel|urn):", re.IGNORECASE)
_BLANK: Final = re.compile(r"[\s\u200b\ufeff]")
_IN_URLS: Final = (
    ("loc-double-escaped", re.compile(r"&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);"), "the URL contains {}"),
    ("loc-double-encoded", re.compile(r"%25(?:2[0-9A-Fa-f]|[C-Ec-e][0-9A-Fa-f]%25[89ABab])"), "the URL contains {}"),
    ("loc-not-encoded", re.compile(r"[^\x00-\x7f]"), "{!r} is not percent-encoded"),
    ("loc-percent-invalid", re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}"), "{!r} encodes nothing"),
)
"""What a URL must not contain before its fragment, with the code and the text."""
_IN_PATHS: Final = (
    ("loc-dot-segment", re.compile(r"/(?:\.|%2[Ee]){1,2}(?=/|\Z)"), "the path contains {}"),
    ("loc-double-slash", re.compile(r"//"), "the path contains {}"),
)
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
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
_ASSETS: Final = frozenset(
    "css js mjs map json xml rss atom ico woff woff2 ttf otf eot webmanifest".split()  # noqa: SIM905 (reads better)
)
_ENCODED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_LOCAL_NAMES: Final = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa", ".svc")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""Its addresses end with the IPv4 address that they lead to (RFC 6052)."""

MAX_HINT_CHARS: Final = 100
"""Characters of a value that are looked at. No valid one is longer."""
_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:(T)(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_LATEST_ZONE_SECONDS: Final = 14 * 3600
"""How far the time of a place may be ahead of UTC."""
_DAYS_OF_FEBRUARY: Final = 28
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)


class CheckedLoc(NamedTuple):
    """A URL, and what is wrong with it."""

    url: str
    problems: Sequence[Problem]
    scheme: str = ""
    host: str = ""
    """In lower case, with a port that is not the default one. Nothing, as the scheme, if the URL leads nowhere."""
    path: str = ""

    @property
    def page(self) -> str:
        """A text that is equal for all spellings of a URL. Its scheme, `www.` and a slash at the end count."""
        if not self.host:
            return self.url
        rest = re.sub(r"^[^/?]*", "", self.url.partition("://")[2].partition("#")[0])
        if not rest.isascii() or _UNSAFE.search(rest):
            rest = quote(rest, safe="%/?:@!$&'()*+,;=-._~")
        return f"{self.scheme}://{self.host}{_ENCODED.sub(_one_spelling, rest) or '/'}"


def check_loc(text: str, *, is_page: bool = True) -> CheckedLoc:
    """Check the text of a `loc`: the URL of a page or of a sitemap."""
    url = text.strip()
    problems = [] if url in (text, "") else [("loc-surrounding-space", "the URL has blanks or line breaks around it")]
    if (refusal := _refusal(url)) is not None:
        return CheckedLoc(url, [*problems, refusal])
    try:
        parts = urlsplit(url)
        problems += _authority_problems(url, parts)
    except ValueError as error:
        return CheckedLoc(url, [*problems, ("loc-invalid", f"{quoted(url)} is not a URL: {error}")])
    host = normal_host(ascii_host(parts.netloc.rpartition("@")[2]), parts.scheme)
    if host is None:
        return CheckedLoc(url, [*problems, ("loc-invalid", f"{quoted(parts.netloc)} is not a host")])
    problems += _character_problems(url, parts)
    if is_page:
        problems += _page_problems(parts.path, parts.query)
    return CheckedLoc(url, problems, parts.scheme, host, parts.path)


def _refusal(url: str) -> Problem | None:
    """Why a URL is not looked at any further."""
    if not url:
        return "loc-missing", "the entry has no URL"
    if _BLANK.search(url):
        return "loc-blank", f"{quoted(url)} contains a blank"
    if len(url) > MAX_LOC_CHARS:
        return "loc-too-long", f"the URL has {len(url):,} characters or more; 2,047 are the most"
    absolute = _ABSOLUTE.match(url)
    if absolute is None and not _OTHER_SCHEME.match(url):
        return "loc-relative", f"{quoted(url)} is not an absolute URL"
    if absolute is None or absolute[1].lower() not in DEFAULT_PORTS:
        return "loc-scheme", f"{quoted(url)} is not of http or https"
    return None


def _authority_problems(url: str, parts: SplitResult) -> Iterator[Problem]:
    if "@" in parts.netloc:
        yield "loc-credentials", "the URL has a user name or password before its host"
    if parts.port == DEFAULT_PORTS[parts.scheme]:
        yield "loc-default-port", f"the port :{parts.port} is the default one of {parts.scheme}"
    host = parts.netloc.rpartition("@")[2]
    if host != host.lower() or not url.startswith(parts.scheme):
        yield "loc-host-case", f"{quoted(url[: len(parts.scheme) + 3] + host)} has upper case"


def _character_problems(url: str, parts: SplitResult) -> Iterator[Problem]:
    rest, hash_sign, fragment = url.partition("#")
    if hash_sign:
        yield "loc-fragment", f"the URL has the fragment {quoted('#' + fragment)}"
    for subject, patterns in ((rest, _IN_URLS), (parts.path, _IN_PATHS)):
        for code, pattern, text in patterns:
            if found := pattern.search(subject):
                yield code, text.format(found[0])
    decoded = unquote(parts.path, errors="replace") + (f"?{parts.query}" if parts.query else "")
    if found := _PLACEHOLDER.search(decoded):
        yield "loc-placeholder", f"the URL contains {quoted(found[0])} in place of a value"
    elif found := _UNSAFE.search(rest):
        yield "loc-unsafe-character", f"the URL contains {quoted(found[0])}"


def _page_problems(path: str, query: str) -> Iterator[Problem]:
    if (ending := path.rpartition(".")[2]).lower() in _ASSETS:
        yield "loc-asset", f"a file .{ending} is not a page"
    if found := _PATH_SESSION.search(path):
        yield "loc-session-id", f"the path contains {found[0]}"
    for name, value in parse_qsl(query):
        if _SESSION.fullmatch(name) and _SESSION_VALUE.fullmatch(value):
            yield "loc-session-id", f"the parameter {name} is the id of a session"
        elif _TRACKING.fullmatch(name):
            yield "loc-tracking", f"the parameter {name} counts visits"


def _one_spelling(encoded: re.Match[str]) -> str:
    char = chr(int(encoded[1], 16))
    return char if char in _UNRESERVED else encoded[0].upper()


def without_credentials(url: str) -> str:
    """A URL without the user name and the password before its host."""
    return re.sub(r"(?<=://)[^/?]*@", "", url, count=1)


def resolved(base: str, reference: str) -> str:
    """A URL that may be relative, resolved (RFC 3986, section 5). Returned as it is if it is not a URL."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


@lru_cache(1024)
def is_local(host: str) -> bool:
    """Whether a host, as in `CheckedLoc`, leads nowhere from other networks, by its name or its address."""
    name = bare_host(host).strip("[]")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith(_LOCAL_NAMES)
    if isinstance(address, ipaddress.IPv6Address):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        address = address.ipv4_mapped or embedded or address
    return address.is_multicast or not address.is_global


class CheckedLastmod(NamedTuple):
    """A date, and what is wrong with it."""

    text: str
    problem: Problem | None
    earliest: float | None = None
    """The first moment that it may mean, in POSIX seconds. None if it is not a date."""
    latest: float | None = None

    @property
    def has_zone(self) -> bool:
        """Whether it is a date, and with a time zone if it has a time."""
        return self.earliest is not None and (self.problem is None or self.problem[0] != "lastmod-no-zone")


def check_lastmod(text: str, now: float) -> CheckedLastmod:
    """Check a date, at a moment in POSIX seconds."""
    checked = _parsed(text.strip()[:MAX_HINT_CHARS])
    if checked.problem is None and checked.earliest is not None:
        if checked.earliest > now + CLOCK_SKEW_SECONDS:
            return checked._replace(problem=("lastmod-future", f"{quoted(checked.text)} is in the future"))
        if checked.earliest < EARLIEST_DATE_SECONDS:
            return checked._replace(problem=("lastmod-too-old", f"{quoted(checked.text)} is before 1990"))
    return checked


def _parsed(text: str) -> CheckedLastmod:
    if not text:
        return CheckedLastmod(text, ("lastmod-empty", "lastmod is empty"))
    invalid = CheckedLastmod(text, ("lastmod-invalid", f"{quoted(text)} is not a date of the W3C format"))
    match = _W3C.fullmatch(text)
    if match is None:
        return invalid
    year, month, day, time, minute, second, zone = match.groups()
    try:
        written = f"{year}-{month or '01'}-{day or '01'}T{minute or '00:00'}{second or ':00'}{zone or 'Z'}"
        moment = datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError):
        return invalid
    spread = 0 if zone else _LATEST_ZONE_SECONDS
    days = 0 if time else 1 if day else _DAYS_OF_FEBRUARY if month else 365
    problem = None
    if time and not zone:
        problem = "lastmod-no-zone", f"{quoted(text)} has no time zone"
    elif not day or (time and not second):
        problem = "lastmod-reduced", f"{quoted(text)} {'has no seconds' if time else 'is not a whole date'}"
    return CheckedLastmod(text, problem, moment - spread, moment + days * SECONDS_PER_DAY + spread)


def check_changefreq(text: str) -> Problem | None:
    """Check a changefreq."""
    word = text.strip()[:MAX_HINT_CHARS]
    if word in CHANGEFREQS:
        return None
    if word.lower() in CHANGEFREQS:
        return "changefreq-case", f"{quoted(word)} is not in lower case: write {word.lower()}"
    return "changefreq-invalid", f"{quoted(word)} is not one of {', '.join(CHANGEFREQS)}"


def check_priority(text: str) -> Problem | None:
    """Check a priority."""
    number = text.strip()[:MAX_HINT_CHARS]
    if _DECIMAL.fullmatch(number) and 0 <= float(number) <= 1:
        return None
    return "priority-invalid", f"{quoted(number)} is not a number from 0.0 to 1.0"
