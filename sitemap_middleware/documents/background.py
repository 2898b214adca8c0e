"""Renders parts in the background, and says why there may be no document to serve meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ..exceptions import SitemapError, StoreError, ValuesError
from ..http.messages import Request
from ..listing.provider_item_queue import as_values_error
from ..models import BaseURL
from ..stores.base import Store
from ..stores.store_clock import StoreClock
from ..util import WorkerId, reset_after_fork
from .parts import Part, PartSource, Saver

log: logging.Logger = logging.getLogger("sitemap_middleware")

LEASE_SECONDS: Final = 60
"""Seconds after which another worker takes over the rendering of a worker that stopped renewing its lease."""

POLL_SECONDS: Final = 0.2
"""How often a worker looks whether another one has rendered what it needs."""

PAUSE_FACTOR: Final = 2
"""The pause after a part was rendered in the background, as a multiple of the time that it took."""


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


@dataclass
class RenderedSite:
    """What was rendered of a site, and what is being rendered."""

    owner: BaseURL
    parts: dict[str, Part] = field(default_factory=dict)
    """What was rendered last of each part, by its name."""
    jobs: dict[str, BackgroundJob] = field(default_factory=dict)
    """What is rendered in the background: "values" or "learned"."""
    failing: dict[str, str] = field(default_factory=dict)
    """Why providers fail, by the name of the part. Each was logged, and costs the site its own pages only."""


class Renderer:
    """Renders parts, of which one worker renders each, and the others take it from the store."""

    def __init__(self, store: Store, store_clock: StoreClock, clock: Callable[[], float]) -> None:
        self._store = store
        self._store_clock = store_clock
        self._clock = clock
        self._worker_id = WorkerId()
        self._closing = threading.Event()
        self.rendered_parts: int = 0
        """Parts of learned pages rendered since the process began."""
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent's lock may be held for ever."""
        self._closing = threading.Event()

    def close(self) -> None:
        """Render nothing more in the background: a server that shuts down waits for it."""
        self._closing.set()

    def render_now(self, site: RenderedSite, sources: Iterable[PartSource], store: Store) -> None:
        """Render parts on this thread, without asking what other workers do.

        Args:
            site: of the parts.
            sources: the parts.
            store: where they are saved; its calls may fail sooner than those of other threads.
        """
        for source in sources:
            previous = site.parts.get(source.name)
            part = Saver(store, site.owner).render(source, previous, self._store_clock.now, self._clock)
            site.parts[source.name] = part
            self.rendered_parts += 1

    def start(self, site: RenderedSite, sources: Sequence[PartSource], request: Request) -> BackgroundJob:
        """Render parts after a request, or at the same time. The job that runs already, if there is one, is enough."""
        kind = "learned" if sources[0].pages else "values"
        job = site.jobs.get(kind)
        if job is None or job.done.is_set():
            if self._closing.is_set():  # the app goes on; what ran before must end all the same
                self._closing = threading.Event()
            job = site.jobs[kind] = BackgroundJob(partial(self._render_all, site, sources, self._closing))
            request.run_in_background(job.run)
        return job

    def _render_all(self, site: RenderedSite, sources: Sequence[PartSource], closing: threading.Event) -> None:
        """Render each of some parts, even if another one fails; then raise the first error."""
        failed: list[Exception] = []
        for source in sources:
            try:
                took = self._render(site, source, closing)
            except Postponed:
                raise
            except StoreError as error:
                failed.append(error)
            except Exception as error:  # nor may a fault of the middleware remove earlier documents
                if closing.is_set():
                    raise Postponed from None  # the provider failed because the process ends
                failed.append(as_values_error(error))
                _log_failure(site, source.name, as_values_error(error))
            else:
                if site.failing.pop(source.name, None) is not None:
                    log.warning("the sitemap's values can be read again")
                if source.pages and closing.wait(PAUSE_FACTOR * took):
                    raise Postponed
        if failed:
            raise failed[0]

    def _render(self, site: RenderedSite, source: PartSource, closing: threading.Event) -> float:
        """Render a part, or take what another worker renders meanwhile; return how many seconds it took."""
        saver, name = Saver(self._store, site.owner), source.name
        lease = partial(self._store.lease, site.owner, f"render {name}", self._worker_id.name)

        def keep_on() -> None:
            if closing.is_set() or not lease(LEASE_SECONDS):
                raise Postponed

        while True:
            is_ours = lease(LEASE_SECONDS)
            try:
                part = saver.load([name]).get(name)
                if part is not None and not source.is_due(part):
                    site.parts[name] = part
                    return 0.0
                if is_ours:
                    part = saver.render(source, part, self._store_clock.now, self._clock, keep_on)
                    site.parts[name] = part
                    self.rendered_parts += bool(source.pages)
                    return part.seconds
            finally:
                if is_ours:
                    with suppress(StoreError):  # the lease expires without this
                        lease(0)
            if closing.wait(POLL_SECONDS):
                raise Postponed


def _log_failure(site: RenderedSite, name: str, error: ValuesError) -> None:
    """Log that a provider fails, once until it works again."""
    if name not in site.failing:
        log.warning("the sitemap shows the last good pages, or none: %s", error, exc_info=error.__cause__)
    site.failing[name] = str(error)
