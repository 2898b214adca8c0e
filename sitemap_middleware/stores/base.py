"""The store contract: what the rest of the package requires of a store, and what a store may offer besides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ..evidence.observations import Observation
from ..models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from .compact_page_list import CompactPageList

UNLIMITED: Final = PageLimits()
"""The default limits."""

MAX_LEASE_SECONDS: Final = 2 * 60 * 60
"""The longest lease. One that ends later was taken by a process whose clock is ahead, and is ignored."""

MAX_CLOCK_LEAD_SECONDS: Final = 60
"""How far ahead the time of a document may be. A later one was written by a process whose clock is ahead, and is
ignored.
"""

UNLEARNED_BLOCK: Final = 0
"""The number of the block of all unlearned pages: those that routes and `values` name."""

RecordOwner = StoreKey | BaseURL
"""The owner of records and leases: a site, or one of the base URLs that a site may have."""


class Block(NamedTuple):
    """Pages that are rendered together: some hundred learned ones, or all unlearned ones (`UNLEARNED_BLOCK`)."""

    number: int
    document: int
    """The number, from 1 on, of the document that the block always belongs to; 0 for `UNLEARNED_BLOCK`."""
    pages: int
    """How many pages it has now."""
    version: int
    """The site's version when one of its pages last changed."""


class Store(Protocol):
    """Keeps the pages of sites, for every process that opens the same store.

    Sites are independent of each other. Any thread may call any method, and after a
    fork so may the child. A call that fails raises `StoreError` and nothing else,
    within seconds; it has changed nothing and may be repeated.

    `StoreExtras` lists the methods that a store may have besides these.
    """

    def merge(self, site: StoreKey, observations: Sequence[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        """Merge observations into the pages they are about (`BatchMerger`): all of them, or none if the call fails.

        What is merged survives the death of the process. New pages beyond the limits are
        refused. A page that becomes learned gets a slot (`PlacementCursor`) and keeps it.
        """

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        """Delete learned pages that were not seen since a time; return how many.

        Args:
            site: the site's key.
            unseen_since: POSIX seconds. Pages last seen before this are deleted.
            unlisted_since: POSIX seconds. Pages last seen before this are deleted unless they are listable.
        """

    def pages(self, site: StoreKey) -> list[Page]:
        """Every page of a site, ordered by path."""

    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        """The stored pages among these paths."""

    def version(self, site: StoreKey) -> int:
        """A number that grows whenever a page of the site changes; 0 if the site is unknown."""

    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        """The blocks that changed after a version of the site, ordered by number."""

    def block(self, site: StoreKey, number: int) -> Sequence[Page]:
        """The pages of a block, ordered by slot."""

    def sample(self, site: StoreKey, limit: int) -> CompactPageList:
        """At most `limit` pages, spread evenly over a site: half learned, half unlearned, if it has enough of both."""

    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        """When a document was first served with this ETag, in POSIX seconds; if never, record and return `now`.

        If it replaces a document of this time or of up to `MAX_CLOCK_LEAD_SECONDS` later, it gets the next second after
        that one's, even if this is still to come: no second stands for two documents.
        """

    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        """The saved records among these names."""

    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        """Save records under their names, replacing older ones, and delete those that are None: all of them, or none if
        the call fails.
        """

    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        """Take or extend a lease: whether this owner alone may do the job of this name for so many seconds from `now`.

        0 seconds ends the lease. A lease that ends later than `MAX_LEASE_SECONDS` from `now` is ignored.
        """

    def close(self) -> None:
        """Close connections and files. A later call opens them again."""


STORE_METHODS: Final = frozenset(
    name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")
)
"""The names of the methods of the contract."""


_JOBS: Final = {"forget": "cleanup", "verify": "requests to unvisited pages"}
"""The jobs that people read of, by the names of their leases."""


class LeaseStatus(NamedTuple):
    """A job that only one worker may do at a time."""

    site: str
    """The base URL or the store key that the job is about."""
    name: str
    until: int
    """POSIX seconds."""

    @property
    def job(self) -> str:
        """What the job is, for people."""
        return _JOBS.get(self.name, self.name)


class EngineStatus(NamedTuple):
    """The optional part of a store's status; None stands for what the engine does not know."""

    engine: str
    version: str | None
    """Versions of the engine and of the schema."""
    size: int | None
    """Bytes on disk or in memory."""
    sites: list[str]
    """Store keys: of the requested sites, or of all."""
    last_changed: Mapping[str, int]
    """For each base URL, since when its newest document is unchanged, in POSIX seconds."""
    leases: list[LeaseStatus] | None
    """The leases that have not ended."""


class StoreExtras(NamedTuple):
    """The optional methods of a store, each None if the store lacks it. `StoreExtras.of(store)` finds them by name."""

    now: Callable[[StoreKey], float] | None = None
    """The time of the store's own clock in POSIX seconds, for stores that run on a server; raises `StoreError`."""
    release: Callable[[], None] | None = None
    """Close at process exit, even if data is lost that `close` preserves. Without it, `close` is called."""
    open_readonly: Callable[[], Store] | None = None
    """The same store for commands that must not create or change anything. Without it, the store itself is used."""
    status: Callable[[int, Sequence[str]], EngineStatus] | None = None
    """Details for the `status` command, as of a time in POSIX seconds, of some sites or, if none are named, of all."""
    sites: Callable[[], Iterable[str]] | None = None
    """The keys of all sites, for stores without `status`."""

    @classmethod
    def of(cls, store: Store) -> StoreExtras:
        return cls(*(getattr(store, name, None) for name in cls._fields))


def store_name(store: Store) -> str:
    """How messages name a store: its `name`, else its class."""
    return str(getattr(store, "name", type(store).__name__))
