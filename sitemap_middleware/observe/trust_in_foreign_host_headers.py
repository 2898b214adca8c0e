"""Decides which requests for a foreign Host count as evidence, if base_url names the site.

Behind a proxy that rewrites Host, every request has a foreign Host. A client that
reaches the app directly can send any Host, and a host-checking app answers it with
404 or with another site's page. Therefore:

- A foreign Host counts if no request for the site's own Host was seen for an hour.
- Otherwise it counts once it has shown a page with the content already known.
- It stops counting if it contradicts what the site's own Host shows.

What counts needs confirmation if it would delist a page and this Host is unusual: see `unusual_routing_headers`.
"""

from __future__ import annotations

from typing import Final

from ..bounded_cache import BoundedCache
from ..evidence.observations import Observation
from ..evidence.page_verdict import is_listable
from ..http.captured_response import CapturedResponse
from ..models import Page

OWN_HOST_WINDOW_SECONDS: Final = 60 * 60
"""Seconds for which a response for the site's own Host outweighs foreign ones."""

MAX_SITES: Final = 128
MAX_HOSTS: Final = 1000
MAX_PAGES: Final = 10_000


class ForeignHosts:
    """Remembers which foreign hosts show the same pages as each site's own Host."""

    def __init__(self) -> None:
        self._own_host_seen_at = BoundedCache[str, float](MAX_SITES)
        """When the site's own Host was last requested, by the site's key."""
        self._good_page_seen_at = BoundedCache[tuple[str, str], float](MAX_PAGES)
        """When the site's own Host last showed a good page, by the keys of site and page."""
        self._agrees = BoundedCache[tuple[str, str | bytes], bool](MAX_HOSTS)
        """Whether a Host last agreed with what is known of the site, by the site's key and the Host."""

    def record_own_host(self, response: CapturedResponse) -> None:
        """Record a response to a request for the site's own Host."""
        self._own_host_seen_at.put(response.site.store_key, response.at)
        if response.status == 200:
            self._good_page_seen_at.put((response.site.store_key, response.path), response.at)

    def is_in_question(self, response: CapturedResponse, observation: Observation, *, is_probed: bool) -> bool:
        """Whether `is_evidence` has to decide on a response for a foreign Host; otherwise the response counts."""
        return response.is_probe or self._is_contested(response) or (is_probed and not _is_good(observation))

    def is_evidence(
        self, response: CapturedResponse, observation: Observation, page: Page | None, *, is_probed: bool
    ) -> bool:
        """Whether a response for a foreign Host counts as evidence.

        Args:
            response: the response to judge.
            observation: what the response says.
            page: what is known about the page of the response; None if nothing is.
            is_probed: whether the prober requests pages of the route. The prober then finds unknown pages by itself.
        """
        host_key = response.site.store_key, response.host
        if response.is_probe:  # under the Host of the live request, because the app refused the site's own
            return _is_good(observation) and self._agrees.get(host_key) is not False
        if is_probed and page is None and not _is_good(observation):
            return False
        if not self._is_contested(response):
            return True
        if not _is_good(observation):
            good_at = self._good_page_seen_at.get((response.site.store_key, response.path))
            if good_at is not None and response.at - good_at < OWN_HOST_WINDOW_SECONDS:
                self._agrees.put(host_key, False)
                return False
        elif _has_known_content(observation, page):
            self._agrees.put(host_key, True)
        return bool(self._agrees.get(host_key))

    def _is_contested(self, response: CapturedResponse) -> bool:
        """Whether the site's own Host is requested as well, or this foreign one contradicted it."""
        own_at = self._own_host_seen_at.get(response.site.store_key)
        if own_at is not None and response.at - own_at < OWN_HOST_WINDOW_SECONDS:
            return True
        return self._agrees.get((response.site.store_key, response.host)) is False


def _is_good(observation: Observation) -> bool:
    """Whether a response lets its page be listed."""
    html = observation.html
    return observation.status == 200 and not observation.refusal and (html is None or not html.refusal)


def _has_known_content(observation: Observation, page: Page | None) -> bool:
    """Whether a response shows a content already known of its page."""
    html = observation.html
    if page is None or not is_listable(page) or html is None or html.digest is None:
        return False
    return any(run.value == html.digest for run in page.content_history)
