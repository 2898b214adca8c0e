"""Samples: some of a site's pages, packed one after the other, in a fifth of the room that they would take as pages."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ..models import Page
from .page_codec import unpack_page

_PAGE_HEAD: Final = struct.Struct("<III")
"""Of a page's path, route and facts, which follow."""


class PackedPages:
    """Pages that come one at a time, each unpacked in its turn; that they can be is seen when they are put in."""

    def __init__(self, data: bytes = b"") -> None:
        """`data`: of another sample, as it was kept; ValueError where it is of none that can be read here."""
        self.data = bytearray(data)
        try:
            for _ in self:
                pass
        except struct.error as error:
            raise ValueError(f"what is kept of a sample is cut: {error}") from None

    def extend(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Add pages: the path, the route and the facts of each, as `codec` packs them; ValueError of any other."""
        for path, route, facts in rows:
            unpack_page(path, route, facts)
            raw, of = path.encode(), route.encode()
            self.data += _PAGE_HEAD.pack(len(raw), len(of), len(facts))
            self.data += raw
            self.data += of
            self.data += facts

    def __len__(self) -> int:
        return sum(1 for _ in self._places())

    def __iter__(self) -> Iterator[Page]:
        routes: dict[bytes, str] = {}  # few, of many pages: each is there once
        for start, middle, last, end in self._places():
            of = bytes(self.data[middle:last])
            route = routes.get(of)
            if route is None:
                route = routes[of] = of.decode()
            yield unpack_page(self.data[start:middle].decode(), route, bytes(self.data[last:end]))

    def paths(self) -> Iterator[str]:
        """The percent-encoded paths of the pages."""
        return (self.data[start:middle].decode() for start, middle, *_ in self._places())

    def _places(self) -> Iterator[tuple[int, int, int, int]]:
        """Where the path, the route and the facts of each page begin, and where it ends."""
        end = 0
        while end < len(self.data):
            path, route, facts = _PAGE_HEAD.unpack_from(self.data, end)
            start = end + _PAGE_HEAD.size
            middle = start + path
            last = middle + route
            end = last + facts
            yield start, middle, last, end
