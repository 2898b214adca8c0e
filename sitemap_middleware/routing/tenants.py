"""The sites of an app whose base_url is a function of the Host: what it gave for each host, kept for a minute."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from ..models import Site
from ..util import BoundedCache, WarnOnce, is_on_event_loop, reset_after_fork, run_in_background

KEPT_SECONDS: Final = 60
"""Seconds for which an answer is used, also that a host is no site's."""

MAX_HOSTS: Final = 10_000
"""Hosts of sites whose answer is kept."""

MAX_REFUSED_HOSTS: Final = 1000
"""Other hosts whose answer is kept. They are counted apart, because clients can invent any number of them."""


KEPT_ON_FAILURE_SECONDS: Final = 60 * 60
"""Seconds for which the last answer is used while the function fails."""

MAX_ASKED_HOSTS: Final = 10
"""Hosts for which the function is asked in the background at one time. Others wait for their next request."""


class _Answer(NamedTuple):
    site: Site | None
    given_at: float
    """When the function gave it, in POSIX seconds."""
    asked_at: float
    """When the function was asked last: it may have failed."""


class Tenants:
    """Asks the function for the site of a host. An error is logged once, and the last answer counts for a while."""

    def __init__(self, site_of_host: Callable[[str], Site | None], clock: Callable[[], float]) -> None:
        """`site_of_host` is that of the options."""
        self._site_of_host = site_of_host
        self._clock = clock
        self._sites = BoundedCache[str, _Answer](MAX_HOSTS)
        self._refused = BoundedCache[str, _Answer](MAX_REFUSED_HOSTS)
        self._warn_once = WarnOnce()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's threads do not ask here."""
        self._asked = set[str]()

    def site(self, host: str, *, may_block: bool = False) -> Site | None:
        """The site of a normalized host, without its root path; None if it is no site's, or nobody knows yet.

        On an event loop the function may not query a database, and would hold up all requests. So it is asked in the
        background there, unless the caller may block.
        """
        answer = self._answer(host, may_block)
        if answer is None or answer.site is None:
            return None
        # An app may show the pages of another site under a public host that it does not know.
        public = self._answer(answer.site.host, may_block)
        if public is None:
            return None
        return answer.site if public.site == answer.site else replace(answer.site, asked_as=host)

    def _answer(self, host: str, may_block: bool) -> _Answer | None:
        now, kept = self._clock(), self._sites.get(host) or self._refused.get(host)
        if kept is not None and 0 <= now - kept.asked_at < KEPT_SECONDS:
            return kept
        if not may_block and is_on_event_loop():
            if host not in self._asked and len(self._asked) < MAX_ASKED_HOSTS:
                self._asked.add(host)
                run_in_background(partial(self._ask, host))
            return None
        try:
            answer = _Answer(Context().run(self._site_of_host, host), now, now)  # empty: the answer is for everyone
        except Exception as error:
            if kept is None or not 0 <= now - kept.given_at < KEPT_ON_FAILURE_SECONDS:
                kept = _Answer(None, now, now)
            answer = kept._replace(asked_at=now)
            self._warn_once(
                "failed",
                "the function base_url failed for the host %s, which has no sitemap unless it gave one in the last"
                " hour: %s: %s",
                host,
                type(error).__name__,
                error,
            )
        is_tenant = answer.site is not None or self._sites.get(host) is not None
        (self._sites if is_tenant else self._refused).put(host, answer)
        return answer

    def _ask(self, host: str) -> None:
        try:
            self.site(host)
        finally:
            self._asked.discard(host)
