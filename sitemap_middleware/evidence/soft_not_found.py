"""Echoes: learned pages of one route that say the same, or that differ only by the words of their own path.

A route that answers 200 to whatever it is asked for says nothing of these pages. Of equal
pages only the first one known is listed, so that nobody can delist it by asking for others.

A digest is a sum over words and targets (see `html`), so that what a page repeats of its
path can be taken out of it, if one knows in which form the page repeats it. Two pages
show that: the forms are those whose sums differ as the digests of the two pages do.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise, product
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from ..history import VOLATILE
from ..models import Page
from .digest_terms import digest_term

MIN_EQUAL_PAGES: Final = 5
"""Equal learned pages of one route, from which on only the first is listed, however unlike their paths are."""

MAX_COMPARED_PAIRS: Final = 32
"""Pairs of pages, of all routes, that are compared to find how the pages of a route repeat their paths."""

MAX_COMPARED_ROUTES: Final = 16
"""Routes of which pairs are compared: those with the most pages."""

MAX_SEGMENT_CHARS: Final = 256
"""Characters of a path's last part that are looked at."""

MOST_REPEATS: Final = 8
"""Times that a page may repeat one plain spelling of the last part of its path."""

MOST_LINKS: Final = 4
"""Links to itself that such a page may have."""

_QUOTE_FORMS: Final = (
    "{}", '"{}"', "'{}'", "“{}”", "‘{}’", "«{}»", "„{}“", "({})", "({}", "{})", "[{}]", "#{}", "@{}",
    "{}:", "{}.", "{},", "{};", "{}!", "{}?", "{}…", '"{}":', '"{}".', "“{}”:", "“{}”.", "'{}':", "'{}'.", "‘{}’.",
)  # fmt: skip
"""What may stand around a word that a page repeats."""

_SPELLINGS: Final = (str, str.title, str.upper, str, str.capitalize, str.title)
"""Three of the last part of a path as it is, and three of it with spaces for hyphens and the like."""

_FORM_COUNT: Final = len(_SPELLINGS) * len(_QUOTE_FORMS)
_LINKS: Final = 4

_REPEATS: Final = tuple(
    sorted(product(range(MOST_REPEATS + 1), range(MOST_LINKS + 1)), key=lambda repeats: (sum(repeats), repeats))
)[1:]
"""How often a plain spelling and a link to itself may stand on a page, the fewest first."""

_SEPARATORS_TO_SPACES: Final = str.maketrans("-_+", "   ")
_MODULUS: Final = 1 << 64

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])")

Key = TypeVar("Key", bound=Hashable)

Forms = tuple[int, ...]
"""Places in what `_slug_digests` gives."""

Rank = tuple[bool, int, int, str]
"""The order of equal pages: whether the router would not build its path so, when it was seen first, how many
capital letters its path holds, and the path.
"""

_RANK: Final = attrgetter("rank")


class LearnedContent(NamedTuple):
    """What a learned page says, and what it takes to compare it with others."""

    route: str
    path: str
    content: int
    rank: Rank


class SoftNotFounds(NamedTuple):
    """What pages must say to be echoes, and which of those that say it comes first."""

    contents: Mapping[tuple[str, int], Rank] = {}
    """By route and content."""
    normalized_paths: Mapping[tuple[str, str, int], Rank] = {}
    """By route, path in small letters without leading zeros, and content."""
    slug_forms: Mapping[str, tuple[Forms, ...]] = {}
    """By route, in which forms its pages repeat their paths."""
    remainders: Mapping[tuple[str, int, int], Rank] = {}
    """By route, place among its ways, and what is left of the content without these forms."""

    def first_equal_page(self, page: Page) -> str | None:
        """The path of the page that is listed in place of this one; None if this page is no echo of any."""
        said = learned_content(page) if self.contents or self.normalized_paths or self.remainders else None
        if said is None:
            return None
        ranks = [self.contents.get((said.route, said.content))]
        ranks.append(self.normalized_paths.get((said.route, normalize_path(said.path), said.content)))
        ways = self.slug_forms.get(said.route, ())
        ranks += [
            self.remainders.get((said.route, place, _without_slug(said, way) or 0)) for place, way in enumerate(ways)
        ]
        earlier = [rank for rank in ranks if rank is not None and rank < said.rank]
        return min(earlier)[-1] if earlier else None

    def as_tuple(self) -> object:
        """All that this says, in an order that is always the same."""
        return [
            sorted(one)
            for one in (
                self.contents.items(),
                self.normalized_paths.items(),
                self.slug_forms.items(),
                self.remainders.items(),
            )
        ]


