"""`SitemapMiddleware` for Django's `MIDDLEWARE`, in sync and in async mode."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import MiddlewareNotUsed
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import got_request_exception
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, parse_cookie

from .. import middleware as core
from ..adapters.asgi import ASGIExchange
from ..adapters.asgi_client import thread_limiter
from ..adapters.wsgi import ObservedBody, WSGIExchange, observed_body
from ..adapters.wsgi_client import wsgi_text
from ..http.messages import NOINDEX_HEADER, TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY, Request, Response
from ..util import log

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase

    from ..observe.tracker import Exchange
    from ..report.request_handler import ReportRequest

_FAULT: Final = "a request could not be looked at"

_OWN: Final = "is_of_sitemap_middleware"
"""The attribute of the middleware's own requests."""

_TEST_CLIENT_UID: Final = "request-exception-"
"""How the `dispatch_uid` of the signal receivers of Django's test client begins."""


class SitemapMiddleware:
    """Answers ``/sitemap.xml`` in a Django project.

    Make ``"sitemap_middleware.django.SitemapMiddleware"`` the first entry of `MIDDLEWARE`. The options are settings
    with the prefix `SITEMAP_`, such as `SITEMAP_BASE_URL`.

    Raises:
        OptionError: for a setting with an invalid value.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]) -> None:
        self.get_response: Any = get_response
        self._is_async = iscoroutinefunction(get_response)
        inner = _InnerASGIApp if self._is_async else _InnerWSGIApp
        self.app: Any = core.SitemapMiddleware(inner(get_response))
        """The middleware around everything that is inside of this one. It has `explain`, `stats` and `flush`."""
        if not self.app.service.options.enabled:
            raise MiddlewareNotUsed
        names = [str(name).startswith(f"{__package__}.") for name in settings.MIDDLEWARE]
        if any(names[1:]):
            log.warning(
                "sitemap_middleware is number %d of MIDDLEWARE: make it the first, or it sees other requests than"
                " visitors send, and commands do not find it",
                names.index(True) + 1,
            )
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self._is_async:
            return self._respond(request)
        app, exchange, own, response = self.app, None, None, None
        with app.service.log_fault.guard(_FAULT):
            exchange = wsgi_exchange(request, app)
            if own := self._untracked(exchange):
                response = app.own_response(own, exchange.environ)
                if response is None:
                    exchange.page = app.service.observe(own, exchange.key)
        if response is not None:
            return http_response(response)
        answer = self.get_response(request)
        if own is not None and app.service.sitemap_handler.amends(own):
            return amended_response(answer, app, own)
        return self._observed(answer, exchange)

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        """The same in async mode."""
        app, exchange, own, response = self.app, None, None, None
        with app.service.log_fault.guard(_FAULT):
            exchange = asgi_exchange(request, app)
            if own := self._untracked(exchange):
                response = await app.own_response(own, exchange.scope)
                if response is None:
                    exchange.page = app.service.observe(own, exchange.key)
        if response is not None:
            return http_response(response)
        answer: HttpResponseBase = await self.get_response(request)
        if own is not None and app.service.sitemap_handler.amends(own):
            amended: HttpResponseBase = await run_sync(amended_response, answer, app, own, limiter=thread_limiter())
            return amended
        return self._observed(answer, exchange)

    def _observed(self, answer: Any, exchange: Exchange | None) -> Any:
        """The response, with the header of the option `robots`. Django's have one value of each header."""
        observe_response(answer, exchange)
        if self.app.service.sends_noindex(exchange.key[3] if exchange else ""):
            name, value = NOINDEX_HEADER
            answer[name] = f"{answer[name]}, {value}" if name in answer else value
        return answer

    def _untracked(self, exchange: Exchange) -> Request | None:
        """The request, if its page is not known yet. Else the page is set."""
        exchange.page = self.app.service.tracker.pages.get(exchange.key)
        if exchange.page is not None:
            return None
        if self.app._original_attributes:
            self.app._unwind()
        return exchange.request()


# In sync mode, a request is read as WSGI gives it, in async mode as ASGI does. An ASGI server may have sync mode, too:
# Django changes the mode for middleware that has only one.


def wsgi_exchange(request: HttpRequest, app: Any) -> WSGIExchange:
    """A request in sync mode."""
    environ: dict[str, Any] = request.META
    path, root = environ["PATH_INFO"], environ["SCRIPT_NAME"]  # Django decodes them, and applies FORCE_SCRIPT_NAME
    if not (path.isascii() and root.isascii()):
        environ = {**environ, "PATH_INFO": wsgi_text(path), "SCRIPT_NAME": wsgi_text(root)}
    if "wsgi.url_scheme" not in environ:  # of an ASGI server
        version = getattr(request, "scope", {}).get("http_version", "1.1")
        environ = {
            **environ,
            "wsgi.url_scheme": request.scheme or "http",
            "wsgi.multithread": True,
            "SERVER_PROTOCOL": f"HTTP/{version}",
        }
    if type(environ.get("wsgi.input")).__module__ == "django.test.client":
        # tests keep to one thread and one transaction
        environ = {**environ, WAIT_SECONDS_KEY: TEST_CLIENT_WAIT_SECONDS}
    return WSGIExchange(app, environ, _no_server)


