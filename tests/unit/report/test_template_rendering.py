"""How figures are written, and charts drawn."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sitemap_middleware.report import svg_charts, template_rendering
from sitemap_middleware.report.reasons_without_details import without_details


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "–"),
        (0, 7, "0 %"),
        (7, 7, "100 %"),
        (1, 3, "33 %"),
        (1, 999, "0.1 %"),
        (998, 999, "99.9 %"),
        (5, 100, "5.0 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(part: int, whole: int, text: str) -> None:
    assert template_rendering.percent(part, whole) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (52_428_800, "52.4 MB"), (10**16, "10000.0 TB")],
)
def test_sizes_have_units_of_a_thousand(count: int, text: str) -> None:
    assert template_rendering.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 seconds"), (1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (7300, "2 hours"), (90_000, "1 day")],
)
def test_an_age_is_written_in_its_largest_unit(seconds: int, text: str) -> None:
    assert template_rendering.age(seconds) == text


def test_only_pages_on_the_web_are_linked() -> None:
    assert template_rendering.web("https://example.com/") == "https://example.com/"
    for url in ("javascript:alert(1)", "data:text/html,x", "//example.com", "", "JAVASCRIPT:x", " https://x"):
        assert template_rendering.web(url) is None


@pytest.mark.parametrize("largest", [0, 1, 4, 5, 13, 27, 29, 99, 1234, 28_000, 999_999])
def test_the_axis_ends_at_a_number_whose_quarters_are_round(largest: int) -> None:
    chart = str(svg_charts.weeks_chart([svg_charts.WeekCounts("2026-11-23", {"new": largest})], ("new",), "Changes"))
    labels = [int(text.replace(",", "")) for text in re.findall(r">([\d,]+)</text>", chart)]
    assert labels == [labels[1] * number for number in range(5)]
    assert largest <= labels[-1] <= max(4, 2 * largest + 2)


def test_texts_of_charts_are_escaped() -> None:
    hostile: Any = "</title><script>alert(1)</script>"
    span = svg_charts.Span(0, 5, "0", hostile)
    for chart in (
        svg_charts.weeks_chart([svg_charts.WeekCounts(hostile, {"new": 1})], ("new",), hostile),
        svg_charts.timeline([(hostile, [span])], 0, 5, (hostile, hostile)),
    ):
        assert "<script" not in chart
        assert "style=" not in chart


@pytest.mark.parametrize(
    ("reason", "group"),
    [
        ("it answered 403", "it answered 403"),
        ("its canonical URL is another: https://x/\n: y", "its canonical URL is another"),
        (
            "it has the same content as /a, which was known before it",
            "it has the same content as a page that was known before it",
        ),
        ("it is image/png, not a page", "it is of a media type that is not a page"),
    ],
)
def test_reasons_that_differ_in_a_detail_are_one_group(reason: str, group: str) -> None:
    assert without_details(reason) == group
