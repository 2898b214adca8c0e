"""What tests ask of a store beside its contract."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from sitemap_middleware.models import Page, StoreKey
from sitemap_middleware.stores import Store
from sitemap_middleware.stores.sqlite import MemoryStore


def all_pages(store: Store, site: str) -> list[Page]:
    """Every page of a site, ordered by path."""
    key = StoreKey(site)
    return sorted((page for number in store.parts(key) for page in store.part(key, number)), key=attrgetter("path"))


class StoreWithClock(MemoryStore):
    """A store in memory whose own clock, by which leases end, is a test's."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._test_now = now

    @property
    def clock(self) -> str:  # type: ignore[override] # constant in all others
        return str(int(self._test_now()))
