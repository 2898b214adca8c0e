"""The default store: a file; or memory, if no file can be written or the process runs tests, which write no file."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ..exceptions import StoreError
from ..util import ForkSafeLock, log
from .base import STORE_METHODS, Store
from .sqlite import MemoryStore, SQLiteStore

FILE_NAME: Final = "sitemap.sqlite3"

_VIRTUALENV_VAR: Final = Path(sys.prefix, "var")
"""Flask puts the instance folder of an installed package here. Deployments often replace the whole environment."""


def current_test() -> str | None:
    """The name of the running test; an empty string between tests; None if this process runs no tests."""
    # A server that a test starts inherits the environment, so check that pytest runs in this very process.
    if "_pytest" in sys.modules and (test := os.environ.get("PYTEST_CURRENT_TEST")):
        return test.rpartition(" ")[0]  # "tests/test_a.py::test_b (call)"
    current = "" if "_pytest" in sys.modules and "PYTEST_VERSION" in os.environ else None
    unittest = sys.modules.get("unittest.case")
    frames = sys._current_frames() if unittest is not None else {}
    for thread in {threading.get_ident(), threading.main_thread().ident or 0}:  # a test client may run the app in one
        frame = frames.get(thread)
        while frame is not None:
            module = str(frame.f_globals.get("__name__"))
            if unittest is not None and module == unittest.__name__:
                case = frame.f_locals.get("self")
                if isinstance(case, unittest.TestCase):
                    return str(case.id())
            if module.startswith("unittest.") and module != "unittest.mock":
                current = ""
            frame = frame.f_back
    return current


def is_tested(app: Any) -> bool:
    """Whether this process runs tests, or the app's settings say so (Flask's `TESTING`)."""
    return current_test() is not None or getattr(app, "testing", None) is True


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

    The file is in the instance folder of the framework's app, if that folder exists, else in the working directory at
    construction.
    """

    def __init__(self, app: Any) -> None:
        self._file = Path(FILE_NAME)
        with contextlib.suppress(OSError):  # the working directory was deleted
            self._file = self._file.absolute()
        self._app = app
        self._in_memory = False
        self._may_create = _may_create
        self._chosen: Store | None = None
        self._choosing = ForkSafeLock()

    def decide_if_tested(self) -> bool:
        """Whether the app is under test. Once true, it stays true: at exit a test can no longer be detected."""
        self._in_memory = self._in_memory or is_tested(self._app)
        return self._in_memory

    def __getattr__(self, name: str) -> Any:
        """A method of the store; calling it chooses the store."""
        if name not in STORE_METHODS:
            raise AttributeError(name)
        return lambda *args, **options: getattr(self._store(), name)(*args, **options)  # noqa: PLW0108 (not chosen yet)

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
        return Path(folder, FILE_NAME).absolute()

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
            log.warning(
                "sitemap store: memory, because %s; its data is lost when the process ends, and every worker serves a"
                " sitemap of its own: pass SitemapMiddleware a store in a writable folder, or set SITEMAP_STORE",
                error,
            )
            return MemoryStore()
        log.info("sitemap store: %s", store.path)
        return store
