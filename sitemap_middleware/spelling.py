"""Header names in any case, each looked at once: what lower-casing costs on every response, a dictionary does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST: Final = 1000
"""Spellings remembered; an app that makes up names cannot fill the memory."""


class Spellings(dict[str | bytes, bool]):
    """Whether a header name, in text or bytes and in any case, is one of those wanted."""

    def __init__(self, wanted: Iterable[str]) -> None:
        super().__init__()
        self._wanted = frozenset(wanted)

    def __missing__(self, name: str | bytes) -> bool:
        text = name if isinstance(name, str) else name.decode("latin-1")
        found = text.lower() in self._wanted
        if len(self) < _MOST:
            self[name] = found
        return found
