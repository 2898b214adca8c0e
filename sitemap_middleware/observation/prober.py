"""The prober: requests pages from the app itself, in process, one at a time, as a crawler would.

It asks for the site's own host, whatever host the request was for that it runs
behind: anybody can send any Host. It gives up on a request that hangs, and asks
again with another scheme or host if the app redirects to that scheme or refuses
that host.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from ..fork_safety import reset_after_fork
from ..http import PROBE_TIMEOUT_SECONDS, WRONG_HOST_STATUSES, Request, Response
from ..models import Site
from ..observations import CapturedResponse
from ..urls import is_other_host, is_same_path, loc_of, quote_path

log = logging.getLogger("sitemap_middleware")

HANG_GRACE_SECONDS: Final = 1.0
"""Seconds beyond the deadline of a request after which it counts as hanging."""

MIN_PAUSE_SECONDS: Final = 0.1
"""Seconds between two requests, at least, so that there are at most ten a second."""

MAX_BUSY_SHARE: Final = 0.5
"""The share of the time that the app may be busy with our requests. After a slow answer the pause is as long."""


class ProbeResponse(NamedTuple):
    """What the app answers to a request of our own."""

    response: Response
    host: str
    """The Host that was asked for."""


class TooManyHanging(Exception):
    """As many requests hang as may, so none is made."""


class Prober:
    """Requests pages from the app."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: what hangs in the parent does not hang here."""
        self._hanging: set[Future[Response | None]] = set()

    def fetch(self, request: Request, site: Site, path: str) -> ProbeResponse | None:
        """What the app answers to a request for a decoded path; None if that says nothing of the page.

        Raises `TooManyHanging`, `TimeoutError` if it hangs, or whatever the app raises.
        """
        response = self._fetch(request, site, path)
        keeps = (
            response is not None
            and response.status in WRONG_HOST_STATUSES
            and is_other_host(site, request.host, request.scheme)
        )
        if keeps:  # a proxy may rewrite Host, and the app know the rewritten one alone
            response = self._fetch(request, site, path, keep_host=True)
        again = response is not None and _redirects_to_https(site, path, response)
        if again:
            response = self._fetch(request, site, path, "https", keep_host=keeps)
        if response is None or ((keeps or again) and response.status in WRONG_HOST_STATUSES):
            return None  # it may be for the Host
        return ProbeResponse(response, request.host if keeps else site.host)

    def _fetch(
        self, request: Request, site: Site, path: str, scheme: str | None = None, *, keep_host: bool = False
    ) -> Response | None:
        if len(self._hanging) >= request.max_hanging_requests:
            raise TooManyHanging
        answer = request.start_fetch(path, scheme=scheme, host=site.host, keep_host=keep_host)
        try:
            return answer.result(PROBE_TIMEOUT_SECONDS + HANG_GRACE_SECONDS)
        except TimeoutError:
            if not answer.done():
                self._hanging.add(answer)
                answer.add_done_callback(self._hanging.discard)  # at once, if it is done by now
            raise


def pause_after(spent: float) -> float:
    """Seconds to pause after a request that took so many."""
    return max(MIN_PAUSE_SECONDS, min(spent, PROBE_TIMEOUT_SECONDS) * (1 / MAX_BUSY_SHARE - 1))


def captured_probe(site: Site, path: str, at: float, answer: ProbeResponse) -> CapturedResponse:
    """What was seen of a page by a request of our own, made behind a live one."""
    return CapturedResponse(
        site,
        path,
        at=at,
        status=answer.response.status,
        headers=answer.response.headers,
        body=answer.response.body,
        probed=True,
        host=answer.host,
    )


def has_credentials(request: Request) -> bool:
    """Whether a live request carries credentials."""
    refusal = request.ignore_reason()
    return refusal is not None and refusal.reason == "credentials"


def _redirects_to_https(site: Site, path: str, response: Response) -> bool:
    """Whether the app redirects a request to the same page by HTTPS, which is the site's scheme."""
    target = dict(response.headers).get("location", "").strip()
    loc = loc_of(site, quote_path(path) or "")
    if not 300 <= response.status < 400 or not target or loc is None or not is_same_path(loc, target):
        return False
    return urlsplit(urljoin(loc, target)).scheme == site.scheme == "https"
