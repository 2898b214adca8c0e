"""The digest of a page's content: its value is kept in stores, and what it costs is limited."""

from __future__ import annotations

from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from sitemap_middleware.evidence.content_digest import _content_digest, content_digest, outermost_nodes
from sitemap_middleware.evidence.digest_cost_limit import MAX_COST_MICROSECONDS, BudgetExceeded, WorkBudget
from sitemap_middleware.evidence.packed_content_size import content_size, size_by_mark

Facts = list[dict[str, Any]]
NO_FACTS: Facts = []


def digest(html: str, facts: Facts = NO_FACTS) -> int | None:
    content = content_digest(LexborHTMLParser(html), facts)
    return None if content is None else content.digest


@pytest.mark.parametrize(
    ("html", "facts", "value"),
    [
        ("<main></main>", NO_FACTS, 0),
        ("<main>Tea</main>", NO_FACTS, 8060772111178777548),
        ("<main>Tea for 2</main>", NO_FACTS, -6523341452665962373),
        ('<main><a href="/tea?x#y">Tea</a><img src="//cdn.example/i.png">', NO_FACTS, -7979753489213911360),
        ("<main>Tea, 3 weeks ago</main>", NO_FACTS, 728794403514170722),
        ("<main></main>", [{"@type": "Product", "price": "4.50"}], -5354687871884800541),
        ("<p>Donaudampfschifffahrtsgesellschaftskapit\xe4n", NO_FACTS, -1433434997734614706),
    ],
    ids=["nothing", "a word", "an integer", "targets", "an age", "a fact", "a long word"],
)
def test_digest_is_the_one_that_stores_have_kept(html: str, facts: Facts, value: int) -> None:
    """If this changes, every page that was stored before an upgrade seems to have changed."""
    assert digest(html, facts) == value


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<main>One</main><main>Two</main>", "<main>Eins</main><main>Two</main>"),
        ("<article>One</article><article>Two</article>", "<article>Eins</article><article>Two</article>"),
        ("<main><a href=/x></a></main>", "<main><a href=/x></a><a href=/x></a></main>"),
        ("<main><a href=//a.example/x></a></main>", "<main><a href=//b.example/x></a></main>"),
        ("<main><a href=/x></a></main>", "<main><a href=/y></a></main>"),
        ("<main><img src=/x></main>", "<main><img src=/y></main>"),
        ("<main>x</main>", "<main><a href=x></a></main>"),
    ],
)
def test_every_part_of_the_content_counts_as_often_as_it_occurs(first: str, second: str) -> None:
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<main><a href='/x?a#b'></a></main>", "<main><a href='https:/x'></a></main>"),
        ("<main><a href='http://['></a></main>", "<main></main>"),
        ("<article>One</article><main>Two</main>", "<main>Two</main>"),
        ("<div role=main>One</div><article>Two</article>", "<div role=main>One</div>"),
        ("<p>Ad</p><article>One</article>", "<article>One</article>"),
        ("<main>One<main>two</main></main>", "<main>One two</main>"),
    ],
)
def test_what_is_not_content_does_not_count(first: str, second: str) -> None:
    assert digest(first) == digest(second)


MOMENT = "title='2026-11-21 13:17'"


@pytest.mark.parametrize(
    ("element", "shows_age"),
    [
        (f"<i {MOMENT}>soon</i>", True),
        (f"<i {MOMENT}>{'x' * 32}</i>", True),
        (f"<i {MOMENT}>{'x' * 33}</i>", False),
        (f"<i {MOMENT}><b>{'x' * 16}</b><b>{'y' * 16}</b></i>", True),
        (f"<i {MOMENT}><b>{'x' * 16}</b><b>{'y' * 17}</b></i>", False),
        (f"<i {MOMENT}>{'<b></b>' * 16}x</i>", False),
        (f"<i {MOMENT}>{'<b></b>' * 15}x</i>", True),
        (f"<i {MOMENT}><b {MOMENT}>now</b></i>", True),
        ("<i title='2026-11-21T13:17:00Z'>soon</i>", True),
        ("<i title=' 2026-11-21 13:17'>soon</i>", True),
        ("<i title='2026-11-21'>soon</i>", False),
        ("<i title='At 2026-11-21 13:17'>soon</i>", False),
        ("<i title=''>soon</i>", False),
        ("<i title>soon</i>", False),
        ("<i>soon</i>", False),
    ],
)
def test_short_element_with_a_datetime_as_its_title_shows_an_age(element: str, *, shows_age: bool) -> None:
    assert (digest(f"<main>Tea {element}</main>") == digest("<main>Tea</main>")) is shows_age


