"""`changefreq="auto"`: how often a page changes, from the changes that were seen of it.

Changes are taken to come by chance at an even rate (a Poisson process), and to be
seen only as a difference between two sights. The estimators are those of Cho and
Garcia-Molina, "Estimating frequency of change", ACM TOIT 3 (2003). A word is given
only where the rates that are likely, by the 80 % interval, all lie in its range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from ..dates import CLOCK_SKEW_SECONDS
from ..history import VOLATILE, History, Run, last_change
from ..models import Changefreq, Page
from .generated_dates import changes_without_content, is_credible
from .merge import REFRESH_SECONDS
from .site_signals import SiteSignals

MIN_INTERVALS: Final = 10
"""Intervals between sights that must be known of a page."""

LOG_LIKELIHOOD_DROP: Final = 0.8212
"""By how much the log-likelihood has fallen at the ends of the 80 % interval: half of chi-square's quantile."""

UNSEEN_CHANGE_SECONDS: Final = REFRESH_SECONDS + 15 * 60
"""Seconds after one sight within which others may have been that were not written down, or not sampled."""

MIN_SINGLE_VALUES: Final = 3
"""Values seen once alone, from which on a page may be new on every sight, and is nothing that changes at a rate."""

_TYPICAL_SECONDS: Final[tuple[tuple[Changefreq, float], ...]] = (
    ("hourly", 3600.0),
    ("daily", 86_400.0),
    ("weekly", 7 * 86_400.0),
    ("monthly", 365.25 / 12 * 86_400.0),
    ("yearly", 365.25 * 86_400.0),
)
"""What the words say, in seconds between two changes. "always" and "never" are never inferred."""


def _ranges() -> Iterator[tuple[Changefreq, float, float]]:
    seconds = [length for _, length in _TYPICAL_SECONDS]
    borders = [math.sqrt(shorter * longer) for shorter, longer in pairwise(seconds)]
    ends = [seconds[0] ** 2 / borders[0], *borders, seconds[-1] ** 2 / borders[-1]]
    for (word, _), (shortest, longest) in zip(_TYPICAL_SECONDS, pairwise(ends), strict=True):
        yield word, 1 / longest, 1 / shortest


RATE_RANGES: Final = tuple(_ranges())
"""Each word, and its lowest and highest rate: the geometric means with its neighbours; outwards as far as inwards."""


@dataclass(frozen=True, slots=True)
class ChangefreqResult:
    """A changefreq that was inferred, and what it rests on; no word where nothing can be told, and why."""

    word: Changefreq | None
    source: str


class ChangeCounts(NamedTuple):
    """What was seen of a page's changes. To cut an interval without a change in two would say nothing more."""

    unchanged: float
    """Seconds, in all, in which it did not change."""
    changed: Sequence[float]
    """The lengths of the intervals in which it did, once or more often; 0 where the very moment is known."""
    intervals: int
    """How many there are, of both kinds, as far as that is known."""


class _RateEstimate(NamedTuple):
    rate: float
    """Changes a second, as estimated."""
    watched: ChangeCounts
    slower: ChangeCounts
    """The same, were there unwritten sights, as many as there can be, that showed no change yet."""
    source: str


def changefreq(page: Page | None, around: SiteSignals) -> ChangefreqResult:
    """The word for how often a page changes, and what it rests on; no word where that cannot be told."""
    found = None if page is None else _estimate_by_dates(page, around) or _estimate_by_contents(page, around)
    if found is None:
        return ChangefreqResult(None, "no changes of its own were seen, or what was seen comes and goes")
    if found.watched.intervals < MIN_INTERVALS:
        return ChangefreqResult(None, f"{found.source} are too few to tell")
    for word, lowest, highest in RATE_RANGES:
        if lowest < found.rate < highest and is_above(found.slower, lowest) and is_below(found.watched, highest):
            return ChangefreqResult(word, f"from {found.source}")
    return ChangefreqResult(None, f"{found.source} leave more than one word open, or none")


# The estimators


def estimate_rate(watched: ChangeCounts) -> float:
    """Changes a second, from intervals of any lengths: their irregular estimator.

    Half a mean interval is added to the time without a change. That takes away most of
    the bias of few sights; where they are regular, it makes this their regular
    estimator, -log((n - X + 1/2) / (n + 1/2)) * f.
    """
    mean = (watched.unchanged + sum(watched.changed)) / max(1, watched.intervals)
    return likeliest_rate(watched._replace(unchanged=watched.unchanged + mean / 2))


def estimate_rate_of_dated(watched: ChangeCounts) -> float:
    """Changes a second, where each sight told when the last change was: their estimator for known dates."""
    changes, intervals = len(watched.changed), watched.intervals
    if not changes:
        return 0.0
    correction = changes / (intervals * math.log1p(-changes / intervals)) if changes < intervals else 0.0
    return (changes - 1 - correction) / watched.unchanged


