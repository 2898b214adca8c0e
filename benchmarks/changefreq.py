"""`python -m benchmarks.changefreq`: is the estimated rate of change right, and is the inferred changefreq true?

The estimators get what the package gives them. The changefreq words come from whole simulated sites, through the
body sampler, the merging of evidence and the rules about templates. The exit code says whether the targets were met.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.evidence import changefreq
from sitemap_middleware.evidence import observation_merge as merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_columns import PageBlock
from sitemap_middleware.evidence.site_signals import site_signals
from sitemap_middleware.models import Page, Site
from sitemap_middleware.observation.sampling_schedule import BodySampler

from .tables import Table

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400.0

HELD: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0)
"""Changes in a mean interval between visits for which the targets hold."""

BEYOND: Final = (3.0, 5.0)
"""Rates too high for the visits to see: shown, but without a target."""

ALLOWED: Final = {10: 0.20, 40: 0.05}
"""How far the mean of all estimates may lie from the truth, by the number of visits."""

ESTIMATED: Final = 60_000
"""Pages of one rate whose rate is estimated, at most."""

START: Final = 1_750_000_000
PLACE: Final = Site("https", "example.com")


def _bursts(random: Random) -> float:
    return random.expovariate(10) if random.random() < 0.5 else random.expovariate(1 / 1.9)


INTERVALS: Final[dict[str, Callable[[Random], float]]] = {
    "by chance": lambda random: random.expovariate(1),
    "regular": lambda _: 1.0,
    "in bursts": _bursts,
}
"""The kinds of visits, by how the intervals between them are drawn: 1 in the mean."""


# The estimators


@dataclass
class Bias:
    """The results for many pages of one rate."""

    estimate: float
    dated: float
    naive: float
    inside: float
    """The share of the 80 % intervals that hold the truth."""
    error: float
    """The standard error of the estimate's mean."""


def bias(draw: Callable[[Random], float], pace: float, visits: int, random: Random, most: int = ESTIMATED) -> Bias:
    """The mean estimates over pages that change `pace` times in a mean interval, less the truth, as shares of it."""
    pages = int(min(most, max(4000, 30_000 / (visits * pace))))
    estimates, dated, naive, inside = [], 0.0, 0.0, 0
    for _ in range(pages):
        unchanged, since, changed = 0.0, 0.0, []
        total = 0.0
        for _ in range(visits):
            length = draw(random)
            total += length
            last = random.expovariate(
                pace
            )  # from the last change to the visit: distributed like the time from a visit to the next change
            if last < length:
                changed.append(length)
                since += last
            else:
                unchanged += length
        seen = changefreq.ChangeCounts(unchanged, changed, visits)
        estimates.append(changefreq.estimate_rate(seen) / pace - 1)
        dated += (
            changefreq.estimate_rate_of_dated(changefreq.ChangeCounts(unchanged + since, [0.0] * len(changed), visits))
            / pace
            - 1
        )
        naive += len(changed) / total / pace - 1
        inside += not changefreq.is_above(seen, pace) and not changefreq.is_below(seen, pace)
    mean = sum(estimates) / pages
    spread = math.sqrt(sum((estimate - mean) ** 2 for estimate in estimates) / pages / pages)
    return Bias(mean, dated / pages, naive / pages, inside / pages, spread)


def by_pace(kind: str, visits: int, random: Random, most: int = ESTIMATED) -> tuple[Table, float]:
    """Return a row for each rate, and the largest error of a mean estimate among the rates that have a target."""
    table = Table(
        f"{visits} visits {kind}: how far the mean of the estimates lies from the truth",
        ["changes a visit", "X / T", "ours", "ours, Last-Modified known", "std. error", "truth in the 80 % interval"],
    )
    furthest = 0.0
    for pace in HELD + BEYOND:
        result = bias(INTERVALS[kind], pace, visits, random, most)
        shares = (f"{share:+.1%}" for share in (result.naive, result.estimate, result.dated))
        table.add(f"{pace:g}{' *' if pace in BEYOND else ''}", *shares, f"{result.error:.1%}", f"{result.inside:.0%}")
        if pace in HELD:
            furthest = max(furthest, abs(result.estimate), abs(result.dated))
    table.notes.append("* visits too rare to see so many changes: no target")
    return table, furthest


# The words


@dataclass
class SimulatedPage:
    """A page of a simulated site."""

    path: str
    pace: float
    """Changes a second."""
    gap: float
    """Seconds between two visits, in the mean."""
    changes: list[float]
    digests: list[int]
    """The digest of its content from each change on."""
    dated: bool
    """Whether it bears a Last-Modified."""


@dataclass(frozen=True)
class Word:
    """The changefreq inferred for a page at one look, and the true one."""

    true: str | None
    inferred: str | None
    pace: float
    """Changes in a mean interval between visits."""
    visits: str
    dated: bool


def site(random: Random, pages: int) -> tuple[float, list[SimulatedPage]]:
    """A site that is watched for twenty days to four years, and pages that change every quarter of an hour to never."""
    length = math.exp(random.uniform(math.log(20 * DAY), math.log(4 * YEAR)))
    simulated = []
    for number in range(pages):
        every = math.exp(random.uniform(math.log(HOUR / 4), math.log(4 * YEAR)))
        least = max(HOUR / 6, length / 1000)
        gap = math.exp(random.uniform(math.log(least), math.log(max(length / 30, 2 * least))))
        changes, at = [0.0], 0.0
        while (at := at + random.expovariate(1 / every)) < length:
            changes.append(at)
        digests = [random.getrandbits(64) - 2**63 for _ in changes]
        simulated.append(SimulatedPage(f"/{number}", 1 / every, gap, changes, digests, random.random() < 0.3))
    return length, simulated


