"""Finds the routes of a batch of captured responses, parses them, and merges them into the store's pages.

Runs on the background thread, and on a thread that flushes.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final
from urllib.parse import unquote, urlsplit

from ..evidence.dates import CLOCK_SKEW_SECONDS
from ..evidence.images_and_versions import Wanted
from ..evidence.merge import CONFIRMATION_SECONDS, REFRESH_SECONDS, MergedBatch, merge_batch
from ..evidence.observations import Observation, at_merge
from ..evidence.page_verdict import is_listable
from ..evidence.response_parser import UNREADABLE_FILE_REASON, parse_response
from ..evidence.value_history import VOLATILE
from ..exceptions import StoreError
from ..http.messages import CapturedResponse, PageKey
from ..http.request_filter import FOREIGN_HOST
from ..http.site_urls import loc_of
from ..http.urls import quote_path
from ..listing.provider_reader import Providers
from ..models import Page, PageLimits, Route, Site, StoreKey
from ..options.table import Options
from ..routing.route_table import AppRoutes, RouteTable
from ..routing.site_resolver import SiteResolver
from ..stores.base import UNLIMITED, Store
from ..stores.breaker import GuardedStore
from ..util import BoundedCache, WarnOnce, in_pieces
from .cleanup import MAX_SITES, Cleaner
from .prober import CHECKS, Prober
from .tracker import Tracker

OWN_HOST_WINDOW_SECONDS: Final = 60 * 60
"""Seconds for which a request for the site's own Host outweighs those for foreign ones."""

VOLATILE_SECONDS: Final = 15
"""Content that differs between two requests of the middleware within so many seconds varies by itself."""

MAX_CHECKED_PAGES: Final = 10_000
"""Pages whose last own request is remembered."""

OWN_ANSWER_SECONDS: Final = 60 * 60
"""Seconds for which a refusal of a learned page that the middleware itself got makes it ask again before it counts."""

DOUBT_PAUSE_SECONDS: Final = 5 * 60
"""Seconds between two requests for a listed page because of doubtful answers: it may differ at each request."""

PIECE_RESPONSES: Final = 5
"""Responses that are parsed in a few milliseconds. On a server with greenlets (gevent), nothing else runs meanwhile."""

WRITE_OBSERVATIONS: Final = 500
"""Observations that are merged and written at a time, so that others get their turn."""

CONTENTION_SECONDS: Final = 5.0
"""How long pages are read, merged and written again while other workers write to the same site."""

MAX_WAIT_MILLISECONDS: Final = 20
"""The longest wait before the next attempt. It is random, so that not all workers try at once."""

_URL_NAME: Final = re.compile(r"(?:ur[il]|path|info)$")
"""Headers that state the requested path."""

_Seen = list[tuple[CapturedResponse, Observation]]
"""Responses of one site, and what each of them says."""


