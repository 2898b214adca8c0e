"""What is inside of the middleware, as an app: the middleware's own requests call it as a server does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import got_request_exception

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication
    from starlette.types import ASGIApp


_TEST_CLIENT_UID: Final = "request-exception-"
"""How the `dispatch_uid` of the signal receivers of Django's test client begins."""


class _InnerWSGIApp(WSGIHandler):  # type: ignore[misc] # Django is untyped
    """The middleware below this one and the views, in sync mode."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._inner_get_response

    def __call__(self, environ: Any, start_response: Any) -> Any:
        with _hidden_from_test_client():
            return super().__call__(environ, start_response)


class _InnerASGIApp(ASGIHandler):  # type: ignore[misc] # Django is untyped
    """The middleware below this one and the views, in async mode."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._inner_get_response

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with _hidden_from_test_client():
            await super().__call__(scope, receive, send)


@contextmanager
def _hidden_from_test_client() -> Iterator[None]:
    """Keep what views raise now from Django's test client, which would raise it as if its own request had failed."""
    signal = got_request_exception
    with signal.lock:
        hidden = [receiver for receiver in signal.receivers if str(receiver[0][0]).startswith(_TEST_CLIENT_UID)]
        signal.receivers = [receiver for receiver in signal.receivers if receiver not in hidden]
    try:
        yield
    finally:
        with signal.lock:
            signal.receivers += hidden


def inner_app(get_response: Any) -> WSGIApplication | ASGIApp:
    """The app for a `get_response`, of the protocol that fits its mode."""
    return _InnerASGIApp(get_response) if iscoroutinefunction(get_response) else _InnerWSGIApp(get_response)
