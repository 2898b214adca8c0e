"""Keeps static routes without settings as path and view only, and makes a `Route` of one when it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, Final

from ..models import Route
from ..sitemap_decorator import NO_SETTINGS

_INTERNAL_MODULE: Final = "fastapi.applications"
"""The module of views that are never pages of the site."""


class PlainRoutes(dict[str, FunctionType]):
    """Successive static routes without settings that answer on any host: their endpoints, by path.

    An app may have tens of thousands of them, and most processes need only a few: making
    a `Route` takes longer than all else that is done to read one.
    """


def plain_route(path: str, endpoint: FunctionType) -> Route:
    """One of `PlainRoutes`."""
    # All fields at once: this takes half of the time of `Route`.
    name, reason = endpoint.__qualname__, internal_reason(endpoint)
    return tuple.__new__(Route, (path, name, True, None, NO_SETTINGS, None, reason, None, None, None, (), None))


def internal_reason(endpoint: Any) -> str | None:
    """Why a route is never a page of the site; None if it may be.

    FastAPI makes `/docs`, `/redoc` and `/openapi.json` in its own module.
    """
    if getattr(endpoint, "__module__", None) == _INTERNAL_MODULE:
        return "it is FastAPI's own documentation of the API"
    return None


def each_route(found: Iterable[Route | PlainRoutes]) -> Iterator[Route]:
    """All routes, one by one."""
    for one in found:
        if isinstance(one, PlainRoutes):
            for path, endpoint in one.items():
                yield plain_route(path, endpoint)
        else:
            yield one