def places(html: str, selector: str) -> str:
    """The ids of the outermost nodes that a selector finds."""
    return " ".join(node.attributes["id"] or "" for node in outermost_nodes(LexborHTMLParser(html).css(selector)))


@pytest.mark.parametrize(
    ("html", "outermost"),
    [
        ("<b id=1></b><b id=2></b>", "1 2"),
        ("<b id=1><b id=2></b></b>", "1"),
        ("<b id=1><i><b id=2></b></i></b>", "1"),
        ("<b id=1><i><b id=2></b><b id=3></b></i></b>", "1"),
        ("<b id=1><i><u><b id=2></b></u><b id=3></b></i><b id=4></b></b><b id=5></b>", "1 5"),
        ("<i><b id=1><b id=2></b></b><b id=3></b></i><i><b id=4></b></i>", "1 3 4"),
        ("<i></i>", ""),
    ],
)
def test_outermost_nodes_are_in_no_other(html: str, outermost: str) -> None:
    assert places(html, "b") == outermost


@pytest.mark.parametrize(
    ("html", "facts", "microseconds"),
    [
        ("<main></main>", NO_FACTS, 5),
        ("<main></main><main></main>", NO_FACTS, 10),
        ("<p></p>", NO_FACTS, 5),
        ("<main>x</main>", NO_FACTS, 7.25),
        ("<main>tea milk tea</main>", NO_FACTS, 9.75),
        ("<main>tea</main><main>tea milk</main>", NO_FACTS, 14.75),
        ("<main><a href=x></a><img src=y><a></main>", NO_FACTS, 13),
        ("<main title=x><p title=y></main>", NO_FACTS, 15),
        ("<main></main>", [{"a": "x"}], 11),
    ],
    ids=["a root", "two roots", "the body", "a word", "words", "words of two roots", "targets", "titles", "facts"],
)
def test_cost_of_each_part(html: str, facts: Facts, microseconds: float) -> None:
    _content_digest(LexborHTMLParser(html), facts, WorkBudget(microseconds))
    with pytest.raises(BudgetExceeded):
        _content_digest(LexborHTMLParser(html), facts, WorkBudget(microseconds - 0.25))


@pytest.mark.parametrize(
    ("html", "facts", "words", "others"),
    [
        ("<main></main>", NO_FACTS, 0, 0),
        ("<main>tea, milk, tea</main><p>Not content", NO_FACTS, 3, 0),
        ("<main>tea <a href=x>milk</a><img src=x><a href=x></a></main>", NO_FACTS, 2, 3),
        ("<main>tea 3 weeks ago</main>", NO_FACTS, 1, 0),
        ("<main></main>", [{"@type": "Product", "price": "4.50"}], 0, 2),
        (f"<main>{'x ' * 1025}{'<img src=x>' * 65}</main>", NO_FACTS, 1025, 65),
    ],
    ids=["empty", "words", "targets", "an age", "facts", "many"],
)
def test_the_size_counts_what_the_digest_adds_up(html: str, facts: Facts, words: int, others: int) -> None:
    content = content_digest(LexborHTMLParser(html), facts)
    assert content is not None
    assert size_by_mark(content.mark, content.digest) == (content_size(words, others) if content.mark else None)


def test_page_that_costs_too_much_has_no_digest() -> None:
    words = int((MAX_COST_MICROSECONDS - 5 - 2) / 0.25)
    assert digest(f"<main>{'x ' * words}</main>") is not None
    assert digest(f"<main>{'x ' * (words + 1)}</main>") is None


def test_age_leaves_the_budget() -> None:
    html = "<main>3 weeks ago</main>"
    assert digest(html) == digest("<main>4 days ago</main>")
    without_ages = 5 + 3 * 0.25 + 3 * 2
    with pytest.raises(BudgetExceeded):
        _content_digest(LexborHTMLParser(html), NO_FACTS, WorkBudget(without_ages))
