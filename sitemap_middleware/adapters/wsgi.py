"""The middleware as a WSGI application (PEP 3333). It translates between WSGI and the service, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..report.authorization_inputs import ReportRequest, RequestHeaders
from ..request_response import DOCUMENT_SUFFIXES, KEY_PATH, Response
from ..service import SitemapService
from .amended_robots import amended_wsgi
from .wsgi_body import observed_body
from .wsgi_request import WSGIRequest, key_with_defaults, request_of_environ

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


@cache
def _status_line(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def _send_response(response: Response, _: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Send a response of the middleware itself. With the first argument bound, this is a WSGI application."""
    start_response(_status_line(response.status), list(response.headers))
    return [response.body] if response.parts is None else response.parts


class WSGIMiddleware:
    """The middleware as a WSGI application."""

    app: WSGIApplication
    service: SitemapService
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request: WSGIRequest | None
        app = self.app  # Python calls a local variable faster than an attribute that is no method
        try:
            try:
                key = (
                    environ["PATH_INFO"],
                    environ["HTTP_HOST"],
                    environ["wsgi.url_scheme"],
                    environ["SCRIPT_NAME"],
                    environ["REQUEST_METHOD"],
                    environ["QUERY_STRING"],
                )
            except KeyError:
                key = key_with_defaults(environ)
            tracker = self.service.tracker
            entry = tracker.tracked_pages.get(key)
            if entry is None:
                app, request = self._app_and_request(request_of_environ(environ, key, self), start_response)
            else:
                page, key = entry
                clock = tracker.clock  # local like `app`
                if (  # the rule of `Pause`, written out here because a call takes time
                    (pause := page.last_answer.pause) is not None and pause[2] is key and pause[0] <= clock() < pause[1]
                ):
                    tracker.repeated += 1
                    request = None
                else:
                    request = WSGIRequest()  # made here, and without an `__init__`, because each call takes time
                    request.adapter = self
                    request.environ = environ
                    request.key = key
                    request.fields = environ.copy()
                    request.observer = None
                    request.passes_body = False
                    request.tracked_page = page
                    request.server_start_response = start_response
        except Exception as error:
            app, request = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if request is None:
            return app(environ, start_response)
        try:
            body = app(environ, request.start_response)
        except BaseException:
            request.retract()
            raise
        if request.passes_body:
            return body
        try:
            body = observed_body(body, request, environ)
        except Exception as error:
            self.service.log_fault("a body could not be sampled", error)
        return body

    def _app_and_request(
        self, request: WSGIRequest, start_response: StartResponse
    ) -> tuple[WSGIApplication, WSGIRequest | None]:
        """Return the app to call for a page not tracked yet, and the request if its response will be observed."""
        if self._original_attributes:
            self._unwind()
        response = self.own_response(request)
        if response is not None:
            return partial(_send_response, response), None
        if self.service.sitemap_handler.amends(request):
            return partial(amended_wsgi, _send_response, request), None
        page = self.service.observe(request)
        if page is None:
            return self.app, None
        request.tracked_page, request.server_start_response = page, start_response
        return self.app, request

    def own_response(self, request: WSGIRequest) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        path = request.key[KEY_PATH]
        if path.endswith(DOCUMENT_SUFFIXES):
            return self._document_response(request)
        marker = self.service.report.marker
        return None if marker is None or marker not in path else self._report_response(request)

    def _document_response(self, request: WSGIRequest) -> Response | None:
        """The response if the request is for a sitemap document or robots.txt; None if the app is to answer."""
        handler = self.service.sitemap_handler
        response = handler.cached_response(request)
        if response is None and handler.handles(request):
            # an empty context: the document is for everyone, and its visitor's user or language must not decide it
            response = Context().run(handler.handle, request)
        return response

    def _report_response(self, request: WSGIRequest) -> Response | None:
        """The response if the request is for the report and may read it; None if the app is to answer."""
        asked = ReportRequest(request.path, RequestHeaders(request.decoded_headers()), environ=request.environ)
        return self.service.report.answer(request, asked)