def known(page: SimulatedPage, kind: str, random: Random, looks: list[float]) -> Iterator[Page | None]:
    """Yield what the store knows of a page at each look, by way of the sampler and the merging of evidence."""
    sampler, page_state = BodySampler(), None
    at, waiting = random.random() * page.gap, list(looks)
    while waiting:
        while waiting and at >= waiting[0]:
            waiting.pop(0)
            yield page_state
        number = bisect_right(page.changes, at) - 1
        moment = START + int(at)
        last_modified = START + int(page.changes[number]) if page.dated else None
        head = Observation(page.path, page.path, moment, 200, "text/html", last_modified=last_modified)
        response = CapturedResponse(PLACE, page.path, at=moment, status=200, headers=[("content-length", str(number))])
        page_state = merge.merge_if_changed(page_state, head)
        if sampler.is_due(response):
            sampler.schedule(response)
            sampler.record_digest(response.page_key, page.digests[number])
            page_state = merge.merge_if_changed(
                page_state,
                Observation(
                    page.path,
                    page.path,
                    moment,
                    200,
                    "text/html",
                    last_modified=last_modified,
                    html=HtmlFacts(page.digests[number]),
                ),
            )
        at += INTERVALS[kind](random) * page.gap


def words(random: Random, sites: int, pages: int) -> list[Word]:
    """The words inferred for the pages of many sites, at three looks each."""
    results = []
    for number in range(sites):
        kind = list(INTERVALS)[number % len(INTERVALS)]
        length, simulated = site(random, pages)
        looks = [length * share for share in (0.3, 0.6, 1.0)]
        for state in zip(*(known(page, kind, random, looks) for page in simulated), strict=True):
            around = site_signals([PageBlock.of(page for page in state if page is not None)])
            for page, seen in zip(simulated, state, strict=True):
                inferred = changefreq.changefreq(seen, around).word
                results.append(Word(true_word(page.pace), inferred, page.pace * page.gap, kind, page.dated))
    return results


def true_word(pace: float) -> str | None:
    return next((word for word, lowest, highest in changefreq.RATE_RANGES if lowest <= pace <= highest), None)


def tables(results: list[Word]) -> Iterator[Table]:
    """Tables of the words given, grouped in several ways."""
    names = [word for word, _, _ in changefreq.RATE_RANGES]
    groups: list[tuple[str, list[tuple[str, Callable[[Word], bool]]]]] = [
        ("by the word", [(name, lambda word, name=name: word.inferred == name) for name in names]),
        (
            "by what is true",
            [(name or "none of them", lambda word, name=name: word.true == name) for name in (*names, None)],
        ),
        (
            "by changes in a mean interval between visits",
            [
                (f"{low:g} to {high:g}", lambda word, low=low, high=high: low <= word.pace < high)
                for low, high in pairwise((0, 0.05, 0.2, 0.5, 1, 2, math.inf))
            ],
        ),
        (
            "by what was seen",
            [
                *((f"visits {kind}", lambda word, kind=kind: word.visits == kind) for kind in INTERVALS),
                ("pages with a Last-Modified", lambda word: word.dated),
                ("pages without", lambda word: not word.dated),
            ],
        ),
    ]
    for title, rows in groups:
        table = Table(f"Words given, {title}", ["", "right", "wrong", "none", "wrong of given", "wrong of all"])
        for name, belongs in rows:
            table.add(name, *_counts([word for word in results if belongs(word)]))
        table.add("all", *_counts(results))
        yield table


def wrong_share(results: list[Word]) -> float:
    """Of the words given, those that are not the true one."""
    inferred = [word for word in results if word.inferred is not None]
    return sum(word.inferred != word.true for word in inferred) / max(1, len(inferred))


def _counts(results: list[Word]) -> list[str]:
    right = sum(word.inferred is not None and word.inferred == word.true for word in results)
    wrong = sum(word.inferred is not None and word.inferred != word.true for word in results)
    shares = (wrong / max(1, right + wrong), wrong / max(1, len(results)))
    return [
        *(f"{count:,}" for count in (right, wrong, len(results) - right - wrong)),
        *(f"{share:.1%}" for share in shares),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changefreq", description="How true changefreq is.")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--sites", type=int, default=60, help="simulate so many sites (60)")
    parser.add_argument("--pages", type=int, default=60, help="of so many pages each (60)")
    parser.add_argument(
        "--estimated", type=int, default=ESTIMATED, help=f"estimate so many pages of each rate at most ({ESTIMATED})"
    )
    options = parser.parse_args()
    began = time.perf_counter()
    random = Random(options.seed)
    targets = Table("Targets", ["", "wanted", "found", ""])
    missed = False
    for visits, allowed in ALLOWED.items():
        for kind in INTERVALS:
            table, furthest = by_pace(kind, visits, random, options.estimated)
            print(table, flush=True)
            met = furthest <= allowed
            missed |= not met
            wanted = f"within {allowed:.0%}"
            targets.add(f"mean estimate, {visits} visits {kind}", wanted, f"{furthest:.1%}", _met(met))
    results = words(random, options.sites, options.pages)
    print(*tables(results), sep="\n", flush=True)
    wrong = wrong_share(results)
    missed |= wrong >= 0.05
    targets.add("wrong of all words given", "under 5%", f"{wrong:.1%}", _met(wrong < 0.05))
    print(targets)
    print(f"Seed {options.seed}; {time.perf_counter() - began:.0f} s.")
    sys.exit(1 if missed else 0)


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
