"""Holds many pages as columns, one for each field: faster to evaluate than one page after the other.

A site has many pages of few routes, and most pages of a route were observed in the same way: they answered 200 with
HTML, had one Last-Modified and one content. What is decided by what they have in common is decided once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import ClassVar, Final, NamedTuple, overload

from ..models import Page
from ..value_history import History, Run

FIRST_SEEN, LAST_SEEN, LAST_MODIFIED, READ_AT, MARK = range(5)
"""The first columns of `PageColumns.numbers`. The runs follow, three columns each."""

RUNS: Final = MARK + 1

_POSITION: Final = itemgetter(0)
_PAGE: Final = itemgetter(1)
_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class

Column = Sequence[int]


class RunColumns(NamedTuple):
    """One run of each page."""

    values: Column
    first_seen: Column
    last_seen: Column


def histories(runs: Sequence[RunColumns], count: int) -> Iterator[History]:
    """The history of each of `count` pages, of all their runs."""
    if not runs:
        return repeat((), count)
    return zip(*(map(_make, repeat(Run), zip(*run, strict=True)) for run in runs), strict=True)


class PageColumns:
    """Pages of one route that differ only in what has a column."""

    def __init__(
        self,
        common: Page,
        positions: Sequence[int],
        paths: Sequence[str],
        data: Sequence[bytes],
        *,
        stated_dates: Sequence[str] | None,
        decode: Callable[[Sequence[bytes]], Sequence[Column]],
        unpack: Callable[[str, str, bytes], Page],
    ) -> None:
        """`decode` makes `numbers` of `data`. `unpack` makes a page of a path, a route and packed data."""
        self.common: Page = common
        """One of the pages. All others have as many runs, and are like it in what has no column, but for fractions of
        seconds.
        """
        self.positions: Sequence[int] = positions
        """Where each page stands among those that it was read with."""
        self.paths: Sequence[str] = paths
        self.data: Sequence[bytes] = data
        """The packed pages."""
        self.stated_dates: Sequence[str] | None = stated_dates
        """What each page states; None if none states a date."""
        self._decode = decode
        self._unpack = unpack

    @cached_property
    def numbers(self) -> Sequence[Column]:
        """The columns of numbers."""
        return self._decode(self.data)

    @property
    def first_seen(self) -> Column:
        return self.numbers[FIRST_SEEN]

    @property
    def last_seen(self) -> Column:
        return self.numbers[LAST_SEEN]

    @property
    def last_modified(self) -> Column:
        """Meaningless if `common` has no Last-Modified."""
        return self.numbers[LAST_MODIFIED]

    @property
    def read_at(self) -> Column:
        return self.numbers[READ_AT]

    @property
    def content_marks(self) -> Column:
        return self.numbers[MARK]

    @property
    def last_modified_runs(self) -> list[RunColumns]:
        """The runs of the Last-Modified, in their order."""
        return self._runs(0, len(self.common.last_modified_history))

    @property
    def content_runs(self) -> list[RunColumns]:
        """The runs of the content, in their order."""
        start = len(self.common.last_modified_history)
        return self._runs(start, start + len(self.common.content_history))

    def _runs(self, start: int, end: int) -> list[RunColumns]:
        width = len(RunColumns._fields)
        return [RunColumns(*self.numbers[RUNS + width * run : RUNS + width * (run + 1)]) for run in range(start, end)]

    def any_changed_since(self, since: int) -> bool:
        """Whether any page was observed to change after a time, as `changed_since` says of each."""
        if self.stated_dates is not None and max(self.read_at) > since:
            return True
        return any(max(run.first_seen) > since for run in (*self.last_modified_runs, *self.content_runs))

    @property
    def count(self) -> int:
        """The number of pages."""
        return len(self.paths)

    def page(self, index: int) -> Page:
        """One of the pages."""
        return self._unpack(self.paths[index], self.common.route, self.data[index])

    def pages(self) -> list[Page]:
        """All of them."""
        return [*map(self._unpack, self.paths, repeat(self.common.route), self.data)]

    def rows(self) -> Iterator[tuple[int, Page]]:
        """The position of each page, and the page."""
        return zip(self.positions, self.pages(), strict=True)

    def select(self, selectors: Sequence[object]) -> PageColumns | None:
        """Those of the pages whose selector is true; None if there are none."""
        if not any(selectors):
            return None
        return PageColumns(
            self.common,
            [*compress(self.positions, selectors)],
            [*compress(self.paths, selectors)],
            [*compress(self.data, selectors)],
            stated_dates=None if self.stated_dates is None else [*compress(self.stated_dates, selectors)],
            decode=self._decode,
            unpack=self._unpack,
        )


class PageBlock(Sequence[Page]):
    """Pages in some order: most of them in columns."""

    def __init__(self, columns: Sequence[PageColumns], others: Sequence[tuple[int, Page]]) -> None:
        self.columns: Sequence[PageColumns] = columns
        self.others: Sequence[tuple[int, Page]] = others
        """All other pages, each with its position."""

    @classmethod
    def of(cls, pages: Iterable[Page]) -> PageBlock:
        """The same pages: as they are if they are a block already, else without columns."""
        return pages if isinstance(pages, PageBlock) else cls([], [*enumerate(pages)])

    def __len__(self) -> int:
        return len(self.others) + sum(columns.count for columns in self.columns)

    def __iter__(self) -> Iterator[Page]:
        rows = chain(self.others, *(columns.rows() for columns in self.columns))
        return map(_PAGE, sorted(rows, key=_POSITION))

    @overload
    def __getitem__(self, index: int) -> Page: ...
    @overload
    def __getitem__(self, index: slice) -> list[Page]: ...
    def __getitem__(self, index: int | slice) -> Page | list[Page]:
        return [*self][index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # as of a list

    def __repr__(self) -> str:
        return f"PageBlock({[*self]})"
