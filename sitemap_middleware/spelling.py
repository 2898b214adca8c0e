"""Header names in any case, each looked at once: what lower-casing costs on every response, a dictionary does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST: Final = 1000
"""Spellings remembered; an app that makes up names cannot fill the memory."""


class Spellings(dict[str | bytes, str]):
    """The lower-case name of a header that is wanted, for its name in text or bytes and any case; "" for others."""

    def __init__(self, wanted: Iterable[str]) -> None:
        super().__init__()
        self._wanted = frozenset(wanted)

    def __missing__(self, name: str | bytes) -> str:
        lower = (name if isinstance(name, str) else name.decode("latin-1")).lower()
        found = lower if lower in self._wanted else ""
        if len(self) < _MOST:
            self[name] = found
        return found
