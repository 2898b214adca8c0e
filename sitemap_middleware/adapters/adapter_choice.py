"""Chooses the class of a middleware for the protocol of its app: the WSGI or the ASGI one."""

from __future__ import annotations

import functools
from typing import Literal, TypeVar

T = TypeVar("T")


@functools.cache
def adapter_class(cls: type[T], protocol: Literal["asgi", "wsgi"]) -> type[T]:
    """A subclass with the adapter of a protocol: servers recognise an ASGI app by its async `__call__`."""
    adapter: type
    if protocol == "asgi":
        from .asgi import ASGIMiddleware

        adapter = ASGIMiddleware
    else:
        from .wsgi import WSGIMiddleware

        adapter = WSGIMiddleware
    return type(cls.__name__, (adapter, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
