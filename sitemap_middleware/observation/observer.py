"""Observers: what happens of us while a page's response passes. Counted in single microseconds; fails for nobody."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from ..evidence.body_decoding import undecodable_reason
from ..evidence.html_parser import KEPT_BODY_BYTES, MAX_HTML_BYTES
from ..evidence.response_headers import ResponseHeaders
from ..evidence.response_parser import HTML_TYPES, OBSERVED_STATUSES
from ..fork_safety import reset_after_fork
from ..http import RequestKey
from ..models import Site
from ..observations import CapturedResponse
from ..request_filter import IGNORE_REASONS, IgnoreReason
from ..routing.url_map import URLMap
from .body_sampler import BodySampler, SamplePlan
from .buffer import ResponseBuffer

log = logging.getLogger("sitemap_middleware")

_MAX_TIMESTAMP_SECONDS: Final = 253_402_300_800
"""The year 10,000 in POSIX seconds: no date can be written of it."""


_REREADABLE_TYPES: Final = frozenset({list, tuple})
"""The types of headers, and of each header, that can be read more than once: a look at them changes nothing."""

MAX_TRACKED_PAGES: Final = 1000
"""Pages known at one time; all are let go where there are more. What is asked for often is soon known again."""


MAX_REMEMBERED_PATH_CHARS: Final = 200
"""Characters of the longest path of which is remembered why a request did not count."""


class PageRequest(Protocol):
    """A request for a page that is known, as adapters make it."""

    @property
    def key(self) -> RequestKey:
        """As `exchange.Request.key`."""

    def ignore_reason(self) -> IgnoreReason | None:
        """As `exchange.Request.ignore_reason`."""

    def visitor(self, status: int) -> int:
        """What tells the visitor from others, if what was answered may depend on that; see `model.UnconfirmedAnswer`."""  # noqa: E501

    def observe(self) -> Observer | None:
        """What the core makes of it."""


class ResponseTracker:
    """What the observers of one app share."""

    def __init__(
        self, fold: Callable[[list[CapturedResponse]], None], urlmap: URLMap, clock: Callable[[], float]
    ) -> None:
        self.clock = clock
        self.buffer = ResponseBuffer(fold, self.has_route, clock=clock)
        self.sampler = BodySampler()
        self.urlmap = urlmap
        self.repeated = 0
        """How many answers said nothing new."""
        self.recent_request_at, self.recent_request_until = -math.inf, math.inf
        """From when until when the core need not hear of another request that teaches, in POSIX seconds."""
        self.ignored = dict.fromkeys(IGNORE_REASONS, 0)
        """How many requests did not count as evidence, by reason."""
        self._ignore_reasons: dict[str, IgnoreReason] = {}
        """Why the last request of a path did not, by decoded path. All are forgotten if there are too many."""
        self._map_version = 0
        self.reset_after_fork()
        reset_after_fork(self)
        self._failed = False

    def reset_after_fork(self) -> None:
        """As new: what a forked child's parent saw, the parent folds."""
        self.tracked_pages: dict[RequestKey, TrackedPage] = {}
        self._pages: dict[tuple[str, str], TrackedPage] = {}

    def track(self, question: RequestKey, site: Site, path: str, readings: int, *, foreign: bool) -> TrackedPage:
        """The page that a question is about, to be found by it from now on.

        What a foreign Host shows is kept apart: it may not count.
        """
        if (
            len(self._pages) >= MAX_TRACKED_PAGES
            or len(self.tracked_pages) >= MAX_TRACKED_PAGES
            or self._map_version != readings
        ):
            self.forget()
            self._map_version = readings
        key = (f"foreign:{site.store_key}" if foreign else site.store_key, path)
        page = self._pages.setdefault(key, TrackedPage(self, site, path, key, readings, foreign=foreign))
        if question:
            self.tracked_pages[question] = page
        return page

    def count_ignored(self, path: str, refusal: IgnoreReason) -> None:
        """Count a request for a decoded path that does not count as evidence."""
        self.ignored[refusal.reason] += 1
        if len(path) <= MAX_REMEMBERED_PATH_CHARS:
            if len(self._ignore_reasons) >= MAX_TRACKED_PAGES:
                self._ignore_reasons.clear()
            self._ignore_reasons[path] = refusal

    def refuse_again(self, path: str, refusal: IgnoreReason) -> bool:
        """Count as `refuse` does, if the last request for a path, as the protocol gives it, was refused alike."""
        if self._ignore_reasons.get(path) is not refusal:
            return False
        self.ignored[refusal.reason] += 1
        return True

    def ignored_summary(self, path: str, *, known: bool) -> str | None:
        """What to tell people of requests that did not count as evidence: all of them, and the last for this path.

        None if there were none, or none is remembered for a page that is known anyway.
        """
        counts, last = dict(self.ignored), self._ignore_reasons.get(path)
        total = sum(counts.values())
        if not total or (known and last is None):
            return None
        each = ", ".join(f"{count} {IGNORE_REASONS[reason]}" for reason, count in counts.items() if count)
        told = f"of all requests since the process began, {total} did not count as evidence: {each}"
        return told if last is None else f"{told}; the last of them for this page {last.detail}"

    def forget(self) -> None:
        """Let go of all pages that are known; who holds one of them finds no answer that could repeat."""
        pages = self._pages
        self.reset_after_fork()
        for page in pages.copy().values():
            page.last_answer = _NO_ANSWER

    def record(self, sighting: CapturedResponse) -> None:
        """Record what no observer was told of: then what is known of the page is not the last of it any more."""
        page = self._pages.get(sighting.page_key)
        if page is not None:
            page.last_answer = _NO_ANSWER
        self.buffer.record(sighting)

    def has_route(self, sighting: CapturedResponse) -> bool:
        """Whether the URL map has a route for it: no stranger's path."""
        return self.urlmap.table.find_route(sighting.site, sighting.path) is not None

    def next_sample_at(self, sighting: CapturedResponse) -> SamplePlan | None:
        """When the body, which is due, is read again; None if it never is: HTML is, if it can be decompressed here."""
        return self.sampler.schedule(sighting) if self.has_route(sighting) and _is_readable_html(sighting) else None

    def failed(self, what: str, error: Exception) -> None:
        """Log a fault of our own, once: it must never be one of the app's, nor fill its log."""
        if not self._failed:
            self._failed = True
            with suppress(Exception):  # a log handler or filter of the app's may raise
                log.warning("%s; further faults like this are not logged", what, exc_info=error)

    @contextmanager
    def guarding(self, what: str) -> Iterator[None]:
        """Log what is raised within as a fault of our own, and raise nothing. Takes a microsecond more than `try`."""
        try:
            yield
        except Exception as error:
            self.failed(what, error)


