"""The digest of a page's content: what counts, what does not, and what two digests show together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sitemap_middleware.evidence.content_digest import MAX_WORDS, differ_by_numbers
from sitemap_middleware.evidence.html_facts import HtmlFacts, parse_html


def facts(html: str, path: str = "/a") -> HtmlFacts:
    return parse_html(html.encode(), path=path)


def digest(html: str) -> int | None:
    return facts(html).digest


def json_ld(data: Any) -> str:
    return f"<script type='application/ld+json'>{json.dumps(data)}</script><main>Tea</main>"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<main>One</main><main>Two</main>", "<main>Eins</main><main>Two</main>"),
        ("<main><a href=/x></a></main>", "<main><a href=/x></a><a href=/x></a></main>"),
        ("<main><a href=/x></a></main>", "<main><a href=/y></a></main>"),
        ("<main><img src=/x></main>", "<main><img src=/y></main>"),
        ("<main><img src=/x alt=Tea></main>", "<main><img src=/x alt=Milk></main>"),
        ("<main><iframe src=//a.example/12345678></iframe></main>", "<main><iframe src=//a.example/87654321></iframe>"),
        ("<main><audio src=/x></audio></main>", "<main><audio src=/y></audio></main>"),
        ("<main><object data=/x></object></main>", "<main><object data=/y></object></main>"),
        ("<main><img src=/McIntosh-red.png></main>", "<main><img src=/McIntosh-old.png></main>"),
        ("<title>Tea</title><main>x</main>", "<title>Milk</title><main>x</main>"),
        ("<meta name=description content=Tea><main>x</main>", "<meta name=description content=Milk><main>x</main>"),
        ("<main>On <time>5 May 2024</time></main>", "<main>On <time>6 May 2024</time></main>"),
        *(
            (f"<main><{name}>Tea</{name}></main>", f"<main><{name}>Milk</{name}></main>")
            for name in ("aside", "header")
        ),
        (f"<main>{'long' * 20}</main>", f"<main>{'long' * 21}</main>"),
        (json_ld({"@type": "Product", "price": "4.50"}), json_ld({"@type": "Product", "price": "4.60"})),
        (json_ld([{"@graph": [{"headline": "Tea"}]}]), json_ld([{"@graph": [{"headline": "Milk"}]}])),
    ],
)
def test_every_part_of_the_content_counts_as_often_as_it_occurs(first: str, second: str) -> None:
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<main><a href='/x?a#b'></a></main>", "<main><a href='https:/x'></a></main>"),
        ("<main><a href=//a.example/x></a></main>", "<main><a href=//b.example/x></a></main>"),
        ("<main><img src=/i.0a1b2c3d4.png></main>", "<main><img src=/i.5e6f7a8b9.png></main>"),
        ("<main><img src=/v1.2/i.png></main>", "<main><img src=/v1.3/i.png></main>"),
        ("<main><img src=/v12/i.png></main>", "<main><img src=/v13/i.png></main>"),
        ("<main><img src=/i.Xk2jQz9p.png></main>", "<main><img src=/i.aB3dE5gH.png></main>"),
        ("<div role=main>One</div><article>Two</article>", "<div role=main>One</div>"),
        ("<main>One<nav>Two</nav><script>3</script><p hidden>4</p></main>", "<main>One</main>"),
        ("<main>One</main>", "<main>One<style>.x{}</style><noscript>no</noscript><template>t</template></main>"),
        ("<main><p>One</p><p>two</p></main>", "<main>two\n <b>One</b></main>"),
        ("<p>One</p><aside>Two</aside><header>3</header><footer>4</footer>", "<p>One</p>"),
        (json_ld({"price": "4.5"}), json_ld({"price": 4.5})),
        (json_ld({"userInteractionCount": 1, "dateModified": "2024-05-01"}), json_ld({"userInteractionCount": 2})),
        (json_ld({"@type": "BreadcrumbList", "itemListElement": [{"headline": "Tea"}]}), json_ld({})),
        (json_ld({"@type": ["Organization", {}], "description": "Tea"}), json_ld({})),
    ],
)
def test_what_is_not_content_does_not_count(first: str, second: str) -> None:
    assert digest(first) == digest(second)


@pytest.mark.parametrize(
    ("ages", "rest"),
    [
        (("3 weeks ago", "a day ago", "2 days, 4 hours ago", "yesterday", "just now", "3w", "5min ago"), ""),
        (("vor 3 Wochen", "vor einem Tag", "gestern", "vor 2 Std."), ""),
        (("hace 3 días", "hace una hora", "ayer"), ""),
        (("3 недели назад", "5 часов назад", "вчера"), ""),
        (("3 hafta önce", "2 gün önce"), ""),
        (("3小时前", "5 天前", "昨天"), ""),
        (("3일 전", "5시간 전"), ""),
        (("Day 124 of our journey", "Day 125 of our journey"), "of our journey"),
    ],
)
def test_ages_are_not_content(ages: tuple[str, ...], rest: str) -> None:
    assert {digest(f"<main>Posted {age}</main>") for age in ages} == {digest(f"<main>Posted {rest}</main>")}


@pytest.mark.parametrize("text", ["5 m", "5 May 2024", "2024年5月1日", "week of tea", "7 days-old", "12 Uhr"])
def test_numbers_that_are_no_ages_are_content(text: str) -> None:
    assert digest(f"<main>Tea {text}</main>") != digest("<main>Tea</main>")


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Day-streak: 124!", "Day-streak: 125!", True),
        ("1,234 views", "1,300 views", True),
        ("3 a 5 b", "4 a 4 b", True),
        ("Tea 1", "Milk 1", False),
        ("<a href=/1></a>", "<a href=/2></a>", False),
    ],
)
def test_digests_show_whether_numbers_alone_differ(first: str, second: str, *, alike: bool) -> None:
    one, other = digest(f"<main>{first}</main>"), digest(f"<main>{second}</main>")
    assert one is not None
    assert other is not None
    assert differ_by_numbers(one, other) is differ_by_numbers(other, one) is alike


@pytest.mark.parametrize(
    ("html", "alike"),
    [
        ("<main>Nothing is tagged {}</main>", True),
        ("<main>Nothing is tagged “#{}”.</main>", True),
        ("<title>{}</title><main>{} <a href='/tags/{}/feed'>{}</a></main>", True),
        ("<main>Nothing</main>", True),
        ("<main>{}</main>", False),
        ("<main>About {}s</main>", False),
    ],
)
def test_second_digest_has_no_words_of_the_path(html: str, *, alike: bool) -> None:
    found = {
        facts(html.replace("{}", word.title()), f"/tags/{word.replace(' ', '-')}").without_path
        for word in ("tea", "milk", "black coffee")
    }
    assert (len(found) == 1) is alike


def test_nested_elements_count_once_and_are_left_out_whole() -> None:
    assert digest("<article>Rye <article>Spelt</article></article>") == digest("<article>Rye Spelt</article>")
    nested = "<nav>a<nav hidden>b<svg><style>c</style></svg></nav></nav>" * 50
    assert digest(f"<main>Rye{nested}</main>") == digest("<main>Rye</main>")


def test_numbers_of_the_path_stay_in_the_second_digest() -> None:
    found = {facts(f"<main>Order {number}</main>", f"/orders/{number}").without_path for number in (7, 8)}
    assert len(found) == 2


def test_pages_that_say_too_much_have_no_digest() -> None:
    assert digest(f"<main>{'x ' * MAX_WORDS}</main>") is not None
    assert facts(f"<main>{'x ' * (MAX_WORDS + 1)}</main>").unread_reason == "says more than can be compared in time"
