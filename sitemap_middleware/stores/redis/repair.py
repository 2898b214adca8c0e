"""The repair of a site's pages in Redis: what can be read stays where it is, all else is dropped and learned again."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from ..base import UNLEARNED_BLOCK
from ..placement import MAX_BLOCK_PAGES
from ..rebuild import RebuiltSite
from .client import RedisClient
from .pages import EMPTY_NAME, FIRST_UNLEARNED_SEGMENT, StoredPage, block_of, count_rows, page_name, parse_rows
from .scripts import MAX_COMMAND_VALUES, NAME_BYTES, REPAIR_SCRIPT

BLOCK_RECORD: Final = struct.Struct("<IIQ")


def drop_others(client: RedisClient, keys: Iterable[str]) -> int:
    """Delete those of these keys that hold something else than a hash. Returns how many they were."""
    others = [key for key in keys if client.execute("TYPE", key) not in (b"hash", b"none")]
    for key in others:
        client.execute("DEL", key)
    return len(others)


def repair(client: RedisClient, key: str, site: str) -> int | None:
    """Repair what is kept under a key. Returns how many records were dropped; None if others have written meanwhile."""
    version = client.execute("HGET", key, "v")
    found: dict[tuple[int, int], tuple[bytes, StoredPage]] = {}
    bad: set[bytes] = set()
    documents: dict[int, int] = {}
    old: set[bytes] = set()
    cursor = 0
    while True:
        cursor, fields = client.execute("HSCAN", key, cursor, "COUNT", MAX_COMMAND_VALUES)
        for name, value in fields.items():
            if name[:1] == b"p":
                row = _read_page(name[1:], value)
                if row is None or (row.segment, row.position) in found:
                    bad.add(name)
                else:
                    found[row.segment, row.position] = name[1:], row._replace(data=b"")
            elif name[:1] in (b"b", b"o", b"c"):
                old.add(name)
            if name[:1] == b"b" and name[1:].isdigit() and len(value) == BLOCK_RECORD.size:
                documents[int(name[1:])] = BLOCK_RECORD.unpack(value)[0]
        if int(cursor) == 0:
            break
    rebuilt = RebuiltSite[str](site, documents)
    orders: dict[int, bytearray] = {}
    for (segment, position), (name, row) in sorted(found.items()):
        block = block_of(segment)
        place = (
            position if block != UNLEARNED_BLOCK else (segment - FIRST_UNLEARNED_SEGMENT) * MAX_BLOCK_PAGES + position
        )
        rebuilt.add(block, place, row.path, row.route)
        order = orders.setdefault(segment, bytearray())
        order += EMPTY_NAME * (position - len(order) // NAME_BYTES) + name
    filling, named = rebuilt.cursor()
    fields_of = {
        "f": " ".join(map(str, (*filling, named))),
        "t": "1",
        "n": sum(rebuilt.routes.values()),
        **{f"c{route}": pages for route, pages in rebuilt.routes.items()},
        **{f"o{segment}": bytes(order) for segment, order in orders.items()},
    }
    written = client.run(
        REPAIR_SCRIPT,
        key,
        version or "",
        *count_rows([(name,) for name in (*bad, *old)]),
        *count_rows(list(fields_of.items())),
        *count_rows([(number, document, pages) for number, document, pages, _, _ in rebuilt.blocks()]),
    )
    return len(bad) if written else None


def _read_page(name: bytes, value: bytes) -> StoredPage | None:
    """The page of a field; None if it is not one, or not this one."""
    try:
        (row,) = parse_rows(value)
        page = row.page()
    except (ValueError, TypeError, struct.error):
        return None
    fits = (
        page.learned is (row.segment < FIRST_UNLEARNED_SEGMENT)
        and row.position < MAX_BLOCK_PAGES
        and row.segment != UNLEARNED_BLOCK
    )
    return row if fits and page_name(row.path) == name else None