class TrackedPage:
    """A page that was asked for lately: one object, whatever names of its site it was asked for by."""

    __slots__ = (
        "failed",
        "is_foreign_host",
        "is_refused",
        "last_answer",
        "map_version",
        "page_key",
        "path",
        "plan",
        "site",
        "tracker",
    )

    def __init__(
        self, watch: ResponseTracker, site: Site, path: str, key: tuple[str, str], readings: int, *, foreign: bool
    ) -> None:
        self.tracker = watch
        self.is_foreign_host = foreign
        self.site = site
        self.path = path
        self.page_key = key
        self.map_version = readings
        """Of the URL map, when the site was found."""
        self.last_answer = _NO_ANSWER
        """The last answer, whole: it is put here when nothing of it changes any more."""
        self.plan: SamplePlan | None = None
        """When its body is to be read again."""
        self.failed = False
        """Whether the last response failed before its end, or was no page: then the next one is watched to its end."""
        self.is_refused: IgnoreReason | None = None
        """Why a request for it did not count, the last time that one did not."""

    def on_response_start(self, status: Any, headers: Any, visit: PageRequest) -> Observer | None:
        """What the page answers now: the observer of it; None where it says nothing new, or can teach nothing.

        What was last recorded of the page, in this very second, says nothing new, whoever
        asked: time is kept in seconds, and of two answers that are the same in one
        second, one is enough. The same in another second is the last one, seen later.

        Returns:
            the observer of what was recorded, so that it can be taken back; None if nothing was recorded.
        """
        watch, last = self.tracker, self.last_answer
        now, same = 0.0, False
        try:
            now = watch.clock()
            same = status == last.original_headers and headers == last.headers and visit.key[1] == last.host
            if same and last.at <= now < last.resample_at:
                watch.repeated += 1
                return None
        except Exception as error:
            watch.failed("a response could not be compared", error)
        if refusal := visit.ignore_reason():
            if refusal is self.is_refused:  # as it is for each request of somebody who is signed in
                watch.ignored[refusal.reason] += 1
            else:
                self.is_refused = refusal
                watch.count_ignored(self.path, refusal)
            return None
        if (
            not watch.recent_request_at <= now < watch.recent_request_until
            or self.map_version != watch.urlmap.reload_count
        ):
            observer = visit.observe()
        elif (
            same
            and last.resample_at <= now < _MAX_TIMESTAMP_SECONDS
            and (last.status != 200 or not (plan := self.plan) or now < plan.due_at)
        ):
            if last.status != 200 or plan is None:
                last.visitor = visit.visitor(last.status)
            last.at = now  # whoever folds it meanwhile reads either time, and both are true
            last.resample_at = now // 1 + 1
            watch.buffer.record(last)
            return last
        else:
            observer = Observer(self, visit.key[1])
        if observer is not None:
            observer.on_start(status, headers, now, visit, judged=True)
        return observer


