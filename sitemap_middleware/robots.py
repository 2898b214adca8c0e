"""The rulebook: each site's robots.txt as the app serves it, asked for within the process now and then."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

from .config import Options
from .evidence.response_headers import ResponseHeaders
from .exceptions import StoreError
from .http import WRONG_HOST_STATUSES, Request, Response
from .models import Site
from .rendering.responses import text_response, with_body
from .robots_parser import ROBOTS_PATH, RobotsFile, RobotsRules, is_amendable, minimal_robots, parse_robots_file
from .routing.url_map import URLMap
from .stores.base import Store
from .stores.checksums import verify, with_checksum
from .urls import is_other_host, quote_path, redirect_target

log = logging.getLogger("sitemap_middleware")

MAX_CACHED_SITES: Final = 64
"""Sites whose rules are remembered."""

RETRY_SECONDS: Final = 30
"""Seconds until a robots.txt that could not be had is asked for again."""

MAX_REDIRECTS: Final = 5
"""Redirects that are followed, as crawlers do (RFC 9309, section 2.3.1.2). After more there are no rules."""

_RECORD_NAME: Final = "robots"
"""What rules are kept under in a store."""

_FAILURE_REASON: Final = "the app fails, or does not answer in time"

_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_SERVER_ERROR_CLASS: Final = 5
_TOO_MANY_REQUESTS: Final = 429


class RobotsUnknown(Exception):
    """The app's robots.txt fails, and nothing is known of what it forbade before."""


class _CachedRules(NamedTuple):
    """What is known of one site's rules."""

    rules: RobotsRules | None
    """None if its robots.txt has failed each time."""
    fetched_at: float
    """POSIX seconds: when it was last asked for."""
    max_age: float
    """For which that counts."""


