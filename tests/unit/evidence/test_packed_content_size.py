"""A content's size tells it from contents that differ by more than a slug, and belongs to one digest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.packed_content_size import (
    content_mark,
    content_size,
    do_marks_differ,
    has_as_many_others,
    may_be_more_words,
    more_words,
    size_by_mark,
)

COUNTS = st.integers(0, 10_000)
DIGESTS = st.integers(-(2**63), 2**63 - 1)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_sizes_tell_how_two_contents_differ(words: int, others: int, more: int, more_others: int) -> None:
    size, larger = content_size(words, others), content_size(words + more, others + more_others)
    assert may_be_more_words(more_words(larger, size), more)
    assert may_be_more_words(more_words(size, larger), -more)
    assert may_be_more_words(more_words(larger, size), more + 1) is False
    assert has_as_many_others(larger, size) is (more_others % 64 == 0)


@given(DIGESTS, DIGESTS, COUNTS, COUNTS)
def test_a_mark_gives_the_size_of_its_own_content(digest: int, other: int, words: int, others: int) -> None:
    size = content_size(words, others)
    mark = content_mark(digest, size)
    assert 0 <= mark < 2**31
    assert size_by_mark(mark, digest) == (size if mark else None)
    assert size_by_mark(mark, other) in ({size, None} if (digest - other) % 2**15 == 0 else {None})


@given(DIGESTS, DIGESTS, COUNTS, COUNTS, COUNTS, st.sampled_from([0, 64, 1, 5]))
def test_marks_differ_if_the_known_sizes_do_in_other_items(
    digest: int, other: int, words: int, more: int, others: int, more_others: int
) -> None:
    size, larger = content_size(words, others), content_size(words + more, others + more_others)
    mark, larger_mark = content_mark(digest, size), content_mark(other, larger)
    are_known = mark != 0 and larger_mark != 0
    assert do_marks_differ(mark, digest, larger_mark, other) is (are_known and more_others % 64 != 0)
    for unknown in (0, mark ^ 1, mark ^ 1 << 14):  # none, and those of other contents
        assert do_marks_differ(unknown, digest, larger_mark, other) is False
        assert do_marks_differ(larger_mark, other, unknown, digest) is False
