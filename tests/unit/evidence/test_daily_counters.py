"""Numbers that move by the same step each day: they date no page, and edits are dated all the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.daily_counters import is_daily_counter
from sitemap_middleware.evidence.digest_terms import digest_term, integer_change, scale_integer
from sitemap_middleware.evidence.html_parser import parse_html
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import merge_if_changed
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.history import VOLATILE, Run
from sitemap_middleware.observations import HtmlFacts, Observation

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
EVERYWHERE = SiteSignals()


def dated(text: Callable[[int], str], every: int, days: int = 12) -> dict[int, str]:
    """When a page that says this was given a date, and which, over some days of visits at irregular times."""
    chance, found, page = random.Random(f"{every}"), {}, None
    for start in range(NOW, NOW + days * DAY, every):
        at = start + chance.randrange(every // 2)
        for seen in (at, at + 2):
            body = f"<main><h1>A page</h1><p>{text(seen)}</p></main>".encode()
            reading = HtmlFacts(parse_html(body, "utf-8", cut=False).digest)
            page = merge_if_changed(page, Observation("/", "/", seen, 200, "text/html", html=reading))
            given = lastmod(None, page, None, EVERYWHERE, seen)
            if given.text is not None:
                found[seen] = given.text
    return found


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


@pytest.mark.parametrize("every", [5 * HOUR, DAY, 3 * DAY])
@pytest.mark.parametrize(("first", "step"), [(44, 1), (124, -1), (994, 1), (9998, 1)])
@pytest.mark.parametrize("text", TEXTS)
def test_a_number_that_moves_by_one_each_day_dates_no_page(text: str, first: int, step: int, every: int) -> None:
    found = dated(lambda at: text.format(first + step * ((at + 20_700) // DAY - NOW // DAY)), every)
    assert found == {}


@pytest.mark.parametrize("step", [2, 7, -5])
def test_uneven_counter_dates_no_page_after_two_moves(step: int) -> None:
    found = dated(lambda at: f"{200 + step * (at // DAY - NOW // DAY)} coins saved", 5 * HOUR)
    assert len(set(found.values())) <= 1
    assert all(at < NOW + 3 * DAY for at in found)


def test_two_opposing_counters_date_no_page_after_two_moves() -> None:
    found = dated(lambda at: f"Down {(day := at // DAY - NOW // DAY) + 50}, to go {300 - day} stops", 5 * HOUR)
    assert all(at < NOW + 3 * DAY for at in found)


@pytest.mark.parametrize(("before", "after"), [(12, 13), (1, 2), (120, 121), (120, 119), (100, 120)])
def test_number_that_stood_over_a_day_is_an_edit(before: int, after: int) -> None:
    edited = NOW + 4 * DAY + 1234
    found = dated(lambda at: f"{after if at >= edited else before} people work here", HOUR)
    assert len(set(found.values())) == 1
    assert edited <= min(found) < edited + 2 * HOUR


@pytest.mark.parametrize(
    ("one", "other", "waits"), [(1, 2, False), (120, 121, True), (120, 119, True), (100, 120, False)]
)
def test_first_step_of_one_must_last_a_day_unless_the_number_is_small(one: int, other: int, *, waits: bool) -> None:
    edited = NOW + DAY // 2
    found = dated(lambda at: f"Version {other if at >= edited else one}", HOUR)
    assert len(set(found.values())) == 1
    assert (min(found) > edited + DAY) is waits


def test_a_small_number_dates_its_page_once_at_most() -> None:
    found = dated(lambda at: f"Our streak: {4 + (at // DAY - NOW // DAY)}", 5 * HOUR)
    assert len(set(found.values())) <= 1
    assert all(at < NOW + 3 * DAY for at in found)


def test_edit_dates_a_page_with_a_counter_until_it_moves() -> None:
    edited = NOW + 4 * DAY + 1234
    found = dated(lambda at: f"Sunrise {at // DAY}. {'New' if at >= edited else 'Old'} words", 5 * HOUR)
    assert found
    assert len(set(found.values())) == 1
    assert edited <= min(found) <= max(found) < edited + DAY


def test_days_may_start_at_any_hour() -> None:
    assert is_daily_counter(
        (Run(digest_term("726"), NOW, NOW), Run(digest_term("724"), NOW + 43 * HOUR, NOW + 43 * HOUR + 9))
    )
    assert not is_daily_counter(
        (Run(digest_term("726"), NOW, NOW), Run(digest_term("723"), NOW + 43 * HOUR, NOW + 43 * HOUR + 9))
    )


def test_number_that_moves_more_than_daily_is_not_a_counter() -> None:
    runs = tuple(Run(digest_term(f"{10 + turn}"), NOW + turn * HOUR, NOW + turn * HOUR + 60) for turn in range(3))
    assert not is_daily_counter(runs)
    assert not is_daily_counter(())
    assert not is_daily_counter(runs[:1])
    assert not is_daily_counter((Run(VOLATILE, NOW, NOW + 60),))
    uneven = [(10, 0), (11, 1), (15, 2)]
    apart = tuple(Run(digest_term(f"{value}"), NOW + day * DAY, NOW + day * DAY + 60) for value, day in uneven)
    assert not is_daily_counter(apart)
    assert not is_daily_counter(apart[:2])
    assert is_daily_counter((*apart[:2], Run(digest_term("12"), NOW + 2 * DAY, NOW + 2 * DAY + 60)))


@given(st.text("ab #-.ä", max_size=5), st.text("xy%)!", max_size=5), st.integers(0, 999_999), st.integers(0, 999_999))
def test_difference_by_one_integer_gives_its_step(before: str, after: str, first: int, second: int) -> None:
    rest = digest_term("word")
    first_digest, second_digest = (rest + digest_term(f"{before}{value}{after}") for value in (first, second))
    assert integer_change(first_digest, second_digest) == scale_integer(second) - scale_integer(first)
    signed = (second_digest + 2**63) % 2**64 - 2**63
    assert integer_change(first_digest, signed) == scale_integer(second) - scale_integer(first)


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
