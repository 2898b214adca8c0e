"""The CRC-32 of bytes that were never seen together: zlib's crc32_combine, which Python's own zlib does not show."""

from __future__ import annotations

from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0xEDB88320
"""Of gzip and zlib, its bits reflected (RFC 1952, section 8)."""

_CRCTables = tuple[tuple[int, ...], ...]
"""For each of a CRC's four bytes, what each of its values becomes. CRCs are linear: the XOR of these is the whole."""


def combine(first: int, second: int, size: int) -> int:
    """The CRC-32 of two runs of bytes as one.

    Args:
        first: the CRC-32 of the first run.
        second: that of the second.
        size: how many bytes the second has.
    """
    power = 0
    while size:
        if size & 1:
            low, middle, high, top = _shift_tables(power)
            first = low[first & 255] ^ middle[first >> 8 & 255] ^ high[first >> 16 & 255] ^ top[first >> 24]
        size >>= 1
        power += 1
    return first ^ second


@cache
def _shift_tables(power: int) -> _CRCTables:
    """What a CRC becomes by 2**power zero bytes: a tenth of a millisecond to make, and 40 kB to keep."""
    bits = [_shift_one_byte(1 << bit) if power == 0 else _shift_twice(power - 1, 1 << bit) for bit in range(32)]
    tables = []
    for byte in range(0, 32, 8):
        table = [0]
        for bit in bits[byte : byte + 8]:
            table += [value ^ bit for value in table]
        tables.append(tuple(table))
    return tuple(tables)


def _shift_one_byte(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


def _shift_twice(power: int, crc: int) -> int:
    half = 1 << power
    return combine(combine(crc, 0, half), 0, half)
