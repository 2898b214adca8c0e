"""The forms in which pages repeat the slug of their own path: "foo", "Foo", "#foo", or links to themselves.

The forms are found by comparing two pages: the terms of their slugs differ by as much as their digests do. See
`soft_404_by_equal_content`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, product
from operator import add, itemgetter
from typing import Final, NamedTuple
from urllib.parse import unquote

from .hashes_summed_to_digest import digest_term, wrapped_terms
from .packed_content_size import has_as_many_others, may_be_more_words, more_words, size_by_mark

_MAX_CACHED_PAIRS: Final = 4096
"""Pairs of pages of which it is remembered how they differ."""

_MAX_CACHED_WORDS: Final = 512
"""Words of slugs whose terms are cached: many slugs of a site begin or end with the same words."""

MAX_SEGMENT_CHARS: Final = 256
"""Characters of a path's slug that are used."""

MAX_REPEATS: Final = 8
"""How often a page may repeat one plain spelling of its slug."""

MAX_LINKS: Final = 4
"""How many links to itself such a page may have."""

_MAX_WORD_FORMS: Final = MAX_REPEATS + 2
"""How many forms that are words are tried together, at most."""

_QUOTE_FORMS: Final = (
    "{}", '"{}"', "'{}'", "“{}”", "‘{}’", "«{}»", "„{}“", "({})", "({}", "{})", "[{}]", "#{}", "@{}",
    "{}:", "{}.", "{},", "{};", "{}!", "{}?", "{}…", '"{}":', '"{}".', "“{}”:", "“{}”.", "'{}':", "'{}'.", "‘{}’.",
)  # fmt: skip
"""Punctuation around the slug."""
_QUOTES: Final = tuple((before, after) for before, _, after in (form.partition("{}") for form in _QUOTE_FORMS))
_OPENINGS: Final = tuple(dict.fromkeys((before, "") for before, _ in _QUOTES))
_CLOSINGS: Final = tuple(dict.fromkeys(("", after) for _, after in _QUOTES))
_OPENING_OF_QUOTE: Final = itemgetter(*(_OPENINGS.index((before, "")) for before, _ in _QUOTES))
_CLOSING_OF_QUOTE: Final = itemgetter(*(_CLOSINGS.index(("", after)) for _, after in _QUOTES))

_SPELLINGS: Final = (str, str.title, str.upper, str, str.capitalize, str.title)
"""Spellings of the slug: three as it is, then three with spaces instead of hyphens, underscores and plus signs."""

_FORM_COUNT: Final = len(_SPELLINGS) * len(_QUOTE_FORMS)
_LINK_FORMS: Final = 4
"""Link targets that contain the slug; see `slug_term`."""

_REPEATS: Final = tuple(
    sorted(product(range(MAX_REPEATS + 1), range(MAX_LINKS + 1)), key=lambda repeats: (sum(repeats), repeats))
)[1:]
"""How often a page may repeat a plain spelling and a link to itself, the fewest first."""

_SEPARATORS_TO_SPACES: Final = str.maketrans("-_+", "   ")
_MODULUS: Final = 1 << 64
_LOW_BITS: Final = (1 << 29) - 1
"""Sums of two numbers of so many bits are quick to make and to look up."""

Forms = tuple[int, ...]
"""The forms in which a page repeats its slug, as positions in the result of `slug_terms`."""

Rank = tuple[bool, int, int, str]
"""The order of equal pages: whether the path has leading zeros that the router would not build, when the page was first
seen, the number of capital letters in its path, and the path."""


class LearnedContent(NamedTuple):
    """What is compared of a learned page."""

    route: str
    path: str
    content: int
    rank: Rank
    mark: int = 0
    """The mark of the content that was last read (see `packed_content_size`); 0 if it is unknown."""

    @property
    def size(self) -> int | None:
        """The size of this content; None if it is unknown."""
        return size_by_mark(self.mark, self.content)


def slug_of(learned: LearnedContent) -> str:
    """The last parameter in a page's path, decoded."""
    parts, template_parts = learned.path.strip("/").split("/"), learned.route.strip("/").split("/")
    if len(parts) == len(template_parts):
        parts = [
            part for part, other in zip(parts, template_parts, strict=True) if any(mark in other for mark in "<{*")
        ] or parts
    return unquote(parts[-1])[:MAX_SEGMENT_CHARS]


def slug_term(learned: LearnedContent, value: str, place: int) -> int:
    """The digest term of one form in which a page may repeat its slug.

    The last four are link targets: two lead to the page itself, two to a host or relative path named like the slug.
    """
    if place >= _FORM_COUNT:
        return digest_term("\n" + (learned.path, unquote(learned.path), value, f"{value}/")[place - _FORM_COUNT])
    spelling, wrap = divmod(place, len(_QUOTE_FORMS))
    return sum(map(digest_term, _QUOTE_FORMS[wrap].format(_spelled(value, spelling)).split()))


def _spelled(value: str, spelling: int) -> str:
    text = value if spelling < len(_SPELLINGS) // 2 else " ".join(value.translate(_SEPARATORS_TO_SPACES).split())
    return _SPELLINGS[spelling](text)


