"""What is inside of the middleware, as an app: the middleware's own requests call it as a server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication
    from starlette.types import ASGIApp


class _InnerWSGIApp(WSGIHandler):  # type: ignore[misc] # Django is untyped
    """The middleware below this one and the views, in sync mode."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._inner_get_response


class _InnerASGIApp(ASGIHandler):  # type: ignore[misc] # Django is untyped
    """The middleware below this one and the views, in async mode."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._inner_get_response


def inner_app(get_response: Any) -> WSGIApplication | ASGIApp:
    """The app for a `get_response`, of the protocol that fits its mode."""
    return _InnerASGIApp(get_response) if iscoroutinefunction(get_response) else _InnerWSGIApp(get_response)
