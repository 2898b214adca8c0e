"""Checks the response of a listed page: its status, robots directives, canonical URL, and its dates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...dates import SECONDS_PER_DAY
from ...evidence.html_facts import parse_html
from ...evidence.observations import HTML_TYPES, HtmlFacts
from ...evidence.response_headers import ResponseHeaders
from ..message import Finding
from ..message_collector import quoted, shortened
from ..rules import listed_page as rules
from .fetch import is_login
from .lastmod import check_lastmod
from .loc import check_loc, normal_url, resolved

_DATA_TYPES: Final = ("json", "xml", "javascript", "ecmascript", "css", "font", "x-www-form-urlencoded")
"""Words in media types of data, which are not pages for people."""
_TOLERANCE_SECONDS: Final = 2 * SECONDS_PER_DAY
"""Differences between dates that time zones and caches explain."""
_MAX_REDIRECTS_NAMED: Final = 5


class PageResponse(NamedTuple):
    """What a page answered."""

    url: str
    """The URL, after redirects."""
    status: int
    """0 if there was no response."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    """The beginning of the body, decompressed."""
    is_complete: bool = True
    """Whether `body` is the whole body."""
    redirects: tuple[str, ...] = ()
    """The URLs that redirected, in their order."""
    failure: str = ""
    """Why there was no response, as a sentence without a period."""
    is_loop: bool = False
    """Whether the redirects did not end."""


class CheckedPage(NamedTuple):
    """What is wrong with a page."""

    findings: Sequence[Finding]
    digest: int | None = None
    """The digest of its content, if it is an HTML page that was read completely."""


def check_page(loc: str, lastmod: str, response: PageResponse, now: float) -> CheckedPage:
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
    if headers.media_type not in HTML_TYPES:
        findings = [*_robots_findings(headers.robots.noindex, "the header X-Robots-Tag")]
        if any(word in headers.media_type for word in _DATA_TYPES):
            findings.append((rules.NOT_A_PAGE, f"the media type is {quoted(headers.media_type)}"))
        return CheckedPage(findings)
    html = parse_html(response.body, headers.charset, is_truncated=not response.is_complete)
    return CheckedPage([*_html_findings(response.url, lastmod, headers, html, now)], html.digest)


def _problem(loc: str, response: PageResponse) -> Finding | None:
    """Why the response says nothing about the page itself."""
    if response.failure:
        return (rules.REDIRECT_LOOP if response.is_loop else rules.FAILED), response.failure
    if response.redirects:
        if is_login(response.url) and not is_login(loc):
            return rules.LOGIN, f"the page redirects to {response.url}"
        if response.status == 200:
            steps = [*response.redirects[1:], response.url][-_MAX_REDIRECTS_NAMED:]
            return rules.REDIRECT, f"the page redirects to {' to '.join(steps)}"
    if response.status == 401:
        return rules.LOGIN, "the page answers 401"
    if response.status != 200:
        where = f"the page redirects to {response.url}, which" if response.redirects else "the page"
        return rules.STATUS, f"{where} answers {response.status}"
    return None


def _html_findings(url: str, lastmod: str, headers: ResponseHeaders, html: HtmlFacts, now: float) -> Iterator[Finding]:
    yield from _robots_findings(headers.robots.noindex, "the header X-Robots-Tag")
    if not headers.robots.noindex:
        yield from _robots_findings(html.noindex, "a robots meta tag")
    named = [*(target for target, anchor in headers.canonical if anchor is None), *filter(None, [html.canonical])]
    if (other := next((target for target in named if _is_other_page(url, target)), None)) is not None:
        yield rules.CANONICAL, f"the page names {quoted(other)} as its canonical URL"
    refresh = headers.instant_refresh if headers.instant_refresh is not None else html.instant_refresh
    if refresh is not None and _is_other_page(url, refresh):
        yield rules.REFRESH, f"the page leads to {quoted(refresh)} at once"
    yield from _date_findings(lastmod, html.stated_date, now)


def _robots_findings(noindex: bool, where: str) -> Iterator[Finding]:
    if noindex:
        yield rules.NOINDEX, f"{where} says noindex"


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
        yield rules.LASTMOD_BEHIND, text
    elif listed.earliest > own.latest + _TOLERANCE_SECONDS:
        yield rules.LASTMOD_AHEAD, text
