"""`SitemapMiddleware` for Django's `MIDDLEWARE`, in sync and in async mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import MiddlewareNotUsed

from .. import middleware as core
from .get_response_as_app import get_response_as_app
from .requests import asgi_exchange, wsgi_exchange
from .responses import amended_response, amended_response_async, http_response, observe_response

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from ..adapters.asgi_exchange import ASGIExchange
    from ..adapters.wsgi_exchange import WSGIExchange


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
        self.app: Any = core.SitemapMiddleware(get_response_as_app(get_response))
        """The middleware around everything that is inside of this one. It has `explain`, `stats` and `flush`."""
        if not self.app.service.options.enabled:
            raise MiddlewareNotUsed
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self._is_async:
            return self._respond(request)
        app, exchange, own, response = self.app, None, None, None
        try:
            exchange = wsgi_exchange(request, app)
            if self._is_untracked(exchange):
                own = exchange.request()
                response = app.own_response(own, exchange.environ)
                if response is None:
                    exchange.page = app.service.observe(own, exchange.key)
        except Exception as error:
            app.service.log_fault("a request could not be looked at", error)
        if response is not None:
            return http_response(response, is_async=False)
        answer = self.get_response(request)
        if own is not None and app.service.sitemap_handler.amends(own):
            return amended_response(answer, app, own)
        if exchange is not None:
            observe_response(answer, exchange)
        return answer

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        """The same in async mode."""
        app, exchange, own, response = self.app, None, None, None
        try:
            exchange = asgi_exchange(request, app)
            if self._is_untracked(exchange):
                own = exchange.request()
                response = await app.own_response(own, exchange.scope)
                if response is None:
                    exchange.page = app.service.observe(own, exchange.key)
        except Exception as error:
            app.service.log_fault("a request could not be looked at", error)
        if response is not None:
            return http_response(response, is_async=True)
        answer: HttpResponseBase = await self.get_response(request)
        if own is not None and app.service.sitemap_handler.amends(own):
            return await amended_response_async(answer, app, own)
        if exchange is not None:
            observe_response(answer, exchange)
        return answer

    def _is_untracked(self, exchange: ASGIExchange | WSGIExchange) -> bool:
        """Whether the page of a request is not known yet. Else it is set."""
        exchange.page = self.app.service.tracker.pages.get(exchange.key)
        if exchange.page is None and self.app._original_attributes:
            self.app._unwind()
        return exchange.page is None
