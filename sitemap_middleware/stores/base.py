"""The contract of a store, and nothing about how one keeps it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ..models import MergeResult, Page, PageLimits
from ..observations import Observation
from .packed_pages import PackedPages

UNLIMITED: Final = PageLimits()
"""The caps where none are given."""

MAX_LEASE_SECONDS: Final = 2 * 60 * 60
"""Seconds that a lease can last. One that ends later than that was taken by a clock that is ahead."""

UNLEARNED_BLOCK: Final = 0
"""The block of the pages that were not learned from traffic: routes and values name them."""


class Block(NamedTuple):
    """Pages that are written into the sitemap together: at most a thousand learned ones, or all that are `UNLEARNED_BLOCK`."""  # noqa: E501

    number: int
    document: int
    """The number, from 1 on, of the document that its pages are written in, for life; 0 for `UNLEARNED_BLOCK`."""
    pages: int
    """How many there are."""
    version: int
    """The site's version when one of them last changed."""


class Store(Protocol):
    """Where the pages of sites are kept, and shared by every process that names the same store.

    The layer above needs these things of it. Sites are told apart by their key and
    know nothing of each other. Every call may come from any thread and, after a
    fork, from the child. Whatever fails, it fails as `StoreError` and as nothing
    else, within seconds rather than never, and a call that failed has changed
    nothing: it may be made again.
    """

    def merge(self, site: str, observations: Sequence[Observation], caps: PageLimits = UNLIMITED) -> MergeResult:
        """Fold observations into their pages (`BatchMerger`), all of them or none, as many new ones as the caps allow.

        What has been folded when this returns survives the death of the process. A
        page that is learned is given its place (`Allotment`), and keeps it.
        """

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        """Forget pages learned from traffic; return how many.

        Those not seen since the first of these moments, in POSIX seconds; and, not
        seen since the second, those that as things stand are not listed (`promising`).
        """

    def pages(self, site: str) -> list[Page]:
        """Every page of a site, in the order of their paths."""

    def find_pages(self, site: str, paths: Collection[str]) -> dict[str, Page]:
        """The pages of these paths, as many as there are."""

    def version(self, site: str) -> int:
        """A number that grows whenever a page of the site has changed; 0 for a site never seen."""

    def blocks(self, site: str, since: int = 0) -> list[Block]:
        """The blocks of a site that changed after a version, in the order of their numbers."""

    def block(self, site: str, number: int) -> list[Page]:
        """The learned pages of a block, in the order in which they came to be known."""

    def sample(self, site: str, most: int) -> PackedPages:
        """So many pages of a site at most, taken evenly in the order in which they came to be known.

        Of those that are learned, and of the others, half each where there are more of both.
        """

    def served_since(self, site: str, name: str, etag: str, now: int) -> int:
        """When, in POSIX seconds, the document of this name was first served with this ETag: `now`, if never."""

    def load(self, site: str, names: Collection[str]) -> dict[str, bytes]:
        """What was saved of a site under these names, as far as anything was.

        A site may have several bases (a development machine's): of `load`, `save` and `published`, each is a site.
        """

    def save(self, site: str, things: Mapping[str, bytes | None]) -> None:
        """Save things under their names, all of them or none, in place of what was there; None: nothing is kept."""

    def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
        """Whether the owner may do the job of this name, so many seconds from now on. Nobody else may in that time.

        The owner may ask again before it ends; and lets go of it by 0 seconds. A lease that
        ends later than `MAX_LEASE_SECONDS` from now on was taken by a clock that is ahead, and does not count.
        """

    # A store may have a method `now(self, site: str) -> float` if it has a clock: POSIX seconds, or `StoreError`.

    def close(self) -> None:
        """Let go of what is held open. A store that is used again after that opens itself again."""


STORE_METHODS: Final = frozenset(
    name for name, one in vars(Store).items() if callable(one) and not name.startswith("_")
)
"""The names of all that a store can be asked for."""
