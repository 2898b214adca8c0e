"""Deletes learned pages that are outdated, and when no more may be stored, those that only repeat others."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.page_verdict import is_listable
from ..listing.candidates import equal_pages_of_part
from ..models import Page, Site, StoreKey
from ..stores.base import UNLEARNED_PART, Store
from ..util import BoundedCache, WorkerId

CLEANUP_INTERVAL_SECONDS: Final = 60 * 60
"""Seconds between two deletions of a site's outdated pages."""

ROOM_INTERVAL_SECONDS: Final = 60
"""Seconds after a search for repeated pages before the next, at least."""

ROOM_PAUSE_FACTOR: Final = 20
"""The same as a multiple of the time that the search took: some seconds for 100,000 pages."""

MAX_SITES: Final = 2000
"""Sites whose last cleanup is remembered."""


class Cleaner:
    """Deletes learned pages of all sites."""

    def __init__(self, store: Store, max_age_days: int) -> None:
        self._store = store
        self._max_age_seconds = max_age_days * SECONDS_PER_DAY
        self._worker_id = WorkerId()
        self._cleaned_up_at = BoundedCache[StoreKey, float](MAX_SITES)
        self._searched = BoundedCache[StoreKey, tuple[int, float]](MAX_SITES)
        """When pages that repeat others were searched for, and for how long they are not again."""

    def clean_up(self, site: StoreKey, now: int) -> None:
        """Delete outdated pages from the store, in one process once an hour."""
        if 0 <= now - (self._cleaned_up_at.get(site) or -CLEANUP_INTERVAL_SECONDS) < CLEANUP_INTERVAL_SECONDS:
            return
        self._cleaned_up_at.put(site, now)
        if self._store.lease(site, "forget", self._worker_id.name, CLEANUP_INTERVAL_SECONDS):
            forget_pages(self._store, site, now - self._max_age_seconds, now - SECONDS_PER_DAY)

    def make_room(self, site: Site, now: int, refused: Collection[Page]) -> bool:
        """Delete the pages that repeat others, because new ones were refused; whether that was due.

        A stranger can request any number of spellings of a page, or words that the app ignores.
        """
        key, began = site.store_key, time.monotonic()
        at, pause = self._searched.get(key) or (0, 0.0)
        if 0 <= now - at < pause:
            return False
        for number in sorted(self._store.parts(key).keys() - {UNLEARNED_PART}):
            version = self._store.version(key)
            pages = self._store.part(key, number)
            instead = equal_pages_of_part(self._store, site, [*pages, *refused])
            if outdated := instead.keys() & {page.path for page in pages}:
                # If another worker has written meanwhile, the next search does it.
                self._store.write(key, version, dict.fromkeys(outdated))
        pause = max(ROOM_INTERVAL_SECONDS, ROOM_PAUSE_FACTOR * (time.monotonic() - began))
        self._searched.put(key, (now, pause))
        return True


def forget_pages(store: Store, site: StoreKey, unseen_since: int, unlisted_since: int) -> None:
    """Delete learned pages that were last seen before a time, in POSIX seconds; before a later one unless listable."""
    for number in store.parts(site).keys() - {UNLEARNED_PART}:
        version = store.version(site)
        outdated = [
            page.path
            for page in store.part(site, number)
            if page.last_seen < unseen_since or (page.last_seen < unlisted_since and not is_listable(page))
        ]
        if outdated:
            # If another worker has written meanwhile, the next cleanup does it.
            store.write(site, version, dict.fromkeys(outdated))
