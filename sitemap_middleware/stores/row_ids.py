"""Rows: the number of a page's row in a table of pages of all sites, and the mark by which it is found. Pure.

Numbers are given so that the pages of a block lie together. A mark is a digest of
site and path: an index of paths would take more than twice the room, and what is
written into it more than twice the time. Two pages may have the same, of one site
or of two: who knows how marks are made can choose paths so that they do.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

from .base import UNLEARNED_BLOCK
from .placement import PlacementCursor, Slot

MAX_NUMBER: Final = 1 << 20
"""Sites, and blocks of a site, are fewer: a greater number is a damaged one."""

_SITE_SHIFT: Final = 42
_BLOCK_SHIFT: Final = 10
_UNLEARNED_FLAG: Final = 1 << 62
"""Of pages that were not learned: they have one block, and no end of positions."""


def row_id(site: int, slot: Slot) -> int:
    """The id of the row of a slot."""
    if slot.block == UNLEARNED_BLOCK:
        return _UNLEARNED_FLAG | site << _SITE_SHIFT | slot.position
    return site << _SITE_SHIFT | slot.block << _BLOCK_SHIFT | slot.position


def consecutive_row_ids(site: int, first: Slot, pages: int) -> range:
    """The ids of rows in consecutive slots."""
    start = row_id(site, first)
    return range(start, start + pages)


def last_row_ids(site: int, filling: PlacementCursor, pages: int) -> range:
    """The rows of so many pages, which came last into a block that is now filled like this."""
    return consecutive_row_ids(site, Slot(filling.block, filling.pages - pages), pages)


def block_of_row(row: int) -> int:
    """The block of a row."""
    return UNLEARNED_BLOCK if row & _UNLEARNED_FLAG else row % (1 << _SITE_SHIFT) >> _BLOCK_SHIFT


def position_of_row(row: int) -> int:
    """The position of a row in its block."""
    return row % (1 << _SITE_SHIFT) if row & _UNLEARNED_FLAG else row % (1 << _BLOCK_SHIFT)


def site_of_row(row: int) -> int:
    """The site of a row."""
    return row % _UNLEARNED_FLAG >> _SITE_SHIFT


def row_id_range(site: int, block: int, last: int | None = None) -> tuple[int, int]:
    """The first and the last number that a row of a block can have; or of all blocks from there to a last one."""
    if block == UNLEARNED_BLOCK:
        return row_id(site, Slot(block, 0)), row_id(site + 1, Slot(block, 0)) - 1
    return row_id(site, Slot(block, 0)), row_id(site, Slot((block if last is None else last) + 1, 0)) - 1


def site_row_id_ranges(site: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last number that a row of a site can have: of those learned, and of the others."""
    return (site << _SITE_SHIFT, (site + 1 << _SITE_SHIFT) - 1), row_id_range(site, UNLEARNED_BLOCK)


def path_hashes(site: int, paths: Collection[str], bits: int = 64) -> dict[str, int]:
    """The mark of each path: so many bits, signed."""
    digest = blake2b(digest_size=8, salt=site.to_bytes(8, "big"))
    digests = []
    for path in paths:
        one = digest.copy()
        one.update(path.encode())
        digests.append(one.digest())
    whole = struct.unpack(f">{len(digests)}q", b"".join(digests))
    return dict(zip(paths, whole if bits == 64 else [mark >> 64 - bits for mark in whole], strict=True))
