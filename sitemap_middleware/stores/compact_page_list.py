"""Pages packed one after another, in a fifth of the memory that `Page` objects take."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from ..models import Page
from .page_codec import unpack_page

_PAGE_HEAD: Final = struct.Struct("<III")
"""The lengths of the path, the route and the data that follow."""


class CompactPageList:
    """A sequence of pages that are unpacked one at a time.

    Args:
        data: the `data` of another instance, such as a saved one. Raises ValueError if it cannot be unpacked.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.data: bytearray = bytearray(data)
        try:
            for _ in self:
                pass
        except struct.error as error:
            raise ValueError(f"packed pages are incomplete: {error}") from None

    def extend(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Add pages, each given as path, route and the data of `page_codec`. Raises ValueError for unreadable data."""
        for path, route, data in rows:
            unpack_page(path, route, data)
            path_bytes, route_bytes = path.encode(), route.encode()
            self.data += _PAGE_HEAD.pack(len(path_bytes), len(route_bytes), len(data))
            self.data += path_bytes
            self.data += route_bytes
            self.data += data

    def __len__(self) -> int:
        return sum(1 for _ in self._offsets())

    def __iter__(self) -> Iterator[Page]:
        routes: dict[bytes, str] = {}  # many pages share one string
        for path_start, route_start, data_start, end in self._offsets():
            route_bytes = bytes(self.data[route_start:data_start])
            route = routes.get(route_bytes)
            if route is None:
                route = routes[route_bytes] = route_bytes.decode()
            path = self.data[path_start:route_start].decode()
            yield unpack_page(path, route, bytes(self.data[data_start:end]))

    def paths(self) -> Iterator[str]:
        """The percent-encoded paths of the pages."""
        return (self.data[path_start:route_start].decode() for path_start, route_start, *_ in self._offsets())

    def _offsets(self) -> Iterator[tuple[int, int, int, int]]:
        """Where the path, the route and the data of each page start, and where the page ends."""
        end = 0
        while end < len(self.data):
            path_length, route_length, data_length = _PAGE_HEAD.unpack_from(self.data, end)
            path_start = end + _PAGE_HEAD.size
            route_start = path_start + path_length
            data_start = route_start + route_length
            end = data_start + data_length
            yield path_start, route_start, data_start, end
