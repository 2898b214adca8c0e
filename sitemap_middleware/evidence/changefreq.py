"""`changefreq="auto"`: estimates how often a page changes from its observed changes.

Changes are modelled as a Poisson process, of which only differences between two visits are observed. The estimators
are those of Cho and Garcia-Molina, "Estimating frequency of change", ACM TOIT 3 (2003). A word is given only if all
rates in the 80 % interval lie within its range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from ..dates import CLOCK_SKEW_SECONDS
from ..models import Changefreq, Page
from ..value_history import VOLATILE, History, Run, last_change
from .daily_number_changes import without_number_changes
from .generated_dates import changes_without_content, is_credible
from .observation_merge import REFRESH_SECONDS
from .site_signals import SiteSignals

MIN_INTERVALS: Final = 10
"""Minimum number of observed intervals between visits. With fewer, nothing is inferred."""

LOG_LIKELIHOOD_DROP: Final = 0.8212
"""By how much the log-likelihood has fallen at the ends of the 80 % interval: half of chi-square's quantile."""

UNSEEN_CHANGE_SECONDS: Final = REFRESH_SECONDS + 15 * 60
"""Seconds after a stored visit in which further visits may be missing: not every visit is written or sampled."""

MIN_SINGLE_VALUES: Final = 3
"""A page with this many values that were seen only once may be new at every visit, so it has no rate of change."""

_TYPICAL_SECONDS: Final[tuple[tuple[Changefreq, float], ...]] = (
    ("hourly", 3600.0),
    ("daily", 86_400.0),
    ("weekly", 7 * 86_400.0),
    ("monthly", 365.25 / 12 * 86_400.0),
    ("yearly", 365.25 * 86_400.0),
)
"""The time between two changes that each word means. "always" and "never" are not inferred."""


def _ranges() -> Iterator[tuple[Changefreq, float, float]]:
    seconds = [length for _, length in _TYPICAL_SECONDS]
    borders = [math.sqrt(shorter * longer) for shorter, longer in pairwise(seconds)]
    ends = [seconds[0] ** 2 / borders[0], *borders, seconds[-1] ** 2 / borders[-1]]
    for (word, _), (shortest, longest) in zip(_TYPICAL_SECONDS, pairwise(ends), strict=True):
        yield word, 1 / longest, 1 / shortest


RATE_RANGES: Final = tuple(_ranges())
"""Each word with its lowest and highest rate: the geometric means with its neighbours. The ends of the scale reach
as far outwards as inwards."""


@dataclass(frozen=True, slots=True)
class ChangefreqResult:
    """An inferred changefreq, or None, and the evidence for that."""

    word: Changefreq | None
    source: str


class ChangeCounts(NamedTuple):
    """The observed changes of a page. Only the total time without a change matters, not how visits divide it."""

    unchanged: float
    """Total seconds in which it did not change."""
    changed: Sequence[float]
    """The length of each interval in which it changed at least once; 0 if the time of the change is known."""
    intervals: int
    """The known number of intervals of both kinds."""


class _RateEstimate(NamedTuple):
    rate: float
    """Changes a second, as estimated."""
    counts: ChangeCounts
    slower: ChangeCounts
    """The same if as many visits as possible are missing, and none of them showed a change."""
    source: str


def changefreq(page: Page | None, signals: SiteSignals) -> ChangefreqResult:
    """The changefreq of a page, as far as the evidence shows it."""
    estimate = None if page is None else _estimate_by_dates(page, signals) or _estimate_by_contents(page, signals)
    if estimate is None:
        return ChangefreqResult(None, "no changes of its own were observed, or they come and go")
    if estimate.counts.intervals < MIN_INTERVALS:
        return ChangefreqResult(None, f"{estimate.source} are too few to tell")
    for word, lowest, highest in RATE_RANGES:
        if (
            lowest < estimate.rate < highest
            and is_above(estimate.slower, lowest)
            and is_below(estimate.counts, highest)
        ):
            return ChangefreqResult(word, f"from {estimate.source}")
    return ChangefreqResult(None, f"{estimate.source} leave more than one word open, or none")


# The estimators


def estimate_rate(counts: ChangeCounts) -> float:
    """Changes per second, from intervals of any length: the estimator for irregular visits.

    Half a mean interval is added to the time without a change. That removes most of the bias of few visits. For regular
    visits it gives the paper's estimator, -log((n - X + 1/2) / (n + 1/2)) * f.
    """
    mean = (counts.unchanged + sum(counts.changed)) / max(1, counts.intervals)
    return likeliest_rate(counts._replace(unchanged=counts.unchanged + mean / 2))


def estimate_rate_of_dated(counts: ChangeCounts) -> float:
    """Changes per second, if each visit shows when the last change was: the estimator for known dates."""
    changes, intervals = len(counts.changed), counts.intervals
    if not changes:
        return 0.0
    correction = changes / (intervals * math.log1p(-changes / intervals)) if changes < intervals else 0.0
    return (changes - 1 - correction) / counts.unchanged


