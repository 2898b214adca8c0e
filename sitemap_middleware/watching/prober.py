"""The prober: requests pages from the app itself, in process, one at a time, as a crawler would.

It gives up on a request that hangs, and asks again with the site's own scheme
and host if the app redirects to these or refuses others.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Final
from urllib.parse import urljoin, urlsplit

from ..exchange import SECONDS_TO_ANSWER, Request, Response
from ..forks import renew_in_children
from ..location import loc_of, quote_path, same_path
from ..model import Sighting, Site

log = logging.getLogger("sitemap_middleware")

GRACE: Final = 1.0
"""Seconds beyond the deadline of a request after which it counts as hanging."""

PAUSE: Final = 0.1
"""Seconds between two requests, at least, so that there are at most ten a second."""

SHARE: Final = 0.5
"""The share of the time that the app may be busy with our requests. After a slow answer the pause is as long."""

_REFUSED: Final = frozenset({400, 421})
"""Statuses of an app that does not answer on the Host of the request."""


class Crowded(Exception):
    """As many requests hang as may, so none is made."""


class Prober:
    """Requests pages from the app."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """In a forked child: what hangs in the parent does not hang here."""
        self._hanging: set[Future[Response | None]] = set()

    def ask(self, request: Request, site: Site, path: str) -> Response | None:
        """What the app answers to a request for a decoded path; None if that says nothing of the page.

        Raises `Crowded`, `TimeoutError` if it hangs, or whatever the app raises.
        """
        answer = self._asked(request, path)
        scheme, host = _instead(request, site, path, answer)
        if scheme or host:
            answer = self._asked(request, path, scheme, host)
            if answer is not None and answer.status in _REFUSED:
                return None  # it may be for the Host of either
        return answer

    def _asked(
        self, request: Request, path: str, scheme: str | None = None, host: str | None = None
    ) -> Response | None:
        if len(self._hanging) >= request.spare:
            raise Crowded
        answer = request.asking(path, scheme=scheme, host=host)
        try:
            return answer.result(SECONDS_TO_ANSWER + GRACE)
        except TimeoutError:
            if not answer.done():
                self._hanging.add(answer)
                answer.add_done_callback(self._hanging.discard)  # at once, if it is done by now
            raise


def pause_after(spent: float) -> float:
    """Seconds to pause after a request that took so many."""
    return max(PAUSE, min(spent, SECONDS_TO_ANSWER) * (1 / SHARE - 1))


def probed(request: Request, site: Site, path: str, at: float, answer: Response) -> Sighting:
    """What was seen of a page by a request of our own, made behind a live one."""
    return Sighting(
        site,
        path,
        at=at,
        status=answer.status,
        headers=answer.headers,
        body=answer.body,
        probed=True,
        host=request.host,
    )


def _instead(request: Request, site: Site, path: str, answer: Response | None) -> tuple[str | None, str | None]:
    """The scheme and host to ask again with, if the app wants the site's own and the request has others."""
    if answer is None:
        return None, None
    host = None if request.host.lower() == site.host else site.host
    if answer.status in _REFUSED:
        return None, host
    target = dict(answer.headers).get("location", "").strip()
    loc = loc_of(site, quote_path(path) or "")
    if not 300 <= answer.status < 400 or not target or loc is None or not same_path(loc, target):
        return None, None
    parts = urlsplit(urljoin(loc, target))
    secure = parts.scheme == site.scheme == "https" and request.scheme != "https"
    return "https" if secure else None, host if parts.netloc.lower() == site.host else None
