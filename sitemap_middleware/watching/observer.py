"""Observers: what happens of us while a page's response passes. Counted in single microseconds; fails for nobody."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from ..anonymity import REASONS, IgnoreReason
from ..exchange import Question
from ..forks import renew_in_children
from ..model import CapturedResponse, Site
from ..pages.decoding import undecodable
from ..pages.headers import ResponseHeaders
from ..pages.html import BEGINNING, MAX_BYTES
from ..pages.observation import HTML, TEACHING
from ..routes.urlmap import URLMap
from .recorder import ResponseBuffer
from .sampler import SamplePlan, BodySampler

log = logging.getLogger("sitemap_middleware")

_END_OF_TIME: Final = 253_402_300_800
"""The year 10,000 in POSIX seconds: no date can be written of it."""


_LISTS: Final = frozenset({list, tuple})
"""The types of headers, and of each header, that can be read more than once: a look at them changes nothing."""

MOST: Final = 1000
"""Pages known at one time; all are let go where there are more. What is asked for often is soon known again."""


LONGEST_PATH: Final = 200
"""Characters of the longest path of which is remembered why a request did not count."""


class PageRequest(Protocol):
    """A request for a page that is known, as adapters make it."""

    @property
    def question(self) -> Question:
        """As `exchange.Request.question`."""

    def refusal(self) -> IgnoreReason | None:
        """As `exchange.Request.refusal`."""

    def visitor(self, status: int) -> int:
        """What tells the visitor from others, if what was answered may depend on that; see `model.Contrary`."""

    def observed(self) -> Observer | None:
        """What the core makes of it."""


class ResponseTracker:
    """What the observers of one app share."""

    def __init__(self, fold: Callable[[list[CapturedResponse]], None], urlmap: URLMap, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.recorder = ResponseBuffer(fold, self.expected, clock=clock)
        self.sampler = BodySampler()
        self.urlmap = urlmap
        self.repeated = 0
        """How many answers said nothing new."""
        self.met_at, self.met_until = -math.inf, math.inf
        """From when until when the core need not hear of another request that teaches, in POSIX seconds."""
        self.ignored = dict.fromkeys(REASONS, 0)
        """How many requests did not count as evidence, by reason."""
        self._refusals: dict[str, IgnoreReason] = {}
        """Why the last request of a path did not, by decoded path. All are forgotten if there are too many."""
        self._readings = 0
        self.renew()
        renew_in_children(self)
        self._failed = False

    def renew(self) -> None:
        """As new: what a forked child's parent saw, the parent folds."""
        self.known: dict[Question, TrackedPage] = {}
        self._pages: dict[tuple[str, str], TrackedPage] = {}

    def meet(self, question: Question, site: Site, path: str, readings: int, *, foreign: bool) -> TrackedPage:
        """The page that a question is about, to be found by it from now on.

        What a foreign Host shows is kept apart: it may not count.
        """
        if len(self._pages) >= MOST or len(self.known) >= MOST or self._readings != readings:
            self.forget()
            self._readings = readings
        key = (f"foreign:{site.key}" if foreign else site.key, path)
        page = self._pages.setdefault(key, TrackedPage(self, site, path, key, readings, foreign=foreign))
        if question:
            self.known[question] = page
        return page

    def refuse(self, path: str, refusal: IgnoreReason) -> None:
        """Count a request for a decoded path that does not count as evidence."""
        self.ignored[refusal.reason] += 1
        if len(path) <= LONGEST_PATH:
            if len(self._refusals) >= MOST:
                self._refusals.clear()
            self._refusals[path] = refusal

    def refuse_again(self, path: str, refusal: IgnoreReason) -> bool:
        """Count as `refuse` does, if the last request for a path, as the protocol gives it, was refused alike."""
        if self._refusals.get(path) is not refusal:
            return False
        self.ignored[refusal.reason] += 1
        return True

    def told_of_ignored(self, path: str, *, known: bool) -> str | None:
        """What to tell people of requests that did not count as evidence: all of them, and the last for this path.

        None if there were none, or none is remembered for a page that is known anyway.
        """
        counts, last = dict(self.ignored), self._refusals.get(path)
        total = sum(counts.values())
        if not total or (known and last is None):
            return None
        each = ", ".join(f"{count} {REASONS[reason]}" for reason, count in counts.items() if count)
        told = f"of all requests since the process began, {total} did not count as evidence: {each}"
        return told if last is None else f"{told}; the last of them for this page {last.detail}"

    def forget(self) -> None:
        """Let go of all pages that are known; who holds one of them finds no answer that could repeat."""
        pages = self._pages
        self.renew()
        for page in pages.copy().values():
            page.last = _NOTHING

    def record(self, sighting: CapturedResponse) -> None:
        """Record what no observer was told of: then what is known of the page is not the last of it any more."""
        page = self._pages.get(sighting.key)
        if page is not None:
            page.last = _NOTHING
        self.recorder.record(sighting)

    def expected(self, sighting: CapturedResponse) -> bool:
        """Whether the URL map has a route for it: no stranger's path."""
        return self.urlmap.table.find(sighting.site, sighting.path) is not None

    def planned(self, sighting: CapturedResponse) -> SamplePlan | None:
        """When the body, which is due, is read again; None if it never is: HTML is, if it can be decompressed here."""
        return self.sampler.plan(sighting) if self.expected(sighting) and _is_readable_html(sighting) else None

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

    __slots__ = ("failed", "foreign", "key", "last", "path", "plan", "readings", "refused", "site", "watch")

    def __init__(
        self, watch: ResponseTracker, site: Site, path: str, key: tuple[str, str], readings: int, *, foreign: bool
    ) -> None:
        self.watch = watch
        self.foreign = foreign
        self.site = site
        self.path = path
        self.key = key
        self.readings = readings
        """Of the URL map, when the site was found."""
        self.last = _NOTHING
        """The last answer, whole: it is put here when nothing of it changes any more."""
        self.plan: SamplePlan | None = None
        """When its body is to be read again."""
        self.failed = False
        """Whether the last response failed before its end, or was no page: then the next one is watched to its end."""
        self.refused: IgnoreReason | None = None
        """Why a request for it did not count, the last time that one did not."""

    def hear(self, status: Any, headers: Any, visit: PageRequest) -> Observer | None:
        """What the page answers now: the observer of it; None where it says nothing new, or can teach nothing.

        What was last recorded of the page, in this very second, says nothing new, whoever
        asked: time is kept in seconds, and of two answers that are the same in one
        second, one is enough. The same in another second is the last one, seen later.

        Returns:
            the observer of what was recorded, so that it can be taken back; None if nothing was recorded.
        """
        watch, last = self.watch, self.last
        now, same = 0.0, False
        try:
            now = watch.clock()
            same = status == last.given and headers == last.headers and visit.question[1] == last.host
            if same and last.at <= now < last.until:
                watch.repeated += 1
                return None
        except Exception as error:
            watch.failed("a response could not be compared", error)
        if refusal := visit.refusal():
            if refusal is self.refused:  # as it is for each request of somebody who is signed in
                watch.ignored[refusal.reason] += 1
            else:
                self.refused = refusal
                watch.refuse(self.path, refusal)
            return None
        if not watch.met_at <= now < watch.met_until or self.readings != watch.urlmap.readings:
            observer = visit.observed()
        elif (
            same
            and last.until <= now < _END_OF_TIME
            and (last.status != 200 or not (plan := self.plan) or now < plan.due)
        ):
            if last.status != 200 or plan is None:
                last.visitor = visit.visitor(last.status)
            last.at = now  # whoever folds it meanwhile reads either time, and both are true
            last.until = now // 1 + 1
            watch.recorder.record(last)
            return last
        else:
            observer = Observer(self, visit.question[1])
        if observer is not None:
            observer.start(status, headers, now, visit, judged=True)
        return observer


