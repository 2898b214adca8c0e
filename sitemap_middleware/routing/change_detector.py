"""The sign that a URL map is as it was when it was read, so that it need not be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

from ..decorator import settings_count

ReadState = Callable[[], Any]
"""Looks at one thing that the routes were read from: a list of routes, an app that is mounted."""


class ChangeDetector:
    """What one reading looked at, and how that was.

    It holds on to what it saw, so that nothing new can pass for it. Each look is
    noted before what it shows is read: what changes meanwhile is then told later.
    """

    __slots__ = ("_identities", "_is_complete", "_readers", "_states")

    def __init__(self) -> None:
        self._states = settings_count()
        self._readers: list[tuple[ReadState, Any]] = []
        self._identities: list[tuple[Callable[[], Iterable[Any]], list[Any]]] = []
        self._is_complete = True

    def watch(self, look: ReadState) -> None:
        """Note what a look shows now."""
        shown = look()
        self._readers.append((look, shown.copy() if isinstance(shown, list) else shown))

    def watch_lists(self, look: ReadState) -> None:
        """Note the lists that a look shows now, and what is in each."""
        self._readers.append((look, [one.copy() for one in look()]))

    def watch_identities(self, look: Callable[[], Iterable[Any]]) -> None:
        """Note the very things that a look shows now: that others are equal to them does not make them the same."""
        self._identities.append((look, [*look()]))

    def mark_unknown(self) -> None:
        """Note that something was read of which nothing tells whether it is as it was: a folder of files, say."""
        self._is_complete = False

    def is_probably_unchanged(self) -> bool:
        """Whether all is as it was, as far as a glance can tell: routes that are equal pass for one another."""
        if not self._is_complete or self._states != settings_count():
            return False
        return all(look() == shown for look, shown in self._readers)

    def is_unchanged(self) -> bool:
        """Whether all is as it was."""
        return self.is_probably_unchanged() and all(all(map(is_, look(), shown)) for look, shown in self._identities)
