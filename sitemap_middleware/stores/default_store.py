"""The default store: a file; or memory, if no file can be written or the process runs tests."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..detect_tests import is_tested
from ..evidence.observations import Observation
from ..exceptions import StoreError
from ..fork_safety import ForkSafeLock
from ..models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from .base import UNLIMITED, Block, RecordOwner, Store, StoreExtras
from .compact_page_list import CompactPageList
from .sqlite.memory import MemoryStore
from .sqlite.store import SQLiteStore

log: logging.Logger = logging.getLogger("sitemap_middleware")


FILE_NAME: Final = "sitemap.sqlite3"

_VIRTUALENV_VAR: Final = Path(sys.prefix, "var")
"""Flask puts the instance folder of an installed package here. Deployments often replace the whole environment."""

_may_create = True
"""Whether stores may create a file now."""


@contextlib.contextmanager
def only_existing_files() -> Iterator[None]:
    """Within this context, default stores use an existing file, or else memory. They create no file.

    Stores that are constructed in it never create one.
    """
    global _may_create  # noqa: PLW0603 (apps are imported and built on any thread)
    before, _may_create = _may_create, False
    try:
        yield
    finally:
        _may_create = before


class FallbackStore:
    """Chooses a file or memory at the first call, so that importing an app writes nothing.

    The file is in the app's instance folder, if that folder exists, else in the working
    directory at construction. If only the latter holds the file already, it is used. All
    workers of an app choose the same.

    Args:
        file: the file in the working directory.
        app: the framework's app, which may have an instance folder.
        tested: whether an app is under test. If so, the store is in memory.
    """

    def __init__(
        self, file: str | Path = FILE_NAME, app: Any = None, tested: Callable[[Any], bool] = is_tested
    ) -> None:
        self._file = Path(file)
        with contextlib.suppress(OSError):  # the working directory was deleted
            self._file = self._file.absolute()
        self._app = app
        self._is_tested = tested
        self._in_memory = False
        self._may_create = _may_create
        self._chosen: Store | None = None
        self._choosing = ForkSafeLock()

    def decide_if_tested(self) -> bool:
        """Whether the app is under test. Once true, it stays true: at exit a test can no longer be detected."""
        self._in_memory = self._in_memory or self._is_tested(self._app)
        return self._in_memory

    def merge(self, site: StoreKey, observations: Sequence[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        return self._store().merge(site, observations, limits)

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        return self._store().forget(site, unseen_since, unlisted_since)

    def pages(self, site: StoreKey) -> list[Page]:
        return self._store().pages(site)

    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self._store().find_pages(site, paths)

    def version(self, site: StoreKey) -> int:
        return self._store().version(site)

    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        return self._store().blocks(site, since)

    def block(self, site: StoreKey, number: int) -> Sequence[Page]:
        return self._store().block(site, number)

    def sample(self, site: StoreKey, limit: int) -> CompactPageList:
        return self._store().sample(site, limit)

    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        return self._store().served_since(site, name, etag, now)

    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        return self._store().load(site, names)

    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        self._store().save(site, records)

    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        return self._store().lease(site, name, owner, now, seconds)

    def release(self) -> None:
        """Close at process exit (`StoreExtras`)."""
        if self._chosen is not None:
            (StoreExtras.of(self._chosen).release or self._chosen.close)()

    def close(self) -> None:
        if self._chosen is not None:
            self._chosen.close()

    @property
    def effective_store(self) -> Store:
        """The chosen store; before the choice, the file that will be tried first, unopened."""
        return self._chosen or SQLiteStore(self._file_path())

    def _file_path(self) -> Path:
        """The file to use if a file can be used."""
        folder = getattr(self._app, "instance_path", None)
        # os.path: unlike Path, it treats a folder that may not be read as missing.
        if not isinstance(folder, str) or not os.path.isdir(folder) or _VIRTUALENV_VAR in Path(folder).parents:  # noqa: PTH112
            return self._file
        instance_file = Path(folder, self._file.name).absolute()
        if os.path.exists(self._file) and not os.path.exists(instance_file):  # noqa: PTH110
            return self._file
        return instance_file

    def _store(self) -> Store:
        if self._chosen is None:
            with self._choosing:
                if self._chosen is None:
                    self._chosen = self._choose()
        return self._chosen

    def _choose(self) -> Store:
        if self.decide_if_tested():
            log.info("sitemap store: memory, because this process runs tests")
            return MemoryStore()
        try:
            path = self._file_path()
            if not (self._may_create and _may_create) and not path.exists():
                return MemoryStore()
            store = SQLiteStore(path)
            store.check_writable()
        except (StoreError, OSError) as error:
            if isinstance(error.__cause__, TimeoutError):  # another process is opening it: try again later
                raise
            log.warning(
                "sitemap store: memory, because %s; its data is lost when the process ends, and every worker serves a"
                " sitemap of its own: pass SitemapMiddleware a store in a writable folder, or set SITEMAP_STORE",
                error,
            )
            return MemoryStore()
        log.info("sitemap store: %s", store.path)
        return store