class RobotsTxt:
    """Knows what robots.txt forbids, and answers for it: with a Sitemap line, or for an app that has none.

    The rules are kept in the store as well, for a process that meets a robots.txt which fails.
    """

    def __init__(self, urlmap: URLMap, options: Options, store: Store) -> None:
        self._urlmap = urlmap
        self._options = options
        self._store = store
        self._cached: dict[str, _CachedRules] = {}
        self._warned: set[str] = set()

    def handles(self, site: Site, path: str) -> bool:
        """Whether this is the site's robots.txt. There is one a host (RFC 9309, section 2.3): none below a root."""
        return self._options.robots and path == ROBOTS_PATH and not site.root

    def rules(self, site: Site, request: Request, now: float) -> RobotsRules:
        """What a site's robots.txt forbids, no older than max_age.

        If the app answers 429 or 5xx, or fails, it is what was forbidden before, and
        the app is soon asked again. If nothing is known of that, crawlers take all
        for forbidden: `RobotsUnknown`. Only an app that fails, and has no route for
        robots.txt, forbids nothing.
        """
        if not self._options.robots or site.root:
            return RobotsRules()
        known = self._cached.get(site.base_url)
        if known is None or not 0 <= now - known.fetched_at < known.max_age:
            known = self._refresh(site, request, now, known.rules if known else None)
            while len(self._cached) >= MAX_CACHED_SITES and site.base_url not in self._cached:
                del self._cached[next(iter(self._cached))]
            self._cached[site.base_url] = known
        if known.rules is None:
            raise RobotsUnknown
        return known.rules

    def _refresh(self, site: Site, request: Request, now: float, before: RobotsRules | None) -> _CachedRules:
        """What is known once the app was asked."""
        found, failure = self._fetch_text(site, request)
        if found is None:
            rules = before or self._load(site, self._store)
            if rules is None and failure == _FAILURE_REASON and not self._urlmap.table.has_explicit_route(ROBOTS_PATH):
                return _CachedRules(RobotsRules(), now, min(RETRY_SECONDS, self._options.max_age))
            meanwhile = "its rules of before still stand" if rules else "there is no sitemap until it answers"
            self._warn_once(
                "failing",
                "the app's own robots.txt cannot be had (%s), and %s: make it answer with its rules or with 404,"
                " or give SitemapMiddleware robots=False if it is not to be obeyed",
                failure,
                meanwhile,
            )
            return _CachedRules(rules, now, min(RETRY_SECONDS, self._options.max_age))
        rules = before if before is not None and found == before.text else RobotsRules(found)
        if rules is not before:
            self._save(site, rules)
        return _CachedRules(rules, now, self._options.max_age)

    def _fetch_text(self, site: Site, request: Request) -> tuple[str | None, str]:
        """The text of the rules, empty if there are none; None if they cannot be had now, and why."""
        answer = self._follow_redirects(site, request)
        if answer is None:
            return None, _FAILURE_REASON
        if answer.status == _TOO_MANY_REQUESTS or answer.status // 100 == _SERVER_ERROR_CLASS:
            return None, f"status {answer.status}"
        if answer.status != 200:
            return "", ""
        file = _parse_response(answer)
        return (None, "its compression is unknown") if file is None else (file.text, "")

    def _follow_redirects(self, site: Site, request: Request) -> Response | None:
        """What the app answers in the end, once its redirects were followed; None if it fails."""
        scheme, path = request.scheme, ROBOTS_PATH
        host, keeps = site.host, False
        for _ in range(MAX_REDIRECTS + 1):
            other = scheme if scheme != request.scheme else None
            answer = self._fetch(request, path, other, host, keep_host=keeps)
            if (
                answer is not None
                and answer.status in WRONG_HOST_STATUSES
                and not keeps
                and is_other_host(site, request.host, request.scheme)
            ):
                keeps = True  # a proxy may rewrite Host, and the app know the rewritten one alone
                answer = self._fetch(request, path, other, host, keep_host=keeps)
            if answer is None or answer.status not in _REDIRECT_STATUSES:
                return answer
            target = ResponseHeaders(answer.headers).get_last("location")
            there = redirect_target(site, scheme, host, path, target)
            if there is None:
                self._warn_once(
                    "elsewhere",
                    "the app's own robots.txt redirects to %s, which is not asked for: the rules there are not"
                    " obeyed; serve the file itself",
                    target[:200],
                )
                return answer
            scheme, host, path = there
        return Response(404, [])

    def _fetch(
        self, request: Request, path: str, scheme: str | None, host: str, *, keep_host: bool = False
    ) -> Response | None:
        """The app's own answer; None where it fails."""
        if path == ROBOTS_PATH and not self._urlmap.may_answer(ROBOTS_PATH):
            return Response(404, [])
        try:
            return request.fetch(path, scheme=scheme, host=host, keep_host=keep_host, cut=True)
        except Exception as error:
            log.debug("the app failed when it was asked for %s: %s", path, error)
            return None

    def cached_rules(self, site: Site, store: Store | None = None) -> RobotsRules:
        """What is known of a site's rules without asking the app: by this process, else by what a store keeps."""
        if not self._options.robots or site.root:
            return RobotsRules()
        known = self._cached.get(site.base_url)
        if known is not None and known.rules is not None:
            return known.rules
        return (None if store is None else self._load(site, store)) or RobotsRules()

    def handle(self, site: Site, request: Request, lists: Callable[[], bool]) -> Response | None:
        """The response to a request for robots.txt; None where it is the app's to give.

        Args:
            site: the one that is asked for.
            request: the one to answer.
            lists: tells whether there is a sitemap to speak of.
        """
        loc = site.base_url + (quote_path(self._options.path) or "")
        answer = self._fetch(request, ROBOTS_PATH, None, site.host, keep_host=True)
        if answer is None:
            return None
        if answer.status == 404:
            fields = [("Cache-Control", f"public, max-age={self._options.max_age}")]
            return text_response(request.method, 200, minimal_robots(loc), fields) if lists() else None
        file = _parse_response(answer) if answer.status == 200 else None
        if file is None or not is_amendable(ResponseHeaders(answer.headers).media_type):
            return None
        whole = file.with_sitemap(loc)
        return None if whole is None or not lists() else with_body(request.method, answer, whole)

    def _save(self, site: Site, rules: RobotsRules) -> None:
        """Have the store keep the rules, if they are others than it keeps."""
        try:
            kept = self._load(site, self._store)
            if kept is None or kept.text != rules.text:
                self._store.save(
                    site.base_url,
                    {_RECORD_NAME: with_checksum(zlib.compress(rules.text.encode("utf-8", "replace"), 1))},
                )
        except StoreError as error:
            log.debug("the rules of robots.txt are not kept: %s", error)

    def _load(self, site: Site, store: Store) -> RobotsRules | None:
        """The rules that a store keeps of a site; None if it keeps none that can be read."""
        try:
            kept = verify(store.load(site.base_url, [_RECORD_NAME]).get(_RECORD_NAME, b""))
            return None if kept is None else RobotsRules(zlib.decompress(kept).decode())
        except (StoreError, zlib.error, ValueError) as error:
            log.debug("no rules of robots.txt are kept: %s", error)
            return None

    def _warn_once(self, topic: str, message: str, *arguments: object) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning(message, *arguments)


def _parse_response(answer: Response) -> RobotsFile | None:
    """The robots.txt that an answer holds; None if it cannot be decompressed."""
    told = ResponseHeaders(answer.headers)
    return parse_robots_file(answer.body, ",".join(told.get_all("content-encoding")), told.charset)
