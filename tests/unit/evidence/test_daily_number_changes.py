"""Numbers that change every day: they date no page, and edits are dated all the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.changefreq import changefreq
from sitemap_middleware.evidence.daily_number_changes import may_be_daily_counter, without_number_changes
from sitemap_middleware.evidence.hashes_summed_to_digest import digest_term, integer_change
from sitemap_middleware.evidence.html_facts import parse_html
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.observation_merge import merge_if_changed
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.models import Page
from sitemap_middleware.value_history import VOLATILE, History, Run, add_sighting

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
EVERYWHERE = SiteSignals()


def dated(text: Callable[[int], str], every: int, days: int = 12) -> dict[int, str]:
    """When a page that says this was given a date, and which, over some days of visits at irregular times."""
    chance, dates, page = random.Random(f"{every}"), {}, None
    for start in range(NOW, NOW + days * DAY, every):
        at = start + chance.randrange(every // 2)
        for seen in (at, at + 2):
            body = f"<main><h1>A page</h1><p>{text(seen)}</p></main>".encode()
            reading = HtmlFacts(parse_html(body, "utf-8", is_truncated=False).digest)
            page = merge_if_changed(page, Observation("/", "/", seen, 200, "text/html", html=reading))
            result = lastmod(None, page, None, EVERYWHERE, seen)
            if result.text is not None:
                dates[seen] = result.text
    return dates


def contents(*texts: str, hours: int = 24) -> History:
    """The history of a page that shows one text after the other, each for so many hours."""
    history: History = ()
    for number, text in enumerate(texts):
        digest = parse_html(f"<main><h1>A page</h1><p>{text}</p></main>".encode(), "utf-8", is_truncated=False).digest
        for at in range(NOW + number * hours * HOUR, NOW + (number + 1) * hours * HOUR, HOUR):
            history = add_sighting(history, digest, at)
    return history


def changes(history: History) -> int:
    return len(without_number_changes(history)) - 1


def test_numbers_that_lasted_for_over_a_day_make_changes() -> None:
    weekly = [f"Issue {number} is out" for number in range(1, 6)]
    assert changes(contents(*weekly, hours=7 * 24)) == 4
    assert changes(contents(*weekly, hours=26)) == 4
    assert changes(contents(*weekly, hours=25)) == 0


def test_numbers_that_change_daily_make_no_change() -> None:
    assert changes(contents(*(f"Day {day} of our journey" for day in range(124, 130)))) == 0
    assert changes(contents("12 guests", "40 guests", "7 guests, 3 dogs")) == 1
    assert changes(contents("Day 1, sunny", "Day 2, sunny", "Day 3, rain", "Day 4, rain")) == 1
    assert changes(contents("Sunny", "Rain", "Snow")) == 2
    assert without_number_changes(()) == ()


def test_volatile_contents_stay_what_they_are() -> None:
    history = add_sighting(contents("Day 1", "Day 2"), VOLATILE, NOW + 99 * DAY)
    assert [run.value for run in without_number_changes(history)][1:] == [VOLATILE]
    assert without_number_changes(add_sighting((), VOLATILE, NOW)) == add_sighting((), VOLATILE, NOW)


@pytest.mark.parametrize(
    "text", ["Day {} of our journey", "{} visitors so far", "Only {} left", "Noch {} mal schlafen"]
)
@pytest.mark.parametrize("hours", [1, 24])
def test_a_page_whose_numbers_tick_has_no_changefreq(text: str, hours: int) -> None:
    page = Page("/", "/", NOW, NOW, 200, content_history=contents(*map(text.format, range(20, 27)), hours=hours))
    assert changefreq(page, EVERYWHERE).word is None
    words = ("bread", "cake", "tea", "rye", "spelt", "jam", "salt")
    page = page._replace(content_history=contents(*map(text.format, words), hours=hours))
    assert changefreq(page, EVERYWHERE).word is not None or hours == 1


TEXTS = [
    "Day {} of our journey.",
    "{} days since the last accident",
    "Accident-free days: {}",
    "Our streak: {}!",
    "Jour {} du voyage",
    "#{} in a row",
    "Running for ({}) sunrises",
    "Noch {} mal schlafen",
    "連続{}日",
]


@pytest.mark.slow
@pytest.mark.parametrize("every", [5 * HOUR, DAY, 3 * DAY])
@pytest.mark.parametrize(("first", "step"), [(44, 1), (124, -1), (994, 1), (9998, 1)])
@pytest.mark.parametrize("text", TEXTS)
def test_a_number_that_moves_by_one_each_day_dates_no_page(text: str, first: int, step: int, every: int) -> None:
    dates = dated(lambda at: text.format(first + step * ((at + 20_700) // DAY - NOW // DAY)), every)
    assert dates == {}


@pytest.mark.parametrize("first", [4, 200])
@pytest.mark.parametrize("step", [1, 2, 7, -5])
def test_counter_of_any_step_dates_no_page(first: int, step: int) -> None:
    assert dated(lambda at: f"{first + 100 * (step < 0) + step * (at // DAY - NOW // DAY)} coins", 5 * HOUR) == {}


def test_two_opposing_counters_date_no_page() -> None:
    text = "Down {down}, to go {left} stops"
    assert dated(lambda at: text.format(down=(day := at // DAY - NOW // DAY) + 50, left=300 - day), 5 * HOUR) == {}


@pytest.mark.parametrize(("before", "after"), [(12, 13), (1, 2), (120, 121), (120, 119), (100, 120)])
def test_number_that_stood_over_a_day_is_an_edit(before: int, after: int) -> None:
    edited = NOW + 4 * DAY + 1234
    dates = dated(lambda at: f"{after if at >= edited else before} people work here", HOUR)
    assert len(set(dates.values())) == 1
    assert edited <= min(dates) < edited + 2 * HOUR


@pytest.mark.parametrize(("before", "after"), [(1, 2), (120, 121), (120, 119), (100, 120)])
def test_number_that_replaces_a_new_one_must_last_a_day(before: int, after: int) -> None:
    edited = NOW + DAY // 2
    dates = dated(lambda at: f"Version {after if at >= edited else before}", HOUR)
    assert len(set(dates.values())) == 1
    assert edited + DAY < min(dates) < edited + DAY + 2 * HOUR


def test_edit_dates_a_page_with_a_counter_until_it_moves() -> None:
    edited = NOW + 4 * DAY + 1234
    dates = dated(lambda at: f"Sunrise {at // DAY}. {'New' if at >= edited else 'Old'} words", 5 * HOUR)
    assert dates
    assert len(set(dates.values())) == 1
    assert edited <= min(dates) <= max(dates) < edited + DAY


def runs_of(*contents: tuple[str, int, int]) -> History:
    """Runs of texts, each seen from one hour to another."""
    return tuple(Run(digest_term(text), NOW + start * HOUR, NOW + end * HOUR) for text, start, end in contents)


def may_count(*contents: tuple[str, int, int]) -> bool:
    """Whether a page without template changes may be a daily counter."""
    runs = runs_of(*contents)
    return may_be_daily_counter(runs, runs)


def test_contents_that_lasted_for_up_to_a_day_may_be_a_counter() -> None:
    assert may_count(("Day:7", 0, 24), ("Day:8", 25, 49))
    assert not may_count(("Day:7", 0, 25), ("Day:8", 26, 49))
    assert not may_count(("Day:7", 0, 24), ("Day:8", 25, 50))
    assert not may_count(("Day:7", 0, 24), ("Night:8", 25, 49))
    assert not may_count(("Day:7", 0, 24))
    assert not may_count()
    volatile = (Run(VOLATILE, NOW, NOW + 60),)
    assert not may_be_daily_counter(volatile, volatile)


def test_counter_that_starts_to_run_is_one_from_its_second_move() -> None:
    still = ("Day:0", 0, 500)
    assert not may_count(still, ("Day:1", 501, 520))
    assert may_count(still, ("Day:1", 501, 520), ("Day:2", 525, 530))


def test_number_of_the_template_does_not_make_an_edit_a_counter() -> None:
    contents = runs_of(("Old", 0, 100), ("Release:1", 101, 110), ("Release:2", 111, 120))
    edit = contents[0], Run(contents[2].value, contents[1].first, contents[2].last)
    assert may_be_daily_counter(contents, contents)
    assert not may_be_daily_counter(contents, edit)


def test_counter_is_one_although_some_of_its_moves_are_a_templates() -> None:
    contents = runs_of(("Day:7", 0, 20), ("Day:8", 24, 44), ("Day:9", 48, 68))
    some_moves = contents[0], Run(contents[2].value, contents[1].first, contents[2].last)
    assert may_be_daily_counter(contents, some_moves)


@given(st.text("ab #-.ä", max_size=5), st.text("xy%)!", max_size=5), st.integers(0, 999_999), st.integers(0, 999_999))
def test_difference_by_one_integer_gives_its_step(before: str, after: str, first: int, second: int) -> None:
    rest = digest_term("word")
    first_digest, second_digest = (rest + digest_term(f"{before}{value}{after}") for value in (first, second))
    assert integer_change(first_digest, second_digest) == second - first
    signed = (second_digest + 2**63) % 2**64 - 2**63
    assert integer_change(first_digest, signed) == second - first


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("12", "twelve"),
        ("12%", "13"),
        ("1.2k", "1.3k"),
        ("2025-06-15", "2025-06-16"),
        ("\n/page/12", "\n/page/13"),
        ("\nprice\nsku 7\n12", "\nprice\nsku 7\n13"),
    ],
)
def test_other_differences_are_not_integer_changes(first: str, second: str) -> None:
    assert integer_change(digest_term(first), digest_term(second)) is None


def test_thousands_and_facts_are_integers_too() -> None:
    assert integer_change(digest_term("1,234"), digest_term("1,236")) == 2
    assert integer_change(digest_term("1.999"), digest_term("2.001")) == 2
    assert integer_change(digest_term("\nheadline\n124"), digest_term("\nheadline\n125")) == 1


def test_integers_that_move_against_each_other_are_another_content() -> None:
    assert (digest_term("10") + digest_term("20")) % 2**64 != (digest_term("11") + digest_term("19")) % 2**64
    assert integer_change(digest_term("10") + digest_term("20"), digest_term("11") + digest_term("19")) == 0
