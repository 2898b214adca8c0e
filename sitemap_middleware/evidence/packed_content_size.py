"""Packs the size of a content into 16 bits: how many words, and how many link targets and facts, it has.

A page that repeats the slug of its path instead of another page's has as many other items, and as many words but for
those of its slug. So two sizes show at once that two pages differ by more than their slugs.

A size has 16 bits: ten of the words, six of the other items. Larger numbers wrap around.
"""

from __future__ import annotations

from typing import Final

_OTHER_BITS: Final = 6
_OTHERS: Final = 1 << _OTHER_BITS
_WORDS: Final = 1 << 10
_DIGEST_BITS: Final = 15
"""The bits of a digest by which it is recognised."""
_DIGEST_MASK: Final = (1 << _DIGEST_BITS) - 1
_OTHERS_MASK: Final = (_OTHERS - 1) << _DIGEST_BITS


def content_size(words: int, others: int) -> int:
    """The size of a content with so many words and other items."""
    return words % _WORDS << _OTHER_BITS | others % _OTHERS


def content_mark(digest: int, size: int) -> int:
    """The size of the content with this digest, and the low bits of the digest, in 31 bits. 0 stands for no mark."""
    return size << _DIGEST_BITS | digest % (1 << _DIGEST_BITS)


def size_by_mark(mark: int, digest: int) -> int | None:
    """The size of the content with this digest; None if the mark is that of another content."""
    return mark >> _DIGEST_BITS if mark and (mark ^ digest) % (1 << _DIGEST_BITS) == 0 else None


def has_as_many_others(size: int, other: int) -> bool:
    """Whether two contents may have the same number of items that are not words."""
    return (size ^ other) % _OTHERS == 0


def do_marks_differ(mark: int, digest: int, other_mark: int, other_digest: int) -> bool:
    """Whether two contents with these marks and digests have known sizes, but not `has_as_many_others`."""
    return (
        (mark ^ other_mark) & _OTHERS_MASK != 0
        and mark != 0 != other_mark
        and ((mark ^ digest) | (other_mark ^ other_digest)) & _DIGEST_MASK == 0
    )


def more_words(size: int, other: int) -> int:
    """How many words the first content has more than the second, modulo `_WORDS`."""
    return ((size >> _OTHER_BITS) - (other >> _OTHER_BITS)) % _WORDS


def may_be_more_words(found: int, expected: int) -> bool:
    """Whether a result of `more_words` stands for a difference."""
    return (found - expected) % _WORDS == 0
