"""Hashes each word, link target and fact of a page to the integer that it adds to the page's content digest.

Digests show whether contents differ by integers only.

The term of a word that holds one integer is `hash(text around it) + multiple * UNIT`; the multiple holds the integer.
So if only integers change, the digest changes by a small multiple of UNIT, and the multiple shows by how much:

    >>> integer_change(digest_term("Day") + digest_term("124"), digest_term("Day") + digest_term("125"))
    1
    >>> integer_change(digest_term("red"), digest_term("blue")) is None
    True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

_MODULUS: Final = 1 << 64
_UNIT: Final = 0x9E37_79B9_7F4A_7C15
"""Odd, so that it has an inverse modulo 2**64 by which a difference of digests can be divided."""
_INVERSE_UNIT: Final = pow(_UNIT, -1, _MODULUS)

_INTEGER_BITS: Final = 24
"""The low bits of a multiple hold the integer."""
_HASH_BITS: Final = 16
"""The bits above hold a hash of it, so that two integers which change in opposite directions still alter the digest."""
_SMALL_MULTIPLE: Final = 1 << (_INTEGER_BITS + _HASH_BITS + 4)
"""Multiples below this are small. It leaves room for several integers that change at once."""

_INTEGER: Final = re.compile(r"((?:\n[^0-9\n]*+\n)?[^0-9\n]*+)([0-9]{1,6}|[0-9]{1,3}[.,][0-9]{3})([^0-9\n]*+)")
"""A word, or a fact with its property, that holds one integer. Link targets, and facts of a thing that has a name, do
not match: their integers identify things."""


def digest_term(item: str) -> int:
    """What a word, a target or a fact adds to a digest."""
    match = _INTEGER.fullmatch(item)
    if match is None:
        return _hash8(item)
    before, digits, after = match.groups()
    multiple = int(digits.replace(",", "").replace(".", "")) + (_hash(digits, 2) << _INTEGER_BITS)
    return (_hash8(f"{before}\0{after}") + multiple * _UNIT) % _MODULUS


def wrapped_terms(word: str, wraps: Sequence[tuple[str, str]]) -> list[int]:
    """The digest terms of one word in different punctuation: `digest_term(before + word + after)` of each.

    Args:
        word: without whitespace.
        wraps: pairs of a prefix and a suffix, without digits and line breaks.
    """
    # Punctuation holds no integer, so either all of them hold one or none does.
    term = _hash8 if _INTEGER.fullmatch(word) is None else digest_term
    return [term(before + word + after) for before, after in wraps]


def integer_change(before: int, after: int) -> int | None:
    """The sum of the changes of a content's integers; None if anything else changed."""
    multiple = (after - before) * _INVERSE_UNIT % _MODULUS
    if multiple >= _MODULUS // 2:
        multiple -= _MODULUS
    if not -_SMALL_MULTIPLE < multiple < _SMALL_MULTIPLE:
        return None
    half = 1 << (_INTEGER_BITS - 1)
    return (multiple + half) % (1 << _INTEGER_BITS) - half


def _hash(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest(), "big")


_copy_empty_hash8: Final = blake2b(digest_size=8).copy
"""A copy of an empty hash takes less time than a new one."""


def _hash8(text: str) -> int:
    hashed = _copy_empty_hash8()
    hashed.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest(), "big")
