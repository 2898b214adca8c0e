r"""The counted visits of crawlers in Redis: one hash for each site.

A field is `<status> <identity> <crawler>\n<path>`, its value three integers of eight bytes: first, last, count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ...crawlers import counted_visits as limits
from ...crawlers.counted_visits import VERIFIED, CrawlerVisit, VisitKey, add_up, visit_of_row
from .client import RedisClient
from .scripts import MAX_COMMAND_VALUES, Script

_VALUE: Final = struct.Struct("<QQQ")

ADD_VISITS_SCRIPT: Final = Script(
    """
local saved = 2 * tonumber(ARGV[1])
for argument = 2, saved + 1, 2 do call('HSET', KEYS[2], ARGV[argument], ARGV[argument + 1]) end
for argument = saved + 2, #ARGV, 4 do
    local field, first, last, count = unpack(ARGV, argument, argument + 3)
    first, last, count = tonumber(first), tonumber(last), tonumber(count)
    local known = call('HGET', key, field)
    if known and #known == 24 then
        local known_first, known_last, known_count = struct.unpack('<I8I8I8', known)
        first, last, count = math.min(first, known_first), math.max(last, known_last), count + known_count
    end
    call('HSET', key, field, struct.pack('<I8I8I8', first, last, count))
end
return call('HLEN', key)
"""
)
"""Add rows to those of the same field, or write new ones; and save records in another hash.

Arguments: the number of records; the name and the value of each; the field, the first visit, the last visit and the
count of each row.
Returns: the number of stored rows.
"""

DELETE_UNCHANGED_SCRIPT: Final = Script(
    """
for argument = 1, #ARGV, 2 do
    if call('HGET', key, ARGV[argument]) == ARGV[argument + 1] then call('HDEL', key, ARGV[argument]) end
end
"""
)
"""Delete rows that have not changed since they were read.

Arguments: the field and the value of each row.
"""


def add_crawler_visits(
    client: RedisClient, key: str, visits: Iterable[CrawlerVisit], records_key: str, records: Mapping[str, bytes]
) -> None:
    """Add visits to those of a hash, and save records in another; if there are too many rows, delete some."""
    arguments: list[object] = [len(records)]
    for record in records.items():
        arguments += record
    for visit_key, row in add_up(visits).items():
        arguments += _field(visit_key), *row
    if len(arguments) == 1:
        return
    if client.run(ADD_VISITS_SCRIPT, key, *arguments, other_key=records_key) > limits.MAX_STORED_ROWS:
        _prune(client, key)


def read_crawler_visits(read: Callable[[Callable[[RedisClient], Any]], Any], key: str) -> Iterator[CrawlerVisit]:
    """The visits of a hash, read in batches by `read`. Rows that cannot be read are left out."""
    seen: set[bytes] = set()  # Redis may return a field twice
    cursor: int | None = None
    while cursor != 0:
        cursor, rows = read(partial(_scan, key=key, cursor=cursor or 0))
        for field, value in rows.items():
            parsed = _parse_field(field)
            if parsed is not None and len(value) == _VALUE.size and field not in seen:
                seen.add(field)
                yield visit_of_row(parsed, *_VALUE.unpack(value))


def _prune(client: RedisClient, key: str) -> None:
    """Delete the rows least worth keeping. Those that another process changes meanwhile stay."""
    rows: dict[bytes, bytes] = {}
    cursor: int | None = None
    while cursor != 0:
        cursor, some = _scan(client, key, cursor or 0)
        rows.update(some)
    excess = max(0, len(rows) - limits.ROWS_AFTER_PRUNING)
    worst = sorted(rows.items(), key=lambda row: _worth(*row))[:excess]
    for start in range(0, len(worst), MAX_COMMAND_VALUES):
        batch = worst[start : start + MAX_COMMAND_VALUES]
        client.run(DELETE_UNCHANGED_SCRIPT, key, *(part for row in batch for part in row))


def _scan(client: RedisClient, key: str, cursor: int) -> tuple[int, dict[bytes, bytes]]:
    """The next cursor, which is 0 after the last rows, and some fields with their values."""
    result: tuple[int, dict[bytes, bytes]] = client.execute("HSCAN", key, cursor, "COUNT", MAX_COMMAND_VALUES)
    return result


def _field(visit_key: VisitKey) -> bytes:
    path, crawler, identity, status = visit_key
    return f"{status} {identity} {crawler}\n{path}".encode()


def _parse_field(field: bytes) -> VisitKey | None:
    """The key of a row; None if it is damaged."""
    try:
        head, _, path = field.decode().partition("\n")
        status, identity, crawler = head.split(" ", 2)
        return path, crawler, int(identity), int(status)
    except ValueError:
        return None


def _worth(field: bytes, value: bytes) -> tuple[bool, int]:
    """Sorts rows by what is deleted first."""
    parsed = _parse_field(field)
    if parsed is None or len(value) != _VALUE.size:
        return False, 0
    return parsed[2] == VERIFIED, _VALUE.unpack(value)[1]
