"""Work in the background that requests may wait for, and why there may be no document to serve meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ..exceptions import SitemapError

log: logging.Logger = logging.getLogger("sitemap_middleware")


class Unavailable(Exception):
    """A document cannot be made now, and there is no earlier one to serve. The message is for clients."""


class BeingGenerated(Unavailable):
    """There is no earlier document to serve while the first one is generated."""

    def __init__(self) -> None:
        super().__init__("it is being generated, try again in a moment")


class Postponed(Exception):
    """Something is not rendered now, which is not a fault. The next request for the sitemap tries again."""


class BackgroundJob:
    """Work that requests may wait for."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.done: threading.Event = threading.Event()
        self.error: Exception | None = None
        """Why it failed."""

    def run(self) -> None:
        """Do the work, on this thread."""
        try:
            self._work()
        except Exception as error:
            self.error = error
            if not isinstance(error, SitemapError | Postponed):  # errors of the store and of providers are logged there
                log.exception("a background job of the sitemap failed")
        finally:
            self.done.set()
