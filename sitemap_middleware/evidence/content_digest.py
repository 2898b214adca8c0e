"""Digests of content: one of what a page's reader sees, and of the facts that it states for machines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from .digest_terms import number
from .relative_time import TEXT_SEPARATOR, may_be_age, without_ages, without_short_ages
from .structured_data import content_facts
from .work_budget import BudgetExceeded, WorkBudget

MAX_CACHED_WORDS: Final = 8192
MAX_CACHED_WORD_CHARS: Final = 32
"""Words whose numbers are kept at hand, and how long they may be."""

_WORD_COST: Final = 0.25
_NEW_WORD_COST: Final = 2.0
_TARGET_COST: Final = 4.0
_NODE_COST: Final = 5.0
"""The effort of each word, of each one that is new, of a link or an image, and of any other element."""

_HIDDEN_ELEMENTS: Final = (
    "script, style, noscript, template, nav, header, footer, aside, iframe, svg, input[type=hidden], [hidden],"
    " [role=navigation], [role=banner], [role=contentinfo], time"
)
_MOMENT_TITLE: Final = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
"""A title that names a moment is that of an age: "now", "a second ago"."""
_MAX_AGE_NODES: Final = 16
"""Nodes that an element which shows an age holds at most."""


def content_digest(tree: LexborHTMLParser, data: Iterable[Any]) -> int | None:
    """The sum, in 64 bits, over every word that is shown, every target and every fact, in any order.

    So the same words put in or taken out make the same difference on every page,
    whatever else these say: that is how a template's change is known. None if the page says
    too much to be compared: a digest of a part would change with what is around it.

    Args:
        tree: a page that has a body; it is taken apart.
        data: its JSON-LD.
    """
    try:
        return _content_digest(tree, data, WorkBudget())
    except BudgetExceeded:
        return None


def _content_digest(tree: LexborHTMLParser, data: Iterable[Any], effort: WorkBudget) -> int:
    body = tree.body
    assert body is not None
    for node in outermost_nodes(body.css(_HIDDEN_ELEMENTS)):
        node.decompose()
    titled = body.css("[title]")
    effort.spend(len(titled) * _NODE_COST)
    for node in outermost_nodes([node for node in titled if _shows_age(node)]):
        node.decompose()
    roots = outermost_nodes(body.css("main, [role=main]")) or outermost_nodes(body.css("article")) or [body]
    effort.spend(len(roots) * _NODE_COST)
    words: list[str] = []
    others = Counter(content_facts(data, effort))
    for root in roots:
        words += without_short_ages(root.text(separator=TEXT_SEPARATOR)).split()
        others.update(map("\n".__add__, _link_targets(root, effort)))  # no word begins so
    counted = Counter(words)
    effort.spend(len(words) * _WORD_COST + len(counted) * _NEW_WORD_COST)
    numbers = {word: _word_number(word) for word in counted}
    telling = frozenset(word for word, (_, tells) in numbers.items() if tells)
    if telling:
        counted = Counter(without_ages(words, telling, effort))
    total = sum((numbers.get(word) or _word_number(word))[0] * count for word, count in counted.items())
    total += sum(number(item) * count for item, count in others.items())
    return (total + 2**63) % 2**64 - 2**63


def outermost_nodes(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Those of these nodes, given in the order of the document, that are in no other of them.

    Each ancestor is looked at once, however deeply they nest.
    """
    found: list[LexborNode] = []
    inside: dict[int, bool] = {}
    for node in nodes:
        passed: list[int] = []
        at = node.parent
        while at is not None and at.mem_id not in inside:
            passed.append(at.mem_id)
            at = at.parent
        known = at is not None and inside[at.mem_id]
        inside.update(dict.fromkeys(passed, known))
        inside[node.mem_id] = True
        if not known:
            found.append(node)
    return found


def _shows_age(node: LexborNode) -> bool:
    """Whether an element has a moment for a title, and a short text."""
    if _MOMENT_TITLE.match(node.attributes.get("title") or "") is None:
        return False
    size = 0
    for count, part in enumerate(node.traverse(include_text=True)):
        size += len(part.text(deep=False)) if part.tag == "-text" else 0
        if size > MAX_CACHED_WORD_CHARS or count > _MAX_AGE_NODES:
            return False
    return True


def _word_number(word: str) -> tuple[int, bool]:
    """The number of a word, and whether it may be part of an age."""
    return _common_number(word) if len(word) <= MAX_CACHED_WORD_CHARS else _number_of(word)


def _number_of(word: str) -> tuple[int, bool]:
    return number(word), may_be_age(word)


_common_number = lru_cache(MAX_CACHED_WORDS)(_number_of)


def _link_targets(root: LexborNode, effort: WorkBudget) -> Iterator[str]:
    """Where links and images lead, without queries: tokens and the versions of a deployment stand there."""
    nodes = root.css("a[href], img[src]")
    effort.spend(len(nodes) * _TARGET_COST)
    for node in nodes:
        target = node.attributes.get("href") or node.attributes.get("src") or ""
        try:
            parts = urlsplit(target)
        except ValueError:
            continue
        yield f"{parts.netloc}{parts.path}"
