"""The store contract: what the rest of the package requires of a store, and what engines have in common.

A store is a cache. Whatever it holds was learned from the app and can be learned again, so any engine may lose anything
at any time: what cannot be decoded is absent, and nothing is repaired.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol, get_args, get_origin, get_type_hints

from ..models import BaseURL, Page, PageLimits, StoreKey

SCHEMA_VERSION: Final = 8
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
    since: int = 0
    """The site's version when it got its first page: later than all known versions if the store was emptied since."""


class Store(Protocol):
    """Keeps the pages of sites, for every process that opens the same store.

    Sites are independent of each other. Any thread may call any method, and after a fork so may the child. A call that
    fails raises `StoreError` and nothing else, within seconds; it has changed nothing and may be repeated.

    A store may also have a `name`, by which messages call it, and these methods, which raise `StoreError`, too:

    - `now()`: the time of the store's own clock in POSIX seconds, for stores that run on a server.
    - `sites()`: the keys of all sites, sorted, for the command `status`.
    - `open_readonly()`: the same store for commands that must not create or change anything.
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

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        """The saved records among these names."""

    def save(self, owner: Owner, records: Mapping[str, bytes | None]) -> None:
        """Save records under their names, replacing older ones, and delete those that are None: all of them, or none
        if the call fails.
        """

    def lease(self, owner: Owner, name: str, holder: str, seconds: int) -> bool:
        """Take or extend a lease, by the store's clock: whether this holder alone may do the job of this name for so
        many seconds from now. 0 seconds end the lease, and are refused only if another holds it.
        """

    def close(self) -> None:
        """Close connections and files. A later call opens them again."""


STORE_METHODS: Final = frozenset(
    name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")
)
"""The names of the methods of the contract."""


def store_name(store: Store) -> str:
    """How messages name a store: its `name`, else its class."""
    return str(getattr(store, "name", type(store).__name__))


# For engines: stored forms


def number_of(*names: str) -> int:
    """The number that stands for a site, or for an owner's record or lease: a hash of 63 bits."""
    key = "\n".join(names).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") >> 1


_decode_json: Final = json.JSONDecoder().decode
_encode_json: Final = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: it suits every database

_ROW_FIELDS: Final = [
    (index, get_args(hint)[0]) for index, hint in enumerate(get_type_hints(Page).values()) if get_origin(hint) is tuple
]
"""The fields that hold any number of named tuples of integers, such as the runs of a history."""


def encode_page(page: Page) -> str:
    """The stored form: a JSON array of the fields but for the path, by which it is stored."""
    return _encode_json(page[1:])


def decode_page(path: object, text: object) -> Page | None:
    """The page of a path; None if its stored form cannot be read."""
    path = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
    try:
        values = [path, *_parsed(text)]
        for index, named_tuple in _ROW_FIELDS:
            values[index] = tuple(map(named_tuple._make, values[index]))
        return Page._make(values)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _parsed(stored: Any) -> Any:
    return _decode_json(stored.decode("ascii", "replace") if isinstance(stored, bytes) else stored)


class SiteState(NamedTuple):
    """What a store keeps of a site besides its pages."""

    version: int = 0
    parts: Mapping[int, PartState] = {}
    routes: Mapping[str, int] = {}
    """How many learned pages each route has."""

    def encode(self, site: str) -> str:
        """The stored form, which says whose it is."""
        return _encode_json([site, *self])


NO_STATE: Final = SiteState()


def decode_state(text: object) -> tuple[str, SiteState]:
    """The site and its state in a stored form. If that cannot be read, or is None, the site is unknown."""
    try:
        site, version, parts, routes = _parsed(text)
        numbers = {int(number): PartState(*map(int, state)) for number, state in parts.items()}
        counts = {str(route): int(count) for route, count in routes.items()}
        return str(site), SiteState(int(version), numbers, counts)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return "", NO_STATE


# For engines: what a write changes


class WritePlan(NamedTuple):
    """What a `write` changes; nothing if no page is saved or removed."""

    state: SiteState
    """The site's state after it."""
    saved: dict[str, int]
    """The part that each saved page belongs to."""
    removed: dict[str, int]
    """The part that each page leaves: it is deleted, or belongs to another part from now on."""
    refused: set[str]


def plan_write(
    state: SiteState, pages: Mapping[str, Page | None], placed: Mapping[str, tuple[int, str]], limits: PageLimits
) -> WritePlan:
    """Choose the parts of pages that are written, within the limits.

    `state` is that before. Of these pages, those that are stored are `placed`: the part and the route of each.
    """
    counts, routes = Counter({number: part.pages for number, part in state.parts.items()}), Counter(state.routes)
    saved: dict[str, int] = {}
    removed: dict[str, int] = {}
    refused: set[str] = set()

    def count(part: int, route: str, change: int) -> None:
        counts[part] += change
        if part != UNLEARNED_PART:
            routes[route] += change

    room = _numbers_of_parts_with_room(counts)
    for path, page in pages.items():
        before, route = placed.get(path) or (None, "")
        if page is None:
            part = None
        elif not page.learned:
            part = UNLEARNED_PART
        elif before not in (None, UNLEARNED_PART):
            part = before
        elif before is None and (
            counts.total() - counts[UNLEARNED_PART] >= limits.site or routes[page.route] >= limits.route
        ):
            refused.add(path)
            continue
        else:
            part = next(room)
        if before is not None:
            count(before, route, -1)
            if part != before:
                removed[path] = before
        if page is not None and part is not None:
            count(part, page.route, 1)
            saved[path] = part
    # A time, in microseconds, so that a restored or emptied store repeats no version.
    version = max(state.version + 1, time.time_ns() // 1000)
    since = min((part.since for part in state.parts.values()), default=version)
    changed = {*saved.values(), *removed.values()}
    parts = {
        number: PartState(version if number in changed else state.parts[number].version, pages_now, since)
        for number, pages_now in sorted(counts.items())
        if pages_now > 0
    }
    return WritePlan(SiteState(version, parts, +routes), saved, removed, refused)


def _numbers_of_parts_with_room(counts: Mapping[int, int]) -> Iterator[int]:
    """The part of the next learned page, again and again: the first one that has room."""
    number = UNLEARNED_PART + 1
    while True:
        if counts[number] < PART_PAGES:
            yield number
        else:
            number += 1
