"""Repairs a damaged site in place: pages that can be read stay; the others are deleted and will be learned again."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ..base import UNLEARNED_BLOCK
from ..recount_after_damage import RebuiltSite
from .client import RedisClient
from .packed_pages_and_segments import (
    BLOCK_VALUE,
    EMPTY_SLOT,
    SEGMENT_SLOTS,
    StoredPage,
    hash_path,
    parse_pages,
    rows_as_arguments,
    serialize_cursor,
    slot_in_block,
)
from .scripts import MAX_COMMAND_VALUES, PATH_HASH_BYTES, REPAIR_SCRIPT


def delete_other_types(client: RedisClient, keys: Iterable[str]) -> int:
    """Delete those of these keys that are not hashes. Returns how many."""
    others = [key for key in keys if client.execute("TYPE", key) not in (b"hash", b"none")]
    for key in others:
        client.execute("DEL", key)
    return len(others)


def repair(client: RedisClient, key: str, site: str) -> int | None:
    """Delete damaged pages and rebuild everything else from the others.

    Returns how many pages were deleted; None if another worker has written meanwhile.
    """
    version = client.execute("HGET", key, "version")
    pages: dict[tuple[int, int], StoredPage] = {}
    damaged_pages: set[bytes] = set()
    rebuilt_fields: set[bytes] = set()
    documents: dict[int, int] = {}
    cursor = 0
    while True:
        cursor, fields = client.execute("HSCAN", key, cursor, "COUNT", MAX_COMMAND_VALUES)
        for field, value in fields.items():
            if field.startswith(b"p"):
                page = _read_page(field[1:], value)
                if page is None or (page.segment, page.position) in pages:
                    damaged_pages.add(field)
                else:
                    pages[page.segment, page.position] = page._replace(data=b"")  # a site may have millions
            elif field.startswith((b"block:", b"segment:", b"route:")):
                rebuilt_fields.add(field)
                kind, _, number = field.partition(b":")
                if kind == b"block" and number.isdigit() and len(value) == BLOCK_VALUE.size:
                    documents[int(number)], _, _ = BLOCK_VALUE.unpack(value)
        if int(cursor) == 0:
            break
    rebuilt = RebuiltSite[str](site, documents)
    segments: dict[int, bytearray] = {}
    for (segment, position), page in sorted(pages.items()):
        rebuilt.add(*slot_in_block(segment, position), page.path, page.route)
        slots = segments.setdefault(segment, bytearray())
        slots += EMPTY_SLOT * (position - len(slots) // PATH_HASH_BYTES) + hash_path(page.path)
    new_fields = {
        "cursor": serialize_cursor(*rebuilt.cursor()),
        "slash_variants": "1",
        "learned": sum(rebuilt.routes.values()),
        **{f"route:{route}": count for route, count in rebuilt.routes.items()},
        **{f"segment:{segment}": bytes(slots) for segment, slots in segments.items()},
    }
    is_written = client.run(
        REPAIR_SCRIPT,
        key,
        version or "",
        *rows_as_arguments([(field,) for field in (*damaged_pages, *rebuilt_fields)]),
        *rows_as_arguments(list(new_fields.items())),
        *rows_as_arguments([(number, document, count) for number, document, count, _, _ in rebuilt.blocks()]),
    )
    return len(damaged_pages) if is_written else None


def _read_page(path_hash: bytes, value: bytes) -> StoredPage | None:
    """The page of a field; None if it is damaged."""
    try:
        (stored,) = parse_pages(value)
        page = stored.unpack()
    except (ValueError, TypeError, struct.error):
        return None
    is_valid = (
        page.learned is (stored.block != UNLEARNED_BLOCK)
        and stored.position < SEGMENT_SLOTS
        and stored.segment != UNLEARNED_BLOCK
        and hash_path(stored.path) == path_hash
    )
    return stored if is_valid else None