def likeliest_rate(counts: ChangeCounts) -> float:
    """The maximum-likelihood rate: the sum over `changed` of I / (exp(rate * I) - 1) equals `unchanged`."""
    if not counts.changed:
        return 0.0
    if counts.unchanged <= 0:
        return math.inf
    # I / (exp(rate * I) - 1) is 1 / rate - I / 2 at least, so this is not above the solution; and the sum
    # being convex, Newton's steps only rise towards it.
    rate = len(counts.changed) / (counts.unchanged + sum(counts.changed) / 2)
    while True:
        excess, slope = -counts.unchanged, 0.0
        for length in counts.changed:
            still, not_still = math.exp(-rate * length), -math.expm1(-rate * length)
            excess += length * still / not_still if length else 1 / rate
            slope += (length / not_still) ** 2 * still if length else 1 / rate**2
        step = excess / slope
        rate += step
        if step <= rate * 1e-9:
            return rate


def is_above(counts: ChangeCounts, rate: float) -> bool:
    """Whether the whole 80 % interval lies above this rate."""
    best = likeliest_rate(counts)
    return best > rate and _likelihood_drop(counts, best, rate) >= LOG_LIKELIHOOD_DROP


def is_below(counts: ChangeCounts, rate: float) -> bool:
    """Whether the whole 80 % interval lies below this rate."""
    best = likeliest_rate(counts)
    return best < rate and _likelihood_drop(counts, best, rate) >= LOG_LIKELIHOOD_DROP


def _likelihood_drop(counts: ChangeCounts, best: float, rate: float) -> float:
    return _log_likelihood(counts, best) - _log_likelihood(counts, rate)


def _log_likelihood(counts: ChangeCounts, rate: float) -> float:
    """The log-likelihood of the observations at a rate. A change at a known time counts by its density."""
    changed = sum(math.log(-math.expm1(-rate * length) if length else rate) for length in counts.changed)
    return changed - (rate * counts.unchanged if counts.unchanged else 0.0)


# The observations


def _estimate_by_dates(page: Page, signals: SiteSignals) -> _RateEstimate | None:
    """An estimate from Last-Modified, if that is credible, not a deployment's, and advances as the page changes."""
    if any(signals.deployed_at(run.value) for run in page.last_modified_history) or not _is_settled(
        page.last_modified_history
    ):
        return None
    if page.last_modified is None or not is_credible(page.last_modified_history, page.last_modified):
        return None
    if changes_without_content(page.last_modified_history, page.content_history, signals.deployed_at):
        return None
    runs = _in_order(page.last_modified_history)
    if not all(_is_consistent_move(before, after) for before, after in pairwise(runs)):
        return None
    known = [(before.last, min(max(after.value, before.last), after.first)) for before, after in pairwise(runs)]
    unchanged = sum(run.last - run.first for run in runs)
    unchanged += sum(run.first - moment for run, (_, moment) in zip(runs[1:], known, strict=True))
    counts = ChangeCounts(unchanged, (0.0,) * len(known), _intervals(runs))
    hidden = sum(min(UNSEEN_CHANGE_SECONDS, moment - last) for last, moment in known)
    source = f"{len(known)} changes of Last-Modified in {_duration(runs)}"
    return _RateEstimate(estimate_rate_of_dated(counts), counts, counts._replace(unchanged=unchanged + hidden), source)


def _estimate_by_contents(page: Page, signals: SiteSignals) -> _RateEstimate | None:
    """An estimate from the content, if that is not volatile.

    Changes that may be a template's do not count, nor those of a daily counter.
    """
    contents = without_number_changes(signals.own_content_history(page))
    if not _is_settled(contents):
        return None
    runs = _in_order(contents)
    gaps = [max(1, after.first - before.last) for before, after in pairwise(runs)]
    hidden = [min(UNSEEN_CHANGE_SECONDS, gap) for gap in gaps]
    unchanged, intervals = sum(run.last - run.first for run in runs), _intervals(runs)
    slower = ChangeCounts(
        unchanged + sum(hidden), [gap - least for gap, least in zip(gaps, hidden, strict=True)], intervals
    )
    source = f"{len(gaps)} changes seen in {_duration(runs)}"
    counts = ChangeCounts(unchanged, gaps, intervals)
    return _RateEstimate(estimate_rate(counts), counts, slower, source)


def _is_settled(history: History) -> bool:
    """Whether values replaced each other for good, and few were seen only once."""
    if (
        any(run.value == VOLATILE for run in history)
        or sum(not run.was_repeated for run in history) >= MIN_SINGLE_VALUES
    ):
        return False
    return last_change(history) is not None


def _is_consistent_move(before: Run, after: Run) -> bool:
    """Whether a Last-Modified lies between the last visit with the one before and its own first visit, as it must."""
    return (
        before.value < after.value
        and before.last - CLOCK_SKEW_SECONDS <= after.value <= after.first + CLOCK_SKEW_SECONDS
    )


def _in_order(history: History) -> list[Run]:
    """The runs in the order of time without overlaps, and without those that lie within another."""
    runs: list[Run] = []
    for run in sorted(history, key=lambda run: (run.first, run.last)):
        if not runs:
            runs.append(run)
        elif run.last > runs[-1].last:
            runs.append(run._replace(first=max(run.first, runs[-1].last)))
    return runs


def _intervals(runs: Sequence[Run]) -> int:
    """The number of intervals between visits that the runs prove: one in each repeated run, one between two runs."""
    return sum(run.was_repeated for run in runs) + len(runs) - 1


def _duration(runs: Sequence[Run]) -> str:
    hours = (runs[-1].last - runs[0].first) / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
