"""Rows: the number of a page's row in a table of pages of all sites, so that those of a block lie together. Pure."""

from __future__ import annotations

from typing import Final

from .allotment import Place
from .base import NAMED

_SITE: Final = 42
_BLOCK: Final = 10
_NAMED: Final = 1 << 62
"""Of pages that were not learned: they have one block, and no end of positions."""


def row_of(site: int, place: Place) -> int:
    """The number of the row of a site's place; sites are numbered from 1 to 2**20."""
    if place.block == NAMED:
        return _NAMED | site << _SITE | place.position
    return site << _SITE | place.block << _BLOCK | place.position


def block_of(row: int) -> int:
    """The block of a row."""
    return NAMED if row & _NAMED else row % (1 << _SITE) >> _BLOCK


def rows_of(site: int, block: int, last: int | None = None) -> tuple[int, int]:
    """The first and the last number that a row of a block can have; or of all blocks from there to a last one."""
    if block == NAMED:
        return row_of(site, Place(block, 0)), row_of(site + 1, Place(block, 0)) - 1
    return row_of(site, Place(block, 0)), row_of(site, Place((block if last is None else last) + 1, 0)) - 1
