"""Which requests for a Host that is not the site's own count as evidence, if base_url names the site.

Behind a proxy that rewrites Host, every request is for a foreign one. A stranger
who reaches the app directly can send any Host, and an app that looks at it answers
with 404, or with another site's page. So a foreign Host counts if nobody was seen to
ask for the site's own; and beside the site's own, once it has shown a page just as
it is known. Where it contradicts what the site's own Host shows, it does not count.
"""

from __future__ import annotations

from typing import Final

from ..bounded_cache import BoundedCache
from ..evidence.verdict import is_listable
from ..models import Page
from ..observations import CapturedResponse, Observation

CONTEST_WINDOW_SECONDS: Final = 60 * 60
"""Seconds for which a request for the site's own Host stands against others."""

MAX_SITES: Final = 128
MAX_HOSTS: Final = 1000
MAX_PAGES: Final = 10_000
"""Sites, hosts and pages that are remembered, at most."""


class ForeignHosts:
    """Remembers how foreign hosts stand to each site's own."""

    def __init__(self) -> None:
        self._own = BoundedCache[str, float](MAX_SITES)
        """When a site's own Host was asked for, by the site's key."""
        self._own_contents = BoundedCache[tuple[str, str], float](MAX_PAGES)
        """When a site's own Host showed a good page, by the keys of site and page."""
        self._agrees = BoundedCache[tuple[str, str | bytes], bool](MAX_HOSTS)
        """Whether a Host was last seen to agree with what is known of a site."""

    def note_own(self, sighting: CapturedResponse) -> None:
        """Note a response to a request for the site's own Host."""
        self._own.put(sighting.site.store_key, sighting.at)
        if sighting.status == 200:
            self._own_contents.put((sighting.site.store_key, sighting.path), sighting.at)

    def must_decide(self, sighting: CapturedResponse, seen: Observation, *, asks: bool) -> bool:
        """Whether `is_evidence` has to decide on a response to a request for a foreign Host."""
        return sighting.is_probe or self._is_contested(sighting) or (asks and not _is_good(seen))

    def is_evidence(self, sighting: CapturedResponse, seen: Observation, page: Page | None, *, asks: bool) -> bool:
        """Whether such a response counts as evidence.

        Args:
            sighting: the response.
            seen: what it says.
            page: what is known of its page.
            asks: whether the app is asked for pages that are not known: then no stranger's Host need speak of them.
        """
        named = sighting.site.store_key, sighting.host
        if sighting.is_probe:  # the Host is that of whoever asked for the sitemap, and the app refused the site's own
            return _is_good(seen) and self._agrees.get(named) is not False
        if asks and page is None and not _is_good(seen):
            return False
        if not self._is_contested(sighting):
            return True
        if not _is_good(seen):
            shown = self._own_contents.get((sighting.site.store_key, sighting.path))
            if shown is not None and sighting.at - shown < CONTEST_WINDOW_SECONDS:
                self._agrees.put(named, False)
                return False
        elif _has_known_content(seen, page):
            self._agrees.put(named, True)
        return bool(self._agrees.get(named))

    def _is_contested(self, sighting: CapturedResponse) -> bool:
        """Whether the site's own Host is asked for as well, or the foreign one contradicted it."""
        own = self._own.get(sighting.site.store_key)
        alone = own is None or sighting.at - own >= CONTEST_WINDOW_SECONDS
        return not alone or self._agrees.get((sighting.site.store_key, sighting.host)) is False


def _is_good(seen: Observation) -> bool:
    """Whether a response would have its page listed."""
    reading = seen.html
    said = seen.noindex or seen.private or seen.canonical or seen.obstacle
    return (
        seen.status == 200
        and not said
        and (reading is None or not (reading.noindex or reading.canonical or reading.obstacle))
    )


def _has_known_content(seen: Observation, page: Page | None) -> bool:
    """Whether a response has a content that is known of its page."""
    if page is None or not is_listable(page) or seen.html is None or seen.html.digest is None:
        return False
    return any(run.value == seen.html.digest for run in page.content_history)
