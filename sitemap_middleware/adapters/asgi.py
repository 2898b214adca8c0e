"""The middleware as an ASGI 3 application. It translates between ASGI and the service, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context
from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..http.messages import DOCUMENT_SUFFIXES, Request, Response
from ..routing.framework_detection import EXTENSION_NAME
from ..routing.starlette_routes import set_state
from ..service import SitemapService
from .amended_robots import amended_asgi
from .asgi_exchange import ASGIExchange, key_of
from .asgi_response_sending import send_response
from .event_loop_and_threads import run_in_thread, thread_limiter


class ASGIMiddleware:
    """The middleware as an ASGI application."""

    app: ASGIApp
    service: SitemapService
    state: dict[str, Any] | None = None
    """The lifespan state of the app, copied when the app had started; None if no lifespan was seen."""
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, exchange = self.app, None
        try:
            if scope["type"] != "http" or not self.service.options.enabled:
                send = self._send_of_other_scope(scope, send)
                app = self.app
            elif (key := key_of(scope)) is not None:
                exchange = ASGIExchange(self, scope, key, send)
                exchange.page = self.service.tracker.pages.get(key)
                if exchange.page is None:
                    app = await self._app_of_untracked(exchange)
        except Exception as error:
            app, exchange = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if exchange is None or exchange.page is None:
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, exchange.send)
        except Exception:
            exchange.retract()
            raise

    async def _app_of_untracked(self, exchange: ASGIExchange) -> ASGIApp:
        """The app to call for a request whose page is not tracked yet. Its page is set if it is to be observed."""
        self._bind_app(exchange.scope)
        if exchange.is_useless():
            return self.app
        request = exchange.request()
        response = await self.own_response(request, exchange.scope)
        if response is not None:
            return partial(send_response, response)
        if self.service.sitemap_handler.amends(request):
            return partial(amended_asgi, self, request)
        exchange.page = self.service.observe(request, exchange.key)
        return self.app

    async def own_response(self, request: Request, scope: Scope) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        if request.path.endswith(DOCUMENT_SUFFIXES):
            return await self._document_response(request)
        report = self.service.report
        if not report.handles(request.path):
            return None
        return await report.answer_async(request, scope, partial(run_sync, limiter=thread_limiter()))

    async def _document_response(self, request: Request) -> Response | None:
        """The response if the request is for a sitemap document or robots.txt; None if the app is to answer."""
        handler = self.service.sitemap_handler
        response: Response | None = handler.cached_response(request)
        if response is None and handler.handles(request):
            # an empty context: the document is for everyone, and its visitor's user or language must not decide it
            response = await run_sync(Context().run, handler.handle, request, limiter=thread_limiter())
        return response

    def _bind_app(self, scope: Scope) -> None:
        if self._original_attributes:
            self._unwind()
        if not self.service.app_routes.bound and "app" in scope:
            self.service.app_routes.bind(scope["app"])
            if self.service.app_routes.app is scope["app"]:
                set_state(scope["app"], EXTENSION_NAME, self)

    def _send_of_other_scope(self, scope: Scope, send: Send) -> Send:
        """The `send` that the app is given for what is no request, such as its lifespan or a WebSocket."""
        self._bind_app(scope)
        return self._lifespan_send(scope, send) if scope["type"] == "lifespan" else send

    def _lifespan_send(self, scope: Scope, send: Send) -> Send:
        """The `send` that the app is given for its lifespan.

        It copies the state once the app has started, and saves pending observations
        before the server learns that the app has shut down.
        """

        async def lifespan_send(message: Message) -> None:
            try:
                if message["type"] == "lifespan.startup.complete" and "state" in scope:
                    self.state = dict(scope["state"])
                elif message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                    await run_in_thread(self.service.close)
            except Exception as error:
                self.service.log_fault("a message of the lifespan could not be handled", error)
            await send(message)

        return lifespan_send
