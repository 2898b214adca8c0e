"""Numbers: what each word, target or fact adds to a digest, and which contents differ by numbers alone.

A word that holds one integer adds what its text around the integer adds, and a small multiple of one constant.
Contents that differ by integers alone differ by a small multiple too, and the multiple says by how much they moved.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_MODULUS: Final = 1 << 64
_UNIT: Final = 0x9E37_79B9_7F4A_7C15
"""The constant, which is odd, so that a difference can be divided by it."""
_PER_UNIT: Final = pow(_UNIT, -1, _MODULUS)

FEW: Final = 32
SMALL: Final = 4096
"""A step of one is so long below this number: editors count parts and versions by small numbers."""

_LOW: Final = 24
"""Bits that hold the integer."""
_HASHED: Final = 16
"""Bits of its hash above them, so that two integers that move against each other still alter the digest."""
_LEAST: Final = 1 << (_LOW + _HASHED + 4)
"""Multiples below this are small: ten integers may move at once."""

_INTEGER: Final = re.compile(r"((?:\n[^0-9\n]*+\n)?[^0-9\n]*+)([0-9]{1,6}|[0-9]{1,3}[.,][0-9]{3})([^0-9\n]*+)")
"""A word, or a fact with its property. Targets, and facts of a thing that has a name, are taken as they are."""


def number(item: str) -> int:
    """What a word, a target or a fact adds to a digest."""
    found = _INTEGER.fullmatch(item)
    if found is None:
        return _hashed(item, 8)
    before, digits, after = found.groups()
    multiple = scale(int(digits.replace(",", "").replace(".", ""))) + (_hashed(digits, 2) << _LOW)
    return (_hashed(f"{before}\0{after}", 8) + multiple * _UNIT) % _MODULUS


def scale(integer: int) -> int:
    """A number on the scale by which `moved` tells how far integers moved."""
    return integer * SMALL if integer < FEW else FEW * SMALL + integer - FEW


def moved(before: int, after: int) -> int | None:
    """By how much the integers of a content moved in sum, as `scale` has it; None if anything else changed."""
    multiple = (after - before) * _PER_UNIT % _MODULUS
    if multiple >= _MODULUS // 2:
        multiple -= _MODULUS
    if not -_LEAST < multiple < _LEAST:
        return None
    half = 1 << (_LOW - 1)
    return (multiple + half) % (1 << _LOW) - half


def _hashed(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest(), "big")
