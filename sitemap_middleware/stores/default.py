"""The store where none was named: a file, or memory where no file can be written."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..errors import StoreError
from ..forks import LateLock
from ..model import Caps, Folded, Observation, Page
from .base import NO_MORE, Block, Store
from .sample import Sample

log = logging.getLogger("sitemap_middleware")


class DefaultStore:
    """An SQLite file that needs no set-up; decided when first used, so that importing an app writes nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with contextlib.suppress(OSError):  # a working directory that was deleted
            self._file = file.absolute()
        self._chosen: Store | None = None
        self._choosing = LateLock()

    def fold(self, site: str, observations: Sequence[Observation], caps: Caps = NO_MORE) -> Folded:
        return self._store().fold(site, observations, caps)

    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        return self._store().forget(site, unseen_since, unlisted_since)

    def pages(self, site: str) -> list[Page]:
        return self._store().pages(site)

    def known(self, site: str, paths: Collection[str]) -> dict[str, Page]:
        return self._store().known(site, paths)

    def version(self, site: str) -> int:
        return self._store().version(site)

    def blocks(self, site: str, since: int = 0) -> list[Block]:
        return self._store().blocks(site, since)

    def block(self, site: str, number: int) -> list[Page]:
        return self._store().block(site, number)

    def sample(self, site: str, most: int) -> Sample:
        return self._store().sample(site, most)

    def published(self, site: str, name: str, etag: str, now: int) -> int:
        return self._store().published(site, name, etag, now)

    def load(self, site: str, names: Collection[str]) -> dict[str, bytes]:
        return self._store().load(site, names)

    def save(self, site: str, things: Mapping[str, bytes | None]) -> None:
        self._store().save(site, things)

    def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
        return self._store().lease(site, name, owner, now, seconds)

    def stamp(self) -> object:
        stamp = getattr(self._chosen, "stamp", None)  # none is chosen yet, or it has none
        return None if stamp is None else stamp()

    def close(self) -> None:
        if self._chosen is not None:
            self._chosen.close()

    @property
    def named(self) -> Store:
        """The store in use; before there is one, the file that is tried first, as yet unopened."""
        from .sqlite import SQLiteStore

        return self._chosen or SQLiteStore(self._file)

    def _store(self) -> Store:
        if self._chosen is None:
            with self._choosing:
                if self._chosen is None:
                    self._chosen = self._choose()
        return self._chosen

    def _choose(self) -> Store:
        from .sqlite import SQLiteStore

        try:
            store = SQLiteStore(self._file)
            store.check_writable()
        except (StoreError, OSError) as error:
            if isinstance(error.__cause__, TimeoutError):  # others open it, or bring it up to date: try again later
                raise
            log.warning(
                "what the sitemap learns is kept in memory, and lost when this process ends: %s;"
                " give SitemapMiddleware a store, or set SITEMAP_STORE",
                error,
            )
            from .memory import MemoryStore

            return MemoryStore()
        return store
