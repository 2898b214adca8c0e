"""Logs the middleware's own faults, once, and never raises them into the app."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

log: logging.Logger = logging.getLogger("sitemap_middleware")


class FaultLog:
    """Logs the first fault of one middleware. More of them would fill the app's log, one for each request."""

    def __init__(self) -> None:
        self._has_logged = False

    def __call__(self, what: str, error: Exception) -> None:
        """Log what failed, if nothing has been logged yet."""
        if not self._has_logged:
            self._has_logged = True
            with suppress(Exception):  # a log handler or filter of the app may raise
                log.warning("%s; further faults like this are not logged", what, exc_info=error)

    @contextmanager
    def guard(self, what: str) -> Iterator[None]:
        """Log an exception raised within, and do not raise it. Takes a microsecond more than a `try` statement."""
        try:
            yield
        except Exception as error:
            self(what, error)