class Observer(CapturedResponse):
    """Told of one response as it passes, and then what was seen of it."""

    __slots__ = ("_body_size", "_chunks", "_page", "original_headers", "resample_at")

    original_headers: Any
    """The status as the app gave it."""
    resample_at: float
    """The end of the second in which the same answer says nothing new."""

    def __init__(self, page: TrackedPage, host: str | bytes) -> None:
        self._page = page
        self.host = host
        self.is_foreign_host = page.is_foreign_host
        self.site = page.site
        self.path = page.path
        self.page_key = page.page_key
        self.status = 0
        self.body = None
        self.is_volatile = False
        self.is_probe = False
        self.visitor = 0
        self._chunks: list[bytes] | None = None
        self._body_size = 0

    def on_start(
        self,
        status: Any,
        headers: Any,
        now: float | None = None,
        visit: PageRequest | None = None,
        *,
        judged: bool = False,
    ) -> bool:
        """Status and headers as the app gave them, be they what they may, and the time. Whether the body is wanted too.

        The status is ASGI's number or WSGI's line, the headers are pairs of text or
        of bytes. A response that starts again has another observer: see `restart`. A
        visit that was judged before the app had the request is judged again: the app
        may have signed the visitor in since.
        """
        page = self._page
        watch = page.tracker
        try:
            if visit is not None and not judged and (refusal := visit.ignore_reason()):
                watch.count_ignored(self.path, refusal)
                return False
            self.original_headers = status
            status = page.last_answer.status if status == page.last_answer.original_headers else _status_code(status)
            if status not in OBSERVED_STATUSES or not _are_rereadable(headers):
                return False  # headers that can be read only once are the server's to read
            self.headers = list(headers)
            if now is None:
                now = watch.clock()
            self.at = now
            if not 0 < now < _MAX_TIMESTAMP_SECONDS:
                watch.failed("clock= must return POSIX seconds", ValueError(now))
                return False
            self.status = status
            if status != 200 and visit is not None:
                self.visitor = visit.visitor(status)
            page.last_answer = _NO_ANSWER
            watch.buffer.record(self)
            if status != 200:
                page.failed = True
            else:
                plan = page.plan or watch.sampler.find(self.page_key)
                if plan is None or page.failed or not plan.is_fresh(now, headers):
                    plan = watch.next_sample_at(self)
                    self._chunks = None if plan is None else []
                page.plan = plan
                if plan is None and visit is not None:  # it is no HTML, maybe for this visitor alone
                    self.visitor = visit.visitor(status)
            if self._chunks is None:
                self.resample_at = now // 1 + 1
                page.last_answer = self
        except Exception as error:
            watch.failed("a response could not be observed", error)
        return self.wants_body

    def restart(self) -> Observer:
        """The observer of the same request's next start; what the first one said is taken back."""
        self.retract()
        return Observer(self._page, self.host)

    def retract(self) -> None:
        """Take back what was recorded: the response failed before its end."""
        page, self._chunks = self._page, None
        page.failed = True
        if page.last_answer is self:
            page.last_answer = _NO_ANSWER
        page.tracker.buffer.discard(self)

    @property
    def wants_body(self) -> bool:
        """Whether the body is."""
        return self._chunks is not None

    def on_chunk(self, chunk: Any) -> None:
        """A part of the body, where it is wanted. Of one that grows too large, the beginning is kept."""
        if self._chunks is None or self._body_size > MAX_HTML_BYTES:
            return
        room = MAX_HTML_BYTES + 1 - self._body_size
        if type(chunk) is not bytes:
            chunk = _copy_bytes(chunk, room)
            if chunk is None:
                self._chunks = None
                return
        self._chunks.append(chunk if len(chunk) <= room else chunk[:room])
        self._body_size += len(chunk)
        if self._body_size > MAX_HTML_BYTES:
            self._chunks = [b"".join(self._chunks)[:KEPT_BODY_BYTES]]

    def on_skipped_body(self) -> None:
        """The server sends a part of the body that does not pass here, such as a file: there is no sample."""
        self._page.failed = False
        self._chunks = None

    def on_end(self) -> None:
        """The body was sent whole."""
        if self._chunks is None:
            return
        self._page.failed = False
        watch = self._page.tracker
        with watch.guarding("a body could not be sampled"):
            body, self._chunks = b"".join(self._chunks), None
            cut = self._body_size > MAX_HTML_BYTES
            watch.buffer.sample(
                CapturedResponse(
                    self.site,
                    self.path,
                    at=self.at,
                    status=self.status,
                    headers=self.headers,
                    body=body,
                    host=self.host,
                    foreign=self.is_foreign_host,
                    cut=cut,
                )
            )


