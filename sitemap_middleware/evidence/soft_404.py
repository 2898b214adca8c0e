"""Soft 404s: learned pages of one route that are equal, or that differ only by words of their own path. A route that
answers 200 to any path shows no page for these paths: "Nothing is tagged foo", "Nothing is tagged bar". Of equal
pages only one is listed: one that pages link to, else the first one known. So nobody can delist a page by requesting
others, nor take its place by requesting another spelling of it first.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from ..models import Page
from .value_history import VOLATILE

MIN_EQUAL_PAGES: Final = 5
"""If a route has this many pages that are equal but for their own paths, only the first is listed. Fewer may be equal
by chance."""

EqualityKey = tuple[int, str, int, str]
"""What equal pages have in common: how many of them show that they are no pages of their own, the route, the content,
and what their paths have in common."""

Rank = tuple[bool, bool, int, int, str]
"""The order of equal pages: whether its trailing slash differs from its route's, whether no page links to it, when the
page was first seen, the number of capital letters in its path, and the path."""


def equal_groups(pages: Iterable[Page]) -> dict[EqualityKey, list[Page]]:
    """Those of some pages that are equal, by what they have in common."""
    groups: defaultdict[EqualityKey, list[Page]] = defaultdict(list)
    for page in pages:
        for key in equality_keys(page):
            groups[key].append(page)
    return {key: group for key, group in groups.items() if len(group) >= key[0]}


def find_equal_pages(
    groups: Iterable[Iterable[Page]], is_linked: Callable[[Page], bool] = lambda _: False
) -> dict[str, str]:
    """The soft 404s of some groups of equal pages, by path: the path of the page that is listed instead."""
    instead: dict[str, Rank] = {}
    for group in groups:
        first, *others = sorted(_rank(page, is_linked) for page in group)
        instead |= {rank[-1]: min(first, instead.get(rank[-1], first)) for rank in others}
    return {path: first[-1] for path, first in instead.items()}


def equality_keys(page: Page) -> Iterator[EqualityKey]:
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
    # Of "7-how-to" and "how-to-7" many apps read the number alone.
    folder, _, last = unquote(page.path.rstrip("/")).rpartition("/")
    if numbers := re.findall("[0-9]+", last):
        yield 2, page.route, content, f"{folder}#{'#'.join(numbers)}"


def _rank(page: Page, is_linked: Callable[[Page], bool]) -> Rank:
    has_other_slash = page.path.endswith("/") != page.route.endswith("/")
    return has_other_slash, not is_linked(page), page.first_seen, sum(map(str.isupper, unquote(page.path))), page.path


def _plain_path(path: str) -> str:
    """A decoded path without what different spellings of one path differ in: case, punctuation, zeros, last slash."""
    text = re.sub(r"(?<![0-9.])0+(?=[0-9])|(?<=\.[0-9])0+(?![0-9])", "", unquote(path.rstrip("/")))
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[^\w/]|_", "", text)
