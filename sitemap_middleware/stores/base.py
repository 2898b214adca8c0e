"""The contract of a store, and nothing about how one keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ..model import Caps, Folded, Observation, Page

NO_MORE: Final = Caps()
"""The caps where none are given."""


class Store(Protocol):
    """Where the pages of sites are kept, and shared by every process that names the same store.

    The layer above needs these things of it. Sites are told apart by their key and
    know nothing of each other. Every call may come from any thread and, after a
    fork, from the child. Whatever fails, it fails as `StoreError` and as nothing
    else, within seconds rather than never, and a call that failed has changed
    nothing: it may be made again.
    """

    def fold(self, site: str, observations: Sequence[Observation], caps: Caps = NO_MORE) -> Folded:
        """Fold observations into their pages (`Census`), all of them or none, as many new ones as the caps allow.

        What has been folded when this returns survives the death of the process.
        """

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        """Forget pages learned from traffic; return how many.

        Those not seen since the first of these moments, in POSIX seconds; and, not
        seen since the second, those that as things stand are not listed (`promising`).
        """

    def pages(self, site: str) -> list[Page]:
        """Every page of a site, in the order of their paths."""

    def version(self, site: str) -> int:
        """A number that grows whenever a page of the site has changed; 0 for a site never seen."""

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        """When, in POSIX seconds, the document of this name was first served with this ETag: `now`, if never."""

    def lease(self, site: str, name: str, now: int, seconds: int) -> bool:
        """Whether the caller may do the job of this name, so many seconds from now on. Nobody else may in that time."""

    def close(self) -> None:
        """Let go of what is held open. A store that is used again after that opens itself again."""
