"""Makes an app of Django's `get_response`, so that the middleware's own requests call it as a server does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import iscoroutinefunction
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import got_request_exception
from django.dispatch import Signal

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication
    from starlette.types import ASGIApp


_TEST_CLIENT_UID: Final = "request-exception-"
"""How the `dispatch_uid` of the signal receivers of Django's test client begins."""

_is_probe: Final = ContextVar("is_probe", default=False)
"""Whether a request of the middleware itself runs."""


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


class _ProbeAwareSignal(Signal):  # type: ignore[misc] # Django is untyped
    """The signal of a view that raised. During a probe, Django's test client does not receive it.

    The client would raise the exception as if its own request had failed. Other threads may
    run requests of their clients meanwhile, so the signal keeps its receivers.
    """

    def send(self, sender: Any, **named: Any) -> Any:
        if not _is_probe.get():
            return super().send(sender, **named)
        with self.lock:
            others = copy.copy(self)
            others.receivers = [receiver for receiver in self.receivers if not _is_test_client(receiver)]
        others.sender_receivers_cache = {}
        return Signal.send(others, sender, **named)


@contextmanager
def _hidden_from_test_client() -> Iterator[None]:
    """Keep what views raise now from Django's test client."""
    if any(map(_is_test_client, got_request_exception.receivers)):
        got_request_exception.__class__ = _ProbeAwareSignal
    token = _is_probe.set(True)
    try:
        yield
    finally:
        _is_probe.reset(token)


def _is_test_client(receiver: Any) -> bool:
    return str(receiver[0][0]).startswith(_TEST_CLIENT_UID)


def get_response_as_app(get_response: Any) -> WSGIApplication | ASGIApp:
    """The app for a `get_response`, of the protocol that fits its mode."""
    return _InnerASGIApp(get_response) if iscoroutinefunction(get_response) else _InnerWSGIApp(get_response)