NO_SOFT_NOT_FOUNDS: Final = SoftNotFounds()


class LearnedContents:
    """What the learned pages of a site say, by their routes."""

    def __init__(self) -> None:
        self._contents: defaultdict[str, list[LearnedContent]] = defaultdict(list)

    def add(self, page: Page) -> None:
        """Add a page; only those that may be listed count."""
        said = learned_content(page)
        if said is not None:
            self._contents[page.route].append(said)

    def soft_not_founds(self, *, alike: bool = True) -> SoftNotFounds:
        """What makes pages echoes.

        Args:
            alike: whether two pages whose paths are spelled alike are echoes, if they say the same.
        """
        contents: dict[tuple[str, int], Rank] = {}
        spelled: dict[tuple[str, str, int], Rank] = {}
        ways: dict[str, tuple[Forms, ...]] = {}
        rests: dict[tuple[str, int, int], Rank] = {}
        larger: list[str] = []
        for route, every in self._contents.items():
            if len(every) > 1 and alike:
                spelled.update(
                    _first_of_each([((route, normalize_path(said.path), said.content), said) for said in every], 2)
                )
            if len(every) >= MIN_EQUAL_PAGES:
                contents.update(_first_of_each([((route, said.content), said) for said in every], MIN_EQUAL_PAGES))
                larger.append(route)
        larger = sorted(larger, key=lambda route: (-len(self._contents[route]), route))[:MAX_COMPARED_ROUTES]
        for route in larger:
            every, kept = self._contents[route], list[Forms]()
            for way in _common_forms(every, MAX_COMPARED_PAIRS // len(larger)):
                rest = [(_without_slug(said, way), said) for said in every]
                found = _first_of_each(
                    [((route, len(kept), one), said) for one, said in rest if one is not None], MIN_EQUAL_PAGES
                )
                if found:
                    rests.update(found)
                    kept.append(way)
            if kept:
                ways[route] = tuple(kept)
        return SoftNotFounds(contents, spelled, ways, rests)


def learned_content(page: Page) -> LearnedContent | None:
    """What a page says that may be listed; None if it was not learned, or says nothing that lasts.

    That is the last content that was seen twice; if there is none, the last.
    """
    if not page.learned or page.status != 200 or page.noindex or page.html_noindex:
        return None
    runs = [run for run in page.content_history if run.value != VOLATILE]
    if not runs:
        return None
    content = next((run.value for run in reversed(runs) if run.was_repeated), runs[-1].value)
    numbers = "int:" in page.route or ":int" in page.route
    path = unquote(page.path)
    zeros = numbers and _LEADING_ZEROS.search(path) is not None
    return LearnedContent(
        page.route, page.path, content, (zeros, page.first_seen, sum(map(str.isupper, path)), page.path)
    )


def normalize_path(path: str) -> str:
    """A path in small letters, its numbers without leading zeros."""
    return _LEADING_ZEROS.sub("", unquote(path).casefold())


def _first_of_each(keyed: Sequence[tuple[Key, LearnedContent]], least: int) -> dict[Key, Rank]:
    """By key, the first of its pages, of keys that so many pages have at least."""
    counted = Counter([key for key, _ in keyed])
    found: dict[Key, Rank] = {}
    for key, said in keyed:
        if counted[key] >= least:
            found[key] = min(said.rank, found.get(key, said.rank))
    return found


def _slug(said: LearnedContent) -> str:
    """The last parameter of a page's path, decoded."""
    parts, of = said.path.strip("/").split("/"), said.route.strip("/").split("/")
    if len(parts) == len(of):
        parts = [part for part, one in zip(parts, of, strict=True) if any(mark in one for mark in "<{*")] or parts
    return unquote(parts[-1])[:MAX_SEGMENT_CHARS]


def _slug_digest(said: LearnedContent, value: str, place: int) -> int:
    """What one form in which a page may repeat its path adds to its digest; the last ones are links.

    Two of them lead to the page itself, and two to the host or the relative path that its last part names.
    """
    if place >= _FORM_COUNT:
        return digest_term("\n" + (said.path, unquote(said.path), value, f"{value}/")[place - _FORM_COUNT])
    spelling, wrap = divmod(place, len(_QUOTE_FORMS))
    text = value if spelling < len(_SPELLINGS) // 2 else " ".join(value.translate(_SEPARATORS_TO_SPACES).split())
    return sum(map(digest_term, _QUOTE_FORMS[wrap].format(_SPELLINGS[spelling](text)).split()))


def _slug_digests(said: LearnedContent) -> list[int]:
    value = _slug(said)
    return [_slug_digest(said, value, place) for place in range(_FORM_COUNT + _LINKS)]


def _without_slug(said: LearnedContent, way: Forms) -> int | None:
    """What is left of a content without what a page repeats of its path.

    None if nothing is, so that pages have nothing in common; and for numbers, which
    name things that an app counts: pages about two of them may well say little else.
    """
    value = _slug(said)
    if not any(map(str.isalpha, value)):
        return None
    repeated = sum([_slug_digest(said, value, place) * way.count(place) for place in set(way)])
    return (said.content - repeated) % _MODULUS or None


def _common_forms(every: Sequence[LearnedContent], most: int) -> list[Forms]:
    """How pages of a route may repeat their paths: what two neighbours differ by, in the order they were seen first."""
    ordered = sorted(every, key=_RANK)
    step = max(1, len(ordered) // most)
    found: dict[Forms, None] = {}
    for one, other in list(pairwise(ordered))[::step]:
        difference = (one.content - other.content) % _MODULUS
        if difference and (way := _differing_forms(difference, _slug_digests(one), _slug_digests(other))) is not None:
            found[way] = None
    return list(found)


def _differing_forms(difference: int, forms: Sequence[int], others: Sequence[int]) -> Forms | None:
    """The forms by which the digests of two pages differ, if there are such.

    Those are up to three, or up to two besides one plain spelling and the links to itself, of which a page may have
    several: a heading, a trail of links, and a sentence repeat the same words.
    """
    changes = [(form - other) % _MODULUS for form, other in zip(forms, others, strict=True)]
    places = {change: place for place, change in reversed(list(enumerate(changes)))}
    if difference in places:
        return (places[difference],)
    used = sorted(places.values())
    for place in used:
        if (rest := (difference - changes[place]) % _MODULUS) in places:
            return tuple(sorted((place, places[rest])))
    pairs = {
        (changes[place] + changes[again]) % _MODULUS: (place, again)
        for place, again in combinations_with_replacement(used, 2)
    }
    for place in used:
        if (rest := (difference - changes[place]) % _MODULUS) in pairs:
            return tuple(sorted((place, *pairs[rest])))
    for spelling in {places[changes[place]] for place in range(0, _FORM_COUNT, len(_QUOTE_FORMS))}:
        for repeats in _REPEATS:
            base = [spelling] * repeats[0] + [_FORM_COUNT] * repeats[1]
            rest = (difference - sum([changes[place] for place in base])) % _MODULUS
            if rest == 0:
                return tuple(sorted(base))
            if rest in places:
                return tuple(sorted((*base, places[rest])))
            if rest in pairs:
                return tuple(sorted((*base, *pairs[rest])))
    return None
