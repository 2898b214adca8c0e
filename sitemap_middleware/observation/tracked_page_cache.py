"""Keeps the pages that were requested recently, so that a request for one of them needs only a dict look-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..captured_response import CapturedResponse
from ..fork_safety import reset_after_fork
from ..models import Site
from ..request_response import RequestKey
from ..routing.current_routes import AppRoutes
from .background_saving import ResponseBuffer
from .fault_log import FaultLog
from .observer import NO_ANSWER
from .tracked_page import ObserverContext, TrackedPage

MAX_TRACKED_PAGES: Final = 1000
"""Tracked pages, and keys of requests for them. If there are more, all are dropped; popular ones soon return."""


class TrackedPageCache(ObserverContext):
    """The tracked pages of one app, and what their observers share."""

    def __init__(
        self,
        buffer: ResponseBuffer,
        app_routes: AppRoutes,
        clock: Callable[[], float],
        log_fault: FaultLog,
    ) -> None:
        super().__init__(buffer, app_routes, clock, log_fault)
        self.routes_version: int = 0
        """`AppRoutes.version` when the tracked pages were resolved."""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent saves what it observed."""
        self.tracked_pages: dict[RequestKey, tuple[TrackedPage, RequestKey]] = {}
        """The pages to look up by the key of a request, each with that key; empty while `track` is due.

        Equal keys are one object from then on, so that they can be compared by their identity.
        """
        self._pages_by_key = self.tracked_pages
        self._pages: dict[tuple[str, str], TrackedPage] = {}

    def track(
        self, request_key: RequestKey | None, site: Site, path: str, routes_version: int, *, is_foreign_host: bool
    ) -> TrackedPage:
        """Return the tracked page of a site's path, and remember it by the key of the request.

        Args:
            request_key: None if requests for the page are not to be looked up.
            site: the site that the request's Host stands for.
            path: decoded, below the root.
            routes_version: `AppRoutes.version` before the site was resolved.
            is_foreign_host: whether the Host is not the site's own. Such responses may
                not count, so they have a page apart.
        """
        if (
            len(self._pages) >= MAX_TRACKED_PAGES
            or len(self._pages_by_key) >= MAX_TRACKED_PAGES
            or self.routes_version != routes_version
        ):
            self.forget()
            self.routes_version = routes_version
        page_key = _page_key(site, path, is_foreign_host=is_foreign_host)
        page = self._pages.get(page_key)
        if page is None:
            page = TrackedPage(self, site, path, page_key, is_foreign_host=is_foreign_host)
            page = self._pages.setdefault(page_key, page)
        self.tracked_pages = self._pages_by_key
        if request_key is not None:
            self.tracked_pages[request_key] = page, request_key
        return page

    def require_track(self) -> None:
        """Call `track` again for each page at its next request, so that the site is resolved again."""
        self.tracked_pages = {}

    def forget(self) -> None:
        """Stop tracking all pages. Requests in progress that hold one must not find its last answer."""
        pages = self._pages
        self.reset_after_fork()
        for page in pages.copy().values():
            page.last_answer = NO_ANSWER

    def start_over(self) -> None:
        """Read the body of each page at its next response: the store has lost what was read of them."""
        self.sampler.forget()
        self.forget()

    def require_reading(self, site: Site, path: str) -> None:
        """Read the body of a learned page at its next response: its headers do not count before."""
        for is_foreign_host in (False, True):
            self.sampler.require_reading(_page_key(site, path, is_foreign_host=is_foreign_host))

    def record(self, captured: CapturedResponse) -> None:
        """Record a response that no observer saw, such as a probe's. The page's last answer is then another one."""
        page = self._pages.get(captured.page_key)
        if page is not None:
            page.last_answer = NO_ANSWER
        self.buffer.record(captured)


def _page_key(site: Site, path: str, *, is_foreign_host: bool) -> tuple[str, str]:
    """Identifies a page. Responses for a foreign Host may not count, so they have a page apart."""
    return f"foreign:{site.store_key}" if is_foreign_host else site.store_key, path
