"""The store contract: what the rest of the package requires of a store, and what a store may offer besides.

A store is a cache. Whatever it holds was learned from the app and can be learned again, so any engine may lose anything
at any time: a page that cannot be decoded is absent, and nothing is repaired.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from ..models import BaseURL, Page, PageLimits, StoreKey

SCHEMA_VERSION: Final = 5
"""Part of the names of all tables and keys. Raise it with every change of these or of the meaning of a page's fields:
the new version starts empty, and processes of both versions work side by side while a deployment rolls on.
"""

UNLIMITED: Final = PageLimits()
"""The default limits."""

PART_PAGES: Final = 10_000
"""The most pages of a part of learned pages."""

PIECE_PAGES: Final = 500
"""Pages that are decoded or looked at in a millisecond or two: then other threads, such as an event loop, may run."""

UNLEARNED_PART: Final = 0
"""The part of all pages that are not learned, however many: those that routes and `values` name."""

MAX_LEASE_SECONDS: Final = 2 * 60 * 60
"""The longest lease. One that ends later was taken when the clock was ahead, and is ignored."""

Owner = StoreKey | BaseURL
"""The owner of records and leases: a site, or one of the base URLs that a site may have."""


class PartState(NamedTuple):
    """A part of a site: the pages that are rendered together."""

    version: int
    """The site's version when one of its pages last changed."""
    pages: int
    """How many pages it has now, at least one."""


