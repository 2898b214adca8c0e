"""Factories of apps in various frameworks, with the paths to request."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

App = Callable[..., Any]
PAGE = b"<!doctype html><title>A page</title><p>Words of it."


def bottle_app() -> tuple[App, list[str]]:
    import bottle

    app = bottle.Bottle()
    app.route("/", callback=lambda: PAGE)
    app.route("/parts", callback=lambda: iter([PAGE, b"<p>More."]))
    app.route("/file", callback=lambda: io.BytesIO(PAGE))
    app.route("/raised", callback=_raising(lambda: bottle.HTTPResponse(PAGE, 203)))
    app.route("/fails", callback=_raising(lambda: ValueError("the app's own")))
    app.catchall = False
    return app, ["/", "/parts", "/file", "/raised", "/fails", "/nowhere"]


def _raising(error: Callable[[], BaseException]) -> Callable[[], Any]:
    def view() -> Any:
        raise error()

    return view


def flask_app() -> tuple[App, list[str]]:
    import flask

    app = flask.Flask("shapes", static_folder=None)
    app.config["PROPAGATE_EXCEPTIONS"] = True

    def parts() -> Iterator[bytes]:
        yield PAGE
        yield b"<p>More."

    def broken() -> Iterator[bytes]:
        yield PAGE
        raise ValueError("half-way")

    @app.after_request
    def at_one_time(response: flask.Response) -> flask.Response:
        if "Date" in response.headers:  # of files
            response.headers["Date"] = "Tue, 14 Nov 2023 22:13:20 GMT"
        return response

    app.add_url_rule("/", "home", lambda: PAGE)
    app.add_url_rule("/parts", "parts", parts)
    app.add_url_rule("/context", "context", lambda: flask.Response(flask.stream_with_context(parts())))
    app.add_url_rule("/file", "file", lambda: flask.send_file(io.BytesIO(PAGE), "text/html"))
    app.add_url_rule("/broken", "broken", broken)
    app.add_url_rule("/fails", "fails", _raising(lambda: ValueError("the app's own")))
    return app, ["/", "/parts", "/context", "/file", "/broken", "/fails", "/nowhere"]


def django_wsgi() -> tuple[App, list[str]]:
    django_set_up()
    from django.core.handlers.wsgi import WSGIHandler

    return WSGIHandler(), ["/", "/parts", "/file", "/nowhere"]


def django_asgi() -> tuple[App, list[str]]:
    django_set_up()
    from django.core.handlers.asgi import ASGIHandler

    return ASGIHandler(), ["/", "/async-parts", "/nowhere"]


def django_set_up() -> None:
    from django.http import FileResponse, HttpResponse, StreamingHttpResponse
    from django.urls import path

    from ..support.django_project import use

    async def parts() -> Any:
        yield PAGE
        yield b"<p>More."

    urls = [
        path("", lambda _: HttpResponse(PAGE)),
        path("parts", lambda _: StreamingHttpResponse(iter([PAGE, b"<p>More."]))),
        path("async-parts", lambda _: StreamingHttpResponse(parts())),
        path("file", lambda _: FileResponse(io.BytesIO(PAGE), content_type="text/html")),
    ]
    use(urls)


def starlette_app() -> tuple[App, list[str]]:
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.responses import FileResponse, HTMLResponse, StreamingResponse
    from starlette.routing import Route

    async def parts() -> Any:
        yield PAGE
        yield b"<p>More."

    async def broken() -> Any:
        yield PAGE
        raise ValueError("half-way")

    def background() -> None:
        raise ValueError("in the background")

    views: dict[str, Callable[[Any], Any]] = {
        "/": lambda _: HTMLResponse(PAGE),
        "/parts": lambda _: StreamingResponse(parts(), media_type="text/html"),
        "/file": lambda _: FileResponse(__file__, media_type="text/html"),
        "/broken": lambda _: StreamingResponse(broken(), media_type="text/html"),
        "/background": lambda _: HTMLResponse(PAGE, background=BackgroundTask(background)),
        "/fails": lambda _: 1 / 0,
    }

    def endpoint(view: Callable[[Any], Any]) -> Any:
        async def called(request: Any) -> Any:
            return view(request)

        return called

    return Starlette(routes=[Route(path, endpoint(view)) for path, view in views.items()]), [*views, "/nowhere"]


def wsgi_of_asgi() -> tuple[App, list[str]]:
    from a2wsgi import ASGIMiddleware

    app, paths = starlette_app()
    return ASGIMiddleware(app), [
        path for path in paths if path not in ("/background", "/broken")
    ]  # it races with itself


def asgi_of_wsgi() -> tuple[App, list[str]]:
    from a2wsgi import WSGIMiddleware

    app, _ = flask_app()
    return WSGIMiddleware(app), ["/", "/parts", "/fails", "/nowhere"]


WSGI: dict[str, Callable[[], tuple[App, list[str]]]] = {
    "Bottle": bottle_app,
    "Flask": flask_app,
    "Django": django_wsgi,
    "a2wsgi's ASGIMiddleware": wsgi_of_asgi,
}
ASGI: dict[str, Callable[[], tuple[App, list[str]]]] = {
    "Starlette": starlette_app,
    "Django": django_asgi,
    "a2wsgi's WSGIMiddleware": asgi_of_wsgi,
}