@dataclass(kw_only=True, eq=False)
class Ingester:
    """Turns captured responses into observations, and merges these into pages."""

    app_routes: AppRoutes
    store: GuardedStore
    providers: Providers
    options: Options
    tracker: Tracker
    prober: Prober
    site_resolver: SiteResolver
    merged: int = 0
    """Observations merged into the store."""
    refused: int = 0
    """New pages left out because the route or the site has its maximum of pages."""
    unwritable: int = 0
    """Responses of paths that cannot be written as a loc."""

    def __post_init__(self) -> None:
        self._own_host_seen_at = BoundedCache[StoreKey, float](MAX_SITES)
        """When a site's own Host was last requested."""
        self._own_host_got_at = BoundedCache[StoreKey, float](MAX_SITES)
        """When the middleware's own request last got a page with it."""
        self._checked = BoundedCache[PageKey, tuple[int, float]](MAX_CHECKED_PAGES)
        """The content that the middleware's last request for a page got, and when."""
        self.forget_asked()
        self._doubted = BoundedCache[PageKey, tuple[bool, float]](MAX_CHECKED_PAGES)
        """Whether a doubtful answer for a page lets it be listed, and when it was last news."""
        self._cleaner = Cleaner(self.store, self.options.max_age_days)
        self._warn_once = WarnOnce()

    def ingest(self, batch: list[CapturedResponse]) -> None:
        """Parse a batch of responses and merge them into the store. Raises `StoreError`."""
        table, now = self.app_routes.reload(), self.store.time()
        # The hosts of others are those of other sites by now.
        current = [response for response in batch if self.site_resolver.is_current(response.site, response.host)]
        current.sort(key=attrgetter("at"))  # of answers of one second, the last decides
        for response in current:
            if not response.is_foreign_host:
                seen_at = self._own_host_got_at if response.is_probe else self._own_host_seen_at
                if response.status == 200 or not response.is_probe:
                    seen_at.put(response.site.store_key, response.at)
        by_site: dict[StoreKey, _Seen] = {}
        for response in in_pieces(current, PIECE_RESPONSES):
            observation = self._observation(response, table, now)
            if observation is not None:
                by_site.setdefault(response.site.store_key, []).append((response, observation))
        for seen in by_site.values():
            site = seen[-1][0].site
            if self.has_pages(site):
                self._merge(site, seen, now)

    def has_pages(self, site: Site) -> bool:
        """Whether the app has answered for a site with a page, now or before, or settings name the site.

        Clients can invent any number of hosts. Those that the app answers with no page are not kept.
        """
        return self.site_resolver.is_known(site) or self.store.version(site.store_key) > 0

    def _observation(self, response: CapturedResponse, table: RouteTable, now: int) -> Observation | None:
        """Return what a response says at the store's time; None if it is not evidence."""
        if response.at > now + CLOCK_SKEW_SECONDS:
            self.store.warn_of_skew(response.at - now)
            return None
        observation = self._parsed(response, table)
        digest = None if observation is None else observation.digest
        if response.body is not None:
            self.tracker.sampler.record_digest(response.page_key, digest)
        if observation is None or (response.is_foreign_host and not self._is_foreign_evidence(response, observation)):
            return None
        if observation.may_be_listed:
            self.site_resolver.note_page(response.site)
        else:  # the page that it is later may be another one
            self.tracker.sampler.forget(response.page_key)
        if response.is_probe and digest is not None:
            before, at = self._checked.get(response.page_key) or (digest, 0.0)
            self._checked.put(response.page_key, (digest, response.at))
            if digest != before and 0 <= response.at - at <= VOLATILE_SECONDS:
                observation = observation._replace(digest=VOLATILE)
        return at_merge(observation, now)

    def _parsed(self, response: CapturedResponse, table: RouteTable) -> Observation | None:
        """What a response says, wherever it was sent."""
        route: Route | None = None
        with self.tracker.log_fault.guard("a page's route could not be found"):  # a URL converter of the app failed
            route = table.find_route(response.site, response.path)
        if route is None or not self.site_resolver.may_store(response.site):
            return None
        path = quote_path(response.path)
        loc = loc_of(response.site, path) if path else None
        if path is None or loc is None:
            self.unwritable += 1
            return None
        observation: Observation | None = None
        with self.tracker.log_fault.guard("a response could not be read"):  # continue with the rest of the batch
            provider = route.settings.values
            provided = provider and self.providers.gave(response.site, provider, path)
            learned = not route.static and not provided
            # The middleware's own request may be for a page that `values` named until now, to see whether it is gone.
            may_be_provided = route.builder is not None and (provided is not False or response.is_probe)
            observation = parse_response(
                response,
                path,
                route.path,
                loc,
                learned=learned,
                may_be_provided=may_be_provided,
                listed_types=self.options.media_types,
                wanted=Wanted(self.options.images, self.options.alternates),
            )
        reason = "" if observation is None or observation.is_read else observation.unread_reason
        if reason not in ("", UNREADABLE_FILE_REASON):
            self._warn_once(
                "HTML",
                "the HTML of %s cannot be read (it %s), so its robots meta tag and its changes are missed:"
                " install a decoder, or add SitemapMiddleware inside the middleware that compresses",
                loc,
                reason,
            )
        return observation

    def _is_foreign_evidence(self, response: CapturedResponse, observation: Observation) -> bool:
        """Whether a response for a foreign Host counts: not while the site's own Host is requested as well."""
        own_hosts = self._own_host_got_at if response.is_probe else self._own_host_seen_at
        own_at = own_hosts.get(response.site.store_key)
        if own_at is None or response.at - own_at >= OWN_HOST_WINDOW_SECONDS:
            # An own request has the Host of the live request if the app refuses the site's own.
            return observation.may_be_listed or not response.is_probe
        if not response.is_probe:
            self.tracker.ignored.count(response.path, FOREIGN_HOST)
        return False

    def _merge(self, site: Site, seen: _Seen, now: int) -> None:
        """Merge observations into the store's pages, and have the prober request those that are new or in doubt."""
        observations, in_doubt = self._evidence(site, seen)
        own = {observation.path for observation in observations if observation.is_probe}
        refused_before = self.refused
        for start in range(0, len(observations), WRITE_OBSERVATIONS):
            some = observations[start : start + WRITE_OBSERVATIONS]
            merged, refused = save_observations(self.store, site.store_key, some, self.options.page_limits, now)
            if self.options.verify:
                news = [path for path in merged.changed_paths if path not in refused]
                self.prober.check(site, [unquote(path) for path in news if path in own], CHECKS - 1)
                self.prober.check(site, [unquote(path) for path in news if path not in own])
                in_doubt += map(unquote, merged.conflicting_paths)
            for path in merged.unread_paths:
                self.tracker.sampler.forget((site.store_key, unquote(path)))
            if refused:
                self.refused += len(refused)
                self._warn_once(
                    "refused",
                    "new pages are not stored: a route has max_pages_per_route=%d pages, or the site has max_pages=%d;"
                    " raise these options of SitemapMiddleware if the pages belong to the site, else exclude them",
                    self.options.page_limits.route,
                    self.options.page_limits.site,
                )
        if self.options.verify:
            self.prober.ask(site, in_doubt)
        self.merged += len(observations)
        self._cleaner.clean_up(site, now, is_full=self.refused > refused_before)

    def _evidence(self, site: Site, seen: _Seen) -> tuple[list[Observation], list[str]]:
        """What of the responses counts, and the decoded paths of the pages whose own answer decides.

        That is asked of a page that is new, or that was refused, before it is listed again, because a header that
        nobody knows may have shown it to its visitor alone; not if `values` may name it. It is also asked of each page
        of which a doubtful answer says something new. A visitor's refusal of a learned page counts at once, because it
        may be private, unless an own request got the page lately: else a crawler that the app blocks would have all
        pages left out.
        """
        in_question = {
            observation.path
            for response, observation in seen
            if response.is_doubtful or _is_shown(response, observation)
        }
        pages = self.store.find(site.store_key, in_question)
        evidence: list[Observation] = []
        asks: list[str] = []
        for response, observation in seen:
            page, is_asked = pages.get(observation.path), False
            counts: Observation | None = observation
            if response.is_doubtful:
                counts, is_asked = self._doubtful_evidence(response, observation, page)
            elif _is_shown(response, observation):
                is_new = self._may_ask(response) and (page is None or not is_listable(page))
                # Others than those that `values` may name count once an own request got them.
                counts = None if is_new and not (page is None and observation.may_be_provided) else observation
                is_asked = is_new and self._is_to_be_asked(response)
            if is_asked:
                asks.append(response.path)
            if counts is not None:
                is_got = counts.denies_access and self._was_got(response)
                evidence.append(counts._replace(denies_access=False) if is_got else counts)
        return evidence, asks

    def _doubtful_evidence(
        self, response: CapturedResponse, observation: Observation, page: Page | None
    ) -> tuple[Observation | None, bool]:
        """What counts of the answer to a doubtful request, and whether the middleware is to request the page.

        An app may believe a header such as X-Forwarded-Prefix or X-Original-URL, or decide by the Host. So a stranger
        who sends one of them can be answered 404 for a page that exists, or with another page. Proxies send them with
        every request, so they cannot be ignored. Therefore such an answer gives no date, image or link. It lists or
        removes a page only if a second one, or the middleware's own request, confirms it.
        """
        may_be_listed, is_listed = observation.may_be_listed, page is not None and is_listable(page)
        counts = observation.undated()._replace(is_unusual=True)
        if is_listed and not may_be_listed:
            return counts, False  # it waits for confirmation, and the page is asked
        if may_be_listed and self._may_ask(response):
            known = page.content_history[-1].value if page is not None and page.content_history else None
            is_other = observation.digest not in (None, known)
            is_old = page is None or observation.at - page.last_seen >= REFRESH_SECONDS
            pause = DOUBT_PAUSE_SECONDS if is_listed else CONFIRMATION_SECONDS
            return None, (not is_listed or is_other or is_old) and self._is_to_be_asked(response, pause)
        before, at = self._doubted.get(response.page_key) or (None, 0.0)
        is_news = before is not may_be_listed or not 0 <= response.at - at < CONFIRMATION_SECONDS
        if is_news:
            self._doubted.put(response.page_key, (may_be_listed, response.at))
        if may_be_listed and _states_other_path(response):
            return None, False
        is_own_host = not (response.is_foreign_host or response.routing_headers)  # another name of the site itself
        if may_be_listed and (is_listed or (page is None and is_own_host)):
            return counts, False
        if not may_be_listed and (page is not None or (observation.learned and not observation.may_be_provided)):
            return None, False  # it is not listed
        return (counts if is_news and before is may_be_listed else None), is_news

    def forget_asked(self) -> None:
        """Forget which pages were to be requested, because the store has lost what was known of them."""
        self._asked_at = BoundedCache[PageKey, float](MAX_CHECKED_PAGES)
        """When a page that a visitor was shown was last to be requested."""

    def _is_to_be_asked(self, response: CapturedResponse, pause: float = CONFIRMATION_SECONDS) -> bool:
        """Whether a page that a visitor was shown is to be requested: once a minute, if it is refused to strangers."""
        asked_at = self._asked_at.get(response.page_key)
        if asked_at is not None and 0 <= response.at - asked_at < pause:
            return False
        self._asked_at.put(response.page_key, response.at)
        return True

    def _was_got(self, response: CapturedResponse) -> bool:
        """Whether an own request got a page lately, and may ask for it again."""
        _, at = self._checked.get(response.page_key) or (0, -math.inf)
        return 0 <= response.at - at < OWN_ANSWER_SECONDS and self._may_ask(response)

    def _may_ask(self, response: CapturedResponse) -> bool:
        return self.options.verify and self.prober.may_request(response.site, response.path)