def _status_code(status: Any) -> int:
    """The number of a status, ASGI's or WSGI's line; 0 if it has none."""
    try:
        return int(status[:3]) if isinstance(status, str) else operator.index(status)
    except (TypeError, ValueError):
        return 0


def _copy_bytes(chunk: Any, most: int) -> bytes | None:
    """So many bytes of a buffer at most, which the app may use again; None if it is no buffer."""
    try:
        with memoryview(chunk) as view, view.cast("B") as flat:
            return flat[:most].tobytes()
    except Exception:  # the server refuses it, too
        return None


def _are_rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, are still as they were for the server after we read them."""
    if type(headers) not in _REREADABLE_TYPES:
        pairs = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
        if not pairs:
            return False
    return _REREADABLE_TYPES.issuperset(map(type, headers)) or all(isinstance(pair, list | tuple) for pair in headers)


def _make_no_answer() -> Observer:
    """No answer, which none repeats."""
    nothing = Observer.__new__(Observer)
    nothing.original_headers = nothing
    nothing.status = 0
    nothing.headers = ()
    nothing.host = ""
    nothing.at = nothing.resample_at = math.inf  # no time comes before it, and none after
    return nothing


_NO_ANSWER: Final = _make_no_answer()


def _is_readable_html(sighting: CapturedResponse) -> bool:
    told = ResponseHeaders(sighting.headers)
    return told.media_type in HTML_TYPES and not undecodable_reason(told.codings)
