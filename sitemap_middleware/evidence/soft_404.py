"""Finds soft 404s: learned pages of one route that are equal, or that differ only by words of their own path.

A route that answers 200 to any path shows no page for these paths: "Nothing is tagged foo", "Nothing is tagged bar". Of
equal pages only the first one known is listed, so that nobody can delist a page by requesting others.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from ..models import Page
from .value_history import VOLATILE

MIN_EQUAL_PAGES: Final = 5
"""If a route has this many pages that are equal but for their own paths, only the first is listed. Fewer may be equal
by chance."""

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9.])0+(?=[0-9])")

Key = tuple[int, str, int, str]
"""What equal pages have in common: how many of them show that they are no pages of their own, the route, the content,
and what their paths have in common."""

Rank = tuple[bool, int, int, str]
"""The order of equal pages: whether its trailing slash differs from its route's, when the page was first seen, the
number of capital letters in its path, and the path."""


class SoftNotFounds(NamedTuple):
    """What equal pages have in common, and the first of these pages, which is no soft 404 itself."""

    first_of: Mapping[Key, Rank] = {}

    def first_equal_page(self, page: Page) -> str | None:
        """The path of the page that is listed instead of this one; None if this page is not a soft 404."""
        if not self.first_of:
            return None
        found = [self.first_of[key] for key in _keys(page) if key in self.first_of]
        first = min(found, default=None)
        return first[-1] if first is not None and first < _rank(page) else None


def soft_not_founds(pages: Iterable[Page]) -> SoftNotFounds:
    """The soft 404s among some pages of a site."""
    counts: Counter[Key] = Counter()
    first_of: dict[Key, Rank] = {}
    for page in pages:
        for key in _keys(page):
            counts[key] += 1
            first_of[key] = min(_rank(page), first_of.get(key, _rank(page)))
    return SoftNotFounds({key: first_of[key] for key, count in counts.items() if count >= key[0]})


def _keys(page: Page) -> Iterator[Key]:
    """What a page may have in common with others; nothing if it was not learned or may not be listed."""
    if not page.learned or page.status != 200 or page.refusal or not page.content_history:
        return
    content = page.content_history[-1].value
    if content == VOLATILE:
        return
    if page.without_path:
        yield MIN_EQUAL_PAGES, page.route, page.without_path, ""
    yield 2, page.route, content, _plain_path(page.path)
    if page.route.count("{") + page.route.count("<") > 1 and page.route[-1] in "}>":
        yield 2, page.route, content, f"{page.path.rstrip('/').rpartition('/')[0]}/"


def _rank(page: Page) -> Rank:
    has_other_slash = page.path.endswith("/") != page.route.endswith("/")
    return has_other_slash, page.first_seen, sum(map(str.isupper, unquote(page.path))), page.path


def _plain_path(path: str) -> str:
    """A decoded path without what different spellings of one path differ in: case, punctuation, zeros, last slash."""
    text = unicodedata.normalize("NFKC", _LEADING_ZEROS.sub("", unquote(path.rstrip("/")))).casefold()
    return "".join(char for char in text if char.isalnum() or char == "/")
