"""The middleware as a WSGI application (PEP 3333). It translates between WSGI and the service, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..http.messages import DOCUMENT_SUFFIXES, Request, Response
from ..service import SitemapService
from .amended_robots import amended_wsgi
from .wsgi_body import observed_body
from .wsgi_exchange import WSGIExchange, key_of

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
        app, exchange = self.app, None
        try:
            if self.service.options.enabled:
                exchange = WSGIExchange(self, environ, key_of(environ), start_response)
                exchange.page = self.service.tracker.pages.get(exchange.key)
                if exchange.page is None:
                    app = self._app_of_untracked(exchange)
            elif self._original_attributes:
                self._unwind()
                app = self.app
        except Exception as error:
            app, exchange = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if exchange is None or exchange.page is None:
            return app(environ, start_response)
        try:
            body = app(environ, exchange.start_response)
        except BaseException:
            exchange.retract()
            raise
        if not exchange.reads_body:
            return body
        try:
            body = observed_body(body, exchange, environ)
        except Exception as error:
            self.service.log_fault("a body could not be sampled", error)
        return body

    def _app_of_untracked(self, exchange: WSGIExchange) -> WSGIApplication:
        """The app to call for a request whose page is not tracked yet. Its page is set if it is to be observed."""
        if self._original_attributes:
            self._unwind()
        if exchange.is_useless():
            return self.app
        request = exchange.request()
        response = self.own_response(request, exchange.environ)
        if response is not None:
            return partial(_send_response, response)
        if self.service.sitemap_handler.amends(request):
            return partial(amended_wsgi, _send_response, self, request)
        exchange.page = self.service.observe(request, exchange.key)
        return self.app

    def own_response(self, request: Request, environ: WSGIEnvironment) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        if request.path.endswith(DOCUMENT_SUFFIXES):
            return self._document_response(request)
        report = self.service.report
        return report.answer(request, environ) if report.handles(request.path) else None

    def _document_response(self, request: Request) -> Response | None:
        """The response if the request is for a sitemap document or robots.txt; None if the app is to answer."""
        handler = self.service.sitemap_handler
        response = handler.cached_response(request)
        if response is None and handler.handles(request):
            # an empty context: the document is for everyone, and its visitor's user or language must not decide it
            response = Context().run(handler.handle, request)
        return response
