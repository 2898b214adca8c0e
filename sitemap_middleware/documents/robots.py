"""Requests the app's robots.txt in process for its rules, and has visitors see a Sitemap line in it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from ..evidence.page_verdict import GONE_STATUSES
from ..evidence.response_headers import ResponseHeaders
from ..evidence.response_parser import decode_body
from ..exceptions import StoreError
from ..http.messages import (
    PROBE_GRACE_SECONDS,
    PROBE_TIMEOUT_SECONDS,
    REDIRECT_STATUSES,
    SERVER_ERROR_CLASS,
    WRONG_HOST_STATUSES,
    Request,
    Response,
    text_response,
    with_body,
)
from ..http.robots_parser import (
    DISALLOW_ALL,
    MAX_ROBOTS_BYTES,
    ROBOTS_PATH,
    RobotsRules,
    decode_robots,
    is_robots,
    minimal_robots,
    with_sitemap,
)
from ..http.site_urls import redirect_target
from ..http.urls import quote_path
from ..listing.site_signals_cache import MAX_CACHED_SITES
from ..models import Site
from ..options.table import Options
from ..routing.route_table import AppRoutes
from ..stores.base import Store
from ..util import BoundedCache, WarnOnce, log
from .no_sitemap_reasons import Unavailable

RETRY_SECONDS: Final = 30
"""Seconds after which a robots.txt that failed is requested again."""

MAX_REDIRECTS: Final = 5
"""Redirects that are followed, as crawlers do (RFC 9309, section 2.3.1.2). More mean that nothing is forbidden."""

_RECORD_NAME: Final = "robots"
"""The name of the rules in the store: a line with the time at which they were read, in POSIX seconds, and the text."""

_FAILED_STATUSES: Final = WRONG_HOST_STATUSES | {429}
"""They say nothing of the rules: the app may refuse the Host, or more requests."""


class _CachedRules(NamedTuple):
    """The rules of one site, as last requested."""

    rules: RobotsRules | None
    """None if its robots.txt has always failed."""
    fetched_at: float
    max_age: float
    mark: bytes
    """The token of the last `refresh` before that request."""
    has_file: bool
    """Whether the app has, or may have, a robots.txt; with redirects."""


class RobotsTxt:
    """The robots.txt of each site. Its rules are in the store, too, for processes that start while it fails."""

    def __init__(self, app_routes: AppRoutes, options: Options, store: Store) -> None:
        self._app_routes = app_routes
        self._options = options
        self._store = store
        self._cached = BoundedCache[str, _CachedRules](MAX_CACHED_SITES)
        self._warn_once = WarnOnce()

    def rules(self, site: Site, request: Request, now: float, mark: bytes) -> RobotsRules:
        """The rules of a site, at most `max_age` old, and requested since `refresh` made a mark.

        If the app answers 429 or 5xx, or raises, the previous rules stay, and robots.txt is requested again soon. If
        there are none, crawlers assume that all is forbidden: `Unavailable`. An app that raises and has no route
        for robots.txt forbids nothing.
        """
        if not self._options.robots or site.root:
            return RobotsRules()
        known = self._known(site, request, now, mark)
        if known.rules is None:
            raise Unavailable("the app's robots.txt fails, so it is not known what it forbids")
        return known.rules

    def cached_rules(self, site: Site, store: Store | None = None) -> RobotsRules:
        """The known rules of a site, from this process or else from a store. Makes no request."""
        if self._options.hides_all:
            return RobotsRules(DISALLOW_ALL)
        if not self._options.robots or site.root:
            return RobotsRules()
        known = self._cached.get(site.base_url)
        if known is not None and known.rules is not None:
            return known.rules
        saved = None if store is None else _load(site, store)
        return RobotsRules() if saved is None else saved[0]

    def saved_rules(self, site: Site) -> tuple[RobotsRules, float] | None:
        """The rules that any process learned last, for what cannot be taken back, and when; None if there are none."""
        if self._options.hides_all or not self._options.robots or site.root:
            return self.cached_rules(site), math.inf
        known, saved = self._cached.get(site.base_url), _load(site, self._store)
        if saved is None and known is not None and known.rules is not None:
            return known.rules, known.fetched_at
        return saved

    # The rules

    def _known(self, site: Site, request: Request, now: float, mark: bytes | None = None) -> _CachedRules:
        """What is known of a site, at most `max_age` old, and requested since `refresh` made a mark if one is given."""
        known = self._cached.get(site.base_url)
        if mark is None:
            mark = known.mark if known else b""
        if known is None or not 0 <= now - known.fetched_at < known.max_age or known.mark != mark:
            known = self._request(site, request, now, mark, known.rules if known else None)
            self._cached.put(site.base_url, known)
        return known

    def _request(
        self, site: Site, request: Request, now: float, mark: bytes, before: RobotsRules | None
    ) -> _CachedRules:
        """Request robots.txt; on failure keep the rules known `before`, or those in the store."""
        answer = self._follow_redirects(site, request)
        file = None if answer is None else _decompressed(answer)
        if answer is None:
            failure = "the app fails, or does not answer in time"
        elif answer.status in _FAILED_STATUSES or answer.status // 100 == SERVER_ERROR_CLASS:
            failure = f"status {answer.status}"
        elif answer.status in REDIRECT_STATUSES and _is_within(site, answer):
            failure = "it redirects to itself"
        elif answer.status == 200 and file is None:
            failure = "its compression is unknown"
        else:
            headers = ResponseHeaders(answer.headers)
            if answer.status == 200 and file is not None:
                text = decode_robots(file)
                has_file = is_robots(text, headers.media_type)
            else:  # a file of another host has rules, which are not read
                target = re.split("[?#]", headers.get_last("location"), maxsplit=1)[0]
                text, has_file = "", target.endswith(ROBOTS_PATH)
            is_new = before is None or text != before.text
            rules = RobotsRules(text) if is_new else before
            if is_new or self._options.indexnow is not False:
                with suppress(StoreError):  # the circuit breaker has logged it
                    record = f"{now}\n{text}".encode("utf-8", "replace")
                    self._store.save(site.base_url, {_RECORD_NAME: record})
            return _CachedRules(rules, now, self._options.max_age, mark, has_file)
        rules = before
        if rules is None and (saved := _load(site, self._store)) is not None:
            rules = saved[0]
        if rules is None and answer is None and not self._app_routes.table.has_explicit_route(ROBOTS_PATH):
            rules = RobotsRules()
        else:
            self._warn_once(
                "failing",
                "the app's robots.txt fails (%s), so %s: make it answer with rules or with 404, or pass robots=False to"
                " SitemapMiddleware to ignore it",
                failure,
                "its previous rules apply" if rules else "there is no sitemap until it works",
            )
        return _CachedRules(rules, now, min(RETRY_SECONDS, self._options.max_age), mark, has_file=True)

    def _follow_redirects(self, site: Site, request: Request) -> Response | None:
        """The app's response after redirects; None if it fails."""
        path = ROBOTS_PATH
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._fetch(site, request, path)
            if answer is None or answer.status not in REDIRECT_STATUSES:
                return answer
            target = ResponseHeaders(answer.headers).get_last("location")
            followed = redirect_target(site, path, target)
            if followed == path:
                return answer
            if followed is None:
                self._warn_once(
                    "elsewhere",
                    "the app's robots.txt redirects to %s, which is not followed, so the rules there are ignored: serve"
                    " the file at /robots.txt",
                    target[:200],
                )
                return answer
            path = followed
        return Response(404, [])

    def _fetch(self, site: Site, request: Request, path: str) -> Response | None:
        """The app's response; None if it fails."""
        seconds = PROBE_TIMEOUT_SECONDS + PROBE_GRACE_SECONDS
        try:
            answer = request.start_own(site, path).result(seconds)
            if answer is not None and request.is_host_refused(site, answer.status):
                answer = request.start_own(site, path, keeps_host=True).result(seconds)
        except Exception as error:
            log.debug("the app failed to answer a request for %s: %s", path, error)
            return None
        return answer

    # What visitors get

    def respond(
        self, site: Site, request: Request, answer: Response, now: float, has_sitemap: Callable[[], bool]
    ) -> Response | None:
        """What a visitor is sent in place of the app's response for robots.txt; None if that is sent as it is.

        A robots.txt gets a line with the sitemap. What is none for any visitor, such as a page, a redirect to one or a
        404, is replaced by one that forbids nothing.

        `answer` has the names of headers in lower case. `has_sitemap` tells whether there is a sitemap to name.
        """
        loc = site.base_url + (quote_path(self._options.path) or "")
        if answer.status == 200 and request.method == "GET":
            media_type = ResponseHeaders(answer.headers).media_type
            file = _decompressed(answer)
            if file is None:
                return None
            if is_robots(decode_robots(file), media_type):
                extended = with_sitemap(file, media_type, loc)
                return None if extended is None or not has_sitemap() else with_body(request.method, answer, extended)
        is_absent = answer.status in GONE_STATUSES
        if not is_absent and self._known(site, request, now).has_file:
            return None  # it has no body, or is so for this visitor alone
        if not has_sitemap():
            return None
        if not is_absent:
            self._warn_of_replacement(site, answer.status)
        fields = [("Cache-Control", f"public, max-age={self._options.max_age}")]
        return text_response(request.method, 200, minimal_robots(loc), fields)

    def _warn_of_replacement(self, site: Site, status: int) -> None:
        """Say once that the app answers with something else than a robots.txt, and which route does."""
        table, with_slash = self._app_routes.table, f"{ROBOTS_PATH}/"
        route = table.find_route(site, ROBOTS_PATH) or table.matching_route(site, ROBOTS_PATH)
        route = route or table.matching_route(site, with_slash)
        self._warn_once(
            "replaced",
            "what the app answers to /robots.txt (%s, status %d) is no robots.txt, so the middleware serves one that"
            " forbids nothing and names the sitemap: give the app a robots.txt if it should say more",
            f"route {route.path}" if route else "no route that is known",
            status,
        )


def _is_within(site: Site, answer: Response) -> bool:
    """Whether a redirect stays on the site."""
    return redirect_target(site, ROBOTS_PATH, ResponseHeaders(answer.headers).get_last("location")) is not None


def _load(site: Site, store: Store) -> tuple[RobotsRules, float] | None:
    """The rules in a store, and when they were read; None if there are none, or they cannot be read."""
    with suppress(StoreError, ValueError):
        record = store.load(site.base_url, [_RECORD_NAME]).get(_RECORD_NAME)
        read_at, _, text = (record or b"").decode().partition("\n")
        return None if record is None else (RobotsRules(text), float(read_at))
    return None


def _decompressed(answer: Response) -> bytes | None:
    """The robots.txt in a response; None if it cannot be decompressed."""
    file, is_complete = decode_body(answer.body, ResponseHeaders(answer.headers).codings, MAX_ROBOTS_BYTES + 1)
    return file if is_complete or len(file) > MAX_ROBOTS_BYTES else None