class Store(Protocol):
    """Keeps the pages of sites, for every process that opens the same store.

    Sites are independent of each other. Any thread may call any method, and after a fork so may the child. A call that
    fails raises `StoreError` and nothing else, within seconds; it has changed nothing and may be repeated.

    `StoreExtras` lists the methods that a store may have besides these.
    """

    def version(self, site: StoreKey) -> int:
        """A number that grows whenever a page of the site changes, also after the store was emptied or restored; 0 if
        the site is unknown.
        """

    def find(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        """The stored pages among these paths."""

    def write(
        self, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits = UNLIMITED
    ) -> set[str] | None:
        """Save pages under their paths, and delete those that are None, if the site still has this version.

        All of it is done or nothing, and what is done survives the death of the process. The site and the parts of
        these pages get a new version. A page that becomes learned gets a place in the first part of learned pages that
        has room, and keeps it.

        Returns:
            The paths of new learned pages that were refused because they exceed the limits; None if the site has
            another version by now: read the pages again, and merge again.
        """

    def parts(self, site: StoreKey) -> dict[int, PartState]:
        """The parts that have pages, by number: `UNLEARNED_PART`, and from 1 on at most `PART_PAGES` learned pages."""

    def part(self, site: StoreKey, number: int) -> list[Page]:
        """The pages of a part, ordered by path; none if there is no such part."""

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        """Delete learned pages that were not seen since a time; return how many.

        Args:
            site: the site's key.
            unseen_since: POSIX seconds. Pages last seen before this are deleted.
            unlisted_since: POSIX seconds. Pages last seen before this are deleted unless they are listable.
        """

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        """The saved records among these names."""

    def save(self, owner: Owner, records: Mapping[str, bytes | None]) -> None:
        """Save records under their names, replacing older ones, and delete those that are None: all of them, or none
        if the call fails.
        """

    def lease(self, owner: Owner, name: str, holder: str, seconds: int) -> bool:
        """Take or extend a lease, by the store's clock: whether this holder alone may do the job of this name for so
        many seconds from now. 0 seconds end the lease.
        """

    def close(self) -> None:
        """Close connections and files. A later call opens them again."""


STORE_METHODS: Final = frozenset(
    name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")
)
"""The names of the methods of the contract."""


class EngineStatus(NamedTuple):
    """What only the engine knows for the `status` command; None stands for what it does not know."""

    engine: str
    """Its name and version."""
    size: int | None
    """Bytes on disk or in memory."""
    sites: list[str]
    """The store keys of all sites, sorted."""


class StoreExtras(NamedTuple):
    """The optional methods of a store, each None if the store lacks it. `StoreExtras.of(store)` finds them by name."""

    now: Callable[[], float] | None = None
    """The time of the store's own clock in POSIX seconds, for stores that run on a server; raises `StoreError`."""
    open_readonly: Callable[[], Store] | None = None
    """The same store for commands that must not create or change anything. Without it, the store itself is used."""
    status: Callable[[], EngineStatus] | None = None
    """Details for the `status` command; raises `StoreError`."""

    @classmethod
    def of(cls, store: Store) -> StoreExtras:
        return cls(*(getattr(store, name, None) for name in cls._fields))


def store_name(store: Store) -> str:
    """How messages name a store: its `name`, else its class."""
    return str(getattr(store, "name", type(store).__name__))


# For engines


def next_version(version: int) -> int:
    """The version after this one: a time, in microseconds, so that a restored or emptied store repeats none."""
    return max(version + 1, time.time_ns() // 1000)


def routes_of(pages: Mapping[str, Page | None], placed: Mapping[str, Placed]) -> set[str]:
    """The routes of which `plan_write` needs the counts."""
    return {page.route for page in pages.values() if page is not None} | {place.route for place in placed.values()}


class Placed(NamedTuple):
    """Where a page is stored."""

    part: int
    route: str


class WritePlan(NamedTuple):
    """What a `write` changes."""

    saved: dict[str, int]
    """The part that each saved page belongs to."""
    removed: dict[str, int]
    """The part that each page leaves: it is deleted, or belongs to another part from now on."""
    changed_parts: set[int]
    part_counts: dict[int, int]
    """The pages that each part of the site has after this."""
    route_counts: dict[str, int]
    """The learned pages that each of the given routes has after this."""
    refused: set[str]


def plan_write(
    pages: Mapping[str, Page | None],
    placed: Mapping[str, Placed],
    part_counts: Mapping[int, int],
    route_counts: Mapping[str, int],
    limits: PageLimits,
) -> WritePlan:
    """Choose the parts of pages that are written, within the limits.

    Args:
        pages: what is written.
        placed: which of these pages are stored, and where.
        part_counts: the pages of each part of the site.
        route_counts: the learned pages of those routes that these pages have or had.
        limits: how many learned pages there may be.
    """
    counts, routes = Counter(part_counts), Counter(route_counts)
    learned = counts.total() - counts[UNLEARNED_PART]
    plan = WritePlan({}, {}, set(), counts, routes, set())
    room = _numbers_of_parts_with_room(counts)
    for path, page in pages.items():
        before = placed.get(path)
        if page is None:
            part = None
        elif not page.learned:
            part = UNLEARNED_PART
        elif before is not None and before.part != UNLEARNED_PART:
            part = before.part
        elif before is None and (learned >= limits.site or routes[page.route] >= limits.route):
            plan.refused.add(path)
            continue
        else:
            part = next(room)
        if before is not None:
            plan.changed_parts.add(before.part)
            counts[before.part] -= 1
            if before.part != UNLEARNED_PART:
                routes[before.route] -= 1
                learned -= 1
            if part != before.part:
                plan.removed[path] = before.part
        if part is not None and page is not None:
            plan.saved[path] = part
            plan.changed_parts.add(part)
            counts[part] += 1
            if part != UNLEARNED_PART:
                routes[page.route] += 1
                learned += 1
    return plan


def _numbers_of_parts_with_room(counts: Mapping[int, int]) -> Iterator[int]:
    """The part of the next learned page, again and again: the first one that has room."""
    number = UNLEARNED_PART + 1
    while True:
        if counts[number] < PART_PAGES:
            yield number
        else:
            number += 1


def batches(items: Collection[str], size: int) -> Iterator[list[str]]:
    """The items in lists of at most so many."""
    ordered = list(items)
    return (ordered[start : start + size] for start in range(0, len(ordered), size))