def slug_terms(learned: LearnedContent) -> list[int]:
    """The digest terms of all forms."""
    value, terms = slug_of(learned), list[int]()
    for spelling in range(len(_SPELLINGS)):
        text = _spelled(value, spelling)
        words = text.split()
        if words == [text]:
            terms += wrapped_terms(text, _QUOTES)
            continue
        if len(words) < 2 or text != text.strip():
            start = spelling * len(_QUOTE_FORMS)
            terms += [slug_term(learned, value, start + wrap) for wrap in range(len(_QUOTE_FORMS))]
            continue
        # Punctuation changes the first and the last word only.
        first, *between, last = words
        middle = sum([digest_term(word) for word in between])
        opened = [term + middle for term in _first_word_terms(first)]
        terms += map(add, _OPENING_OF_QUOTE(opened), _CLOSING_OF_QUOTE(_last_word_terms(last)))
    return terms + [slug_term(learned, value, _FORM_COUNT + link) for link in range(_LINK_FORMS)]


@lru_cache(_MAX_CACHED_WORDS)
def _first_word_terms(word: str) -> list[int]:
    return wrapped_terms(word, _OPENINGS)


@lru_cache(_MAX_CACHED_WORDS)
def _last_word_terms(word: str) -> list[int]:
    return wrapped_terms(word, _CLOSINGS)


def without_slug(learned: LearnedContent, forms: Forms) -> int | None:
    """A page's content without the terms of its slug in these forms.

    None if nothing is left, because then pages have nothing in common. None for a slug without letters: numbers
    identify records, and the pages of two records may differ in little else.
    """
    value = slug_of(learned)
    if not any(map(str.isalpha, value)):
        return None
    repeated = sum([slug_term(learned, value, place) * forms.count(place) for place in set(forms)])
    return (learned.content - repeated) % _MODULUS or None


@lru_cache(_MAX_CACHED_PAIRS)
def forms_of_pair(one: LearnedContent, other: LearnedContent) -> Forms | None:
    """The forms by which two pages differ. If a page of a block changes, most pairs of the block stay the same."""
    difference = (one.content - other.content) % _MODULUS
    if not difference or not _may_differ_by_slug(one, other):
        return None
    return _differing_forms(difference, slug_terms(one), slug_terms(other))


def _may_differ_by_slug(one: LearnedContent, other: LearnedContent) -> bool:
    """Whether the sizes of two contents allow that the pages differ by their own slugs only."""
    size, other_size = one.size, other.size
    if size is None or other_size is None:
        return True
    if not has_as_many_others(size, other_size):
        return False
    words, others = _word_counts(slug_of(one)), _word_counts(slug_of(other))
    if words is None or others is None:
        return True
    found, as_is, spaced = more_words(size, other_size), words[0] - others[0], words[1] - others[1]
    return any(
        may_be_more_words(found, as_is * many + spaced * more)
        for many in range(_MAX_WORD_FORMS + 1)
        for more in range(_MAX_WORD_FORMS + 1 - many)
    )


def _word_counts(value: str) -> tuple[int, int] | None:
    """The words of a slug as it is, and with spaces; None if punctuation around it would be further words."""
    as_is, spaced = len(value.split()), len(value.translate(_SEPARATORS_TO_SPACES).split())
    return (as_is, spaced) if spaced and value == value.strip() else None


def _differing_forms(difference: int, forms: Sequence[int], others: Sequence[int]) -> Forms | None:
    """The forms whose terms add up to the difference of two digests, or None.

    Tried are up to three forms, or up to two besides repeated plain spellings and links to the page itself: a heading,
    a breadcrumb and a sentence may repeat the same words.

    Args:
        difference: of the digests, modulo 2**64.
        forms: the terms of the first page's slug.
        others: the terms of the second page's slug.
    """
    changes = [(form - other) % _MODULUS for form, other in zip(forms, others, strict=True)]
    places = {change: place for place, change in reversed(list(enumerate(changes)))}
    if difference in places:
        return (places[difference],)
    used = sorted(places.values())
    for place in used:
        if (rest := (difference - changes[place]) % _MODULUS) in places:
            return tuple(sorted((place, places[rest])))
    spellings = {places[changes[place]] for place in range(0, _FORM_COUNT, len(_QUOTE_FORMS))}
    if not _may_differ_by_more(difference, changes, used, spellings):
        return None
    pairs = {
        (changes[place] + changes[again]) % _MODULUS: (place, again)
        for place, again in combinations_with_replacement(used, 2)
    }
    for place in used:
        if (rest := (difference - changes[place]) % _MODULUS) in pairs:
            return tuple(sorted((place, *pairs[rest])))
    for spelling in spellings:
        for repeats in _REPEATS:
            base = [spelling] * repeats[0] + [_FORM_COUNT] * repeats[1]
            rest = (difference - sum([changes[place] for place in base])) % _MODULUS
            if rest in pairs:  # the shorter sums were tried with fewer repeats
                return tuple(sorted((*base, *pairs[rest])))
    return None


def _may_differ_by_more(
    difference: int, changes: Sequence[int], used: Sequence[int], spellings: Collection[int]
) -> bool:
    """Whether more than two forms may add up to a difference: a quick look at some bits, which excludes most pages.

    Args:
        difference: of the digests, modulo 2**64.
        changes: by how much each form differs.
        used: the forms whose changes differ from each other.
        spellings: the plain forms that may be repeated.
    """
    link = changes[_FORM_COUNT]
    rest = [difference - changes[place] for place in used]
    rest += [difference - changes[place] * plain - link * links for place in spellings for plain, links in _REPEATS]
    wanted = {number & _LOW_BITS for number in rest}
    wanted |= {number + _LOW_BITS + 1 for number in wanted}  # the sum of two of these numbers may have one bit more
    low = [changes[place] & _LOW_BITS for place in used]
    return not all(wanted.isdisjoint([number + other for other in low[place:]]) for place, number in enumerate(low))
