"""changefreq="auto": the rate of change that histories prove, and the word for it, or none."""

from __future__ import annotations

import math
from email.utils import formatdate
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import OptionError, sitemap
from sitemap_middleware.evidence import changefreq as rate
from sitemap_middleware.evidence.changefreq import (
    MIN_INTERVALS,
    MIN_SINGLE_VALUES,
    RATE_RANGES,
    UNSEEN_CHANGE_SECONDS,
    ChangeCounts,
    _ranges,
    changefreq,
    estimate_rate,
    is_above,
    is_below,
    likeliest_rate,
)
from sitemap_middleware.evidence.observation_merge import REFRESH_SECONDS, merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.models import CHANGEFREQS, Page
from sitemap_middleware.observation.sampling_schedule import MAX_SAMPLE_INTERVAL_SECONDS
from sitemap_middleware.value_history import MAX_RUNS, VOLATILE, History, add_sighting

from ...support import sample_sites
from ...support.observed_pages import signals_of
from ...support.sample_sites import SampleSite

HOUR, DAY = 3600, 86_400
NOW = 1_750_000_000
ALONE = SiteSignals()
BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])

lengths = st.floats(1, 1e8)
watched = st.builds(
    lambda unchanged, changed, more: ChangeCounts(unchanged, changed, len(changed) + more),
    lengths,
    st.lists(lengths, min_size=1, max_size=40),
    st.integers(1, 100),
)
runs = st.tuples(st.integers(-3, 9), st.integers(NOW, NOW + 400 * DAY))
histories = st.lists(runs, max_size=60)


def page(contents: History = (), moments: History = (), last_modified: int | None = None) -> Page:
    return Page(
        "/",
        "/",
        NOW,
        NOW,
        200,
        "text/html",
        content_history=contents,
        last_modified_history=moments,
        last_modified=last_modified,
    )


def history(sights: list[tuple[int, int]]) -> History:
    known_runs: History = ()
    for value, at in sights:
        known_runs = add_sighting(known_runs, value, at)
    return known_runs


