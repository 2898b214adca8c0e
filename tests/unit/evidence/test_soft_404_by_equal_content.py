"""Echoes: which of several learned pages that say the same is listed."""

from __future__ import annotations

import functools
import random
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.evidence.hashes_summed_to_digest import digest_term
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.response_parser import ResponseParser
from sitemap_middleware.evidence.soft_404_by_equal_content import (
    MAX_COMPARED_PAIRS,
    MIN_EQUAL_PAGES,
    NO_SOFT_NOT_FOUNDS,
    LearnedContents,
    SoftNotFounds,
)
from sitemap_middleware.models import Page, Site
from sitemap_middleware.value_history import VOLATILE, Run

SITE = Site("https", "example.com")
WORDS = ["cheap-pills", "buy now", "casino", "win-big-money", "Ünï", "x-1", "foo", "bar_2"]


def seen(path: str, body: str, at: int = 1, route: str = "/tags/<tag>") -> Page:
    """A learned page that was seen once, with this text."""
    raw = f"<!doctype html><body><main>{body}</main>".encode()
    headers = [("content-type", "text/html; charset=utf-8")]
    response = CapturedResponse(SITE, path, at=at, status=200, headers=headers, body=raw)
    observation = ResponseParser().parse(response, path, route, SITE.base_url + path, learned=True)
    assert observation is not None
    return merge(None, observation)


def echoes(*pages: Page, alike: bool = True) -> SoftNotFounds:
    contents = LearnedContents()
    for page in pages:
        contents.add(page)
    return contents.soft_not_founds(alike=alike)


def listed(*pages: Page) -> list[str]:
    """The paths of pages that do not repeat another page's content."""
    echo = echoes(*pages)
    return [page.path for page in pages if echo.first_equal_page(page) is None]


@pytest.mark.parametrize(
    "body",
    [
        "Nothing here",
        "Tag {v}",
        "<h1>Results for “{v}”</h1><p>Nothing was found for {v}.</p>",
        '<p>No results for "{v}".</p>',
        "<h1>{title}</h1><p>Nothing about {v}: try again</p>",
        "<h1>#{v}</h1><p>{v}</p><p>{v}</p><p>No posts</p>",
        "<h1>{upper}!</h1><p>(Topic: {v})</p>",
        '<h1>Posts tagged {spaced}</h1><a href="/tags/{quoted}">{spaced}</a>',
        '<h1>Help</h1><p>We know of {spaced}</p><a href="/tags/{v}">Again</a>',
        '<h1>{v}</h1><a href="/tags/{quoted}">{v}</a> {v}<p>Nothing for “{v}”. Did you mean {v}?</p>',
        '<h1>{spaced}</h1><a href="/tags/{quoted}">{spaced}</a><p>No post is about {spaced}. Write about {spaced}!</p>',
        "<h1>{v}</h1><p>{v} is free: buy {v} and {v}, or {v} and {v}</p>",
        '{v} {v} {v} {v} {v} {v} {v} {v} <a href="/tags/{quoted}">one</a> <a href="/tags/{quoted}">other</a>',
        '<h1>Whois {v}</h1><p>{v} is not taken</p><a href="http://{v}/">Visit {v}</a><a href="{v}">More</a>',
    ],
)
def test_pages_that_only_echo_their_paths_are_soft_404s_of_the_first(body: str) -> None:
    pages = []
    for which, word in enumerate(WORDS):
        spaced = " ".join(word.replace("-", " ").replace("_", " ").split())
        forms = {"spaced": spaced, "title": spaced.title(), "upper": word.upper(), "quoted": quote(word)}
        pages.append(seen(f"/tags/{quote(word)}", body.format(v=word, **forms), 100 - which))
    real = [
        seen("/tags/python", "Posts tagged python: <a href='/1'>One</a>", 500),
        seen("/tags/flask", "Posts tagged flask: <a href='/2'>Two</a> and three", 501),
    ]
    first = pages[-1].path
    assert listed(*pages, *real) == [first, "/tags/python", "/tags/flask"]
    assert {echoes(*pages, *real).first_equal_page(page) for page in pages[:-1]} == {first}