def likeliest_rate(watched: ChangeCounts) -> float:
    """The likeliest rate, at which the sum over `changed` of I / (exp(rate * I) - 1) is `unchanged`."""
    if not watched.changed:
        return 0.0
    if watched.unchanged <= 0:
        return math.inf
    # I / (exp(rate * I) - 1) is 1 / rate - I / 2 at least, so this is no higher than what is sought; and the sum
    # being convex, Newton's steps only ever rise towards that.
    rate = len(watched.changed) / (watched.unchanged + sum(watched.changed) / 2)
    while True:
        excess, slope = -watched.unchanged, 0.0
        for length in watched.changed:
            still, not_still = math.exp(-rate * length), -math.expm1(-rate * length)
            excess += length * still / not_still if length else 1 / rate
            slope += (length / not_still) ** 2 * still if length else 1 / rate**2
        step = excess / slope
        rate += step
        if step <= rate * 1e-9:
            return rate


def is_above(watched: ChangeCounts, rate: float) -> bool:
    """Whether the whole interval of likely rates lies above this one."""
    best = likeliest_rate(watched)
    return best > rate and _likelihood_drop(watched, best, rate) >= LOG_LIKELIHOOD_DROP


def is_below(watched: ChangeCounts, rate: float) -> bool:
    """Whether the whole interval of likely rates lies below this one."""
    best = likeliest_rate(watched)
    return best < rate and _likelihood_drop(watched, best, rate) >= LOG_LIKELIHOOD_DROP


def _likelihood_drop(watched: ChangeCounts, best: float, rate: float) -> float:
    return _log_likelihood(watched, best) - _log_likelihood(watched, rate)


def _log_likelihood(watched: ChangeCounts, rate: float) -> float:
    """Of all that was seen, at a rate; where a moment is known, its density stands for its probability."""
    changed = sum(math.log(-math.expm1(-rate * length) if length else rate) for length in watched.changed)
    return changed - (rate * watched.unchanged if watched.unchanged else 0.0)


# What was seen


def _estimate_by_dates(page: Page, around: SiteSignals) -> _RateEstimate | None:
    """By its Last-Modified, where that is credible, no deployment's, and moves on as the page does."""
    if any(around.deployed_at(run.value) for run in page.last_modified_history) or not _is_settled(
        page.last_modified_history
    ):
        return None
    if page.last_modified is None or not is_credible(page.last_modified_history, page.last_modified):
        return None
    if changes_without_content(page.last_modified_history, page.content_history, around.deployed_at):
        return None
    runs = _in_order(page.last_modified_history)
    if not all(_is_consistent_move(before, after) for before, after in pairwise(runs)):
        return None
    known = [(before.last, min(max(after.value, before.last), after.first)) for before, after in pairwise(runs)]
    unchanged = sum(run.last - run.first for run in runs)
    unchanged += sum(run.first - moment for run, (_, moment) in zip(runs[1:], known, strict=True))
    watched = ChangeCounts(unchanged, (0.0,) * len(known), _intervals(runs))
    hidden = sum(min(UNSEEN_CHANGE_SECONDS, moment - last) for last, moment in known)
    source = f"{len(known)} changes of Last-Modified in {_duration(runs)}"
    return _RateEstimate(
        estimate_rate_of_dated(watched), watched, watched._replace(unchanged=unchanged + hidden), source
    )


def _estimate_by_contents(page: Page, around: SiteSignals) -> _RateEstimate | None:
    """By its content, where that is not volatile. What may have been a change of its template does not count."""
    contents = around.own_content_history(page)
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
    watched = ChangeCounts(unchanged, gaps, intervals)
    return _RateEstimate(estimate_rate(watched), watched, slower, source)


def _is_settled(history: History) -> bool:
    """Whether values took each other's place for good, and few were seen once alone: else they may be new for ever."""
    if (
        any(run.value == VOLATILE for run in history)
        or sum(not run.was_repeated for run in history) >= MIN_SINGLE_VALUES
    ):
        return False
    return last_change(history) is not None


def _is_consistent_move(before: Run, after: Run) -> bool:
    """Whether a Last-Modified lies, as it must, between the last sight of the one before and its own first."""
    return (
        before.value < after.value
        and before.last - CLOCK_SKEW_SECONDS <= after.value <= after.first + CLOCK_SKEW_SECONDS
    )


def _in_order(history: History) -> list[Run]:
    """The runs in the order of time, each from where the last one ends; without those seen only in another's midst."""
    runs: list[Run] = []
    for run in sorted(history, key=lambda run: (run.first, run.last)):
        if not runs:
            runs.append(run)
        elif run.last > runs[-1].last:
            runs.append(run._replace(first=max(run.first, runs[-1].last)))
    return runs


def _intervals(runs: Sequence[Run]) -> int:
    """How many intervals between sights runs prove: one in each that stood, and one between each and the next."""
    return sum(run.was_repeated for run in runs) + len(runs) - 1


def _duration(runs: Sequence[Run]) -> str:
    hours = (runs[-1].last - runs[0].first) / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
