"""When a crawler last requested the sitemap of a site, kept in the store for the report. Nothing else of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..crawler_logs.crawlers import MAX_AGENT_CHARS, crawler_of_agent
from ..evidence.dates import SECONDS_PER_DAY
from ..exceptions import StoreError
from ..http.messages import Request
from ..models import Site, StoreKey
from ..stores.base import Store
from ..util import BoundedCache

MAX_SITES: Final = 1000

_RECORD: Final = "crawler-fetch"
"""When a crawler requested a document last, or if none has, when anybody did first, in POSIX seconds."""


class CrawlerFetches:
    """Notes once a day that a crawler was sent a document of a site, by what its User-Agent says."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._noted = BoundedCache[tuple[StoreKey, bool], float](MAX_SITES)
        self._pending: dict[StoreKey, tuple[float, bool]] = {}

    def note(self, site: Site, request: Request) -> None:
        """Note a request for a document, to be saved later."""
        agent = next((value for name, value in request.headers if name == "user-agent"), "")
        is_crawler, now = crawler_of_agent(agent[:MAX_AGENT_CHARS]) is not None, self._clock()
        key = site.store_key, is_crawler
        if now - (self._noted.get(key) or 0) >= SECONDS_PER_DAY and not request.is_of_test:
            self._noted.put(key, now)
            self._pending[site.store_key] = now, is_crawler or self._pending.get(site.store_key, (0, False))[1]

    def save(self) -> None:
        """Save what was noted. It may block."""
        pending, self._pending = self._pending, {}
        for key, (now, is_crawler) in pending.items():
            with suppress(StoreError):  # the circuit breaker has logged it
                if is_crawler or self.last(key) is None:
                    self._store.save(key, {_RECORD: str(now).encode()})

    def last(self, key: StoreKey) -> float | None:
        """When a crawler requested a document last, or if none has, since when that is known; None if it is not."""
        with suppress(StoreError, ValueError):
            record = self._store.load(key, [_RECORD]).get(_RECORD)
            return None if record is None else float(record)
        return None
