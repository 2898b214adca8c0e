"""Isolation: in a test run, what one test saw does not influence the next. Outside of test runs it is not used."""

from __future__ import annotations

import functools
from typing import Any, Final, TypeVar

from .detect_tests import current_test
from .fork_safety import ForkSafeLock
from .service import SitemapService
from .stores import open_store

T = TypeVar("T")

_RESET_LOCK: Final = ForkSafeLock()


class IsolatedMiddleware:
    """A middleware whose core begins anew, with a memory of its own, when another test runs.

    What the core of an earlier test still has to read or to write goes with that core.
    """

    _test: str | None = None

    @property
    def service(self) -> SitemapService:
        test = current_test()
        with _RESET_LOCK:
            if test and test != self._test:
                if self._test:
                    self.__dict__["service"] = self._reset(self.__dict__["service"])
                self._test = test
            core: SitemapService = self.__dict__["service"]
        return core

    def _reset(self, before: SitemapService) -> SitemapService:
        before.stop_background_work()
        core = SitemapService(before.urlmap.app, before.options, open_store("memory://", "isolation"))
        self.__dict__["_metrics_report"](core)
        return core


@functools.cache
def isolated_class(cls: type[T]) -> type[T]:
    """The class of a middleware, isolated."""
    bases: Any = (IsolatedMiddleware, cls)
    return type(cls.__name__, bases, {"__module__": cls.__module__, "__doc__": cls.__doc__})