def every(seconds: float, changes: int = MAX_RUNS - 1, visits: int = 5) -> History:
    """The history of a page that changes regularly, and is visited as regularly, so many times between two changes."""
    step = seconds / visits
    return history([(number // visits, NOW + int(number * step)) for number in range((changes + 1) * visits)])


def word(contents: History, around: SiteSignals = ALONE) -> str | None:
    return changefreq(page(contents), around).word


# The estimators


@given(st.integers(1, 200), st.data(), st.floats(1, 1e7))
def test_with_regular_visits_it_is_the_regular_estimator(n: int, data: st.DataObject, interval: float) -> None:
    changed = data.draw(st.integers(0, n))
    estimate = estimate_rate(ChangeCounts((n - changed) * interval, [interval] * changed, n))
    assert math.isclose(estimate, -math.log((n - changed + 0.5) / (n + 0.5)) / interval, rel_tol=1e-6, abs_tol=1e-15)


@given(watched)
def test_likeliest_rate_solves_the_equation_of_irregular_visits(seen: ChangeCounts) -> None:
    estimate = likeliest_rate(seen)
    solved = sum(
        interval / math.expm1(estimate * interval) if estimate * interval < 700 else 0.0 for interval in seen.changed
    )
    assert math.isclose(solved, seen.unchanged, rel_tol=1e-5)


@given(watched, st.sampled_from([0.5, 2, 10]))
def test_times_twice_as_long_halve_the_rate(seen: ChangeCounts, factor: float) -> None:
    longer = ChangeCounts(seen.unchanged * factor, [interval * factor for interval in seen.changed], seen.intervals)
    assert math.isclose(estimate_rate(longer) * factor, estimate_rate(seen), rel_tol=1e-6)
    moments = ChangeCounts(seen.unchanged, [0.0] * len(seen.changed), seen.intervals)
    later = moments._replace(unchanged=seen.unchanged * factor)
    assert math.isclose(rate.estimate_rate_of_dated(later) * factor, rate.estimate_rate_of_dated(moments), rel_tol=1e-6)


@given(st.lists(lengths, min_size=2, max_size=30), st.data())
def test_the_more_of_the_intervals_changed_the_higher_the_rate(intervals: list[float], data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, len(intervals) - 1))
    rates = [
        estimate_rate(ChangeCounts(sum(intervals[many:]), intervals[:many], len(intervals)))
        for many in (changed, changed + 1)
    ]
    assert rates[0] < rates[1]
    dated = [
        rate.estimate_rate_of_dated(ChangeCounts(sum(intervals), [0.0] * many, 31)) for many in (changed, changed + 1)
    ]
    assert dated[0] < dated[1]


@given(watched, st.floats(1e-10, 1))
def test_likeliest_rate_lies_inside_every_interval(seen: ChangeCounts, at: float) -> None:
    assert not (is_above(seen, at) and is_below(seen, at))
    assert not is_above(seen, likeliest_rate(seen))
    assert not is_below(seen, likeliest_rate(seen))


def test_changes_alone_leave_the_rate_open_upwards() -> None:
    seen = ChangeCounts(0.0, [DAY] * 10, 10)
    assert is_above(seen, 1 / DAY)
    assert not is_below(seen, 1e9)
    assert is_above(ChangeCounts(0.0, [0.0], 10), 1e9)


def test_rate_without_changes_has_no_lower_bound() -> None:
    seen = ChangeCounts(10 * DAY, [], 10)
    assert estimate_rate(seen) == rate.estimate_rate_of_dated(seen) == 0
    assert is_below(seen, 1 / DAY)
    assert not is_above(seen, 1e-12)


def test_first_known_date_is_dropped_only_if_every_visit_showed_a_new_one() -> None:
    assert rate.estimate_rate_of_dated(ChangeCounts(10 * DAY, [0.0] * 10, 10)) == 9 / (10 * DAY)
    assert math.isclose(rate.estimate_rate_of_dated(ChangeCounts(10 * DAY, [0.0], 10_000)) * 10 * DAY, 1, rel_tol=1e-3)


@pytest.mark.parametrize("pace", [0.1, 0.5, 1.5])
def test_the_mean_of_many_estimates_is_the_truth(pace: float) -> None:
    random, total = Random(1), 0.0
    for _ in range(2000):
        intervals = [random.expovariate(1) for _ in range(40)]
        changed = [interval for interval in intervals if random.random() < -math.expm1(-pace * interval)]
        total += estimate_rate(ChangeCounts(sum(intervals) - sum(changed), changed, 40))
    assert math.isclose(total / 2000, pace, rel_tol=0.05)


# The words


def test_the_words_share_out_the_rates_between_them() -> None:
    assert tuple(_ranges()) == RATE_RANGES, "they are made when the module is imported"
    assert [name for name, _, _ in RATE_RANGES] == [freq for freq in CHANGEFREQS if freq not in ("always", "never")]
    for (_, lowest, _), (_, _, highest) in pairwise(RATE_RANGES):
        assert lowest == highest
    assert [round(1 / lowest / HOUR, 1) for _, lowest, _ in RATE_RANGES[:2]] == [4.9, 63.5]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (HOUR / 6, None),
        (HOUR, "hourly"),
        (5 * HOUR, None),
        (DAY, "daily"),
        (2.6 * DAY, None),
        (6 * DAY, "weekly"),
        (14 * DAY, None),
        (40 * DAY, "monthly"),
        (110 * DAY, None),
        (400 * DAY, "yearly"),
        (9 * 365 * DAY, None),
    ],
)
def test_word_is_given_if_all_likely_rates_are_in_its_range(seconds: float, expected: str | None) -> None:
    assert word(every(seconds)) == expected


def test_hourly_page_is_recognised_if_last_modified_hides_nothing() -> None:
    seen = ChangeCounts(7 * HOUR, [0.0] * 20, 40)
    lowest, highest = RATE_RANGES[0][1:]
    assert is_above(seen, lowest)
    assert is_below(seen, highest)


def test_too_few_intervals_give_no_word() -> None:
    assert word(every(6 * DAY, changes=5)) == "weekly"
    result = changefreq(page(every(6 * DAY, changes=4)), ALONE)
    assert result.word is None
    assert result.source == "4 changes seen in 29 days are too few to tell"


@given(histories)
def test_no_history_raises_and_little_is_silent(sights: list[tuple[int, int]]) -> None:
    seen = history(sights)
    for known in (page(seen), page(moments=seen, last_modified=seen[-1].value if seen else None)):
        result = changefreq(known, signals_of([known]))
        assert result.word not in ("always", "never")
        if sum(run.was_repeated for run in seen) + len(seen) - 1 < MIN_INTERVALS:
            assert result.word is None


@given(st.lists(st.tuples(st.integers(0, 400 * DAY), st.integers(0, 60 * DAY)), min_size=5, max_size=MAX_RUNS))
def test_no_last_modified_raises(stood: list[tuple[int, int]]) -> None:
    sights = [(NOW + start - 100, NOW + start + more) for start, length in stood for more in (0, length)]
    seen = history(sights)
    assert changefreq(page(moments=seen, last_modified=seen[-1].value), ALONE).word not in ("always", "never")


