"""The forms in which two pages repeat their slugs are found from the difference of their digests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.own_slug_in_content import (
    _QUOTE_FORMS,
    LearnedContent,
    _spelled,
    forms_of_pair,
    slug_of,
    slug_term,
    slug_terms,
    without_slug,
)
from sitemap_middleware.evidence.packed_content_size import content_mark, content_size

SLUGS = [
    "foo",
    "foo-bar",
    "a_b+c",
    " x y ",
    "Foo Bar-baz",
    "12-monkeys",
    "ü-ß",
    "%20a%20",
    "-",
    " - ",
    "İx-y",
    "a" * 300,
]
FORM_COUNT = len(slug_terms(LearnedContent("/<slug>", "/a", 0, (False, 0, 0, "/a"))))


FORMS = st.lists(st.integers(0, FORM_COUNT - 1), min_size=1, max_size=3) | st.tuples(
    st.integers(0, 8), st.integers(0, 4), st.lists(st.integers(0, FORM_COUNT - 1), min_size=2, max_size=2)
).map(lambda found: [0] * found[0] + [FORM_COUNT - 4] * found[1] + found[2])


def learned(slug: str, content: int = 0) -> LearnedContent:
    return LearnedContent("/tags/<slug>", f"/tags/{slug}", content, (False, 0, 0, slug))


def repeating(slug: str, forms: list[int]) -> LearnedContent:
    """A page whose content is the same as that of others, but for its slug in these forms."""
    terms = slug_terms(learned(slug))
    return learned(slug, (12345 + sum(terms[form] for form in forms)) % 2**64)


@given(st.sampled_from(SLUGS) | st.text("aZ9-_+ é.", max_size=12))
def test_the_terms_are_those_of_each_form_alone(slug: str) -> None:
    page = learned(slug)
    assert slug_terms(page) == [slug_term(page, slug_of(page), place) for place in range(FORM_COUNT)]


@pytest.mark.parametrize("slug", SLUGS)
def test_the_terms_of_unusual_slugs_are_those_of_each_form_alone(slug: str) -> None:
    page = learned(slug)
    assert slug_terms(page) == [slug_term(page, slug_of(page), place) for place in range(FORM_COUNT)]


@given(FORMS)
def test_forms_of_two_pages_leave_equal_contents(forms: list[int]) -> None:
    one, other = repeating("first-Tag", forms), repeating("another_one", forms)
    found = forms_of_pair(one, other)
    assert found is not None
    assert without_slug(one, found) == without_slug(other, found)


@given(
    st.sampled_from(SLUGS) | st.text("aZ9-_+ é.", max_size=12),
    st.sampled_from(SLUGS) | st.text("aZ9-_+ é.", max_size=12),
    FORMS,
    st.integers(0, 2000),
    st.integers(0, 100),
)
def test_no_forms_are_missed_because_of_the_sizes(
    slug: str, other: str, forms: list[int], words: int, others: int
) -> None:
    pages = [repeating(slug, forms), repeating(other, forms)]
    sized = [page._replace(mark=content_mark(page.content, size_with(page, forms, words, others))) for page in pages]
    assert forms_of_pair(*sized) == forms_of_pair(*pages)


def size_with(page: LearnedContent, forms: list[int], words: int, others: int) -> int:
    """The size of a content with so many words and other items, and the slug in these forms."""
    links = [form for form in forms if form >= FORM_COUNT - 4]
    for form in set(forms) - set(links):
        spelling, quote = divmod(form, len(_QUOTE_FORMS))
        words += len(_QUOTE_FORMS[quote].format(_spelled(slug_of(page), spelling)).split()) * forms.count(form)
    return content_size(words, others + len(links))


@pytest.mark.parametrize(("slug", "other"), [(" x y ", "x"), ("x", " x y "), ("-", "x")])
def test_pages_whose_slugs_begin_or_end_with_blanks_are_compared_whatever_their_sizes(slug: str, other: str) -> None:
    """Punctuation around such a slug would be further words."""
    one, another = repeating(slug, [0]), repeating(other, [0])
    sized = (
        one._replace(mark=content_mark(one.content, content_size(900, 7))),
        another._replace(mark=content_mark(another.content, content_size(300, 7))),
    )
    assert forms_of_pair(*sized) == (0,)


@pytest.mark.parametrize(
    ("words", "others", "may_be"),
    [
        (300, 7, True),
        (301, 7, True),
        (310, 7, True),
        (1324, 7, True),
        (300, 8, False),
        (299, 7, False),
        (311, 7, False),
    ],
)
def test_pages_of_other_sizes_are_not_compared(words: int, others: int, may_be: bool) -> None:
    """Ten forms, each of one word more, are the most that are looked for."""
    one, other = repeating("two-words", [3 * len(_QUOTE_FORMS)]), repeating("one", [3 * len(_QUOTE_FORMS)])
    assert forms_of_pair(one, other) is not None
    sized = (
        one._replace(mark=content_mark(one.content, content_size(words, others))),
        other._replace(mark=content_mark(other.content, content_size(300, 7))),
    )
    assert (forms_of_pair(*sized) is not None) is may_be


@given(st.integers(1, 2**64 - 1))
def test_pages_with_other_contents_have_no_forms(difference: int) -> None:
    assert forms_of_pair(learned("first-tag", difference), learned("another-tag")) is None


def test_equal_pages_repeat_nothing() -> None:
    assert forms_of_pair(learned("first-tag", 5), learned("another-tag", 5)) is None


def test_contents_that_differ_in_some_bits_only_have_no_forms() -> None:
    forms = [1, 30, 60]
    one, other = repeating("first-Tag", forms), repeating("another_one", forms)
    assert forms_of_pair(one, other) is not None
    assert forms_of_pair(one._replace(content=(one.content + 2**40) % 2**64), other) is None
