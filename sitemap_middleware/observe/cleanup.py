"""Deletes learned pages that are outdated, and when no more may be stored, those that only repeat others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.page_verdict import is_listable
from ..listing.candidates import equal_pages_of_part
from ..models import Page, Site, StoreKey
from ..stores.base import UNLEARNED_PART
from ..stores.breaker import GuardedStore
from ..util import BoundedCache

CLEANUP_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds between two deletions of a site's pages."""

MAX_SITES: Final = 2000
"""Sites whose last cleanup, and whose own Host's last request, are remembered."""


class Cleaner:
    """Deletes learned pages of all sites."""

    def __init__(self, store: GuardedStore, max_age_days: int) -> None:
        self._store = store
        self._max_age_seconds = max_age_days * SECONDS_PER_DAY
        self._cleaned_up_at = BoundedCache[StoreKey, float](MAX_SITES)
        self._full = set[StoreKey]()
        """The sites with new pages that were refused since the last cleanup."""

    def clean_up(self, site: Site, now: int, *, is_full: bool) -> None:
        """Once an hour, delete outdated pages from the store, and if new pages were refused, those that repeat others.

        A stranger can request any number of spellings of a page, or words that the app ignores.
        """
        key = site.store_key
        if is_full:
            self._full.add(key)
        if 0 <= now - (self._cleaned_up_at.get(key) or -CLEANUP_INTERVAL_SECONDS) < CLEANUP_INTERVAL_SECONDS:
            return
        self._cleaned_up_at.put(key, now)
        if key in self._full:
            self._full.discard(key)
            self._delete(site, lambda pages: equal_pages_of_part(self._store, site, pages))
        if self._store.take(key, "forget", CLEANUP_INTERVAL_SECONDS):
            self._delete(site, lambda pages: _outdated(pages, now - self._max_age_seconds, now - SECONDS_PER_DAY))

    def _delete(self, site: Site, choose: Callable[[list[Page]], Iterable[str]]) -> None:
        """Delete the paths that are chosen of the pages of each part of learned pages."""
        key = site.store_key
        for number in sorted(self._store.parts(key).keys() - {UNLEARNED_PART}):
            version = self._store.version(key)
            if chosen := dict.fromkeys(choose(self._store.part(key, number))):
                self._store.write(key, version, chosen)  # if others have written meanwhile, the next cleanup does it


def _outdated(pages: Iterable[Page], unseen_since: int, unlisted_since: int) -> list[str]:
    """The pages that were last seen before a time, in POSIX seconds; before a later one unless listable."""
    return [
        page.path
        for page in pages
        if page.last_seen < unseen_since or (page.last_seen < unlisted_since and not is_listable(page))
    ]