@pytest.mark.parametrize("links", [0, 1, 64])
def test_sizes_of_contents_hide_no_soft_404(links: int) -> None:
    """Pages of posts, with these links, lie between pages that repeat their path."""
    missing = [seen(f"/tags/{word}", f"Nothing about {word}", 10 + at // 3 * 4) for at, word in enumerate("abcdefghi")]
    posts = [
        seen(f"/tags/post-{number}", f"About post {number}" + f"<a href='/{number}'>More</a>" * links, at)
        for number, at in enumerate([11, 15, 19])
    ]
    marked = [*missing, *posts]
    assert all(page.content_mark for page in marked)
    assert echoes(*marked) == echoes(*(page._replace(content_mark=0) for page in marked))
    assert listed(*marked) == ["/tags/a", *(page.path for page in posts)]


@pytest.mark.parametrize("count", [MIN_EQUAL_PAGES - 1, MIN_EQUAL_PAGES])
def test_few_pages_with_one_content_are_all_listed(count: int) -> None:
    pages = [seen(f"/tags/{word}", "One and the same", at) for at, word in enumerate("abcdefgh"[:count])]
    assert len(listed(*pages)) == (count if count < MIN_EQUAL_PAGES else 1)
    pages = [seen(f"/tags/{word}", f"Tag {word}", at) for at, word in enumerate("abcdefgh"[:count])]
    assert len(listed(*pages)) == (count if count < MIN_EQUAL_PAGES else 1)


@pytest.mark.parametrize(
    ("route", "sights", "stays"),
    [
        ("/posts/<int:n>", {"/posts/7": 1, "/posts/07": 2}, "/posts/7"),
        ("/posts/<int:n>", {"/posts/07": 1, "/posts/007": 2, "/posts/7": 3}, "/posts/7"),
        ("/posts/{n:int}", {"/posts/0007": 1, "/posts/7": 3}, "/posts/7"),
        ("/posts/{n}", {"/posts/07": 1, "/posts/7": 2}, "/posts/07"),
        ("/posts/{slug}", {"/posts/Hello": 3, "/posts/hello": 1, "/posts/HELLO": 2}, "/posts/hello"),
        ("/posts/{slug}", {"/posts/Hello": 1, "/posts/hello": 2}, "/posts/Hello"),
        ("/posts/{slug}", {"/posts/%C3%84rger": 1, "/posts/%C3%A4rger": 2}, "/posts/%C3%84rger"),
        ("/posts/{slug}", {"/posts/Rye": 1, "/posts/rye": 1, "/posts/RYE": 1}, "/posts/rye"),
        ("/posts/{slug}", {"/posts/Rye": 1, "/posts/RYE": 1}, "/posts/Rye"),
        ("/posts/{slug}", {"/posts/%C3%84rger": 1, "/posts/%C3%A4rger": 1}, "/posts/%C3%A4rger"),
        ("/Posts/{slug}", {"/Posts/Rye": 1, "/Posts/rye": 1}, "/Posts/rye"),
        ("/posts/*", {"/posts/2024/07": 1, "/posts/2024/7": 2}, "/posts/2024/07"),
    ],
)
def test_listed_spelling_is_the_routers_or_else_the_first_seen(route: str, sights: dict[str, int], stays: str) -> None:
    pages = [seen(path, "The very same post", at, route) for path, at in sights.items()]
    assert listed(*pages) == [stays]
    assert listed(*reversed(pages)) == [stays]


def test_of_some_of_many_pages_none_is_an_echo_by_its_spelling() -> None:
    """They are others each time, and all that is rendered would be rendered again."""
    pages = [seen("/tags/a", "One"), seen("/tags/A", "One", 2)]
    assert echoes(*pages).first_equal_page(pages[1]) == "/tags/a"
    assert echoes(*pages, alike=False).first_equal_page(pages[1]) is None


@functools.cache
def in_order() -> tuple[list[Page], SoftNotFounds]:
    """Twelve pages, and what makes them echoes if they are looked at in this order."""
    pages = [
        seen(f"/tags/word{which % 9}-{which}", f"About {which % 2 * f'word{which % 9}-{which}'}", which)
        for which in range(12)
    ]
    return pages, echoes(*pages)


@given(st.permutations(range(12)))
def test_the_order_in_which_pages_are_looked_at_changes_nothing(order: list[int]) -> None:
    pages, wanted = in_order()
    echo = echoes(*[pages[which] for which in order])
    assert echo.as_tuple() == wanted.as_tuple()
    assert [echo.first_equal_page(page) for page in pages] == [wanted.first_equal_page(page) for page in pages]


def test_page_outside_the_sample_is_compared_with_the_sample() -> None:
    echo = echoes(*(seen(f"/tags/{word}", f"Tag {word}", 10) for word in "abcdef"))
    assert echo.first_equal_page(seen("/tags/later", "Tag later", 20)) == "/tags/a"
    assert echo.first_equal_page(seen("/tags/before", "Tag before", 1)) is None
    assert echo.first_equal_page(seen("/tags/later", "Tag later, with posts", 20)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"status": 404},
        {"learned": False},
        {"noindex": True},
        {"html_noindex": True},
        {"content_history": ()},
        {"content_history": (Run(VOLATILE, 1, 2),)},
        {"route": "/other/<tag>"},
    ],
)
def test_unlisted_and_changing_pages_are_no_soft_404s(
    changes: dict[str, object],
) -> None:
    pages = [seen(f"/tags/{word}", "One and the same", at) for at, word in enumerate("abcdef")]
    odd = seen("/tags/odd", "One and the same", 0)._replace(**changes)  # type: ignore[arg-type]
    assert listed(*pages, odd) == ["/tags/a", "/tags/odd"]