def asgi_exchange(request: HttpRequest, app: Any) -> ASGIExchange:
    """A request in async mode."""
    scope: dict[str, Any] | None = getattr(request, "scope", None)
    if scope is None:
        raise RuntimeError("the next middleware of MIDDLEWARE is async only, which needs an ASGI server")
    return ASGIExchange(app, scope, _no_server)


def _no_server(*_: Any, **__: Any) -> Any:
    """Stands for the server's `send` and `start_response`: Django calls the server."""
    raise NotImplementedError


# Responses


def observe_response(answer: Any, exchange: Exchange | None) -> None:
    """Observe a response of the project, which is returned to Django unchanged, if the page of the request is tracked.

    `exchange` is None if the request could not be read.
    """
    if exchange is None or exchange.page is None:
        return
    with exchange.tracker.log_fault.guard("a response could not be observed"):
        exchange.on_start(answer.status_code, list(answer.items()))
        if not exchange.reads_body:
            return
        if not answer.streaming:
            exchange.on_chunk(answer.content)
            exchange.on_end()
        elif (file := getattr(answer, "file_to_stream", None)) is not None:
            observed_body(file, exchange, type(file))  # the server may send it in a faster way
        elif answer.is_async:
            answer.streaming_content = _observed_parts(answer.streaming_content, exchange)
        else:
            answer.streaming_content = ObservedBody(iter(answer.streaming_content), exchange)


async def _observed_parts(parts: AsyncIterator[bytes], exchange: Exchange) -> AsyncIterator[bytes]:
    try:
        async for part in parts:
            exchange.on_chunk(part)
            yield part
    except BaseException:
        exchange.retract()
        raise
    exchange.on_end()


def amended_response(answer: Any, app: Any, own: Request) -> Any:
    """The project's response for robots.txt: as it is, with a line more, or replaced. See `SitemapHandler.amended`."""
    if getattr(answer, "is_async", False):
        return answer
    body = b"".join(answer)
    if answer.streaming:
        answer.streaming_content = [body]
    headers = [(name.lower(), value) for name, value in answer.items()]
    headers += [("set-cookie", cookie.OutputString()) for cookie in answer.cookies.values()]
    held = Response(answer.status_code, headers, body)
    amended = Context().run(app.service.sitemap_handler.amended, own, held)
    if amended is None:
        return answer
    response: Any = http_response(amended)
    response._resource_closers += answer._resource_closers  # what the project's response has open
    return response


def http_response(response: Response) -> HttpResponse:
    """Make Django's response of one of the middleware itself."""
    answer = HttpResponse(response.body, status=response.status)
    del answer["Content-Type"]
    for name, value in response.headers:
        if name == "set-cookie":  # Django keeps them apart
            answer.cookies.load(value)
        else:
            answer[name] = value
    return answer


# The middleware's own requests call `get_response` as a server calls an app.


def _is_to_be_logged(record: logging.LogRecord) -> bool:
    """Whether Django is to log what it says of a request: no "Not Found: /robots.txt" that no visitor asked for."""
    return record.levelno >= logging.ERROR or not hasattr(getattr(record, "request", None), _OWN)


logging.getLogger("django.request").addFilter(_is_to_be_logged)


class _InnerApp:
    """What is inside of the middleware: the project's further middleware and its views."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._respond

    def _respond(self, request: HttpRequest) -> Any:
        setattr(request, _OWN, True)
        return self._inner_get_response(request)


class _InnerWSGIApp(_InnerApp, WSGIHandler):  # type: ignore[misc] # Django is untyped
    def __call__(self, environ: Any, start_response: Any) -> Any:
        with _forgotten_by_test_client():
            return super().__call__(environ, start_response)


class _InnerASGIApp(_InnerApp, ASGIHandler):  # type: ignore[misc] # Django is untyped
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with _forgotten_by_test_client():
            await super().__call__(scope, receive, send)


@contextmanager
def _forgotten_by_test_client() -> Iterator[None]:
    """Have Django's test client forget what views raise now: it would raise it as if its own request had failed."""
    try:
        yield
    finally:
        for (uid, *_), receiver, *_ in list(got_request_exception.receivers):
            if str(uid).startswith(_TEST_CLIENT_UID) and (method := receiver()) is not None:
                method.__self__.exc_info = None


# The report


def is_staff(request: ReportRequest) -> bool:
    """Whether a request has the session of a member of staff. It is what ``SITEMAP_AUTHORIZE = "staff"`` stands for.

    The middleware is outside of Django's sessions and logins, so they are asked here.
    """
    cookies = parse_cookie(request.headers.get("cookie", ""))
    asked = HttpRequest()
    close_old_connections()  # this thread may be none of Django's, which does so around each request
    try:
        asked.session = import_module(settings.SESSION_ENGINE).SessionStore(cookies.get(settings.SESSION_COOKIE_NAME))
        return bool(get_user(asked).is_staff)
    finally:
        close_old_connections()
