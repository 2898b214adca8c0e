"""What tests ask of a store beside its contract."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partialmethod
from operator import attrgetter
from typing import Any

from sitemap_middleware import StoreError
from sitemap_middleware.models import Page, StoreKey
from sitemap_middleware.stores import Store
from sitemap_middleware.stores.base import STORE_METHODS
from sitemap_middleware.stores.sqlite import MemoryStore


def all_pages(store: Store, site: str) -> list[Page]:
    key = StoreKey(site)
    return sorted((page for number in store.parts(key) for page in store.part(key, number)), key=attrgetter("path"))


class FrailStore(MemoryStore):
    """A store that fails, or of which a method hangs, or any, while it is told to."""

    down = False
    hangs = ""
    """The name of the method; or "any"."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def _try(self, name: str, *args: Any) -> Any:
        if self.down:
            raise StoreError("the disk is full")
        if self.hangs in (name, "any"):
            assert self.answers.wait(30)
        return getattr(MemoryStore, name)(self, *args)


for _name in STORE_METHODS - {"close"}:
    setattr(FrailStore, _name, partialmethod(FrailStore._try, _name))


class StoreWithClock(MemoryStore):
    """A store in memory whose own clock, by which leases end, is a test's."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._test_now = now

    @property
    def clock(self) -> str:  # type: ignore[override] # constant in all others
        return str(int(self._test_now()))