@given(histories, st.randoms(use_true_random=False))
def test_word_does_not_depend_on_the_order_of_visits(sights: list[tuple[int, int]], order: Any) -> None:
    results = []
    for _ in range(2):
        known = None
        for value, at in [*sights, *sights]:
            known = merge(known, Observation("/", "/", at, 200, "text/html", last_modified=NOW - 1000 + value))
        results.append(changefreq(known, ALONE))
        order.shuffle(sights)
    assert results[0] == results[1]


def test_a_page_that_was_never_seen_has_no_word() -> None:
    assert changefreq(None, ALONE).word is None


def test_content_that_comes_and_goes_has_no_word() -> None:
    sights = [(number % 3, NOW + number * DAY) for number in range(60)]
    assert word(history(sights)) is None


def test_content_that_is_new_each_time_has_no_word() -> None:
    assert word(history([(number, NOW + number * DAY) for number in range(60)])) is None


@pytest.mark.parametrize(("seen_once", "expected"), [(MIN_SINGLE_VALUES - 1, "weekly"), (MIN_SINGLE_VALUES, None)])
def test_a_few_contents_may_have_been_seen_once_alone(seen_once: int, expected: str | None) -> None:
    calm = every(6 * DAY)
    once = tuple(run._replace(last=run.first) for run in calm[1 : 1 + seen_once])
    assert word((calm[0], *once, *calm[1 + seen_once :])) == expected


def test_content_that_varies_by_the_second_has_no_changefreq() -> None:
    assert word(add_sighting(every(6 * DAY, changes=MAX_RUNS - 2), VOLATILE, NOW - 1)) is None


