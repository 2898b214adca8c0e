"""Observers: what happens of us while a page's response passes. Counted in single microseconds; fails for nobody."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from .forks import renew_in_children
from .headers import Told
from .html import MAX_BYTES
from .model import Question, Sighting, Site
from .observation import HTML, TEACHING
from .recorder import Recorder
from .sampler import Sampler
from .urlmap import URLMap

log = logging.getLogger("sitemap_middleware")

_END_OF_TIME: Final = 253_402_300_800
"""The year 10,000 in POSIX seconds: no date can be written of it."""


_NOTHING: Final = (0, 0, None, None)
"""No answer that could repeat."""

_PAIRS: Final = (list, tuple)

MOST: Final = 1000
"""Pages whose last answer is remembered. It is of use for a second, so all are let go where there are more."""

Answer = list[Any]
"""Of a page: from when until when its last answer may repeat, and its status and headers as the app gave them.

One object for as long as it is remembered, so that who holds it sees what came since.
"""


class Watch:
    """What the observers of one app share."""

    def __init__(self, fold: Callable[[list[Sighting]], None], urlmap: URLMap, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.recorder = Recorder(fold, self.expected)
        self.sampler = Sampler()
        self._urlmap = urlmap
        self.renew()
        renew_in_children(self)
        self._failed = False

    def renew(self) -> None:
        """As new: what a forked child's parent saw, the parent folds."""
        self.answers: dict[Question, Answer] = {}
        self._last: dict[tuple[str, str], Answer] = {}

    def repeats(self, last: Answer, status: Any, headers: Any) -> bool:
        """Whether this is what was last recorded of the page, and in this very second.

        Then it says nothing new, whoever asked: time is kept in seconds, and of two
        answers that are the same in one second, one is enough.
        """
        try:
            since, until, last_status, last_headers = last
            if since <= self.clock() < until and status == last_status and headers == last_headers:
                self.recorder.seen += 1
                return True
        except Exception as error:
            self.failed("a response could not be compared", error)
        return False

    def remembered(self, question: Question | None, key: tuple[str, str]) -> Answer:
        """Where the last answer of a page is kept, to be found by this question from now on."""
        if len(self._last) >= MOST or len(self.answers) >= MOST:
            for last in self._last.values():
                last[:] = _NOTHING
            self.renew()
        last = self._last.setdefault(key, [*_NOTHING])
        if question is not None:
            self.answers[question] = last
        return last

    def record(self, sighting: Sighting) -> None:
        """Record what no observer was told of: then what is remembered of the page is not the last of it any more."""
        last = self._last.get(sighting.key)
        if last is not None:
            last[:] = _NOTHING
        self.recorder.record(sighting)

    def expected(self, sighting: Sighting) -> bool:
        """Whether the URL map has a route for it: no stranger's path."""
        return self._urlmap.table.find(sighting.site, sighting.path) is not None

    def wants_body(self, sighting: Sighting) -> bool:
        """Whether the body should be read, which is due: HTML as it is, not too large, of a page of the site."""
        if not self.expected(sighting) or not _is_plain_html(sighting):
            return False
        self.sampler.plan(sighting)
        return True

    def failed(self, what: str, error: Exception) -> None:
        """Log a fault of our own, once: it must never be one of the app's, nor fill its log."""
        if not self._failed:
            self._failed = True
            log.warning("%s; further faults like this are not logged", what, exc_info=error)


class Observer(Sighting):
    """Told of one response as it passes, and then what was seen of it."""

    __slots__ = ("_chunks", "_last", "_size", "_watch")

    def __init__(self, watch: Watch, site: Site, path: str, question: Question | None, last: Answer | None) -> None:
        self._watch = watch
        self.site = site
        self.path = path
        self.key = key = (site.key, path)
        self._last = watch.remembered(question, key) if last is None else last
        self.status = 0
        self.body = None
        self.moves = False
        self._chunks: list[bytes] | None = None

    def start(self, status: Any, headers: Any) -> bool:
        """Status and headers as the app gave them, be they what they may. Whether the body is wanted too.

        The status is ASGI's number or WSGI's line, the headers are pairs of text or
        of bytes. A second call takes the first one back.
        """
        watch = self._watch
        try:
            if self.status:
                watch.recorder.forget(self)
                self._last[1] = 0
                self.status = 0
            given = status
            if isinstance(status, str):
                status = int(status[:3])
            if status not in TEACHING or not isinstance(headers, _PAIRS):
                return False  # what can be read but once is the server's to read
            self.headers = list(headers)
            self.at = watch.clock()
            if not 0 < self.at < _END_OF_TIME:
                watch.failed("clock= must return POSIX seconds", ValueError(self.at))
                return False
            self.status = status
            self._last[1] = 0
            watch.recorder.record(self)
            if status != 200 or watch.sampler.rests(self) or not watch.wants_body(self):
                self._last[:] = self.at, int(self.at) + 1, given, self.headers
                return False
        except Exception as error:
            watch.failed("a response could not be observed", error)
            return False
        self._chunks = []
        self._size = 0
        return True

    def chunk(self, chunk: bytes) -> None:
        """A part of the body, where it is wanted. One that grows too large is let go."""
        if self._chunks is None:
            return
        try:
            self._size += len(chunk)
            self._chunks.append(chunk)
        except Exception as error:
            self._size = MAX_BYTES + 1
            self._watch.failed("a body could not be sampled", error)
        if self._size > MAX_BYTES:
            self._chunks = None

    def end(self) -> None:
        """The body was sent whole."""
        if self._chunks is None:
            return
        try:
            body, self._chunks = b"".join(self._chunks), None
            self._watch.recorder.sample(
                Sighting(self.site, self.path, at=self.at, status=self.status, headers=self.headers, body=body)
            )
        except Exception as error:
            self._watch.failed("a body could not be sampled", error)


def _is_plain_html(sighting: Sighting) -> bool:
    told = Told(sighting.headers)
    length = told.last("content-length")
    small = not length.isdecimal() or int(length) <= MAX_BYTES
    return told.media_type in HTML and not told.last("content-encoding") and small
