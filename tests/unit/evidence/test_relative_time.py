"""Relative times such as "2 days ago" are not content, in any language; other amounts are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.digest_cost_limit import BudgetExceeded, WorkBudget
from sitemap_middleware.evidence.html_facts import parse_html
from sitemap_middleware.evidence.relative_time import may_be_age, without_ages

from ...support.timing import ratio

WRITTEN: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "support" / "ages.json").read_text(encoding="utf-8")
)
"""Ages as arrow, Babel (and so Intl.RelativeTimeFormat), humanize and timeago write them, by language."""


def left(text: str) -> str:
    words = text.split()
    return " ".join(without_ages(words, frozenset(filter(may_be_age, words)), WorkBudget(10**9)))


def digest(body: str) -> int | None:
    return parse_html(f"<main>{body}</main>".encode()).digest


@pytest.mark.parametrize("language", WRITTEN)
def test_output_of_libraries_is_not_content(language: str) -> None:
    assert {text: left(f"Zzz {text} qqq") for text in WRITTEN[language]} == dict.fromkeys(WRITTEN[language], "Zzz qqq")


@pytest.mark.parametrize(
    "text",
    [
        "3 weeks, 2 days ago",
        "3 weeks and 2 days ago",
        "3\xa0weeks, 2\xa0days ago",
        "about 2 hours ago",
        "less than a minute ago",
        "a few seconds ago",
        "5m ago",
        "1h 5m ago",
        "(3 weeks ago)",
        "3 Weeks Ago.",
        "week ago",
        "last week",
        "last 3 days",
        "yesterday",
        "yesterday at 10:15 pm",
        "today at 9:05",
        "just now",
        "3 days left",
        "1 week, 3 days left",
        "2 days to go",
        "312 days since",
        "312 days without",
        "Day 124",
        "Day 12/100",
        "124 Tage seit",
        "Jour 12",
        "312 días sin",
        "in 5 days",
        "3 hours from now",
        "2 years old",
        "noch 3 Tage",
        "vor 3 Wochen, 2 Tagen",
        "vor mehr als 3 Jahren",
        "seit 3 Tagen",
        "gestern um 10:15 Uhr",
        "letzte Woche",
        "3 Tage alt",
        "il y a moins d'une minute",
        "il y a moins d’une minute",
        "il y a 3 semaines et 2 jours",
        "l'année dernière",
        "il reste 3 jours",
        "hier à 10h15",
        "quedan 3 días",
        "3 días atrás",
        "semana pasada",
        "mancano 3 giorni",
        "un'ora fa",
        "faltam 3 dias",
        "agora mesmo",
        "nog 3 dagen",
        "3 weken en 2 dagen geleden",
        "przedwczoraj",
        "неделю назад",
        "осталось 3 дня",
        "3 dagar kvar",
        "3 gün kaldı",
        "残り3日",
        "3日前",
        "还剩3天",
        "3天前",
        "3일 남음",
        "방금 전",
        "3 week(s) ago",
        "1 year(s), 2 month(s) ago",
        "il y a 3 jour(s)",
        "vor 3 Woche(n)",
        "3 weeks back",
        "3 fortnights ago",
        "3 business days ago",
        "3-month-old",
        "12-Year-Old",
        "faz 3 dias",
        "cách đây 3 tuần",
        "3 hete",
        "kb. 3 órája",
        "преди 3 седмици",
        "преди около един месец",
        "след 2 дни",
        "prije 3 tjedana",
        "prije oko 2 sata",
        "za 3 dana",
        "pre 3 nedelje",
        "пре 3 недеље",
        "3 روز پیش",
        "۳ هفته پیش",
        "منذ ٣ أيام",
        "3 วันก่อน",
        "2 ชั่วโมงก่อน",
    ],
)
def test_age_is_not_content(text: str) -> None:
    assert left(f"Zzz {text} qqq") == "Zzz qqq"


@pytest.mark.parametrize(
    "text",
    [
        "3 weeks of training",
        "10 hours of music",
        "over 5 years of experience",
        "mehr als 3 Jahre Erfahrung",
        "plus de 3 ans d'expérience",
        "5 km",
        "open 5 days a week",
        "2024-05-01",
        "1 May 2024",
        "3. Mai 2024",
        "Posted on May 1, 2024 at 10:15",
        "a minute",
        "45 minutes",
        "3 apples left",
        "vor 3 Toren",
        "chapter 3",
        "3周的训练",
        "Seconds",
        "bake for 30 minutes",
        "3-month-olds",
        "a 3-month course",
        "the day(s) of rest",
        "Péter hete",
        "3 седмици почивка",
        "7 dana na moru",
        "۳ هفته",
        "حدود ۳ هفته",
        "3 วัน",
        "ก่อนวัน",
    ],
)
def test_amount_that_is_not_an_age_is_content(text: str) -> None:
    assert left(f"Zzz {text} qqq") == f"Zzz {text} qqq"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3w", "4w"),
        ("5 m", "2 h"),
        ("1y", "2y"),
        (" · 3w", " · 11mo"),
        ("2h 5m", "3h 7m"),
        ("now", "1 min"),
        ("3 sem.", "4 sem."),
        ("2 T", "3 T"),
        ("5 мин", "6 мин"),
        ("vor 3 Wochen", "gestern"),
    ],
)
def test_age_in_its_own_element_is_not_content(first: str, second: str) -> None:
    assert digest(f"<p>Text</p><span>{first}</span>") == digest(f"<p>Text</p><span>{second}</span>")
    assert digest(f"<span>{first}</span> Text") == digest(f"<span>{second}</span> Text")


@pytest.mark.parametrize(
    ("first", "second"),
    [("3 km", "4 km"), ("3 weeks", "4 weeks"), ("3", "4"), ("size 3 m", "size 4 m"), ("3 apples", "4 apples")],
)
def test_other_number_in_its_own_element_is_content(first: str, second: str) -> None:
    assert digest(f"<p>Text</p><span>{first}</span>") != digest(f"<p>Text</p><span>{second}</span>")


def test_word_with_a_letter_beyond_ascii_is_no_part_of_an_age_for_that() -> None:
    assert not may_be_age("Brötchen")


def test_digits_in_a_text_without_spaces_cost_more_than_letters() -> None:
    words = ["1234567890前"]
    with pytest.raises(BudgetExceeded):
        without_ages(words, frozenset(words), WorkBudget(2))


def test_words_that_are_no_part_of_an_age_cost_no_search_for_one() -> None:
    words = ["前", *("bread" for _ in range(100))]
    assert without_ages(words, frozenset(words), WorkBudget(200)) == words


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a few of about one two three four 3 weeks ago", "a few of"),
        ("two a few of about one two 3 weeks, 2 days ago", "two"),
        ("vor 3 Wochen ein paar etwa fast rund knapp mehr 2 Tagen", "ein paar etwa fast rund knapp mehr 2 Tagen"),
        ("vor 3 Wochen zwei", "zwei"),
        ("2days 3 hours ago", ""),
        ("menu about 3 weeks, 2 days ago", "menu"),
        ("vor Wochen, 2 Tagen", ""),
    ],
)
def test_of_many_words_for_numbers_a_few_are_part_of_an_age(text: str, rest: str) -> None:
    assert left(text) == rest


def test_age_split_over_elements_is_not_content() -> None:
    assert digest("<b>3</b> weeks, <b>2</b> days <i>ago</i>") == digest("<b>4</b> weeks <i>ago</i>")


@given(st.lists(st.sampled_from([word for texts in WRITTEN.values() for text in texts for word in text.split()])))
def test_any_words_of_ages_in_any_order_leave_some_of_themselves(words: list[str]) -> None:
    rest = iter(words)
    eastern = any(not word.isascii() for word in words)
    assert eastern or all(word in rest for word in left(" ".join(words)).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["in 3 weeks ", "3 weeks ", "3 weeks and 2 days ago ", "vor ", "3天前", "a an one ", "yesterday at "]
)
def test_words_of_ages_take_a_time_that_grows_with_their_number(text: str) -> None:
    assert ratio(lambda size: text * size, left, 2000) < 3