class Observer(CapturedResponse):
    """Told of one response as it passes, and then what was seen of it."""

    __slots__ = ("_chunks", "_page", "_size", "given", "until")

    given: Any
    """The status as the app gave it."""
    until: float
    """The end of the second in which the same answer says nothing new."""

    def __init__(self, page: TrackedPage, host: str | bytes) -> None:
        self._page = page
        self.host = host
        self.foreign = page.foreign
        self.site = page.site
        self.path = page.path
        self.key = page.key
        self.status = 0
        self.body = None
        self.moves = False
        self.probed = False
        self.visitor = 0
        self._chunks: list[bytes] | None = None
        self._size = 0

    def start(
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
        of bytes. A response that starts again has another observer: see `again`. A
        visit that was judged before the app had the request is judged again: the app
        may have signed the visitor in since.
        """
        page = self._page
        watch = page.watch
        try:
            if visit is not None and not judged and (refusal := visit.refusal()):
                watch.refuse(self.path, refusal)
                return False
            self.given = status
            status = page.last.status if status == page.last.given else _number(status)
            if status not in TEACHING or not _rereadable(headers):
                return False  # headers that can be read only once are the server's to read
            self.headers = list(headers)
            if now is None:
                now = watch.clock()
            self.at = now
            if not 0 < now < _END_OF_TIME:
                watch.failed("clock= must return POSIX seconds", ValueError(now))
                return False
            self.status = status
            if status != 200 and visit is not None:
                self.visitor = visit.visitor(status)
            page.last = _NOTHING
            watch.recorder.record(self)
            if status != 200:
                page.failed = True
            else:
                plan = page.plan or watch.sampler.find(self.key)
                if plan is None or page.failed or not plan.rests(now, headers):
                    plan = watch.planned(self)
                    self._chunks = None if plan is None else []
                page.plan = plan
                if plan is None and visit is not None:  # it is no HTML, maybe for this visitor alone
                    self.visitor = visit.visitor(status)
            if self._chunks is None:
                self.until = now // 1 + 1
                page.last = self
        except Exception as error:
            watch.failed("a response could not be observed", error)
        return self.wanted

    def again(self) -> Observer:
        """The observer of the same request's next start; what the first one said is taken back."""
        self.take_back()
        return Observer(self._page, self.host)

    def take_back(self) -> None:
        """Take back what was recorded: the response failed before its end."""
        page, self._chunks = self._page, None
        page.failed = True
        if page.last is self:
            page.last = _NOTHING
        page.watch.recorder.forget(self)

    @property
    def wanted(self) -> bool:
        """Whether the body is."""
        return self._chunks is not None

    def chunk(self, chunk: Any) -> None:
        """A part of the body, where it is wanted. Of one that grows too large, the beginning is kept."""
        if self._chunks is None or self._size > MAX_BYTES:
            return
        room = MAX_BYTES + 1 - self._size
        if type(chunk) is not bytes:
            chunk = _copied(chunk, room)
            if chunk is None:
                self._chunks = None
                return
        self._chunks.append(chunk if len(chunk) <= room else chunk[:room])
        self._size += len(chunk)
        if self._size > MAX_BYTES:
            self._chunks = [b"".join(self._chunks)[:BEGINNING]]

    def lose(self) -> None:
        """The server sends a part of the body that does not pass here, such as a file: there is no sample."""
        self._page.failed = False
        self._chunks = None

    def end(self) -> None:
        """The body was sent whole."""
        if self._chunks is None:
            return
        self._page.failed = False
        watch = self._page.watch
        with watch.guarding("a body could not be sampled"):
            body, self._chunks = b"".join(self._chunks), None
            cut = self._size > MAX_BYTES
            watch.recorder.sample(
                CapturedResponse(
                    self.site,
                    self.path,
                    at=self.at,
                    status=self.status,
                    headers=self.headers,
                    body=body,
                    host=self.host,
                    foreign=self.foreign,
                    cut=cut,
                )
            )


def _number(status: Any) -> int:
    """The number of a status, ASGI's or WSGI's line; 0 if it has none."""
    try:
        return int(status[:3]) if isinstance(status, str) else operator.index(status)
    except (TypeError, ValueError):
        return 0


def _copied(chunk: Any, most: int) -> bytes | None:
    """So many bytes of a buffer at most, which the app may use again; None if it is no buffer."""
    try:
        with memoryview(chunk) as view, view.cast("B") as flat:
            return flat[:most].tobytes()
    except Exception:  # the server refuses it, too
        return None


def _rereadable(headers: Any) -> bool:
    """Whether headers, and each pair of them, are still as they were for the server after we read them."""
    if type(headers) not in _LISTS:
        pairs = isinstance(headers, Collection) and not isinstance(headers, Mapping | str | bytes)
        if not pairs:
            return False
    return _LISTS.issuperset(map(type, headers)) or all(isinstance(pair, list | tuple) for pair in headers)


def _nothing() -> Observer:
    """No answer, which none repeats."""
    nothing = Observer.__new__(Observer)
    nothing.given = nothing
    nothing.status = 0
    nothing.headers = ()
    nothing.host = ""
    nothing.at = nothing.until = math.inf  # no time comes before it, and none after
    return nothing


_NOTHING: Final = _nothing()


def _is_readable_html(sighting: CapturedResponse) -> bool:
    told = ResponseHeaders(sighting.headers)
    return told.media_type in HTML and not undecodable(told.codings)
