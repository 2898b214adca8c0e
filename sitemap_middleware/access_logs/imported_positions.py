"""Remembers how far each log was imported, so that no line is counted twice.

A log is recognised by its content: its first line, and the digest of all its decompressed bytes up to where it was
imported. So a log is the same after it was renamed, rotated or compressed, and one that has grown is continued.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import Final

from ..models import StoreKey
from ..stores.base import Store
from ..stores.checksums import verify, with_checksum
from .line_reader import DIGEST_BYTES

MAX_MARKS: Final = 1000
"""Marks kept of one log, those farthest on. Each is 24 bytes."""

_FIRST_LINE_BYTES: Final = 64 * 1024
_LENGTH_BYTES: Final = 8
_MARK_BYTES: Final = _LENGTH_BYTES + DIGEST_BYTES
_READ_BYTES: Final = 1024 * 1024

Marks = Mapping[bytes, int]
"""How many bytes of logs with the same first line were imported, by the digest of these bytes."""


def record_name(head: bytes) -> str | None:
    """The name of the record with the marks of a log; None if it has no complete line yet.

    It depends on the first line that is no directive: all logs of IIS have the same lines of directives.
    """
    head = head[:_FIRST_LINE_BYTES]
    begin, end = 0, head.find(b"\n") + 1
    while end and head[begin : begin + 1] == b"#":
        begin, end = end, head.find(b"\n", end) + 1
    if not end and len(head) < _FIRST_LINE_BYTES:
        return None
    return f"access-log/{blake2b(head[: end or None], digest_size=DIGEST_BYTES).hexdigest()}"


def load_marks(store: Store, site: StoreKey, name: str) -> Marks:
    """The marks of a log. Raises `StoreError`."""
    record = verify(store.load(site, [name]).get(name, b"")) or b""
    marks = (record[start : start + _MARK_BYTES] for start in range(0, len(record), _MARK_BYTES))
    return {mark[_LENGTH_BYTES:]: int.from_bytes(mark[:_LENGTH_BYTES]) for mark in marks}


def marks_as_record(marks: Marks) -> bytes:
    latest = sorted((length, digest) for digest, length in marks.items())[-MAX_MARKS:]
    return with_checksum(b"".join(length.to_bytes(_LENGTH_BYTES) + digest for length, digest in latest))


def imported_lengths(read: Callable[[int], bytes], marks_by_site: Collection[Marks]) -> list[int]:
    """How many bytes of a log were imported already, for the marks of each site.

    Args:
        read: returns the next bytes of the log, from its begin.
        marks_by_site: for each site, those of all logs with the same first line.
    """
    lengths = sorted({length for marks in marks_by_site for length in marks.values()})
    found, done = [0] * len(marks_by_site), 0
    digest = blake2b(digest_size=DIGEST_BYTES)
    for length in lengths:
        while done < length and (data := read(min(_READ_BYTES, length - done))):
            digest.update(data)
            done += len(data)
        if done < length:
            break
        for number, marks in enumerate(marks_by_site):
            if marks.get(digest.digest()) == length:
                found[number] = length
    return found
