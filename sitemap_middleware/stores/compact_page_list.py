"""Pages as they are stored, in less than half of the memory that `Page` objects take."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final

from ..models import Page
from .page_codec import unpack_page

BLOCK_PAGES: Final = 1000

_PATH: Final = itemgetter(0)
_ROUTE: Final = itemgetter(1)
_DATA: Final = itemgetter(2)
_PAGE_HEAD: Final = struct.Struct("<III")
"""The lengths of the path, the route and the data that follow."""


class CompactPageList:
    """A sequence of pages that are unpacked a block or a page at a time.

    Args:
        data: the `data` of another instance, such as a saved one. Raises ValueError if it cannot be unpacked.
    """

    def __init__(self, data: bytes = b"") -> None:
        # Columns rather than rows: the garbage collector need not look at them.
        self._paths: list[str] = []
        self._routes: list[str] = []
        self._packed: list[bytes] = []
        try:
            self.extend(_parse(data))
        except struct.error as error:
            raise ValueError(f"packed pages are incomplete: {error}") from None

    @property
    def data(self) -> bytes:
        """The pages, packed one after another."""
        # In pieces: to make all columns bytes at once takes four times the memory of the result.
        return b"".join(map(self._data_of, range(0, len(self), BLOCK_PAGES)))

    def _data_of(self, first: int) -> bytes:
        """The data of `BLOCK_PAGES` pages from an index on."""
        part = slice(first, first + BLOCK_PAGES)
        routes = {route: route.encode() for route in {*self._routes[part]}}
        paths = [path.encode() for path in self._paths[part]]
        columns = paths, [*map(routes.__getitem__, self._routes[part])], self._packed[part]
        heads = map(_PAGE_HEAD.pack, *(map(len, column) for column in columns))
        return b"".join(chain.from_iterable(zip(heads, *columns, strict=True)))

    def extend(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Add pages, each given as path, route and the data of `page_codec`. Raises ValueError for unreadable data."""
        rows, start = [*rows], len(self)
        routes = [*map(_ROUTE, rows)]
        self._routes += map({route: route for route in routes}.__getitem__, routes)  # many pages share one string
        self._paths += map(_PATH, rows)
        self._packed += map(_DATA, rows)
        for _ in map(unpack_page, self._paths[start:], self._routes[start:], self._packed[start:]):
            pass  # raises ValueError

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Page]:
        return map(unpack_page, self._paths, self._routes, self._packed)

    def paths(self) -> Sequence[str]:
        """The percent-encoded paths of the pages."""
        return self._paths


def _parse(data: bytes) -> Iterator[tuple[str, str, bytes]]:
    """The path, the route and the data of each page. Raises ValueError or struct.error if they are damaged."""
    end = 0
    while end < len(data):
        path_length, route_length, data_length = _PAGE_HEAD.unpack_from(data, end)
        path_start = end + _PAGE_HEAD.size
        route_start = path_start + path_length
        data_start = route_start + route_length
        end = data_start + data_length
        yield data[path_start:route_start].decode(), data[route_start:data_start].decode(), data[data_start:end]
