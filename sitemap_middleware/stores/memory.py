"""`memory://`: pages kept by this process, for as long as it lives."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..evidence import promising
from ..forks import renew_in_children
from ..model import Caps, Folded, Observation, Page
from .base import NO_MORE
from .census import Census


@dataclass(slots=True)
class _Shelf:
    pages: dict[str, Page] = field(default_factory=dict)
    version: int = 0
    published: dict[str, tuple[str, int]] = field(default_factory=dict)
    leases: dict[str, int] = field(default_factory=dict)
    learned: Counter[str] = field(default_factory=Counter)


class MemoryStore:
    """A store for one process: tests, development, and disks that cannot be written."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)
        self._sites: dict[str, _Shelf] = {}

    def renew(self) -> None:
        """In a forked child: the parent's lock may be held for ever."""
        self._lock = threading.Lock()

    def fold(self, site: str, observations: Sequence[Observation], caps: Caps = NO_MORE) -> Folded:
        with self._lock:
            shelf = self._sites.setdefault(site, _Shelf())
            census = Census(shelf.learned, caps)
            known = {seen.path: shelf.pages[seen.path] for seen in observations if seen.path in shelf.pages}
            changed = census.take(known, observations)
            shelf.pages |= changed
            shelf.learned.update(census.moved)
            shelf.version += bool(changed)
            return census.folded(changed)

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        with self._lock:
            shelf = self._sites.setdefault(site, _Shelf())
            gone = [
                page
                for page in shelf.pages.values()
                if page.learned
                and (page.last_seen < unseen_since or (page.last_seen < unlisted_since and not promising(page)))
            ]
            for page in gone:
                del shelf.pages[page.path]
                shelf.learned[page.route] -= 1
            shelf.version += bool(gone)
            return len(gone)

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

    def lease(self, site: str, name: str, now: int, seconds: int) -> bool:
        with self._lock:
            leases = self._sites.setdefault(site, _Shelf()).leases
            if now < leases.get(name, now):
                return False
            leases[name] = now + seconds
            return True

    def close(self) -> None:
        """Nothing is held open."""
