"""WSGI middleware as found in textbooks and packages."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from beaker.middleware import SessionMiddleware
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.lint import LintMiddleware
from werkzeug.middleware.profiler import ProfilerMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.middleware.shared_data import SharedDataMiddleware

App = Callable[..., Any]


def textbook(app: App) -> App:
    def wrapped(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, headers, exc_info)

        return app(environ, start)

    return wrapped


def by_name(app: App) -> App:
    def wrapped(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, ("X-Layer", "1")], exc_info=exc_info)

        return app(environ, start)

    return wrapped


def changing_in_place(app: App) -> App:
    """Changes the app's own list of headers, as some do to compress what passes."""

    def wrapped(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append(("X-Layer", str(len(headers))))
            return start_response(status, headers, *exc_info)

        return app(environ, start)

    return wrapped


def collecting(app: App) -> App:
    """Takes the whole before it starts the response."""

    def wrapped(environ: Any, start_response: Any) -> list[bytes]:
        started: list[Any] = []
        parts: list[bytes] = []

        def start(*arguments: Any) -> Any:
            started[:] = arguments
            return parts.append

        body = app(environ, start)
        try:
            parts.extend(body)
        finally:
            if hasattr(body, "close"):
                body.close()
        start_response(*started)
        return [b"".join(parts)]

    return wrapped


def looking(app: App) -> App:
    """Takes the first chunk to have the response started, and puts it back."""

    class Again:
        def __init__(self, body: Any) -> None:
            chunks = iter(body)
            self.chunks = itertools.chain(list(itertools.islice(chunks, 1)), chunks)
            if hasattr(body, "close"):
                self.close = body.close

        def __iter__(self) -> Iterator[bytes]:
            return self.chunks

    return lambda environ, start_response: Again(app(environ, start_response))


def looking_twice(app: App) -> App:
    """Takes a chunk of one iteration, and then starts a second iteration."""

    def wrapped(environ: Any, start_response: Any) -> Iterable[bytes]:
        body = app(environ, start_response)
        next(iter(body), None)
        return body  # type: ignore[no-any-return]

    return wrapped


def as_a_generator(app: App) -> App:
    def wrapped(environ: Any, start_response: Any) -> Iterator[bytes]:
        body = app(environ, start_response)
        try:
            yield from body
        finally:
            if hasattr(body, "close"):
                body.close()

    return wrapped


def catching(app: App) -> App:
    """Answers for an app that fails, as error pages do."""

    def wrapped(environ: Any, start_response: Any) -> Any:
        import sys

        try:
            return app(environ, start_response)
        except Exception:
            start_response("500 Internal Server Error", [("Content-Type", "text/html")], sys.exc_info())
            return [b"An error page."]

    return wrapped


LAYERS: dict[str, Callable[[App], App]] = {
    "none": lambda app: app,
    "textbook": textbook,
    "by name": by_name,
    "changing in place": changing_in_place,
    "collecting": collecting,
    "looking": looking,
    "looking twice": looking_twice,
    "as a generator": as_a_generator,
    "catching": catching,
    "Werkzeug's profiler": lambda app: ProfilerMiddleware(app, stream=io.StringIO()),
    "Werkzeug's shared data": lambda app: SharedDataMiddleware(app, {"/static": "."}),
    "Werkzeug's dispatcher": lambda app: DispatcherMiddleware(app, {"/other": app}),
    "Werkzeug's ProxyFix": ProxyFix,
    "Werkzeug's lint": LintMiddleware,
    "Beaker's sessions": lambda app: SessionMiddleware(app, {"session.type": "memory"}),
}
