"""Remembers in the store which pages hang on a server with one thread.

Such a server is often killed while it waits for a hanging page, and its replacement
knows nothing of that. So a page is recorded before it is requested, and the record is
removed once the page has answered.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from ..exceptions import StoreError
from ..models import StoreKey
from ..stores.base import Store

log: logging.Logger = logging.getLogger("sitemap_middleware")

MAX_HANGING_PAGES: Final = 64
"""Pages recorded for a site, at most: those requested last."""

_RECORD_NAME: Final = "hanging"


class HangingPages:
    """The hanging pages of each site, by decoded path, with the POSIX seconds of the request."""

    def __init__(self, store: Store, max_age_seconds: float) -> None:
        """Records older than `max_age_seconds` are ignored."""
        self._store = store
        self._max_age_seconds = max_age_seconds

    def load(self, site: StoreKey, now: float) -> dict[str, int]:
        """Return the pages recorded for a site; none if the store fails."""
        try:
            record = self._store.load(site, [_RECORD_NAME]).get(_RECORD_NAME)
        except StoreError as error:
            log.debug("the record of hanging pages cannot be read: %s", error)
            return {}
        try:
            pages: dict[str, int] = json.loads(record or b"{}")
        except ValueError:
            return {}
        return {path: at for path, at in pages.items() if 0 <= now - at < self._max_age_seconds}

    def save(self, site: StoreKey, pages: dict[str, int]) -> None:
        """Record these pages instead of those recorded before. Does nothing if the store fails."""
        latest = dict([*pages.items()][-MAX_HANGING_PAGES:])
        record = json.dumps(latest).encode() if latest else None
        try:
            self._store.save(site, {_RECORD_NAME: record})
        except StoreError as error:
            log.debug("the record of hanging pages cannot be written: %s", error)
