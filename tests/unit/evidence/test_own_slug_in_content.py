"""The forms in which two pages repeat their slugs are found from the difference of their digests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.own_slug_in_content import (
    LearnedContent,
    forms_of_pair,
    slug_of,
    slug_term,
    slug_terms,
    without_slug,
)

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


@given(
    st.lists(st.integers(0, FORM_COUNT - 1), min_size=1, max_size=3)
    | st.tuples(
        st.integers(0, 8), st.integers(0, 4), st.lists(st.integers(0, FORM_COUNT - 1), min_size=2, max_size=2)
    ).map(lambda found: [0] * found[0] + [FORM_COUNT - 4] * found[1] + found[2])
)
def test_forms_of_two_pages_leave_equal_contents(forms: list[int]) -> None:
    one, other = repeating("first-Tag", forms), repeating("another_one", forms)
    found = forms_of_pair(one, other)
    assert found is not None
    assert without_slug(one, found) == without_slug(other, found)


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
