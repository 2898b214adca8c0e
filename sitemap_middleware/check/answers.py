"""Checks what servers and apps answer: with a document, a listed page, or robots.txt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.html_facts import parse_html
from ..evidence.observations import HTML_TYPES, HtmlFacts
from ..evidence.response_headers import ResponseHeaders
from ..http.robots_parser import MAX_ROBOTS_BYTES
from .entries import Kind
from .findings import Finding, quoted, shortened
from .hints import check_lastmod
from .responses import Failure, Response, Robots
from .urls import check_loc, normal_url, resolved

_LOGIN_PATH: Final = re.compile(
    r"(?:^|[/_-])(?:log-?in|log-?on|sign-?in|sso|oauth2?|authenticate|authorize|wp-login\.php)(?:$|[/._-])",
    re.IGNORECASE,
)
_LOGIN_QUERY: Final = re.compile(
    r"(?:^|&)(?:next|return_?to|return_?url|redirect_?to|rd|continue)=(?:/|%2f|https?[:%])", re.IGNORECASE
)
"""The page to return to, after a login."""
_XML: Final = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?xml")
_GZIP: Final = frozenset({"application/gzip", "application/x-gzip", "application/octet-stream", "binary/octet-stream"})
_MAX_REDIRECTS_NAMED: Final = 5
_DATA_TYPES: Final = ("json", "xml", "javascript", "ecmascript", "css", "font", "x-www-form-urlencoded")
"""Words in media types of data, which are not pages for people."""
_TOLERANCE_SECONDS: Final = 2 * SECONDS_PER_DAY
"""Differences between dates that time zones and caches explain."""
_SITEMAP_LINE: Final = re.compile(r"^[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
_CARRIAGE_RETURN: Final = re.compile(r"\r\n?")
_MAX_NAMED_SITEMAPS: Final = 100

# Documents


def check_document_response(response: Response) -> Iterator[Finding]:
    """Check the redirects to a document, and its status."""
    if response.redirects:
        if is_login(response.url) and not is_login(response.redirects[0]):
            yield "fetch-login", f"the URL redirects to {response.url}"
        else:
            yield "fetch-redirect", f"the URL redirects to {_steps(response)}"
    if response.status == 401:
        yield "fetch-login", "the server answers 401"
    elif response.status != 200:
        yield "fetch-status", f"the server answers {response.status}"


def check_content_type(response: Response, kind: Kind | None) -> Iterator[Finding]:
    """Check the Content-Type of a document that was read, as what `kind` says."""
    media_type = response.header("content-type").partition(";")[0].strip().lower()
    if kind is not None and not (_XML.fullmatch(media_type) or media_type in _GZIP or media_type == "text/plain"):
        said = f"the media type is {quoted(media_type)}" if media_type else "the response has no Content-Type"
        yield "fetch-content-type", said


def is_login(url: str) -> bool:
    """Whether a URL is probably that of a login page."""
    parts = urlsplit(url)
    return _LOGIN_PATH.search(parts.path) is not None or _LOGIN_QUERY.search(parts.query) is not None


def _steps(response: Response) -> str:
    """Where redirects led."""
    return " to ".join([*response.redirects[1:], response.url][-_MAX_REDIRECTS_NAMED:])


# Pages


class CheckedPage(NamedTuple):
    """What is wrong with a page."""

    findings: Sequence[Finding]
    digest: int | None = None
    """The digest of its content, if it is an HTML page that was read completely."""


def check_page(loc: str, lastmod: str, response: Response, now: float) -> CheckedPage:
    """Check what a page answered.

    Args:
        loc: its URL as listed.
        lastmod: its date as listed; empty if it has none.
        response: its response.
        now: POSIX seconds.
    """
    problem = _problem(loc, response)
    if problem is not None:
        return CheckedPage([problem])
    headers = ResponseHeaders(response.headers)
    findings = [("page-noindex", "the header X-Robots-Tag says noindex")] if headers.robots.noindex else []
    if headers.media_type not in HTML_TYPES:
        if any(word in headers.media_type for word in _DATA_TYPES):
            findings.append(("page-type", f"the media type is {quoted(headers.media_type)}"))
        return CheckedPage(findings)
    html = parse_html(response.body, headers.charset, is_truncated=not response.is_complete)
    return CheckedPage([*findings, *_html_findings(response.url, lastmod, headers, html, now)], html.digest)


def _problem(loc: str, response: Response) -> Finding | None:
    """Why the response says nothing about the page itself."""
    if response.failure is not None:
        return "page-redirect-loop" if response.failure is Failure.REDIRECTS else "page-failed", response.reason
    if response.redirects:
        if is_login(response.url) and not is_login(loc):
            return "page-login", f"the page redirects to {response.url}"
        if response.status == 200:
            return "page-redirect", f"the page redirects to {_steps(response)}"
    if response.status == 401:
        return "page-login", "the page answers 401"
    if response.status != 200:
        where = f"the page redirects to {response.url}, which" if response.redirects else "the page"
        return "page-status", f"{where} answers {response.status}"
    return None


def _html_findings(url: str, lastmod: str, headers: ResponseHeaders, html: HtmlFacts, now: float) -> Iterator[Finding]:
    if html.noindex and not headers.robots.noindex:
        yield "page-noindex", "a robots meta tag says noindex"
    named = [*(target for target, anchor in headers.canonical if anchor is None), *filter(None, [html.canonical])]
    if (other := next((target for target in named if _is_other_page(url, target)), None)) is not None:
        yield "page-canonical", f"the page names {quoted(other)} as its canonical URL"
    refresh = headers.instant_refresh if headers.instant_refresh is not None else html.instant_refresh
    if refresh is not None and _is_other_page(url, refresh):
        yield "page-refresh", f"the page leads to {quoted(refresh)} at once"
    yield from _date_findings(lastmod, html.stated_date, now)


def _is_other_page(url: str, target: str) -> bool:
    """Whether a URL, perhaps relative, is that of another page."""
    loc = check_loc(resolved(url, target.strip()))
    return bool(loc.host) and normal_url(loc) != normal_url(check_loc(url))


def _date_findings(lastmod: str, stated: str | None, now: float) -> Iterator[Finding]:
    """Compare the date in the sitemap with the one that the page states."""
    listed, own = check_lastmod(lastmod, now), check_lastmod(stated or "", now)
    if listed.earliest is None or listed.latest is None or own.earliest is None or own.latest is None:
        return
    text = f"lastmod is {shortened(listed.text)}, and the page says {own.text}"
    if own.earliest > listed.latest + _TOLERANCE_SECONDS:
        yield "page-lastmod-behind", text
    elif listed.earliest > own.latest + _TOLERANCE_SECONDS:
        yield "page-lastmod-ahead", text


# robots.txt


def named_sitemaps(text: str) -> list[str]:
    """Return what the Sitemap lines of a robots.txt name, as written, each once."""
    return [*dict.fromkeys(_SITEMAP_LINE.findall(_CARRIAGE_RETURN.sub("\n", text)))][:_MAX_NAMED_SITEMAPS]


def check_robots_file(robots: Robots, documents: Sequence[str]) -> Iterator[Finding]:
    """Check a robots.txt.

    Args:
        robots: the file, or what was answered in its place.
        documents: the URLs of the sitemaps that are being checked. If one of them is named, all is well.
    """
    if robots.status != 200:
        if robots.status in (404, 410):
            yield "robots-no-sitemap-line", "there is no robots.txt, so it does not name the sitemap"
        return
    if robots.text.lstrip().startswith("<"):
        yield "robots-html", "the response is an HTML page"
        return
    if robots.is_too_large:
        yield "robots-too-large", f"the file has more than {MAX_ROBOTS_BYTES // 1024} KiB"
    own_host, found = check_loc(robots.url).host, set[str]()
    for name in named_sitemaps(robots.text):
        loc = check_loc(name, is_page=False)
        if not loc.host:
            yield "robots-relative", f"the line names {quoted(name)}, which is not an absolute URL"
            loc = check_loc(resolved(robots.url, name), is_page=False)
        elif loc.host != own_host:
            yield "robots-other-host", f"the line names {quoted(name)}"
        found.add(normal_url(loc))
    if not found & {normal_url(check_loc(document, is_page=False)) for document in documents}:
        yield "robots-no-sitemap-line", "no Sitemap line names this sitemap"


# Coverage


class KnownUrl(NamedTuple):
    """What the middleware knows of a URL."""

    url: str
    is_listed: bool
    reason: str
    """Why it is listed or not, as a sentence without a period."""
    status: int | None
    """Of its last response. None if it was never seen."""


def check_coverage(urls: Iterable[KnownUrl], is_requested: Callable[[str], bool]) -> Iterator[tuple[Finding, str]]:
    """Yield what differs between what is listed and what was seen, with the URL that it is about.

    Args:
        urls: what is known.
        is_requested: whether this run requests a page, so that nobody need be told to do so.
    """
    for known in urls:
        if known.is_listed and known.status is None:
            if not is_requested(known.url):
                yield ("coverage-never-seen", "no response of the page was seen"), known.url
        elif known.is_listed and known.status != 200:
            yield ("coverage-listed-bad", f"the last response had the status {known.status}"), known.url
        elif not known.is_listed and known.status == 200:
            yield ("coverage-not-listed", f"the page is left out: {known.reason}"), known.url
