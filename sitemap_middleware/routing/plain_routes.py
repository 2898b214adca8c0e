"""Static routes of which only path and endpoint are worth noting, kept as names until a route is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..models import Route
from ..sitemap_decorator import NO_SETTINGS


class PlainRoutes(dict[str, str]):
    """Successive static routes without settings that answer on any host: the names of their endpoints, by path.

    An app may have tens of thousands of them, and most processes need only a few: making
    a `Route` takes longer than all else that is done to read one.
    """


def plain_route(path: str, endpoint: str) -> Route:
    """One of `PlainRoutes`."""
    # All fields at once: this takes half of the time of `Route`.
    return tuple.__new__(Route, (path, endpoint, True, None, NO_SETTINGS, None, None, None, None, None, (), None))


def each_route(found: Iterable[Route | PlainRoutes]) -> Iterator[Route]:
    """All routes, one by one."""
    for one in found:
        if isinstance(one, PlainRoutes):
            for path, endpoint in one.items():
                yield plain_route(path, endpoint)
        else:
            yield one
