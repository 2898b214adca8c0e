"""Directives of robots tags and refreshes, as search engines read them."""

from __future__ import annotations

from calendar import timegm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.response_headers import RobotsDirectives, parse_robots, refresh_target

PAST = timegm((2010, 6, 25, 15, 0, 0))


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        ("2010-06-25T15:00:00Z", PAST),
        ("2010-06-25T20:30:00+05:30", PAST),
        ("2010-06-25 15:00:00.123", PAST),
        ("2010-06-25", timegm((2010, 6, 26, 0, 0, 0))),
        ("Fri, 25 Jun 2010 15:00:00 GMT", PAST),
        ("25 Jun 2010 15:00:00 PST", PAST + 8 * 3600),
        ("Friday, 25-Jun-10 15:00:00 GMT", PAST),
        ("25 Jun 2010", timegm((2010, 6, 26, 0, 0, 0))),
        ("Fri Jun 25 15:00:00 2010", PAST),
        ("Jun 25, 2010 15:00", PAST),
        ("'2010-06-25T15:00:00Z'", PAST),
        ("tomorrow", None),
        ("2010-06-32", None),
        ("", None),
    ],
)
def test_when_a_page_leaves_search_engines(date: str, moment: int | None) -> None:
    for value in (
        f"unavailable_after: {date}",
        f"UNAVAILABLE_AFTER:{date.upper()}",
        f"nofollow, unavailable_after: {date}",
        f"unavailable_after: {date}, nofollow",
        f"googlebot: unavailable_after: {date}",
    ):
        assert parse_robots([value], agents=True) == RobotsDirectives(False, moment)
        assert parse_robots([f"noindex, {value}"], agents=True).noindex
        assert parse_robots([f"{value}, noindex"], agents=True).noindex
    assert parse_robots([f"otherbot: unavailable_after: {date}, noindex"], agents=True) == RobotsDirectives(False, None)
    assert parse_robots([f"unavailable_after: {date}", "unavailable_after: 2099-01-01"], agents=True).expires_at == (
        moment or timegm((2099, 1, 2, 0, 0, 0))
    )


@pytest.mark.parametrize(
    "value",
    [
        '"noindex"',
        "noindex:",
        "none:",
        '"noindex, nofollow"',
        '"googlebot: noindex"',
        "nofollow, noindex:, noarchive",
        "noindex: nofollow",
    ],
)
@pytest.mark.parametrize("agents", [False, True])
def test_directive_that_is_written_oddly_keeps_the_page_out(value: str, *, agents: bool) -> None:
    assert parse_robots([value], agents=agents).noindex


@pytest.mark.parametrize("value", ['"index"', "no-index", "index:", "'all'", 'max-snippet: "noindex"', '"noindexing"'])
@pytest.mark.parametrize("agents", [False, True])
def test_other_directives_keep_no_page_out(value: str, *, agents: bool) -> None:
    assert not parse_robots([value], agents=agents).noindex


@pytest.mark.parametrize("value", ['otherbot: "noindex"', "otherbot: noindex:", "otherbot: nofollow, noindex:"])
def test_odd_directive_for_another_robot_does_not_count(value: str) -> None:
    assert not parse_robots([value], agents=True).noindex


def test_in_html_a_tag_is_for_every_robot() -> None:
    assert parse_robots(["otherbot: noindex"], agents=False).noindex
    assert parse_robots(["unavailable_after: 2010-06-25T15:00:00Z; nofollow"], agents=False) == RobotsDirectives(
        False, PAST
    )


@given(st.text("abcnoindex:,;- 0123", max_size=200) | st.text(max_size=50), st.booleans())
def test_any_text_is_a_value(text: str, agents: bool) -> None:
    assert (
        parse_robots([text], agents=agents) == parse_robots([text.upper(), text], agents=agents) or not text.isascii()
    )
    target = refresh_target(text)
    assert target is None or target in text


@pytest.mark.parametrize(
    "part", ["unavailable_after: ", "unavailable_after: 25 jun ", "noindex,", "a:", "max-snippet: "]
)
def test_values_take_a_time_that_is_bounded(part: str) -> None:
    parse_robots([part * 1_000_000], agents=True)
    refresh_target(part * 1_000_000)
