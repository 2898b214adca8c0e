"""Finds documents that are in memory and up to date by the key of a request. Nothing here blocks: event loops ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from weakref import ref

from .observation.background_saving import ResponseBuffer
from .observation.parse_and_store import Ingester
from .rendering.responses import CachedDocument
from .request_response import KEY_METHOD, RequestKey, Response
from .routing.current_routes import AppRoutes

MAX_READY_KEYS: Final = 64
"""Keys of requests by which documents are looked up. If there are more, all are dropped; clients can invent queries."""

_FIELDS: Final = frozenset({b"accept-encoding", b"if-none-match", b"if-modified-since"})
"""The fields of a request on which it depends whether a response is ready."""


class ReadyDocuments:
    """Documents by the key of a request, until one of them is no longer up to date. The publisher keeps them."""

    def __init__(
        self,
        clock: Callable[[], float],
        buffer: ResponseBuffer,
        ingester: Ingester,
        app_routes: AppRoutes,
    ) -> None:
        """Know none yet.

        Args:
            clock: returns POSIX seconds.
            buffer: observations that are not in the store yet.
            ingester: counts the observations that this process has merged into the store.
            app_routes: the app's routes.
        """
        self._clock = clock
        self._buffer = buffer
        self._ingester = ingester
        self._app_routes = app_routes
        self._flushes = 0
        self._by_key: dict[RequestKey, ref[CachedDocument]] = {}

    def expire(self) -> None:
        """Treat all cached documents as outdated."""
        self._flushes += 1

    @property
    def generation(self) -> int:
        """A number that grows with every flush and change of routes: a document made before may be out of date."""
        return self._flushes + self._ingester.merged + self._app_routes.version

    def get(self, key: RequestKey) -> CachedDocument | None:
        """The document of a key, up to date or not; None if there is none."""
        reference = self._by_key.get(key)
        return None if reference is None else reference()

    def add(self, key: RequestKey, document: CachedDocument) -> None:
        """Have a document found by a key."""
        if len(self._by_key) >= MAX_READY_KEYS:
            self._by_key.clear()
        self._by_key[key] = ref(document)

    def response(self, key: RequestKey, fields: Iterable[tuple[bytes, bytes]]) -> Response | None:
        """The response to an ASGI request that is like one a moment ago; else None.

        It needs no `Request`, which takes as long to make as the response to find.

        Args:
            key: the key of the request.
            fields: the header fields, with names in lower case.
        """
        reference = self._by_key.get(key)
        document = None if reference is None else reference()
        if document is None or not (self._is_checked(document) or self._check(document, may_refresh=False)):
            return None
        coding = tags = moment = None
        try:
            for name, value in fields:
                if name not in _FIELDS:  # most: one look-up is faster than four comparisons
                    continue
                if name == b"accept-encoding":
                    coding = value.decode("latin-1")
                elif name == b"if-none-match":
                    tags = value.decode("latin-1")
                elif name == b"if-modified-since":
                    moment = value.decode("latin-1")
        except Exception:  # a header that is not bytes: what looks at it next logs it
            return None
        return document.negotiated.get((key[KEY_METHOD], coding, tags, moment))

    def is_current(self, document: CachedDocument) -> bool:
        """Whether a document may be served as it is. If not, none is looked up by key until it is added again."""
        if self._is_checked(document) or self._check(document, may_refresh=True):
            return True
        self._by_key.clear()
        return False

    def _check(self, document: CachedDocument, *, may_refresh: bool) -> bool:
        """Whether a document may be served as it is. If it may, that holds for a moment (`document.checked`)."""
        if not self._buffer.is_idle:
            return False
        now, generation = self._clock(), self.generation
        fresh_until = document.fresh_until(now, generation, may_refresh=may_refresh)
        until = min(fresh_until, now + 1) if self._app_routes.reload() is document.table else 0.0
        document.checked = generation, now, until
        return until > now

    def _is_checked(self, document: CachedDocument) -> bool:
        """Whether the latest check of a document still holds."""
        checked, since, until = document.checked
        return (  # the sum is `generation`, written out because a property takes a call
            checked == self._flushes + self._ingester.merged + self._app_routes.version
            and since < self._clock() < until
            and self._buffer.is_idle
        )
