"""`memory://`: pages kept by this process, for as long as it lives."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..evidence import fold
from ..forks import renew_in_children
from ..model import Observation, Page


@dataclass(slots=True)
class _Shelf:
    pages: dict[str, Page] = field(default_factory=dict)
    version: int = 0
    published: dict[str, tuple[str, int]] = field(default_factory=dict)


class MemoryStore:
    """A store for one process: tests, development, and disks that cannot be written."""

    def __init__(self, max_pages: int = 1_000_000) -> None:
        self._max_pages = max_pages
        self.renew()
        renew_in_children(self)
        self._sites: dict[str, _Shelf] = {}

    def renew(self) -> None:
        """In a forked child: the parent's lock may be held for ever."""
        self._lock = threading.Lock()

    def fold(self, site: str, observations: Sequence[Observation]) -> int:
        with self._lock:
            shelf = self._sites.setdefault(site, _Shelf())
            changed = 0
            for seen in observations:
                page = shelf.pages.get(seen.path)
                if page is None and len(shelf.pages) >= self._max_pages:
                    continue
                folded = fold(page, seen)
                if folded is not page:
                    shelf.pages[seen.path] = folded
                    changed += 1
            shelf.version += changed > 0
            return changed

    def pages(self, site: str) -> list[Page]:
        with self._lock:
            shelf = self._sites.get(site)
            return sorted(shelf.pages.values(), key=lambda page: page.path) if shelf else []

    def version(self, site: str) -> int:
        with self._lock:
            shelf = self._sites.get(site)
            return shelf.version if shelf else 0

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        with self._lock:
            known = self._sites.setdefault(site, _Shelf()).published
            if name not in known or known[name][0] != etag:
                known[name] = (etag, now)
            return known[name][1]

    def close(self) -> None:
        """Nothing is held open."""