def test_text_seen_once_does_not_replace_lasting_content() -> None:
    sorry, stood = 5, 7
    pages = [
        seen(f"/tags/{word}", word)._replace(content_history=(Run(stood + at, 1, 9), Run(sorry, 10, 10)))
        for at, word in enumerate("abcdefgh")
    ]
    assert len(listed(*pages)) == len(pages)


def test_page_of_another_path_length_is_known_by_its_last_segment() -> None:
    pages = [
        seen(f"/help/about/{word}", f"All of {word}", at, "/help/<path:topic>") for at, word in enumerate("abcdef")
    ]
    assert listed(*pages) == ["/help/about/a"]
    pages = [seen(f"/{word}/posts", f"Posts by {word}", at, "/<user>/posts") for at, word in enumerate("abcdef")]
    assert listed(*pages) == ["/a/posts"]


@pytest.mark.parametrize(("body", "words"), [("{v}", "abcdef"), ("<h1>{v}</h1>{v}", "abcdef"), ("Post {v}", "123456")])
def test_unrelated_pages_and_numbered_pages_are_all_listed(body: str, words: str) -> None:
    assert len(listed(*(seen(f"/tags/{word}", body.format(v=word)) for word in words))) == len(words)


def test_pages_with_content_beyond_their_path_are_all_listed() -> None:
    pages = [seen(f"/tags/{word}", f"{word} {word} {word} {word}: {at * 3} posts", at) for at, word in enumerate(WORDS)]
    assert len(listed(*(page for page in pages if " " not in page.path))) == len(WORDS) - 1


def test_soft_404s_among_many_pages_are_found_if_first_seen_in_a_row() -> None:
    chance = random.Random(1)
    pages = [seen(f"/tags/w{at}", f"w{at} {chance.getrandbits(64)} posts", at) for at in range(2 * MAX_COMPARED_PAIRS)]
    flood = [seen(f"/tags/spam{at}", f"No posts are tagged spam{at}", 1000 + at) for at in range(MAX_COMPARED_PAIRS)]
    assert listed(*pages, *flood) == [*(page.path for page in pages), "/tags/spam0"]


def test_the_numbers_are_those_of_a_digest() -> None:
    page = seen("/", "word <a href='/to'>other</a>", route="/")
    assert (
        page.content_history[0].value % 2**64
        == (digest_term("word") + digest_term("other") + digest_term("\n/to")) % 2**64
    )


def test_nothing_is_an_echo_of_nothing() -> None:
    assert NO_SOFT_NOT_FOUNDS.first_equal_page(seen("/tags/a", "A")) is None
    assert echoes().as_tuple() == NO_SOFT_NOT_FOUNDS.as_tuple()
