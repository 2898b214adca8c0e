"""Requests pages of the app in process, as a crawler would: what the two probers share.

`ProbeClient` makes the requests. It sends the site's own host, because the live
request that it imitates may name any Host. `BackgroundProber` is the base of the
two probers, which choose the pages.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from ..http.captured_response import CapturedResponse
from ..http.messages import (
    PROBE_GRACE_SECONDS,
    PROBE_TIMEOUT_SECONDS,
    WRONG_HOST_STATUSES,
    AppTerminated,
    ProbeRequest,
    Request,
    Response,
)
from ..http.urls import is_other_host, is_same_path, loc_of, quote_path
from ..models import Site
from ..util import reset_after_fork

log: logging.Logger = logging.getLogger("sitemap_middleware")

MIN_PAUSE_SECONDS: Final = 0.1
"""Seconds between two requests, at least: at most ten requests are made a second."""

MAX_BUSY_SHARE: Final = 0.5
"""Share of the time that requests may keep the app busy. After a slow response the pause is as long."""


_TOO_SLOW: Final = f"got no complete response within {PROBE_TIMEOUT_SECONDS:g} seconds"


class ProbeResponse(NamedTuple):
    """The app's response to a probe."""

    response: Response
    host: str
    """The Host that was sent."""


ProbeSteps = Generator[Future[Response | None], Response | None, ProbeResponse]


class NoAnswer(Exception):
    """The app sent nothing, or a response that is not about the page. Says so in words that follow "the request"."""


class TooManyHanging(Exception):
    """No request was made, because the maximum number of requests hangs."""


class ProbeClient:
    """Makes requests to the app. Tries another scheme or Host if the app requires it."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: requests that hang in the parent do not hang here."""
        self._hanging: set[Future[Response | None]] = set()

    def has_room(self, request: Request, running: int) -> bool:
        """Whether another request may be made while so many run, because each of them may hang."""
        return len(self._hanging) + running < request.max_hanging_requests

    def give_up(self, future: Future[Response | None]) -> None:
        """Count a request as hanging until it ends."""
        self._hanging.add(future)
        future.add_done_callback(self._hanging.discard)  # runs at once if the future is done by now

    def fetch(self, request: Request, site: Site, path: str) -> ProbeResponse:
        """Request a decoded path, and wait; see `fetch_steps`. Raises TimeoutError, too, if the app hangs."""
        steps = self.fetch_steps(request, site, path)
        future = next(steps)
        while True:
            try:
                response = future.result(PROBE_TIMEOUT_SECONDS + PROBE_GRACE_SECONDS)
            except TimeoutError:
                if not future.done():
                    self.give_up(future)
                raise
            try:
                future = steps.send(response)
            except StopIteration as end:
                probed: ProbeResponse = end.value
                return probed

    def fetch_steps(self, request: Request, site: Site, path: str) -> ProbeSteps:
        """Request a decoded path in steps: yields the future of each request, and takes its response.

        Args:
            request: the live request that is imitated, with its forwarding headers.
            site: the site whose host is requested.
            path: the decoded path below the site's root.

        Raises:
            NoAnswer: the app said nothing about the page.
            TooManyHanging: no request was made.
        """
        response = yield self._start(request, site, path)
        # Behind a proxy that rewrites Host, the app may accept only the Host of the live request.
        keep_host = (
            response is not None
            and response.status in WRONG_HOST_STATUSES
            and is_other_host(site, request.host, request.scheme)
        )
        if keep_host:
            response = yield self._start(request, site, path, keep_host=True)
        use_https = response is not None and _redirects_to_https(site, path, response)
        if use_https:
            response = yield self._start(request, site, path, "https", keep_host=keep_host)
        if response is None:
            raise NoAnswer(_TOO_SLOW)
        if (keep_host or use_https) and response.status in WRONG_HOST_STATUSES:
            raise NoAnswer(f"got {response.status}, which may be about its Host: check the app's allowed hosts")
        return ProbeResponse(response, request.host if keep_host else site.host)

    def _start(
        self, request: Request, site: Site, path: str, scheme: str | None = None, *, keep_host: bool = False
    ) -> Future[Response | None]:
        if not self.has_room(request, 0):
            raise TooManyHanging
        return request.start_probe(ProbeRequest(path, scheme, None if keep_host else site.host))


class BackgroundProber:
    """Base of the probers: requests pages one after the other, with pauses, until it is closed."""

    def __init__(
        self, clock: Callable[[], float], client: ProbeClient, observe: Callable[[CapturedResponse], None]
    ) -> None:
        """`observe` receives the captured responses."""
        self._clock = clock
        self._client = client
        self._observe = observe
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's background job does not run here."""
        self._closing = threading.Event()

    def close(self) -> None:
        """Make no further requests in the current job: a server that shuts down waits for it."""
        self._closing.set()

    def wait(self, seconds: float) -> None:
        """Pause for so many seconds, or until the prober is closed."""
        self._closing.wait(seconds)

    def _capture(self, request: Request, site: Site, path: str) -> CapturedResponse:
        """Request a decoded path. Raises as `ProbeClient.fetch`."""
        at = self._clock()
        return captured_probe(site, path, at, self._client.fetch(request, site, path))


def captured_probe(site: Site, path: str, at: float, probe: ProbeResponse) -> CapturedResponse:
    """The captured response of a probe for a decoded path, made at so many POSIX seconds."""
    return CapturedResponse(
        site,
        path,
        at=at,
        status=probe.response.status,
        headers=probe.response.headers,
        body=probe.response.body,
        is_probe=True,
        host=probe.host,
    )


def describe_failure(error: BaseException) -> str:
    """Why a request got no response, in words that follow "the request"."""
    if isinstance(error, TimeoutError):
        return _TOO_SLOW
    if isinstance(error, AppTerminated):
        return f"ended early: {error}"
    return str(error) if isinstance(error, NoAnswer) else f"ended early: the app raised {type(error).__name__}"


def has_credentials(request: Request) -> bool:
    """Whether a live request carries credentials."""
    ignored = request.ignore_reason()
    return ignored is not None and ignored.reason == "credentials"


def pause_after(seconds_busy: float) -> float:
    """Return the seconds to pause after a request that kept the app busy for so many."""
    return max(MIN_PAUSE_SECONDS, min(seconds_busy, PROBE_TIMEOUT_SECONDS) * (1 / MAX_BUSY_SHARE - 1))


def _redirects_to_https(site: Site, path: str, response: Response) -> bool:
    """Whether a response redirects to the same page by HTTPS, and HTTPS is the site's scheme."""
    target = dict(response.headers).get("location", "").strip()
    loc = loc_of(site, quote_path(path) or "")
    if not 300 <= response.status < 400 or not target or loc is None or not is_same_path(loc, target):
        return False
    return urlsplit(urljoin(loc, target)).scheme == site.scheme == "https"
