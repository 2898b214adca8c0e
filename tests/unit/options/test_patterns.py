"""Patterns of include, exclude and learn: templates as the frameworks write them, and globs of paths."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import compile_path
from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, RequestRedirect, Rule

from sitemap_middleware.options.patterns import Pattern, Patterns


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("/", ["/"], ["", "//", "/a"]),
        ("/about", ["/about"], ["/about/", "/abou", "/about2", "/About", "x/about"]),
        ("/posts/<slug>", ["/posts/a", "/posts/ü b", "/posts/a.b-c", "/posts/\n"], ["/posts/", "/posts/a/b", "/posts"]),
        ("/posts/<int:id>", ["/posts/1"], ["/posts/1/2", "/posts/"]),
        ("/posts/<int(fixed_digits=4):year>/", ["/posts/2024/"], ["/posts/2024"]),
        ('/<regex("[a-z()]+"):kind>/x', ["/a/x"], ["/a/b/x"]),
        ("/files/<path:name>", ["/files/a", "/files/a/b"], ["/files/", "/files"]),
        ("/posts/{slug}", ["/posts/a"], ["/posts/", "/posts/a/b"]),
        ("/files/{name:path}", ["/files/", "/files/a", "/files/a/b"], ["/files"]),
        ("/admin/*", ["/admin/", "/admin/a", "/admin/a/b"], ["/admin", "/x/admin/"]),
        ("*.pdf", ["/a.pdf", "/a/b.pdf"], ["/a.pdf.html"]),
        ("/*/draft", ["/a/draft", "/a/b/draft", "//draft"], ["/draft"]),
        ("/*a*<slug>*", ["/ab", "/xa/b/c", "/aab"], ["/a", "/b", "/a/"]),
    ],
)
def test_a_pattern_takes_in_whole_paths(text: str, inside: list[str], outside: list[str]) -> None:
    pattern = Pattern(text)
    assert pattern.is_readable
    assert [path for path in inside if not pattern.matches(path)] == []
    assert [path for path in outside if pattern.matches(path)] == []


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("/posts/<int:id>", ["/posts/0", "/posts/70"], ["/posts/007", "/posts/00"]),
        ("/posts/{id:int}/x", ["/posts/7/x"], ["/posts/07/x"]),
        ("/posts/<int(fixed_digits=4):year>/<slug>", ["/posts/0024/007"], []),
        ("/of/<float:price>", ["/of/7.5", "/of/7.0", "/of/0.05"], ["/of/7.50", "/of/07.5", "/of/7.00"]),
        (
            "/<uuid:id>",
            ["/01234567-89ab-cdef-0123-456789abcdef"],
            ["/01234567-89AB-cdef-0123-456789abcdef", "/0123456789abcdef0123456789abcdef"],
        ),
        ("/posts/<slug>", ["/posts/007", "/posts/X"], []),
        ("/posts", ["/posts"], []),
    ],
)
def test_a_path_is_told_from_other_spellings_that_the_router_reads(
    text: str, written: list[str], read: list[str]
) -> None:
    pattern = Pattern(text)
    assert all(map(pattern.matches, [*written, *read]))
    assert [path for path in [*written, *read, "/another/path"] if pattern.writes(path)] == written


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("/<path:anything>", True),
        ("/docs/{page:path}.html", True),
        ("/*", True),
        ("/<slug>", False),
        ("/posts/*", False),
    ],
)
def test_a_catch_all_is_known_as_one(text: str, wide: bool) -> None:
    assert Pattern(text).is_too_wide is wide


def test_a_pattern_is_found_by_the_template_of_the_route_too() -> None:
    template = "/posts/<int(min=1):page>"
    assert Patterns([Pattern(template)]).find("/somewhere/else", template) is not None
    assert Patterns([Pattern(template)]).find("/somewhere/else", "/posts/<int:page>") is None
    assert Patterns().find("/", "/") is None


# Properties

NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=5)
PLAIN = st.text(st.characters(exclude_characters="<>{}*/", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
PARAMETERS = {
    "<": [("<{}>", False), ("<string:{}>", False), ("<path:{}>", True)],
    "{": [("{{{}}}", False), ("{{{}:str}}", False), ("{{{}:path}}", True)],
}


@st.composite
def templates(draw: Any, style: str) -> tuple[str, str]:
    """A template, of at most one greedy parameter, and a path that it was filled in to."""
    template = path = ""
    greedy = False
    for number in range(draw(st.integers(1, 4))):
        template, path = f"{template}/", f"{path}/"
        if draw(st.booleans()):
            text = draw(PLAIN)
            template, path = template + text, path + text
            continue
        written, wide = draw(st.sampled_from(PARAMETERS[style][: 2 if greedy else 3]))
        greedy |= wide
        template += written.format(f"{draw(NAMES)}{number}")
        path += "/".join(draw(st.lists(PLAIN, min_size=1, max_size=3 if wide else 1)))
    return template, path


@st.composite
def asked(draw: Any, style: str) -> tuple[str, str]:
    """A template and a path, which may have been filled in to it, or to another, or have been cut."""
    template, path = draw(templates(style))
    other = draw(templates(style))[1]
    return template, draw(st.sampled_from([path, other, path[:-1], f"{path}/", path.replace("/", "//")]))


@given(asked("<"))
def test_werkzeug_matches_nothing_that_the_pattern_does_not(drawn: tuple[str, str]) -> None:
    template, path = drawn
    try:
        Map([Rule(template, endpoint="x")], merge_slashes=False).bind("x").match(path)
        matched = True
    except (NotFound, RequestRedirect):
        matched = False
    assert Pattern(template).matches(f"/{path.lstrip('/')}") or not matched  # Werkzeug makes one slash of several


@given(asked("{"))
def test_starlette_matches_just_what_the_pattern_does(drawn: tuple[str, str]) -> None:
    template, path = drawn
    assert Pattern(template).matches(path) == (compile_path(template)[0].match(path) is not None)


@given(st.text("ab/", max_size=8), st.text("ab/*", max_size=8))
def test_a_star_takes_in_any_run_of_characters(path: str, glob: str) -> None:
    def globbed(text: str, pattern: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(globbed(text[start:], pattern[1:]) for start in range(len(text) + 1))
        return text[:1] == pattern[0] and globbed(text[1:], pattern[1:])

    assert Pattern(glob).matches(path) == globbed(path, glob)


def test_many_stars_and_a_long_path_come_to_an_end() -> None:
    assert not Pattern("/*a*b*a*b*a*b*c").matches("/" + "ab" * 10_000)
    assert Pattern("/*a*b*a*b*a*b*c").matches("/" + "ab" * 10_000 + "c")
