"""Detects that an app's routes have changed, so that they are read again only then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

from ..sitemap_decorator import settings_count

ReadState = Callable[[], Any]
"""Reads one object that the routes depend on: a list of routes, a mounted app."""


class Snapshot:
    """The objects that the routes of an app were read from, as they were then.

    Add each object before the routes are read from it: a change in between is
    then detected. The snapshot holds references, so that no new object can take the
    address of an old one.
    """

    __slots__ = ("_identities", "_is_complete", "_settings_count", "_slow_states", "_states")

    def __init__(self) -> None:
        self._settings_count = settings_count()
        self._states: list[tuple[ReadState, Any]] = []
        self._slow_states: list[tuple[ReadState, Any]] = []
        self._identities: list[tuple[Callable[[], Iterable[Any]], list[Any]]] = []
        self._is_complete = True

    def add(self, read: ReadState) -> None:
        """Add what `read` returns now. A list is copied."""
        state = read()
        self._states.append((read, state.copy() if isinstance(state, list) else state))

    def add_slow(self, read: ReadState) -> None:
        """Add what takes so long to read that only `is_current` reads it. It need not be copied."""
        self._slow_states.append((read, read()))

    def add_lists(self, read: ReadState) -> None:
        """Add a list of lists, each copied."""
        self._states.append((read, [items.copy() for items in read()]))

    def add_identities(self, read: Callable[[], Iterable[Any]]) -> Sequence[Any]:
        """Add objects that must stay the same objects: `is_current` does not accept equal ones. Return the objects."""
        objects = [*read()]
        self._identities.append((read, objects))
        return objects

    def mark_incomplete(self) -> None:
        """Note that the routes depend on something that cannot be compared, such as a folder of files."""
        self._is_complete = False

    def seems_current(self) -> bool:
        """Whether nothing has changed, by a comparison that is quick but accepts a route for an equal one."""
        if not self._is_complete or self._settings_count != settings_count():
            return False
        for read, state in self._states:  # noqa: SIM110 (`all` takes twice as long, and event loops ask often)
            if read() != state:
                return False
        return True

    def is_current(self) -> bool:
        """Whether nothing has changed."""
        return (
            self.seems_current()
            and all(read() == state for read, state in self._slow_states)
            and all(all(map(is_, read(), objects)) for read, objects in self._identities)
        )