def _is_shown(response: CapturedResponse, observation: Observation) -> bool:
    """Whether a visitor got a page that `values` does not name."""
    is_named = observation.may_be_provided and not observation.learned
    return observation.may_be_listed and not response.is_probe and not is_named


def _states_other_path(response: CapturedResponse) -> bool:
    """Whether a header states another path than the requested one. A proxy may add a prefix to it."""
    for name, value in response.routing_headers:
        if _URL_NAME.search(name):
            try:
                stated = urlsplit(value).path if "://" in value else re.split("[?#]", value)[0]
            except ValueError:
                return True
            if not unquote(stated).endswith(response.path):
                return True
    return False


def save_observations(
    store: Store,
    site: StoreKey,
    observations: Sequence[Observation],
    limits: PageLimits = UNLIMITED,
    now: float = math.inf,
) -> tuple[MergedBatch, set[str]]:
    """Read pages, merge, and write what has changed; again if another worker has written to the site meanwhile.

    Returns what was merged, and the paths of pages that were refused. Raises `StoreError`.
    """
    paths = {observation.path for observation in observations}
    until = time.monotonic() + CONTENTION_SECONDS
    while time.monotonic() < until:
        version = store.version(site)
        merged = merge_batch(store.find(site, paths), observations, now)
        if not merged.pages:
            return merged, set()
        refused = store.write(site, version, merged.pages, limits)
        if refused is not None:
            return merged, refused
        time.sleep(secrets.randbelow(MAX_WAIT_MILLISECONDS) / 1000)
    raise StoreError(f"other workers have been writing to the same site for {CONTENTION_SECONDS:g} seconds")
