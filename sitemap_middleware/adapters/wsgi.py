"""WSGI (PEP 3333): translates, and decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from io import BytesIO
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from werkzeug.test import run_wsgi_app
from werkzeug.wsgi import ClosingIterator

from ..core import ENDINGS, Core
from ..exchange import (
    ASKED_HEADERS,
    BYTES_TO_ANSWER,
    PERSONAL_HEADERS,
    SECONDS_TO_ANSWER,
    USER_AGENT,
    Question,
    Response,
)
from ..watching.observer import Observer, teaches
from .asked import Asked

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_PERSONAL: Final = tuple(f"HTTP_{name.upper().replace('-', '_')}" for name in PERSONAL_HEADERS)
_ASKED: Final = tuple((f"HTTP_{name.upper().replace('-', '_')}", name) for name in ASKED_HEADERS)


_STREAMS: Final = (GeneratorType, ClosingIterator)
"""Bodies that are streams and nothing more. Any other may be a file that the server knows how to send by itself."""


class WSGIRequest(Asked):
    """An environ, as the core reads requests.

    What tells the page, and who asks, is taken before the app has the environ, for
    apps and routers change it.
    """

    __slots__ = ("_app", "_environ", "_who", "core", "observer", "onward", "page")

    core: Core
    onward: StartResponse
    page: Any
    """Known; None where there is an observer from the beginning."""
    observer: Observer | None

    def __init__(self, environ: WSGIEnvironment, app: WSGIApplication) -> None:
        self._environ = environ
        self._app = app
        try:
            self.question = (
                environ["PATH_INFO"],
                environ["HTTP_HOST"],
                environ["wsgi.url_scheme"],
                environ["SCRIPT_NAME"],
                environ["REQUEST_METHOD"],
                environ["QUERY_STRING"],
            )
        except KeyError:
            self.question = _question(environ)
        self._who = not environ.keys().isdisjoint(_PERSONAL), environ.get("HTTP_ACCEPT", "")

    def start_response(
        self, status: str, headers: list[tuple[str, str]], *exc_info: Any, **named: Any
    ) -> Callable[[bytes], object]:
        """The app's `start_response`: the server's own, but for a look at what is said."""
        if self.observer is not None:
            self.observer.start(status, headers)
        else:
            if exc_info or named:
                self.page.take_back()
            self.observer = self.page.hear(status, headers, self)
        write = self.onward(status, headers, *exc_info, **named)
        return write if self.observer is None or not self.observer.wanted else _watched(write, self.observer)

    def teaches(self) -> bool:
        return teaches(*self._who)

    def observed(self) -> Observer | None:
        return self.core.observe(self, self.question)

    @property
    def root(self) -> str:
        return _text(self.question[3])

    @property
    def path(self) -> str:
        return _text(self.question[0])

    def asker(self) -> tuple[bool, str, str]:
        personal, accept = self._who
        return personal, self.question[1], accept

    @property
    def asked(self) -> Mapping[str, str]:
        environ = self._environ
        return {name: environ[key] for key, name in _ASKED if key in environ}

    def ask(self, path: str) -> Response | None:
        kept = ("wsgi.", "SERVER_", "REMOTE_ADDR")
        environ = {key: value for key, value in self._environ.items() if key.startswith(kept)}
        environ |= {"REQUEST_METHOD": "GET", "QUERY_STRING": "", "wsgi.input": BytesIO()}
        environ |= {"PATH_INFO": path.encode().decode("latin-1"), "SCRIPT_NAME": self.question[3]}
        environ |= {"HTTP_HOST": self.question[1], "HTTP_USER_AGENT": USER_AGENT, "HTTP_ACCEPT": "*/*"}
        chunks, status, headers = run_wsgi_app(self._app, environ)
        body, late = b"", threading.Event()
        timer = threading.Timer(SECONDS_TO_ANSWER, late.set)
        timer.daemon = True
        timer.start()
        try:
            for chunk in chunks:
                body += chunk
                if len(body) > BYTES_TO_ANSWER or late.is_set():
                    return None
        finally:
            timer.cancel()
            if close := getattr(chunks, "close", None):
                close()
        return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)

    def lasting(self) -> WSGIRequest:
        return self

    def behind(self, job: Callable[[], None]) -> None:
        threading.Thread(target=job, name="sitemap-behind", daemon=True).start()

    @property
    def drain(self) -> None:
        return None


def _question(environ: WSGIEnvironment) -> Question:
    get = environ.get
    return (
        get("PATH_INFO", ""),
        get("HTTP_HOST", ""),
        get("wsgi.url_scheme"),
        get("SCRIPT_NAME", ""),
        get("REQUEST_METHOD"),
        get("QUERY_STRING"),
    )


@cache
def _status(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def _text(raw: str) -> str:
    """A string of an environ, which holds bytes as Latin-1, as the text that those bytes are."""
    return raw if raw.isascii() else raw.encode("latin-1", "replace").decode("utf-8", "replace")


class WSGI:
    """The middleware as a WSGI application."""

    app: WSGIApplication
    core: Core
    _before: Mapping[str, object]
    _unwind: Callable[[], None]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        core, request = self.core, WSGIRequest(environ, self.app)
        question = request.question
        request.page = page = core.watch.known.get(question)
        if page is None:
            if self._before:
                self._unwind()
                return self(environ, start_response)
            named = question[0].endswith(ENDINGS)
            if named:
                response = core.ready(request)
                if response is None and core.owns(request):
                    response = core.respond(request)
                if response is not None:
                    start_response(_status(response.status), list(response.headers))
                    return [response.body] if response.parts is None else response.parts
            request.observer = core.observe(request, () if named else question)
            if request.observer is None:
                return self.app(environ, start_response)
        else:
            request.observer = None
        request.core = core
        request.onward = start_response
        body = self.app(environ, request.start_response)
        observer = request.observer
        if observer is None or not observer.wanted:
            return body
        if isinstance(body, list | tuple):
            for chunk in body:
                observer.chunk(chunk)
            observer.end()
            return body
        return Watched(body, observer) if isinstance(body, _STREAMS) else body


def _watched(write: Any, observer: Observer) -> Any:
    def watched(chunk: bytes) -> Any:
        observer.chunk(chunk)
        return write(chunk)

    return watched


class Watched:
    """A body that is sampled as it passes: each chunk is the app's own, and so is close()."""

    def __init__(self, body: Generator[bytes] | ClosingIterator, observer: Observer) -> None:
        self._body = body
        self._chunks = iter(body)
        self._observer = observer

    def __iter__(self) -> Watched:
        return self

    def __next__(self) -> bytes:
        try:
            chunk: bytes = next(self._chunks)
        except StopIteration:
            self._observer.end()
            raise
        self._observer.chunk(chunk)
        return chunk

    def close(self) -> None:
        self._body.close()
