"""The terms of a content's digest: values that stores keep, and what a difference of two digests shows."""

from __future__ import annotations

from sitemap_middleware.evidence.hashes_summed_to_digest import digest_term, integer_change


def test_terms_keep_their_values() -> None:
    assert [digest_term(item) for item in ("bread", "Day", "124")] == [
        0x67582BC9A3DF7629,
        0xA3AD01611306393A,
        0x01B918BE4CFE9C74,
    ]


def test_text_that_utf_8_cannot_encode_has_a_term() -> None:
    assert digest_term("\ud800") != digest_term("\ud801")


def test_sum_of_changes_may_be_larger_than_each_integer() -> None:
    places = ["loaves", "rolls", "buns", "pies", "tarts"]
    before, after = (sum(digest_term(f"{place}{count}") for place in places) for count in (0, 999_999))
    assert integer_change(before, after) == 5 * 999_999
    assert integer_change(after, before) == -5 * 999_999
