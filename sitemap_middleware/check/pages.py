"""Requests the listed pages, a sample or all of them, and robots.txt, and checks the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.html_facts import HtmlFacts, parse_html
from ..evidence.observations import HTML_TYPES
from ..evidence.response_headers import ResponseHeaders
from ..evidence.response_parser import decode_body
from ..http.messages import MAX_HTML_BYTES
from ..http.robots_parser import MAX_ROBOTS_BYTES
from .clients import Client, Failure, Response, Robots
from .findings import Problem, quoted, shortened
from .run_state import ListedUrl, Pages, Run
from .url_elements import check_lastmod, check_loc, resolved

_MAX_LINKS: Final = 5_000
"""Links of a page that are read from its beginning, and from its end."""
_MAX_SITEMAPS_REQUESTED: Final = 20
"""Sitemaps of robots.txt that are requested to see whether they are there."""
_INDEX_BYTES: Final = 1_000_000
"""How much of each is searched for the sitemap that is checked: it may be an index."""
_INVENTED_PATH: Final = "/sitemap-check-1f0c6d9e-page-that-does-not-exist"
"""A path that no site has. What it answers is what a missing page answers."""
_NOT_REQUESTED: Final = frozenset({Failure.ROBOTS, Failure.LOCAL, Failure.ELSEWHERE})
"""Failures that say nothing about a page."""
_DATA_TYPES: Final = ("json", "xml", "javascript", "ecmascript", "css", "font", "x-www-form-urlencoded")
_TOLERANCE_SECONDS: Final = 2 * SECONDS_PER_DAY
"""Differences between dates that time zones and caches explain."""


class PageChecks:
    """Checks the listed pages of a run."""

    def __init__(self, client: Client, run: Run) -> None:
        self._client = client
        self._run = run
        self._missing: dict[str, asyncio.Task[int | None]] = {}
        self._found: dict[str, list[Problem]] = {}
        self._got: set[str] = set()
        self._linked: set[str] = set()
        """The listed pages that another one links to, as `ListedUrl.page` without the last slash."""

    async def check(self, listed: ListedUrl) -> None:
        """Request a page, and keep what is wrong with it."""
        if problems := await self._problems(listed):
            self._found[listed.page] = problems

    def report(self, checked: Sequence[ListedUrl]) -> None:
        """Report what is wrong with the checked pages, and if the links of all pages are known, which have none."""
        run = self._run
        if not self._linked:
            run.are_links_known = False
        are_links_known = run.settings.pages is Pages.ALL and run.are_links_known
        for listed in checked:
            problems = self._found.get(listed.page, [])
            is_linked = listed.page.rstrip("/") in self._linked or urlsplit(listed.loc).path in ("", "/")
            if are_links_known and listed.page in self._got and not is_linked:
                problems.append(("page-orphan", "no listed page that was read links to it"))
            for problem in problems:
                run.report(problem, listed.loc, listed.document, listed.line)

    async def _problems(self, listed: ListedUrl) -> list[Problem]:
        url = listed.loc
        robots = await self._client.robots_txt(url)
        if robots is not None and not robots.allows(url):
            return [("page-robots", robots.refusal)]
        response = await self._client.get(url, MAX_HTML_BYTES + 1)
        self._run.requested += bool(response.status or response.failure in (Failure.TIMEOUT, Failure.REDIRECTS))
        if response.failure is Failure.ROBOTS and not listed.is_elsewhere:  # for this program alone
            self._run.are_links_known = False
        if response.failure in _NOT_REQUESTED or (listed.is_elsewhere and not response.status):
            return []
        if response.failure not in (None, Failure.REDIRECTS) or response.status in (403, 429) or response.status >= 500:
            self._run.are_links_known = False
        problems, digest, links = await asyncio.to_thread(check_page, listed.lastmod, response, self._run.now)
        if response.status == 200 and not response.redirects and not listed.is_elsewhere:
            self._got.add(listed.page)
        pages = self._run.pages
        self._linked |= {
            link for link in links if link != listed.page.rstrip("/") and {link, f"{link}/"} & pages.keys()
        }
        is_comparable = not problems and digest is not None and urlsplit(url).path not in ("", "/")
        if is_comparable and digest == await self._digest_of_missing_page(url):
            return [("page-soft-not-found", "the page has the content that an invented URL of its host gets")]
        return problems

    async def _digest_of_missing_page(self, url: str) -> int | None:
        """The digest of what an invented path answers with status 200, unless the home page has it, too.

        An app whose pages are all one shell of HTML says nothing.
        """
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))

        async def digest() -> int | None:
            missing = await self._digest(origin + _INVENTED_PATH)
            return None if missing is None or missing == await self._digest(f"{origin}/") else missing

        if origin not in self._missing:
            self._missing[origin] = asyncio.create_task(digest())
        return await self._missing[origin]

    async def _digest(self, url: str) -> int | None:
        response = await self._client.get(url, MAX_HTML_BYTES + 1)
        return (await asyncio.to_thread(check_page, "", response, self._run.now))[1]


def check_page(lastmod: str, response: Response, now: float) -> tuple[list[Problem], int | None, set[str]]:
    """Return what is wrong with a page, the digest of its content if it is an HTML page that was read completely, and
    the pages that it links to, without their last slashes.

    `lastmod` is its date as listed, empty if it has none.
    """
    if not response.status:
        code = "page-redirect-loop" if response.failure is Failure.REDIRECTS else "page-failed"
        return [(code, response.reason)], None, set()
    if (problem := response.problem("page", "the page")) is not None:
        return [problem], None, set()
    headers = ResponseHeaders(response.headers)
    problems = [("page-noindex", "the header X-Robots-Tag says noindex")] if headers.robots.noindex else []
    if headers.media_type not in HTML_TYPES:
        if any(word in headers.media_type for word in _DATA_TYPES):
            problems.append(("page-type", f"the media type is {quoted(headers.media_type)}"))
        return problems, None, set()
    body, is_complete = decode_body(response.body, headers.codings, MAX_HTML_BYTES + 1)
    html = parse_html(
        body, headers.charset, is_truncated=not (is_complete and response.is_complete), max_links=_MAX_LINKS
    )
    links = {check_loc(resolved(response.url, link).partition("#")[0]).page.rstrip("/") for link in html.links}
    return [*problems, *_html_problems(response.url, lastmod, headers, html, now)], html.digest, links


def _html_problems(url: str, lastmod: str, headers: ResponseHeaders, html: HtmlFacts, now: float) -> Iterator[Problem]:
    if html.noindex and not headers.robots.noindex:
        yield "page-noindex", "a robots meta tag says noindex"
    named = [*headers.canonicals, *filter(None, [html.canonical])]
    if (other := next((target for target in named if _is_other_page(url, target)), None)) is not None:
        yield "page-canonical", f"the page names {quoted(other)} as its canonical URL"
    refresh = headers.instant_refresh if headers.instant_refresh is not None else html.instant_refresh
    if refresh is not None and _is_other_page(url, refresh):
        yield "page-refresh", f"the page leads to {quoted(refresh)} at once"
    listed, own = check_lastmod(lastmod, now), check_lastmod(html.stated_date or "", now)
    if listed.earliest is None or listed.latest is None or own.earliest is None or own.latest is None:
        return
    text = f"lastmod is {shortened(listed.text)}, and the page says {own.text}"
    if own.earliest > listed.latest + _TOLERANCE_SECONDS:
        yield "page-lastmod-behind", text
    elif listed.earliest > own.latest + _TOLERANCE_SECONDS:
        yield "page-lastmod-ahead", text


def _is_other_page(url: str, target: str) -> bool:
    """Whether a URL, perhaps relative, is that of another page."""
    loc = check_loc(resolved(url, target.strip()))
    return bool(loc.host) and loc.page != check_loc(url).page


async def check_site_robots(client: Client, run: Run, url: str) -> None:
    """Check the robots.txt of the host of the sitemap at a URL, and whether the sitemaps that it names are there."""
    robots = await client.robots_txt(url)
    if robots is None:
        return
    first = [document.url for document in run.documents if document.parent is None]
    is_in_index = False
    own_host = check_loc(robots.url, is_page=False).host
    named = [resolved(robots.url, url) for url in robots.sitemaps]
    unread = [url for url in named if url not in run.named and check_loc(url, is_page=False).host == own_host]
    for other in unread[:_MAX_SITEMAPS_REQUESTED]:
        response = await client.get(other, _INDEX_BYTES)
        text, _ = decode_body(response.body, ResponseHeaders(response.headers).codings, _INDEX_BYTES)
        is_in_index |= any(document.encode() in text for document in first)
        if response.failure not in _NOT_REQUESTED and response.status != 200:
            answer = response.reason or f"it answers {response.status}"
            run.report(("robots-sitemap-missing", f"the line names {other}: {answer}"), robots.url)
    for problem in _robots_problems(robots, [url, *first], is_in_index=is_in_index):
        run.report(problem, robots.url)


def _robots_problems(robots: Robots, documents: Sequence[str], *, is_in_index: bool) -> Iterator[Problem]:
    """Check a robots.txt. If it names one of the sitemaps that are being checked, all is well."""
    if robots.status != 200:
        if robots.status in (404, 410):
            yield "robots-no-sitemap-line", "there is no robots.txt, so it does not name the sitemap"
        return
    if robots.is_html:
        yield "robots-html", "the response is an HTML page"
        return
    if robots.is_too_large:
        yield "robots-too-large", f"the file has more than {MAX_ROBOTS_BYTES // 1024} KiB"
    own_host, found = check_loc(robots.url).host, set[str]()
    for name in robots.sitemaps:
        loc = check_loc(name, is_page=False)
        if not loc.host:
            yield "robots-relative", f"the line names {quoted(name)}, which is not an absolute URL"
            loc = check_loc(resolved(robots.url, name), is_page=False)
        elif loc.host != own_host:
            yield "robots-other-host", f"the line names {quoted(name)}"
        found.add(loc.page)
    if not is_in_index and not found & {check_loc(document, is_page=False).page for document in documents}:
        yield "robots-no-sitemap-line", "no Sitemap line names this sitemap"
