"""Makes an app of Django's `get_response`, so that the middleware's own requests call it as a server does."""

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


class _InnerApp:
    """What is inside of the middleware: the project's further middleware and its views."""

    def __init__(self, get_response: Any) -> None:
        self._inner_get_response = get_response
        super().__init__()

    def load_middleware(self, *_: Any, **__: Any) -> None:
        self._middleware_chain = self._inner_get_response


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


def get_response_as_app(get_response: Any) -> WSGIApplication | ASGIApp:
    """The app for a `get_response`, of the protocol that fits its mode."""
    return _InnerASGIApp(get_response) if iscoroutinefunction(get_response) else _InnerWSGIApp(get_response)
