"""Gives each test of the app its own sitemap, so that one test does not influence the next. Used only in test runs."""

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
    """A middleware that gets a new service, with an empty store in memory, whenever another test runs.

    Pending observations of an earlier test are discarded with its service.
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
            service: SitemapService = self.__dict__["service"]
        return service

    @service.setter
    def service(self, service: SitemapService) -> None:
        self.__dict__["service"] = service

    def _reset(self, previous: SitemapService) -> SitemapService:
        previous.stop_background_work()
        service = SitemapService(previous.app_routes.app, previous.options, open_store("memory://", "isolation"))
        self.__dict__["_metrics_report"](service)
        return service


@functools.cache
def isolated_class(cls: type[T]) -> type[T]:
    """The class of a middleware, with a service for each test."""
    bases: Any = (IsolatedMiddleware, cls)
    return type(cls.__name__, bases, {"__module__": cls.__module__, "__doc__": cls.__doc__})
