"""The middleware as an ASGI 3 application. It translates between ASGI and the service, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..created_when_needed import created_part
from ..request_response import DOCUMENT_SUFFIXES, KEY_PATH, Response
from ..routing.framework_detection import EXTENSION_NAME
from ..routing.starlette_routes import set_state
from ..service import SitemapService
from .asgi_request import ASGIRequest, key_with_defaults
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
        request = page = response = None
        try:
            if scope["type"] == "http" and (
                type(headers := scope["headers"]) is list or isinstance(headers, Collection)
            ):
                host = b""
                for name, value in headers:
                    if name == b"host":
                        host = value
                        break
                try:
                    key = (
                        scope["path"],
                        host,
                        scope["scheme"],
                        scope["root_path"],
                        scope["method"],
                        scope["query_string"],
                    )
                except KeyError:
                    key = key_with_defaults(scope, host)
                tracker = self.service.tracker
                clock = tracker.clock  # Python calls a local variable faster than an attribute that is no method
                page, key = tracker.tracked_pages.get(key) or (None, key)
                if (  # the rule of `Pause`, written out here because a call takes time
                    page is not None
                    and (pause := page.last_answer.pause) is not None
                    and pause[2] is key
                    and len(headers) in tracker.crawlers.skipped_counts
                    and pause[0] <= clock() < pause[1]
                ):
                    tracker.repeated += 1
                elif (
                    page is not None
                    or not key[KEY_PATH].endswith(DOCUMENT_SUFFIXES)
                    or (handler := created_part(self.service, "sitemap_handler")) is None
                    or (response := handler.ready.response(key, headers)) is None
                ):
                    request = ASGIRequest()  # made here, and without an `__init__`, because each call takes time
                    request.adapter, request.scope = self, scope
                    request.key, request.observer = key, None
                    request.fields = request.headers = tuple(headers)
                    if page is None:
                        self._bind_app(scope)
                        if key[KEY_PATH].endswith(DOCUMENT_SUFFIXES):
                            response = await self._document_response(request)
                        elif (marker := self.service.report.marker) is not None and marker in key[KEY_PATH]:
                            response = await self._report_response(request)
                        if response is None:
                            page = self.service.observe(request)
            else:
                send = self._send_of_other_scope(scope, send)
        except Exception as error:
            self.service.log_fault("a request could not be looked at", error)
        app = self.app  # local for the same reason as `clock`
        if request is not None and page is not None:
            request.tracked_page, request.server_send = page, send
            try:
                await app(scope, receive, request.send)
            except Exception:
                request.retract()
                self.service.note_failure(request, page)
                raise
        elif response is not None:
            if request is not None:  # no request was made for a ready document, and there is nothing to note
                self.service.note_document(request, response)
            await send_response(response, receive, send)
        else:
            await app(scope, receive, send)

    async def _document_response(self, request: ASGIRequest) -> Response | None:
        """The response to a request whose path may be a document's; None if the app is to answer."""
        handler = created_part(self.service, "sitemap_handler") or await self.new_sitemap_handler()
        response: Response | None = handler.cached_response(request)
        if response is None and handler.may_be_document(request):
            response = await self.new_document_response(request)
        return response

    async def new_sitemap_handler(self) -> Any:
        """What answers requests for documents, imported on a thread: that takes tens of milliseconds."""
        return await run_sync(getattr, self.service, "sitemap_handler", limiter=thread_limiter())

    async def new_document_response(self, request: ASGIRequest) -> Response | None:
        """The response to a request for a document that must be brought up to date, or for robots.txt.

        None if the app is to answer the request.
        """
        handler = self.service.sitemap_handler
        if not handler.handles(request):
            return None
        return await run_sync(handler.handle, request, limiter=thread_limiter())

    async def _report_response(self, request: ASGIRequest) -> Response | None:
        """The response if the request is for the report and may read it; None if the app is to answer."""
        from ..report.authorization_inputs import ReportRequest, RequestHeaders

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
