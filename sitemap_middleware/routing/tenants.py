"""The sites of an app whose base_url is a function of the Host: what it gave for each host, kept for a minute."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from typing import Final

from ..models import Site
from ..util import BoundedCache, WarnOnce

KEPT_SECONDS: Final = 60
"""Seconds for which an answer is used, also that a host is no site's."""

MAX_HOSTS: Final = 10_000
"""Hosts of sites whose answer is kept."""

MAX_REFUSED_HOSTS: Final = 1000
"""Other hosts whose answer is kept. They are counted apart, because clients can invent any number of them."""


class Tenants:
    """Asks the function for the site of a host. An error is logged once, and means that the host is no site's."""

    def __init__(self, site_of_host: Callable[[str], Site | None], clock: Callable[[], float]) -> None:
        """`site_of_host` is that of the options."""
        self._site_of_host = site_of_host
        self._clock = clock
        self._sites = BoundedCache[str, tuple[Site, float]](MAX_HOSTS)
        self._refused = BoundedCache[str, tuple[None, float]](MAX_REFUSED_HOSTS)
        self._warn_once = WarnOnce()

    def site(self, host: str) -> Site | None:
        """The site of a normalized host, without its root path; None if it is no site's."""
        site = self._answer(host)
        # An app may show the pages of another site under a public host that it does not know.
        return replace(site, asked_as=host) if site is not None and self._answer(site.host) != site else site

    def _answer(self, host: str) -> Site | None:
        now = self._clock()
        for kept in (self._sites.get(host), self._refused.get(host)):
            if kept is not None and 0 <= now - kept[1] < KEPT_SECONDS:
                return kept[0]
        try:
            site = Context().run(self._site_of_host, host)  # empty: the answer is for everyone
        except Exception as error:
            site = None
            self._warn_once(
                "failed",
                "the function base_url failed for the host %s, which has no sitemap for a minute: %s: %s",
                host,
                type(error).__name__,
                error,
            )
        if site is None:
            self._refused.put(host, (None, now))
        else:
            self._sites.put(host, (site, now))
        return site
