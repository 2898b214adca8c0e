"""A middleware with `enabled=False`: every request goes to the app unseen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..service import SitemapService

T = TypeVar("T")


class DisabledWSGI:
    """A WSGI application that calls another one."""

    app: Callable[..., Any]
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if self._original_attributes:
            self._unwind()
        return self.app(environ, start_response)


class DisabledASGI:
    """An ASGI application that calls another one."""

    app: Callable[..., Any]
    service: SitemapService
    _bind_app: Callable[[Any], None]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            self._bind_app(scope)
        except Exception as error:
            self.service.log_fault("a request could not be looked at", error)
        await self.app(scope, receive, send)


@functools.cache
def disabled_class(cls: type[T]) -> type[T]:
    """The class of a middleware that passes all requests through."""
    protocol = DisabledASGI if inspect.iscoroutinefunction(cls.__call__) else DisabledWSGI
    bases: Any = (protocol, cls)
    return type(cls.__name__, bases, {"__module__": cls.__module__, "__doc__": cls.__doc__})
