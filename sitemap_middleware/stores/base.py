"""The contract of a store, and nothing about how one keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..model import Observation, Page


class Store(Protocol):
    """Where the pages of sites are kept, and shared by every process that names the same store.

    The layer above needs five things of it. Sites are told apart by their key and
    know nothing of each other. Every call may come from any thread and, after a
    fork, from the child. Whatever fails, it fails as `StoreError` and as nothing
    else, within seconds rather than never, and a call that failed has changed
    nothing: it may be made again.
    """

    def fold(self, site: str, observations: Sequence[Observation]) -> int:
        """Fold observations into their pages (`evidence.fold`), all of them or none; return how many pages changed.

        What has been folded when this returns survives the death of the process.
        New pages that the store's cap has no room for are left out.
        """

    def pages(self, site: str) -> list[Page]:
        """Every page of a site, in the order of their paths."""

    def version(self, site: str) -> int:
        """A number that grows whenever a page of the site has changed; 0 for a site never seen."""

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        """When, in POSIX seconds, the document of this name was first served with this ETag: `now`, if never."""

    def close(self) -> None:
        """Let go of what is held open. A store that is used again after that opens itself again."""
