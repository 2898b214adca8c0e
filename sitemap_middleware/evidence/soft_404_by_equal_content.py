"""Finds soft 404s: learned pages of one route that are equal, or that differ only by words of their own path.

A route that answers 200 to any path shows no page for these paths: "Nothing is tagged foo", "Nothing is tagged bar". Of
equal pages only the first one known is listed, so that nobody can delist a page by requesting others.

A digest is a sum over words and link targets (see `content_digest`), so what a page repeats of its path can be
subtracted if its form is known: "foo", "Foo" or "#foo"? Two pages show the forms: those whose terms differ as the two
digests do.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from ..models import Page
from ..value_history import VOLATILE
from .own_slug_in_content import Forms, LearnedContent, Rank, forms_of_pair, without_slug
from .word_and_link_counts import size_by_mark

MIN_EQUAL_PAGES: Final = 5
"""If a route has this many equal learned pages, only the first is listed. Fewer may be equal by chance."""

MAX_COMPARED_PAIRS: Final = 32
"""Pairs of pages compared, in all routes together, to find the forms in which pages repeat their paths."""

MAX_COMPARED_ROUTES: Final = 16
"""Routes whose pages are compared: those with the most pages."""

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])")

Key = TypeVar("Key", bound=Hashable)

_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class

_RANK: Final = attrgetter("rank")


class SoftNotFounds(NamedTuple):
    """What equal pages have in common, and the rank of the first of them, which is not a soft 404."""

    contents: Mapping[tuple[str, int], Rank] = {}
    """By route and content."""
    normalized_paths: Mapping[tuple[str, str, int], Rank] = {}
    """By route, normalized path, and content."""
    slug_forms: Mapping[str, tuple[Forms, ...]] = {}
    """By route, the combinations of forms in which its pages repeat their paths."""
    remainders: Mapping[tuple[str, int, int], Rank] = {}
    """By route, index in `slug_forms`, and the content without the terms of these forms."""

    def __bool__(self) -> bool:
        """Whether any page is a soft 404."""
        return bool(self.contents or self.normalized_paths or self.remainders)

    def first_equal_page(self, page: Page) -> str | None:
        """The path of the page that is listed instead of this one; None if this page is not a soft 404."""
        learned = learned_content(page) if self else None
        if learned is None:
            return None
        ranks = [self.contents.get((learned.route, learned.content))]
        ranks.append(self.normalized_paths.get((learned.route, normalize_path(learned.path), learned.content)))
        slug_forms = self.slug_forms.get(learned.route, ())
        ranks += [
            self.remainders.get((learned.route, place, without_slug(learned, forms) or 0))
            for place, forms in enumerate(slug_forms)
        ]
        earlier = [rank for rank in ranks if rank is not None and rank < learned.rank]
        return min(earlier)[-1] if earlier else None

    def as_tuple(self) -> object:
        """The contents in a fixed order; equal tuples mean equal results."""
        return [
            sorted(items)
            for items in (
                self.contents.items(),
                self.normalized_paths.items(),
                self.slug_forms.items(),
                self.remainders.items(),
            )
        ]


NO_SOFT_NOT_FOUNDS: Final = SoftNotFounds()


class LearnedContents:
    """Collects the learned pages of a site, and finds the soft 404s among them."""

    def __init__(self) -> None:
        self._contents: defaultdict[str, list[LearnedContent]] = defaultdict(list)

    def add(self, page: Page) -> None:
        """Add a page if it may be listed."""
        learned = learned_content(page)
        if learned is not None:
            self._contents[learned.route].append(learned)

    def soft_not_founds(self, *, alike: bool = True) -> SoftNotFounds:
        """Find the soft 404s.

        Args:
            alike: whether two equal pages are enough if their paths differ only by case or leading zeros.
        """
        contents: dict[tuple[str, int], Rank] = {}
        normalized_paths: dict[tuple[str, str, int], Rank] = {}
        slug_forms: dict[str, tuple[Forms, ...]] = {}
        remainders: dict[tuple[str, int, int], Rank] = {}
        compared_routes: list[str] = []
        for route, pages in self._contents.items():
            has_equal = len({learned.content for learned in pages}) < len(pages)
            if has_equal and alike:
                normalized_paths.update(
                    _first_of_each(
                        [((route, normalize_path(learned.path), learned.content), learned) for learned in pages], 2
                    )
                )
            if len(pages) >= MIN_EQUAL_PAGES:
                if has_equal:
                    contents.update(
                        _first_of_each([((route, learned.content), learned) for learned in pages], MIN_EQUAL_PAGES)
                    )
                compared_routes.append(route)
        compared_routes = sorted(compared_routes, key=lambda route: (-len(self._contents[route]), route))[
            :MAX_COMPARED_ROUTES
        ]
        for route in compared_routes:
            pages, route_forms = self._contents[route], list[Forms]()
            for forms in _common_forms(pages, MAX_COMPARED_PAIRS // len(compared_routes)):
                rest = [(without_slug(learned, forms), learned) for learned in pages]
                found = _first_of_each(
                    [
                        ((route, len(route_forms), remainder), learned)
                        for remainder, learned in rest
                        if remainder is not None
                    ],
                    MIN_EQUAL_PAGES,
                )
                if found:
                    remainders.update(found)
                    route_forms.append(forms)
            if route_forms:
                slug_forms[route] = tuple(route_forms)
        return SoftNotFounds(contents, normalized_paths, slug_forms, remainders)


def learned_content(page: Page) -> LearnedContent | None:
    """What is compared of a page; None if it was not learned, may not be listed, or has no stable content.

    Its content is the latest that was seen twice, or else the latest.
    """
    if not page.learned or page.status != 200 or page.noindex or page.html_noindex:
        return None
    if not page.content_history:
        return None
    content, first, last = page.content_history[-1]
    if content == VOLATILE or first == last:
        runs = [run for run in page.content_history if run.value != VOLATILE]
        if not runs:
            return None
        content = next((run.value for run in reversed(runs) if run.was_repeated), runs[-1].value)
    path, route = page.path, page.route
    decoded = unquote(path) if "%" in path else path
    has_zeros = ("int:" in route or ":int" in route) and _LEADING_ZEROS.search(decoded) is not None
    capitals = 0 if decoded.islower() else sum(map(str.isupper, decoded))
    size = size_by_mark(page.content_mark, content)
    return _make(LearnedContent, (route, path, content, (has_zeros, page.first_seen, capitals, path), size))


def normalize_path(path: str) -> str:
    """A decoded path in lower case, its numbers without leading zeros."""
    return _LEADING_ZEROS.sub("", unquote(path).casefold())


def _first_of_each(keyed: Sequence[tuple[Key, LearnedContent]], min_pages: int) -> dict[Key, Rank]:
    """The rank of the first page of each key that `min_pages` pages or more have."""
    counted = Counter([key for key, _ in keyed])
    found: dict[Key, Rank] = {}
    for key, learned in keyed:
        if counted[key] >= min_pages:
            found[key] = min(learned.rank, found.get(key, learned.rank))
    return found


def _common_forms(pages: Sequence[LearnedContent], max_pairs: int) -> list[Forms]:
    """The forms by which two consecutive pages differ, in the order in which the pages were first seen."""
    ordered = sorted(pages, key=_RANK)
    step = max(1, len(ordered) // max_pairs)
    found: dict[Forms, None] = {}
    for one, other in zip(ordered[:-1:step], ordered[1::step], strict=True):
        forms = forms_of_pair(one, other)
        if forms is not None:
            found[forms] = None
    return list(found)
