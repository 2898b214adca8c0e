"""Digests the content of a page: what a reader sees, and the facts that the page states for machines.

The digest is a sum over the page's words, link targets and facts. So the same words put in or taken out change the
digests of all pages by the same difference, which shows that a change is a template's (see `template_changes`):

    digest("Hello, old footer") - digest("Hello, new footer") == digest("Bye, old footer") - digest("Bye, new footer")
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import compress
from operator import itemgetter, mul
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from .digest_cost_limit import BudgetExceeded, WorkBudget
from .hashes_summed_to_digest import digest_term
from .json_ld import content_facts
from .packed_content_size import content_mark, content_size
from .relative_time import TEXT_SEPARATOR, may_be_age, without_ages, without_short_ages

MAX_CACHED_WORDS: Final = 8192
"""Words whose terms are cached."""
MAX_CACHED_WORD_CHARS: Final = 32
"""Longer words are not cached, to bound the cache in bytes."""

# Estimated microseconds: for a word, a word that occurs for the first time, a link or image, any other element.
_WORD_COST: Final = 0.25
_NEW_WORD_COST: Final = 2.0
_TARGET_COST: Final = 4.0
_NODE_COST: Final = 5.0

_HIDDEN_ELEMENTS: Final = (
    "script, style, noscript, template, nav, header, footer, aside, iframe, svg, input[type=hidden], [hidden],"
    " [role=navigation], [role=banner], [role=contentinfo], time"
)
"""Elements that a reader does not see, or that belong to the site rather than to the page."""
_MOMENT_TITLE: Final = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
"""A `title` that holds a datetime: the element shows how long ago that is, such as "now" or "a second ago"."""
_MAX_AGE_NODES: Final = 16
"""Nodes in an element that shows an age. A larger element with such a title is content."""
_TERM: Final = itemgetter(0)
_MAY_BE_AGE: Final = itemgetter(1)


class ContentDigest(NamedTuple):
    """What is kept of a content."""

    digest: int
    """A signed 64-bit number."""
    mark: int
    """What `packed_content_size.content_mark` makes of the content: its size, tied to its digest."""


def content_digest(tree: LexborHTMLParser, data: Iterable[Any]) -> ContentDigest | None:
    """The digest of a page; None if it would exceed the `WorkBudget`.

    There is no digest of a part, because it would change with what surrounds that part.

    Args:
        tree: a page that has a body. Elements that are not content are removed from it.
        data: the page's JSON-LD.
    """
    try:
        return _content_digest(tree, data, WorkBudget())
    except BudgetExceeded:
        return None


def _content_digest(tree: LexborHTMLParser, data: Iterable[Any], budget: WorkBudget) -> ContentDigest:
    body = tree.body
    assert body is not None
    for node in outermost_nodes(body.css(_HIDDEN_ELEMENTS)):
        node.decompose()
    titled = body.css("[title]")
    budget.spend(len(titled) * _NODE_COST)
    for node in outermost_nodes([node for node in titled if _shows_age(node)]):
        node.decompose()
    roots = outermost_nodes(body.css("main, [role=main]")) or outermost_nodes(body.css("article")) or [body]
    budget.spend(len(roots) * _NODE_COST)
    words: list[str] = []
    other_items = Counter(content_facts(data, budget))
    for root in roots:
        words += without_short_ages(root.text(separator=TEXT_SEPARATOR)).split()
        other_items.update(map("\n".__add__, _link_targets(root, budget)))  # no word begins with a newline
    word_counts = Counter(words)
    budget.spend(len(words) * _WORD_COST + len(word_counts) * _NEW_WORD_COST)
    # All words are looked up by one call, and not one by one: this takes half of the time.
    has_long_words = max(map(len, word_counts), default=0) > MAX_CACHED_WORD_CHARS
    compute_word_term = _word_term if has_long_words else _cached_word_term
    terms = [*map(compute_word_term, word_counts)]
    age_words = frozenset(compress(word_counts, map(_MAY_BE_AGE, terms)))
    if age_words:
        word_counts = Counter(without_ages(words, age_words, budget))
        terms = [*map(compute_word_term, word_counts)]
    total = sum(map(mul, map(_TERM, terms), word_counts.values()))
    total += sum(digest_term(item) * count for item, count in other_items.items())
    digest = (total + 2**63) % 2**64 - 2**63
    size = content_size(sum(word_counts.values()), sum(other_items.values()))
    return ContentDigest(digest, content_mark(digest, size))


def outermost_nodes(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """The nodes that are not inside another one of them.

    Each ancestor is visited once, so that deep nesting does not take quadratic time.

    Args:
        nodes: in document order.
    """
    outermost: list[LexborNode] = []
    is_inside: dict[int, bool] = {}
    for node in nodes:
        unvisited: list[int] = []
        ancestor = node.parent
        while ancestor is not None and ancestor.mem_id not in is_inside:
            unvisited.append(ancestor.mem_id)
            ancestor = ancestor.parent
        inside = ancestor is not None and is_inside[ancestor.mem_id]
        is_inside.update(dict.fromkeys(unvisited, inside))
        is_inside[node.mem_id] = True
        if not inside:
            outermost.append(node)
    return outermost


def _shows_age(node: LexborNode) -> bool:
    """Whether an element has a datetime as its title, and a short text."""
    if _MOMENT_TITLE.match(node.attributes.get("title") or "") is None:
        return False
    chars = 0
    for count, part in enumerate(node.traverse(include_text=True)):
        chars += len(part.text(deep=False)) if part.tag == "-text" else 0
        if chars > MAX_CACHED_WORD_CHARS or count > _MAX_AGE_NODES:
            return False
    return True


def _word_term(word: str) -> tuple[int, bool]:
    """The digest term of a word, and whether the word may be part of an age."""
    return _cached_word_term(word) if len(word) <= MAX_CACHED_WORD_CHARS else _compute_word_term(word)


def _compute_word_term(word: str) -> tuple[int, bool]:
    return digest_term(word), may_be_age(word)


_cached_word_term = lru_cache(MAX_CACHED_WORDS)(_compute_word_term)


def _link_targets(root: LexborNode, budget: WorkBudget) -> Iterator[str]:
    """The targets of links and images, without queries, which hold tokens and the versions of a deployment."""
    nodes = root.css("a[href], img[src]")
    budget.spend(len(nodes) * _TARGET_COST)
    for node in nodes:
        target = node.attributes.get("href") or node.attributes.get("src") or ""
        try:
            parts = urlsplit(target)
        except ValueError:
            continue
        yield f"{parts.netloc}{parts.path}"
