"""Warns of a route object that is left out because its attributes raise, such as a lazy route."""

from __future__ import annotations

from typing import Final

from ..warn_once import WarnOnce

_warn_once: Final = WarnOnce()


def warn_of_unreadable_route(route: object, error: Exception) -> None:
    """Warn that a route is left out because reading it raised an error. One warning for each class of route."""
    kind = type(route)
    _warn_once(
        (kind.__module__, kind.__qualname__),
        "a route of the class %s.%s cannot be read (%s) and is left out; the app's other routes are listed",
        kind.__module__,
        kind.__qualname__,
        type(error).__name__,
    )
