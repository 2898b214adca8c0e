"""Packs site, block and position into the row ids of the SQL engines, and hashes paths. Pure.

So the pages of a block lie together in the table. Pages are found by a hash of site and path: an index of the paths
themselves would take more than twice the space and time. Pages may share a hash, within a site or across sites, and a
client can choose paths that do.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

from .base import UNLEARNED_BLOCK
from .permanent_page_slots import Slot

MAX_NUMBER: Final = 1 << 20
"""All site numbers and block numbers are less than this. A greater one is damaged."""

_SITE_SHIFT: Final = 42
_BLOCK_SHIFT: Final = 10
MAX_BLOCK_ROWS: Final = 1 << _BLOCK_SHIFT
"""Rows of a block of learned pages, at most: there is no room for more positions."""

_UNLEARNED_FLAG: Final = 1 << 62
"""Set for unlearned pages, whose one block has any number of positions."""


def row_id(site: int, slot: Slot) -> int:
    """The id of the row of a slot."""
    if slot.block == UNLEARNED_BLOCK:
        return _UNLEARNED_FLAG | site << _SITE_SHIFT | slot.position
    return site << _SITE_SHIFT | slot.block << _BLOCK_SHIFT | slot.position


def consecutive_row_ids(site: int, first: Slot, pages: int) -> range:
    """The ids of rows in consecutive slots."""
    start = row_id(site, first)
    return range(start, start + pages)


def block_of_row(row: int) -> int:
    return UNLEARNED_BLOCK if row & _UNLEARNED_FLAG else row % (1 << _SITE_SHIFT) >> _BLOCK_SHIFT


def position_of_row(row: int) -> int:
    """The position in its block."""
    return row % (1 << _SITE_SHIFT) if row & _UNLEARNED_FLAG else row % (1 << _BLOCK_SHIFT)


def site_of_row(row: int) -> int:
    """The number of its site."""
    return row % _UNLEARNED_FLAG >> _SITE_SHIFT


def row_id_range(site: int, block: int, last_block: int | None = None) -> tuple[int, int]:
    """The lowest and the highest possible row id of a block, or of the learned blocks from there to `last_block`."""
    if block == UNLEARNED_BLOCK:
        return row_id(site, Slot(block, 0)), row_id(site + 1, Slot(block, 0)) - 1
    next_block = (block if last_block is None else last_block) + 1
    return row_id(site, Slot(block, 0)), row_id(site, Slot(next_block, 0)) - 1


def site_row_id_ranges(site: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The lowest and the highest possible row id of a site's learned pages, and of its unlearned pages."""
    return (site << _SITE_SHIFT, (site + 1 << _SITE_SHIFT) - 1), row_id_range(site, UNLEARNED_BLOCK)


def path_hashes(site: int, paths: Collection[str], bits: int = 64) -> dict[str, int]:
    """The hash of each path in a site: a signed integer of so many bits."""
    base = blake2b(digest_size=8, salt=site.to_bytes(8, "big"))
    digests = []
    for path in paths:
        digest = base.copy()
        digest.update(path.encode())
        digests.append(digest.digest())
    hashes = struct.unpack(f">{len(digests)}q", b"".join(digests))  # all at once is faster
    return dict(zip(paths, hashes if bits == 64 else [value >> 64 - bits for value in hashes], strict=True))
