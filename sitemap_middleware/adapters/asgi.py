"""The middleware as an ASGI 3 application. It translates between ASGI and the service, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import Context
from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..report.authorization_inputs import ReportRequest, RequestHeaders
from ..request_response import DOCUMENT_SUFFIXES, KEY_PATH, RequestKey, Response
from ..routing.framework_detection import EXTENSION_NAME
from ..routing.starlette_routes import set_state
from ..service import SitemapService
from .amended_robots import amended_asgi
from .asgi_request import ASGIRequest, host_of, key_with_defaults, request_of_scope
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
        key: RequestKey
        request: ASGIRequest | None
        app = self.app  # Python calls a local variable faster than an attribute that is no method
        try:
            if scope["type"] != "http":
                send = self._send_of_other_scope(scope, send)
                app, request = self.app, None
            else:
                headers = scope["headers"]
                try:
                    name, host = headers[0]
                    if name != b"host":  # most clients and servers put it first
                        host = host_of(headers)
                    key = (
                        scope["path"],
                        host,
                        scope["scheme"],
                        scope["root_path"],
                        scope["method"],
                        scope["query_string"],
                    )
                except (LookupError, TypeError):
                    key = key_with_defaults(scope) if isinstance(headers, Collection) else ()
                tracker = self.service.tracker
                entry = tracker.tracked_pages.get(key)
                if entry is None:
                    app, request = await self._app_and_request(scope, key, send)
                else:
                    page, key = entry
                    clock = tracker.clock  # local like `app`
                    if (  # the rule of `Pause`, written out here because a call takes time
                        (pause := page.last_answer.pause) is not None
                        and pause[2] is key
                        and pause[0] <= clock() < pause[1]
                    ):
                        tracker.repeated += 1
                        request = None
                    else:
                        request = ASGIRequest()  # made here, and without an `__init__`, because each call takes time
                        request.adapter = self
                        request.scope = scope
                        request.key = key
                        request.fields = tuple(headers)
                        request.observer = None
                        request.tracked_page = page
                        request.server_send = send
        except Exception as error:
            app, request = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if request is None:
            await app(scope, receive, send)
        else:
            try:
                await app(scope, receive, request.send)
            except Exception:
                request.retract()
                raise

    async def _app_and_request(self, scope: Scope, key: RequestKey, send: Send) -> tuple[ASGIApp, ASGIRequest | None]:
        """Return the app to call for a page not tracked yet, and the request if its response will be observed.

        Args:
            scope: the request's.
            key: the request's; empty if its headers can be read only once, and so are left to the app.
            send: the server's.
        """
        self._bind_app(scope)
        if not key:
            return self.app, None
        request = request_of_scope(scope, key, self)
        response = await self.own_response(request)
        if response is not None:
            return partial(send_response, response), None
        if self.service.sitemap_handler.amends(request):
            return partial(amended_asgi, request), None
        page = self.service.observe(request)
        if page is None:
            return self.app, None
        request.tracked_page, request.server_send = page, send
        return self.app, request

    async def own_response(self, request: ASGIRequest) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        path = request.key[KEY_PATH]
        if path.endswith(DOCUMENT_SUFFIXES):
            return await self._document_response(request)
        marker = self.service.report.marker
        return None if marker is None or marker not in path else await self._report_response(request)

    async def _document_response(self, request: ASGIRequest) -> Response | None:
        """The response to a request whose path may be a document's; None if the app is to answer."""
        handler = self.service.sitemap_handler
        response: Response | None = handler.cached_response(request)
        if response is None and handler.handles(request):
            # an empty context: the document is for everyone, and its visitor's user or language must not decide it
            response = await run_sync(Context().run, handler.handle, request, limiter=thread_limiter())
        return response

    async def _report_response(self, request: ASGIRequest) -> Response | None:
        """The response if the request is for the report and may read it; None if the app is to answer."""
        asked = ReportRequest(request.path, RequestHeaders(request.decoded_headers()), scope=request.scope)
        return await self.service.report.answer_async(request, asked, partial(run_sync, limiter=thread_limiter()))

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
