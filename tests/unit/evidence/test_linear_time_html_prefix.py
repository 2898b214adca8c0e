"""Hostile HTML of any kind: twice as much takes about twice as long, and the beginning is read."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence import linear_time_html_prefix
from sitemap_middleware.evidence.html_facts import parse_html
from sitemap_middleware.evidence.linear_time_html_prefix import (
    MAX_ATTRIBUTES,
    MAX_ELEMENT_DEPTH,
    MAX_OPTIONS,
    MAX_TAGS,
    safe_length,
)

from ...support.timing import ratio

Make = Callable[[int], str]


def repeated(text: str) -> Make:
    return lambda size: text * size


def numbered(text: str) -> Make:
    return lambda size: "".join(text.replace("#", str(number)) for number in range(size))


FAMILIES: dict[str, Make] = {
    "nested replies": lambda size: "<article><p>word <a href=/x>y</a></p>" * size + "</article>" * size,
    "nested main": lambda size: "<main>word" * size + "</main>" * size,
    "nested roles": lambda size: "<div role=main>word" * size + "</div>" * size,
    "nested hidden": lambda size: "<div hidden>word" * size + "</div>" * size,
    "nested asides": lambda size: "<aside>word" * size + "</aside>" * size,
    "nested times": lambda size: "<time>word" * size + "</time>" * size,
    "nested titles": lambda size: "<b title='2026-11-21 13:17'>w" * size + "</b>" * size,
    "flat titles": repeated("<b title='2026-11-21 13:17'>now</b>"),
    "nested noscript": repeated("<noscript>x"),
    "nested templates": lambda size: "<template>x" * size + "</template>" * size,
    "nested tables": repeated("<table><tr><td>x"),
    "nested lists": repeated("<ul><li>x"),
    "unclosed paragraphs": repeated("<p>word word"),
    "unclosed formatting": numbered("<font size=#>"),
    "formatting that each block opens again": numbered("<p><font size=#>x"),
    "formatting and blocks": lambda size: "<p>" + numbered("<font size=#>")(200) + "<p>x" * size,
    "misnested": repeated("<a><div>"),
    "closed by others": repeated("<div></x>"),
    "closed in comments": repeated("<div><!--</div>-->"),
    "closed in scripts": repeated("<div><script><!--<script></script></div>--></script>"),
    "closed in sections of foreign elements": repeated("<svg><g><![CDATA[></g>]]>"),
    "foreign elements left": lambda size: "<div><svg></div>" + "<x/>" * size,
    "HTML in foreign elements": lambda size: "<svg><desc><x>" + "<y/>" * size,
    "styles in foreign elements": lambda size: "<svg><p><style><!--</style>" + "<div>" * size,
    "foreign elements": repeated("<svg><title>x</title><path d=x /></svg>"),
    "many attributes": lambda size: "<p " + numbered("a#=1 ")(size) + ">x",
    "many quoted attributes": lambda size: "<p " + numbered('a#="1"')(size) + ">x",
    "attributes of the body": numbered("<body a#=1>"),
    "a huge attribute": lambda size: f"<p title='{'x ' * size}'>x",
    "an open quote": repeated('<p a="'),
    "open tags": repeated("<p "),
    "options": repeated("<select><option>x</option>"),
    "entities": repeated("&amp;&#x41;&bogus &"),
    "comments": repeated("<!-- - -->"),
    "open comments": repeated("<!--"),
    "dashes": repeated("<!---"),
    "sections": repeated("<![CDATA[x]]>"),
    "less than": repeated("<"),
    "ends": repeated("</"),
    "scripts": repeated("<script>x</script>"),
    "open scripts": repeated("<script>"),
    "refreshes": repeated("<meta http-equiv=refresh content='9;url=x'>"),
    "robots": repeated("<meta name=robots content='a, unavailable_after: 25 jun'>"),
    "canonicals": numbered("<link rel=canonical href=/#>"),
    "links": numbered("<a href='/#?x'>y</a>"),
    "deep JSON": lambda size: f'<script type="application/ld+json">{"[" * size}{"]" * size}</script>',
    "deep graphs": lambda size: f"""<script type="application/ld+json">{'{"@graph":' * size}1{"}" * size}</script>""",
    "long JSON": lambda size: f'<script type="application/ld+json">[{"".join("1, " * size)}1]</script>',
    "many JSON scripts": repeated('<script type="application/ld+json">{"name": "3 days ago"}</script>'),
    "ages": repeated("3 weeks and 2 days ago "),
    "short ages": repeated("<i>3w</i>"),
    "words": numbered("word# "),
}


@pytest.mark.uncovered
@pytest.mark.parametrize("family", FAMILIES)
def test_reading_takes_a_time_that_grows_with_the_length_alone(family: str) -> None:
    make = FAMILIES[family]
    assert ratio(lambda size: make(size).encode(), parse_html, 2000) < 3


@pytest.mark.parametrize("family", FAMILIES)
def test_head_is_read_whatever_follows(family: str) -> None:
    facts = parse_html(
        b"<html><head><meta name=robots content=noindex></head><body>" + FAMILIES[family](20_000).encode()
    )
    assert facts.noindex


@pytest.mark.parametrize("family", ["nested replies", "nested main", "links", "words"])
def test_pages_of_a_kind_that_people_read_are_read_whole(family: str) -> None:
    assert parse_html(FAMILIES[family](1000).encode()).unread_reason == ""
    assert parse_html(FAMILIES[family](1000).encode()).digest != parse_html(FAMILIES[family](999).encode()).digest


def test_what_nests_in_what_is_shown_counts_once() -> None:
    nested, flat = "<main>One <main>two</main> </main>", "<main>One two</main>"
    assert parse_html(nested.encode()).digest == parse_html(flat.encode()).digest
    nested = "<article>One<article>two<article>three</article></article></article>"
    assert parse_html(nested.encode()).digest == parse_html(b"<article>One two three</article>").digest
    hidden = "<main>One<p hidden>x<i hidden>y</i><time>z</time></p></main>"
    assert parse_html(hidden.encode()).digest == parse_html(b"<main>One</main>").digest


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("<div>" * (MAX_ELEMENT_DEPTH - 1), False),
        ("<div>" * MAX_ELEMENT_DEPTH, True),
        ("<div></div>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<DIV></div>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<div><!-- <div> --></div>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<!--><div>" * 2 * MAX_ELEMENT_DEPTH, True),
        ("<!-- --!><div>" * 2 * MAX_ELEMENT_DEPTH, True),
        ("<p>x<li>y<br>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<a>x" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<script>'<div>'</script><textarea><div></textarea>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<svg><path/><g></g></svg>" * 2 * MAX_ELEMENT_DEPTH, False),
        ("<svg><title>x</title></svg>" * 2 * MAX_ELEMENT_DEPTH, False),
        ('<div title="</div>">' * 2 * MAX_ELEMENT_DEPTH, True),
        ('<div title="<div>"></div>' * 2 * MAX_ELEMENT_DEPTH, False),
        ('<p ="><div>' + "<div>" * 2 * MAX_ELEMENT_DEPTH + '">', True),
    ],
)
def test_how_deep_a_text_nests(text: str, *, deep: bool) -> None:
    assert safe_length(text)[1] == ("nests too many elements" if deep else "")


def test_text_ends_where_parsing_is_stopped() -> None:
    assert safe_length("<div>" * 2 * MAX_ELEMENT_DEPTH) == (5 * (MAX_ELEMENT_DEPTH - 1), "nests too many elements")


def test_the_work_of_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_time_html_prefix, "MAX_PARSER_STEPS", 1000)
    assert safe_length("<p>" * 2000)[1] == "nests too many elements"


TAGS = [
    "div",
    "p",
    "b",
    "a",
    "svg",
    "table",
    "td",
    "main",
    "article",
    "script",
    "li",
    "select",
    "option",
    "template",
    "font",
]


@pytest.mark.parametrize("seed", range(12))
def test_any_mix_of_tags_takes_a_bounded_time(seed: int) -> None:
    source = random.Random(seed)
    some = [
        f"<{source.choice(['', '', '/'])}{source.choice(TAGS)}{source.choice(['', ' a=#', ' hidden', ' /'])}>x"
        for _ in range(9)
    ]
    assert ratio(lambda size: numbered("".join(some))(size).encode(), parse_html, 1000) < 3.5


MARKUP = st.lists(
    st.sampled_from(
        ["<", ">", "</", "/>", "=", '"', "'", "<!--", "-->", "<![CDATA[", "]]>", " ", "\0", "x", "&lt;", "3 weeks ago"]
    )
    | st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS])
    | st.sampled_from(
        ["<meta name=robots content=", "<link rel=canonical href=", "<base href=", "<p title='2026-11-21 13:17'>"]
    )
    | st.sampled_from(['<script type="application/ld+json">', '{"name":', "[1,", "</script>", "{}", "]", "}"]),
    max_size=60,
)


@given(MARKUP, st.booleans())
def test_any_markup_can_be_read_and_comes_to_the_same_twice(parts: list[str], cut: bool) -> None:
    body = "".join(parts).encode()
    assert parse_html(body, is_truncated=cut) == parse_html(body, is_truncated=cut)


# Each limit is exact


def attributes(count: int) -> str:
    return "".join(f" a{number}" for number in range(count))


PAIRS = "<div></div>" * (MAX_ELEMENT_DEPTH + 1)
"""Elements that are closed, of which there would be too many if they were not."""


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ("<p>" * MAX_TAGS, "<p>"),
        ("<!-- -->" * MAX_TAGS, "<!-- -->"),
        ("<div>" * (MAX_ELEMENT_DEPTH - 1), "<div>"),
        ("<a>" * MAX_ELEMENT_DEPTH * 2 + "<div>" * (MAX_ELEMENT_DEPTH - 2), "<div>"),
        ("<option><div>" * (MAX_ELEMENT_DEPTH // 2 - 1) + "<div>", "<option>"),
        ("<option>" * MAX_OPTIONS, "<option>"),
        ("", f"<p{attributes(MAX_ATTRIBUTES + 1)}>"),
        (f"<p{attributes(MAX_ATTRIBUTES)}>", f"<p{attributes(MAX_ATTRIBUTES + 1)}>"),
        ("<html a b>" * (MAX_ATTRIBUTES // 2), "<html a>"),
        ("<body a b>" * (MAX_ATTRIBUTES // 2), "<body a>"),
        ("<html a b>" * (MAX_ATTRIBUTES // 4) + "<BODY a b>" * (MAX_ATTRIBUTES // 4), "<html a>"),
        (f"{PAIRS}{PAIRS}" + "<div>" * (MAX_ELEMENT_DEPTH - 1), "<div>"),
        (f"<style><!-- <div></style><script>{PAIRS}<div></script>{PAIRS}" + "<div>" * (MAX_ELEMENT_DEPTH - 1), "<div>"),
    ],
    ids=[str(number) for number in range(13)],
)
def test_text_is_read_up_to_the_tag_that_is_too_many(most: str, more: str) -> None:
    assert safe_length(most) == (len(most), "")
    length, reason = safe_length(most + more)
    assert length == len(most)
    assert reason


@pytest.mark.parametrize(
    "before",
    [
        "<![CDATA[ x ]]>",
        "<script><!-- </script>",
        "<svg><div></div>",
        "<svg><svg></svg><div></div>",
        "<svg><desc><x></x>",
        "<math></svg>",
        "<svg><x></g>",
    ],
)
def test_no_element_counts_as_closed_after_unusual_markup(before: str) -> None:
    length, reason = safe_length(before + PAIRS)
    assert len(before) < length < len(before + PAIRS)
    assert reason == "nests too many elements"
    assert safe_length(f"{before}<!--{'<div>' * MAX_ELEMENT_DEPTH}-->")[1], "nor does a comment hide tags"
    assert not safe_length(f"{before}{'<html>' * (MAX_ATTRIBUTES + 1)}")[1], "attributes are not looked for"


@pytest.mark.parametrize(
    "before",
    [
        "<svg><g/><x></x></svg>",
        "<svg><svg></svg></svg><div></div>",
        "<!DOCTYPE html>",
        "<!ELEMENT>",
        "<style><!-- </style>",
        "<title><!-- <div></title>",
        "<SCRIPT>x</script >",
        "<svg><title></title></svg>",
        "</p></html>",
    ],
)
def test_elements_count_as_closed_after_usual_markup(before: str) -> None:
    assert safe_length(before + PAIRS) == (len(before + PAIRS), "")


@pytest.mark.parametrize("start", ["<script>", "<title>", "<textarea>"])
def test_text_without_its_end_tag_reaches_to_the_end(start: str) -> None:
    text = start + "<div>" * (MAX_ELEMENT_DEPTH + 1)
    assert safe_length(text) == (len(text), "")


def test_work_of_all_tags_together_is_limited() -> None:
    deep = "<div>" * 1000
    assert not safe_length(deep + "<p>" * 29_400)[1]
    assert safe_length(deep + "<p>" * 29_600)[1] == "nests too many elements"
    closed = "<div>" * 500 + "<b></b>" * 20_000
    assert not safe_length(closed)[1], "formatting elements that are closed are not opened again"
    assert safe_length("<b>" * 700 + "<p>" * 300)[1] == "nests too many elements"


# Small pages are proved safe without counting

COMMENTS = "<!-- -->" * MAX_ELEMENT_DEPTH
"""Makes any page so large that its tags are counted, and changes nothing else."""


def check_that_a_page_is_judged_as_after_many_comments(text: str) -> None:
    length, reason = safe_length(COMMENTS + text)
    assert safe_length(text) == (length - len(COMMENTS), reason)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 125, 249, 250, 499, 500, 501, 547, 700, 1499])
@pytest.mark.parametrize("family", FAMILIES)
def test_small_pages_are_judged_as_large_ones_are(family: str, size: int) -> None:
    check_that_a_page_is_judged_as_after_many_comments(FAMILIES[family](size))


@pytest.mark.parametrize(
    "text",
    [
        f"<p{attributes(MAX_ATTRIBUTES)}>",
        f"<p{attributes(MAX_ATTRIBUTES + 1)}>",
        "<p" + " a" * (MAX_ATTRIBUTES + 1) + ">",
        "<p" + "/a" * (MAX_ATTRIBUTES + 1),
        "<p" + ' a=">"' * (MAX_ATTRIBUTES + 1),
        "<p" + " a = '>'" * (MAX_ATTRIBUTES + 1),
        "<p" + 'a="<"' * (MAX_ATTRIBUTES + 1),
        "<p" + ' a="' * (MAX_ATTRIBUTES + 1),
        "<html" + " a" * 250 + "><body" + " a" * 250 + ">",
        "<html" + " a" * 250 + "><body" + " a" * 251 + ">",
        ("<html" + " a" * 200 + ">") * 3,
        ("<BODY" + "\fa" * 167 + ">") * 3,
        "<b>" * 545,
        "<b>" * 550,
        "<STRI\u212aE>" * 550,
        "<p>" * 600 + "<b>" * 300 + "<p>" * 590,
        "<b>" * 105 + "<p>" * 1390,
        "<b>" * 99 + "<p>" * 1390,
    ],
    ids=[str(number) for number in range(18)],
)
def test_small_pages_near_a_limit_are_judged_as_large_ones_are(text: str) -> None:
    check_that_a_page_is_judged_as_after_many_comments(text)


@given(MARKUP, st.integers(1, 300))
def test_any_small_page_is_judged_as_a_large_one_is(parts: list[str], times: int) -> None:
    check_that_a_page_is_judged_as_after_many_comments("".join(parts) * times)