def test_single_odd_answer_is_not_a_change() -> None:
    calm = every(6 * DAY)
    odd = add_sighting(tuple(calm[1:]), 99, (calm[4].first + calm[4].last) // 2)
    assert changefreq(page(tuple(calm[1:])), ALONE) == changefreq(page(odd), ALONE)


def test_overlap_of_restarting_workers_counts_as_one_change() -> None:
    calm = every(6 * DAY)
    result = changefreq(page(add_sighting(calm, calm[3].value, calm[4].first + 60)), ALONE)
    assert (result.word, result.source) == ("weekly", "from 7 changes seen in 47 days")


def test_hidden_changes_cover_unwritten_and_unsampled_visits() -> None:
    assert UNSEEN_CHANGE_SECONDS == REFRESH_SECONDS + MAX_SAMPLE_INTERVAL_SECONDS


def test_unwritten_visits_may_have_shown_no_change() -> None:
    """Each content was seen for an hour, the next one three hours later: when it changed in between is unknown."""
    sights = [(number // 2, NOW + number // 2 * 4 * HOUR + number % 2 * HOUR) for number in range(2 * MAX_RUNS)]
    _, lowest, highest = RATE_RANGES[0]
    taken_as_it_stands = ChangeCounts(MAX_RUNS * HOUR, [3 * HOUR] * (MAX_RUNS - 1), 2 * MAX_RUNS - 1)
    assert is_above(taken_as_it_stands, lowest)
    assert is_below(taken_as_it_stands, highest)
    assert word(history(sights)) is None


def test_changes_of_a_template_do_not_count() -> None:
    pages = [page(tuple(run._replace(value=run.value + 100 * number) for run in every(6 * DAY))) for number in range(9)]
    assert {changefreq(known, signals_of(pages)).word for known in pages} == {None}
    assert changefreq(pages[0], signals_of(pages[:1])).word == "weekly"


# Last-Modified


def dated(seconds: float, lag: int = HOUR, changes: int = MAX_RUNS - 1) -> Page:
    """A page that was changed every so often, each time so long before it was next seen, and twice in between."""
    sights = [
        (NOW + int(number * seconds) - lag, NOW + int(number * seconds + more * seconds / 3))
        for number in range(changes + 1)
        for more in range(3)
    ]
    return page(moments=history(sights), last_modified=sights[-1][0])


@pytest.mark.parametrize(("seconds", "expected"), [(DAY, "daily"), (6 * DAY, "weekly"), (40 * DAY, "monthly")])
def test_last_modified_dates_each_change(seconds: float, expected: str) -> None:
    result = changefreq(dated(seconds), ALONE)
    assert result.word == expected
    assert result.source.startswith("from 7 changes of Last-Modified in ")


def test_distrusted_last_modified_leaves_changefreq_to_the_content() -> None:
    contents = every(6 * DAY)
    dated_page = dated(40 * DAY)
    moments = dated_page.last_modified_history
    a_clock = tuple(run._replace(value=run.first, last=run.first) for run in moments)
    back = tuple(run._replace(value=2 * NOW - run.value) for run in moments)
    late = tuple(run._replace(value=run.value - 60 * DAY) for run in moments)
    for doubtful in (a_clock, back, late, moments[:1], ()):
        last_modified = doubtful[-1].value if doubtful else None
        result = changefreq(page(contents, doubtful, last_modified), ALONE)
        assert (result.word, result.source) == ("weekly", "from 7 changes seen in 47 days")
    believed = changefreq(page(contents, moments, dated_page.last_modified), ALONE)
    assert believed.word == "monthly"
    deployed = SiteSignals(deployed=(moments[3].value, moments[3].value))
    assert changefreq(page(contents, moments, dated_page.last_modified), deployed).word == "weekly"


def test_last_modified_that_the_page_no_longer_sends_leaves_changefreq_to_the_content() -> None:
    result = changefreq(page(every(6 * DAY), dated(40 * DAY).last_modified_history), ALONE)
    assert (result.word, result.source) == ("weekly", "from 7 changes seen in 47 days")


# Through the whole house


def html(content: object) -> sample_sites.Page:
    return sample_sites.Page(body=f"<html><body><main>Issue {content}</main></body></html>".encode())


def live(site: SampleSite, days: int) -> None:
    """Let the first page be changed every six days, each further one a day less often, and visit all thrice a day."""
    for _ in range(days * 3):
        for number, path in enumerate(site.pages):
            site.pages[path] = html(int(site.clock() / DAY / (6 + number)))
        site.visit(*site.pages)
        site.clock.pass_(8 * HOUR)


def home(site: SampleSite) -> dict[str, str]:
    return site.entries()["http://testserver/"]


@BOTH
def test_inferred_changefreq_is_written_and_explained(protocol: str) -> None:
    site = SampleSite(protocol, {"/": html(0)}, changefreq="auto")
    assert "changefreq" not in home(site)
    assert "changefreq: none (no changes" in str(site.app.explain("/"))
    live(site, 20)
    assert "changefreq" not in home(site)
    live(site, 60)
    assert home(site)["changefreq"] == "weekly"
    explanation = site.app.explain("/")
    assert explanation.changefreq_source is not None
    assert f"\nchangefreq: weekly ({explanation.changefreq_source})\n" in str(explanation)
    assert explanation.changefreq_source.startswith("from 7 changes seen in ")


@BOTH
def test_a_last_modified_gives_a_changefreq_too(protocol: str) -> None:
    site = SampleSite(protocol, {"/": html(0)}, changefreq="auto")
    for number in range(24):
        edited = site.clock() - number % 3 * 2 * DAY - 5 * HOUR
        site.pages["/"] = html(number // 3).with_headers(("last-modified", formatdate(edited, usegmt=True)))
        site.visit("/")
        site.clock.pass_(2 * DAY)
    assert home(site)["changefreq"] == "weekly"
    assert "changes of Last-Modified" in str(site.app.explain("/"))


@BOTH
@pytest.mark.parametrize("delay", [5 * HOUR, 7 * HOUR])
def test_last_modified_that_moves_without_content_gives_no_changefreq(protocol: str, delay: int) -> None:
    site = SampleSite(protocol, {"/": html(0)}, changefreq="auto")
    for number in range(24):
        edited = site.clock() - number % 3 * 2 * DAY - delay
        site.pages["/"] = html(0).with_headers(("last-modified", formatdate(edited, usegmt=True)))
        site.visit("/")
        site.clock.pass_(2 * DAY)
    assert "changefreq" not in home(site)


def test_developer_value_wins_over_inference_and_decorator_over_option() -> None:
    marks = {"/own": sitemap(changefreq="never"), "/auto": sitemap(changefreq="auto")}
    for option, expected in (("auto", ("weekly", "never", "weekly")), ("daily", ("daily", "never", "weekly"))):
        site = SampleSite("wsgi", {path: html(0) for path in ("/", "/own", "/auto")}, marks=marks, changefreq=option)
        live(site, 60)
        listed = site.entries()
        assert tuple(listed[f"http://testserver{path}"]["changefreq"] for path in ("/", "/own", "/auto")) == expected
        assert site.app.explain("/own").changefreq_source is None


def test_a_site_without_the_option_infers_nothing() -> None:
    site = SampleSite("wsgi", {"/": html(0)})
    live(site, 60)
    assert "changefreq" not in home(site)
    assert "changefreq" not in str(site.app.explain("/"))


def test_misspelled_auto_is_refused_with_a_hint() -> None:
    with pytest.raises(OptionError, match=r"give one of always, .*, never, or \"auto\" to infer it"):
        SampleSite("wsgi", {}, changefreq="Auto")
