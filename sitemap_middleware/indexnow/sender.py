"""Sends the notices of a site to a search engine, and serves the key by which that knows them.

Notices are sent from a thread in the background: by one worker at a time, and never while a request waits. What is to
be sent, and what was, is one record for each site, which only the worker with the lease writes. Each URL is noted
before it is sent, and again when it was received. A worker that dies between has sent it or not; so it is sent again,
but not within ten minutes, which IndexNow asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from secrets import token_hex
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..documents.changes import PublicLocs
from ..documents.publisher import Publisher
from ..documents.robots import RobotsTxt
from ..exceptions import StoreError
from ..http.messages import PROBE_USER_AGENT, retry_after_seconds
from ..http.site_urls import loc_of
from ..http.urls import quote_path
from ..models import Site
from ..observe.refresh_marks import Refresher
from ..options.table import Options
from ..routing.site_resolver import SiteResolver
from ..stores.breaker import GuardedStore
from ..util import FaultLog, ForkSafeLock, WarnOnce, begin, log, run_in_background
from .queue import RECORD_NAME, STATES, Queue, decoded_queue

DEFAULT_ENDPOINT: Final = "https://api.indexnow.org/indexnow"
"""One is enough: Bing, Yandex, Naver, Seznam and Yep tell each other."""

TIMEOUT_SECONDS: Final = 10.0
"""Seconds for a request in all, however slowly its answer comes."""

MAX_ANSWER_BYTES: Final = 4096

TICK_SECONDS: Final = 30
"""Seconds between two looks at what is to be sent."""

LOOK_SECONDS: Final = 5 * 60
"""Seconds between two requests of the middleware for its own sitemap, which find what changed."""

KEY_CHECKS: Final = 3
"""How often in a row the key must be public: while a deployment rolls on, not all servers have it, and engines fetch it
once."""

LEASE_SECONDS: Final = 60
"""Longer than the requests take together between which the lease is extended."""

MAX_REQUESTS: Final = 20
"""Requests between two looks: an engine that takes no URL has each batch halved again and again."""

_OWN_KEY: Final = re.compile("[0-9a-f]{32}")


class Answer(NamedTuple):
    """A response."""

    status: int
    """0 if there was none."""
    body: bytes
    """Its beginning; why there is no response, if there is none."""
    retry_after: str = ""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an answer: what is sent to one server is not for another one."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener: Final = build_opener(_NoRedirect)


def request(url: str, method: str = "GET", body: bytes | None = None) -> Answer:
    """Request a URL that a setting names. It never raises, and takes `TIMEOUT_SECONDS` at most."""
    answer = begin(partial(_request, url, method, body))  # no timeout of a socket is for all of a request
    try:
        return answer.result(TIMEOUT_SECONDS)
    except TimeoutError:
        return Answer(0, f"it takes longer than {TIMEOUT_SECONDS:g} seconds".encode())


def _request(url: str, method: str, body: bytes | None) -> Answer:
    headers = {"User-Agent": PROBE_USER_AGENT, "Cache-Control": "no-cache"}
    if body is not None:
        headers["Content-Type"] = "application/json; charset=utf-8"
    try:
        try:
            response: Any = _opener.open(Request(url, body, headers, method=method), timeout=2 * TIMEOUT_SECONDS)  # noqa: S310 # http(s)
        except HTTPError as error:
            response = error
        with response:
            return Answer(
                response.status, response.read(MAX_ANSWER_BYTES), str(response.headers.get("Retry-After", ""))
            )
    except (OSError, HTTPException, ValueError) as error:
        return Answer(0, str(error).encode("utf-8", "replace"))


@dataclass(eq=False, kw_only=True)
class IndexNow:
    """Tells an engine of the changes of the site of base_url. Without the option `indexnow`, it does nothing."""

    options: Options
    store: GuardedStore
    site_resolver: SiteResolver
    robots_txt: RobotsTxt
    publisher: Publisher
    refresher: Refresher
    public_locs: PublicLocs
    ask: Callable[[Site, Iterable[str]], object]
    """Has decoded paths requested."""
    unfit_reason: Callable[[], str | None]
    """Why nothing is to be sent from where the app runs; None if nothing speaks against it."""

    def __post_init__(self) -> None:
        options = self.options
        self._option_key = options.indexnow if isinstance(options.indexnow, str) else None
        self._endpoint = options.indexnow_endpoint or DEFAULT_ENDPOINT
        self._lock = ForkSafeLock()
        self._record: bytes | None = None
        """What the store has, as far as this process knows."""
        self._key: str | None = None
        """The key in there when this process last looked: empty if there was none, None before the first look."""
        self._woken_at = options.clock()  # a process that ends soon sends nothing
        self._is_stopped = options.indexnow is False
        self._warn_once = WarnOnce()
        self._log_fault = FaultLog()
        self.sent: int = 0
        """URLs that the engine received from this process."""
        self.pending: int = 0
        """URLs that waited when this process last looked."""
        self.state: int = int(options.indexnow is not False and options.site is not None)
        """0 if it is off; else the place of the state in `STATES`, from 1 on."""

    # The key file

    def is_key_path(self, path: str) -> bool:
        """Whether a path may be that of the key file. It costs almost nothing."""
        if not (self.options.indexnow and path.endswith(".txt") and self._may_be_key(path[1:-4])):
            return False
        return self._option_key is not None or self._key is None or path == f"/{self._key}.txt"

    def _may_be_key(self, key: str) -> bool:
        return _OWN_KEY.fullmatch(key) is not None if self._option_key is None else key == self._option_key

    def key_file(self, site: Site, path: str) -> str | None:
        """The key, if it is this path's; None for any other. It may block. Raises `StoreError`."""
        if site.base_url != self.site_resolver.default_site().base_url:
            return None
        if self._option_key is None and self._key is None:
            self._key = ""  # strangers may ask for any number of keys: once is enough, however slow the store is
            self._load(site)
        key = self._option_key or self._key
        return key if path == f"/{key}.txt" else None

    # When it runs

    def stop(self) -> None:
        """Send nothing in this process: it is a command, and no worker."""
        self._is_stopped = True

    def wake(self) -> None:
        """Have what is due sent in the background. Called every few seconds."""
        now = self.options.clock()
        if self._is_stopped or 0 <= now - self._woken_at < TICK_SECONDS:
            return
        self._woken_at = now
        run_in_background(partial(self.run, waits=False))

    def run(self, *, waits: bool = True) -> None:
        """Send what is due, in this thread. While another thread does, wait for it, or leave it to that."""
        if not self._is_stopped and self._lock.acquire(-1 if waits else 0):
            try:
                self._run()
            finally:
                self._lock.release()

    def _run(self) -> None:
        try:
            site = self.site_resolver.default_site()
            reason = self._off_reason(site)
            if reason is not None:
                self._warn_once("off", "IndexNow is off: %s", reason)
                self.state = 0
            elif self.site_resolver.is_requested() and self._has_turn(site):  # else its root path may be unknown
                try:
                    self._work(site)
                finally:
                    self.store.take(site.base_url, RECORD_NAME, 0)
            else:
                self._show(self._load(site))
        except StoreError as error:  # the circuit breaker has logged it
            log.debug("no notices are sent: %s", error)
        except Exception as error:
            self._log_fault("the notices of changes could not be sent", error)

    def _off_reason(self, site: Site) -> str | None:
        """Why nothing is to be sent; None if nothing speaks against it. Another endpoint is told in any case."""
        if self.options.site is None:
            return "it needs base_url, and one for all hosts"
        if self.options.indexnow_endpoint is not None:
            return None
        reason = "the site is on this machine" if site.loopback else self.unfit_reason()
        if reason is not None:
            return f"{reason}; indexnow_endpoint names an engine to try it with"
        is_allowed = self.robots_txt.cached_rules(site, self.store).allows(f"{site.base_url}/")
        return None if is_allowed else "robots.txt, or the option robots, keeps crawlers from the home page"

    def _has_turn(self, site: Site) -> bool:
        return self.store.take(site.base_url, RECORD_NAME, LEASE_SECONDS)

    # What it does

    def _work(self, site: Site) -> None:
        queue = self._load(site)
        self._save(site, queue)
        if queue.state == "burnt":
            self._warn_once(
                "burnt",
                'IndexNow refuses the key for ever, so nothing is sent: give a new one, such as indexnow="%s"',
                token_hex(16),
            )
        elif not queue.is_paused(self.store.time()) and (queue.state != "unverified" or self._verify(site, queue)):
            self._look(site, queue)
            for _ in range(MAX_REQUESTS):
                urls = queue.due(self.store.time()) if self._has_turn(site) else []
                if not urls or not self._send(site, queue, urls):
                    break
        self._show(queue)

    def _verify(self, site: Site, queue: Queue) -> bool:
        """Whether the key file is surely public: engines fetch it once, and remember for ever that it was not there."""
        url, key = _key_url(site, queue), queue.key.encode()
        for _ in range(KEY_CHECKS):  # each may reach another server
            answer = request(url)
            if (answer.status, answer.body) != (200, key):
                self._warn_once(
                    "unverified",
                    "IndexNow waits: %s does not return the key, but %s; have this URL reach the app, also from its"
                    " server",
                    url,
                    f"status {answer.status}" if answer.status else answer.body.decode(errors="replace"),
                )
                queue.pause(self.store.time())
                break
        else:
            queue.state = "verifying"
        self._save(site, queue)
        return queue.state == "verifying"

    def _look(self, site: Site, queue: Queue) -> None:
        """Find what changed: request the sitemap now and then, as a crawler does, and read the changes.

        What the app names is requested from it, too, and is told once it has answered.
        """
        now, before, named = self.store.time(), queue.looked_at, self.refresher.changed()
        if not 0 <= now - before < LOOK_SECONDS or max(named.values(), default=0) >= before:
            queue.looked_at = now
            url = f"{site.base_url}{quote_path(self.options.path)}?{token_hex(8)}"  # no cache has that
            if request(url, "HEAD").status != 200:  # not every proxy passes it on
                request(url)
        queue.add_changes(self.publisher.changes(site, queue.looked_at), now)
        paths = {loc: path for path in named if (loc := loc_of(site, quote_path(path) or ""))}
        waiting = {loc: named[path] for loc, path in paths.items() if queue.is_news(loc, named[path])}
        for loc in self.public_locs(site, waiting, True):
            queue.add(loc, waiting.pop(loc), is_named=True)
        # If the page fails, it is requested again with a later look, after a pause that grows with the time.
        ages = {loc: (before - int(at), queue.looked_at - int(at)) for loc, at in waiting.items()}
        again = [loc for loc, (age, later) in ages.items() if age >= 0 and later.bit_length() > age.bit_length()]
        if again:
            self.ask(site, [paths[loc] for loc in again])
        queue.drop_oldest()
        self._save(site, queue)

    def _send(self, site: Site, queue: Queue, urls: list[str]) -> bool:
        """Send some URLs, if everyone may hear of them now; whether further ones may be sent now."""
        now, most = self.store.time(), queue.notices[urls[0]].most
        notices = {url: queue.notices[url] for url in urls}  # what is only named may be anything until its page is seen
        since = {url: notice.at if notice.is_named else None for url, notice in notices.items()}
        public = self.public_locs(site, since, True)
        queue.note(urls, now, most=most)  # what is not for everyone is looked at again in ten minutes
        self._save(site, queue)  # before it is sent: if this process dies meanwhile, nobody repeats it at once
        urls = [url for url in urls if url in public]
        if not urls:
            return True
        message = {"host": site.host, "key": queue.key, "keyLocation": _key_url(site, queue), "urlList": urls}
        answer = request(self._endpoint, "POST", json.dumps(message).encode())
        # A refusal of another kind is that of a proxy, or of a firewall.
        is_refused = answer.status == 403 and answer.body.lstrip().startswith(b"{")
        is_unchecked = is_refused and b"SiteVerificationNotCompleted" in answer.body
        if answer.status == 200:
            queue.note(urls, now, is_done=True)
            queue.state, queue.failures, queue.retry_at = "good", 0, 0
            self.sent += len(urls)
        elif answer.status in (400, 422):
            queue.note(urls, now, is_done=len(urls) == 1, most=max(1, len(urls) // 2))
            if len(urls) == 1:
                self._warn_once("invalid", "IndexNow does not take %s: %s", urls[0], _shown(answer))
        elif is_refused and not is_unchecked:
            queue.state = "burnt"
        else:
            queue.pause(now, retry_after_seconds(answer.retry_after, now))
            if answer.status == 202 or is_unchecked:
                queue.state = "verifying"
            elif answer.status == 429:
                queue.state = "limited"
                self._warn_once(
                    "limited", "IndexNow takes no more notices for now, and gets them later: %s", _shown(answer)
                )
            else:
                self._warn_once("failed", "IndexNow does not answer, and gets its notices later: %s", _shown(answer))
        self._save(site, queue)
        return answer.status in (200, 400, 422)

    def _load(self, site: Site) -> Queue:
        record = self._record = self.store.load(site.base_url, [RECORD_NAME]).get(RECORD_NAME)
        queue = decoded_queue(record, self.store.time())
        is_served = self._may_be_key(queue.key)
        if not is_served:
            queue.renew(self._option_key or token_hex(16))
        self._key = queue.key if is_served and record is not None else ""  # one that is not saved is of no use
        return queue

    def _save(self, site: Site, queue: Queue) -> None:
        """Save the queue, unless another worker has the lease by now. Raises `StoreError`."""
        record = queue.encoded()
        if record != self._record:
            if not self._has_turn(site):
                raise StoreError("another worker sends")
            self.store.save(site.base_url, {RECORD_NAME: record})
            self._record, self._key = record, queue.key

    def _show(self, queue: Queue) -> None:
        self.pending, self.state = queue.pending(), STATES.index(queue.state) + 1


def _key_url(site: Site, queue: Queue) -> str:
    return f"{site.base_url}/{queue.key}.txt"


def _shown(answer: Answer) -> str:
    text = answer.body[:200].decode(errors="replace")
    return f"status {answer.status}, {text!r}" if answer.status else text
