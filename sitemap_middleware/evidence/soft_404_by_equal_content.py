"""Finds soft 404s: learned pages of one route that are equal, or that differ only by words of their own path.

A route that answers 200 to any path shows no page for these paths: "Nothing is tagged foo", "Nothing is tagged bar". Of
equal pages only the first one known is listed, so that nobody can delist a page by requesting others.

A digest is a sum over words and link targets (see `content_digest`), so what a page repeats of its path can be
subtracted if its form is known: "foo", "Foo" or "#foo"? Two pages show the forms: those whose terms differ as the two
digests do.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

from ..models import Page
from ..value_history import VOLATILE
from .own_slug_in_content import Forms, LearnedContent, Rank, forms_of_pair, without_slug
from .packed_content_size import do_marks_differ

MIN_EQUAL_PAGES: Final = 5
"""If a route has this many equal learned pages, only the first is listed. Fewer may be equal by chance."""

MAX_COMPARED_PAIRS: Final = 32
"""Pairs of pages compared, in all routes together, to find the forms in which pages repeat their paths."""

MAX_COMPARED_ROUTES: Final = 16
"""Routes whose pages are compared: those with the most pages."""

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])")

Key = TypeVar("Key", bound=Hashable)

_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class


class SoftNotFounds(NamedTuple):
    """What equal pages have in common. The rank is that of the first of these pages, which is no soft 404 itself."""

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
        ranks.append(
            self.normalized_paths.get((learned.route, path_without_case_and_zeros(learned.path), learned.content))
        )
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
        self._routes: dict[str, _RouteContents] = {}

    def add(self, page: Page) -> None:
        """Add a page if it may be listed."""
        learned = learned_content(page)
        if learned is not None:
            self._of_route(learned.route).add(learned)

    def _of_route(self, route: str) -> _RouteContents:
        if route not in self._routes:
            self._routes[route] = _RouteContents(route)
        return self._routes[route]

    def soft_not_founds(self, *, alike: bool = True) -> SoftNotFounds:
        """Find the soft 404s.

        Args:
            alike: True if two equal pages suffice to recognise a soft 404 when their paths differ only by case or
                leading zeros.
        """
        contents: dict[tuple[str, int], Rank] = {}
        normalized_paths: dict[tuple[str, str, int], Rank] = {}
        slug_forms: dict[str, tuple[Forms, ...]] = {}
        remainders: dict[tuple[str, int, int], Rank] = {}
        compared_routes: list[str] = []
        for route, pages in self._routes.items():
            if len({*pages.contents}) < len(pages.contents):
                learned_pages = pages.all()
                if alike:
                    normalized_paths.update(
                        _first_of_each(
                            [
                                ((route, path_without_case_and_zeros(learned.path), learned.content), learned)
                                for learned in learned_pages
                            ],
                            2,
                        )
                    )
                contents.update(
                    _first_of_each([((route, learned.content), learned) for learned in learned_pages], MIN_EQUAL_PAGES)
                )
            if len(pages.contents) >= MIN_EQUAL_PAGES:
                compared_routes.append(route)
        compared_routes = sorted(compared_routes, key=lambda route: (-len(self._routes[route].contents), route))[
            :MAX_COMPARED_ROUTES
        ]
        for route in compared_routes:
            pages, route_forms = self._routes[route], list[Forms]()
            for forms in _common_forms(pages, MAX_COMPARED_PAIRS // len(compared_routes)):
                rest = [(without_slug(learned, forms), learned) for learned in pages.all()]
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


class _RouteContents:
    """What is compared of the learned pages of a route, as columns: only few of these pages are compared as objects."""

    def __init__(self, route: str) -> None:
        self._route = route
        self._paths: list[str] = []
        self.contents: list[int] = []
        # The parts of a rank, besides the path.
        self._zeros: list[bool] = []
        self._first_seen = array("q")
        self._capitals: list[int] = []
        self._marks: list[int] = []

    def add(self, learned: LearnedContent) -> None:
        """Add a page."""
        zeros, first_seen, capitals, path = learned.rank
        self._paths.append(path)
        self.contents.append(learned.content)
        self._zeros.append(zeros)
        self._first_seen.append(first_seen)
        self._capitals.append(capitals)
        self._marks.append(learned.mark)

    def __getitem__(self, index: int) -> LearnedContent:
        path = self._paths[index]
        rank = self._zeros[index], self._first_seen[index], self._capitals[index], path
        return LearnedContent(self._route, path, self.contents[index], rank, self._marks[index])

    def differ_in_size(self, index: int, other: int) -> bool:
        """Whether two pages have known sizes that show that they differ by more than their slugs."""
        return do_marks_differ(self._marks[index], self.contents[index], self._marks[other], self.contents[other])

    def all(self) -> list[LearnedContent]:
        """All pages."""
        return [*map(self.__getitem__, range(len(self.contents)))]

    def by_rank(self) -> list[int]:
        """The indexes of the pages, ordered by rank. The sort is stable, so the least significant part comes first."""
        order = [*range(len(self.contents))]
        order.sort(key=self._paths.__getitem__)
        parts: tuple[Sequence[Any], ...] = self._capitals, self._first_seen, self._zeros
        for part in parts:
            if part.count(part[0]) < len(part):
                order.sort(key=part.__getitem__)
        return order


def learned_content(page: Page) -> LearnedContent | None:
    """What is compared of a page; None if it was not learned, may not be listed, or has no stable content.

    Its content is the latest that was seen twice, or else the latest.
    """
    content = _stable_content(page.content_history) if _may_be_compared(page) else None
    if content is None:
        return None
    path, route = page.path, page.route
    decoded = unquote(path) if "%" in path else path
    has_zeros = _takes_integers(route) and _has_leading_zeros(decoded)
    rank = has_zeros, page.first_seen, _count_capitals(decoded), path
    return _make(LearnedContent, (route, path, content, rank, page.content_mark))


def _stable_content(history: Sequence[tuple[int, int, int]]) -> int | None:
    """The latest content that was seen twice, or else the latest; None if there is none but volatile content."""
    content, first, last = history[-1]
    if content != VOLATILE and first != last:
        return content
    runs = [run for run in history if run[0] != VOLATILE]
    repeated = [value for value, first, last in runs if first < last]
    if repeated:
        return repeated[-1]
    return runs[-1][0] if runs else None


def _may_be_compared(page: Page) -> bool:
    """Whether a page was learned, may be listed, and has a content."""
    return (
        page.learned
        and page.status == 200
        and not page.noindex
        and not page.html_noindex
        and len(page.content_history) > 0
    )


def _takes_integers(route: str) -> bool:
    """Whether a parameter of a route is an integer, which may have leading zeros."""
    return "int:" in route or ":int" in route


def _has_leading_zeros(path: str) -> bool:
    return _LEADING_ZEROS.search(path) is not None


def _count_capitals(path: str) -> int:
    return 0 if path.islower() else sum(map(str.isupper, path))


def path_without_case_and_zeros(path: str) -> str:
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


def _common_forms(pages: _RouteContents, max_pairs: int) -> list[Forms]:
    """The forms by which two consecutive pages differ, in the order in which the pages were first seen."""
    ordered = pages.by_rank()
    step = max(1, len(ordered) // max_pairs)
    found: dict[Forms, None] = {}
    for one, other in zip(ordered[:-1:step], ordered[1::step], strict=True):
        if pages.differ_in_size(one, other):  # most pairs, in a fifth of the time
            continue
        forms = forms_of_pair(pages[one], pages[other])
        if forms is not None:
            found[forms] = None
    return list(found)
