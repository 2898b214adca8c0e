"""`python -m benchmarks.changefreq`: is the rate of change estimated right, and are the words made of it true?

The estimators are fed as the package feeds them; the words come of whole simulated sites, by way of the sampler, the
folding of evidence and the rules about templates. The exit code says whether the targets were met.
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

from sitemap_middleware.captured_responses import CapturedResponse, HtmlFacts, Observation
from sitemap_middleware.evidence import changefreq
from sitemap_middleware.evidence import observation_merge as merge
from sitemap_middleware.evidence.site_signals import site_signals
from sitemap_middleware.models import Page, Site
from sitemap_middleware.observation.sampling_schedule import BodySampler

from .tables import Table

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365.25 * 86_400.0

HELD: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0)
"""Changes in a mean interval between visits for which the targets hold."""

BEYOND: Final = (3.0, 5.0)
"""Rates that visits are too rare to see: shown, and held to nothing."""

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
    """What came of many pages of one rate."""

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
            last = random.expovariate(pace)  # back from the visit to the last change: as long as forward to the next
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
    spread = math.sqrt(sum((one - mean) ** 2 for one in estimates) / pages / pages)
    return Bias(mean, dated / pages, naive / pages, inside / pages, spread)


def by_pace(kind: str, visits: int, random: Random, most: int = ESTIMATED) -> tuple[Table, float]:
    """A row for each rate; and the furthest that an estimate's mean lies from the truth, where it is held to it."""
    found = Table(
        f"{visits} visits {kind}: how far the mean of the estimates lies from the truth",
        ["changes a visit", "X / T", "ours", "ours, Last-Modified known", "std. error", "truth in the 80 % interval"],
    )
    furthest = 0.0
    for pace in HELD + BEYOND:
        one = bias(INTERVALS[kind], pace, visits, random, most)
        shares = (f"{share:+.1%}" for share in (one.naive, one.estimate, one.dated))
        found.add(f"{pace:g}{' *' if pace in BEYOND else ''}", *shares, f"{one.error:.1%}", f"{one.inside:.0%}")
        if pace in HELD:
            furthest = max(furthest, abs(one.estimate), abs(one.dated))
    found.notes.append("* visits too rare to see so many changes: held to nothing")
    return found, furthest


# The words


@dataclass
class Living:
    """A page of a simulated site."""

    path: str
    pace: float
    """Changes a second."""
    gap: float
    """Seconds between two visits, in the mean."""
    changes: list[float]
    digests: list[int]
    """What it says from each of them on."""
    dated: bool
    """Whether it bears a Last-Modified."""


@dataclass(frozen=True)
class Word:
    """What was said of a page at one look, and what is true."""

    true: str | None
    said: str | None
    pace: float
    """Changes in a mean interval between visits."""
    visits: str
    dated: bool


def site(random: Random, pages: int) -> tuple[float, list[Living]]:
    """A site that is watched for twenty days to four years, and pages that change every quarter of an hour to never."""
    length = math.exp(random.uniform(math.log(20 * DAY), math.log(4 * YEAR)))
    living = []
    for number in range(pages):
        every = math.exp(random.uniform(math.log(HOUR / 4), math.log(4 * YEAR)))
        least = max(HOUR / 6, length / 1000)
        gap = math.exp(random.uniform(math.log(least), math.log(max(length / 30, 2 * least))))
        changes, at = [0.0], 0.0
        while (at := at + random.expovariate(1 / every)) < length:
            changes.append(at)
        digests = [random.getrandbits(64) - 2**63 for _ in changes]
        living.append(Living(f"/{number}", 1 / every, gap, changes, digests, random.random() < 0.3))
    return length, living


def known(page: Living, kind: str, random: Random, looks: list[float]) -> Iterator[Page | None]:
    """A page as it is known at each look, seen through the sampler, and folded as the recorder folds it."""
    sampler, found = BodySampler(), None
    at, waiting = random.random() * page.gap, list(looks)
    while waiting:
        while waiting and at >= waiting[0]:
            waiting.pop(0)
            yield found
        number = bisect_right(page.changes, at) - 1
        moment = START + int(at)
        last_modified = START + int(page.changes[number]) if page.dated else None
        head = Observation(page.path, page.path, moment, 200, "text/html", last_modified=last_modified)
        sighting = CapturedResponse(PLACE, page.path, at=moment, status=200, headers=[("content-length", str(number))])
        found = merge.merge_if_changed(found, head)
        if not sampler.is_fresh(sighting):
            sampler.schedule(sighting)
            sampler.record_digest(sighting.page_key, page.digests[number])
            found = merge.merge_if_changed(
                found,
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
    """What is said of the pages of many sites, at three looks each."""
    found = []
    for number in range(sites):
        kind = list(INTERVALS)[number % len(INTERVALS)]
        length, living = site(random, pages)
        looks = [length * share for share in (0.3, 0.6, 1.0)]
        for state in zip(*(known(page, kind, random, looks) for page in living), strict=True):
            around = site_signals([page for page in state if page is not None])
            for page, seen in zip(living, state, strict=True):
                said = changefreq.changefreq(seen, around).word
                found.append(Word(true_word(page.pace), said, page.pace * page.gap, kind, page.dated))
    return found


def true_word(pace: float) -> str | None:
    return next((word for word, lowest, highest in changefreq.RATE_RANGES if lowest <= pace <= highest), None)


def tables(found: list[Word]) -> Iterator[Table]:
    """The words given, by whatever may make a difference."""
    names = [word for word, _, _ in changefreq.RATE_RANGES]
    groups: list[tuple[str, list[tuple[str, Callable[[Word], bool]]]]] = [
        ("by the word", [(name, lambda one, name=name: one.said == name) for name in names]),
        (
            "by what is true",
            [(name or "none of them", lambda one, name=name: one.true == name) for name in (*names, None)],
        ),
        (
            "by changes in a mean interval between visits",
            [
                (f"{low:g} to {high:g}", lambda one, low=low, high=high: low <= one.pace < high)
                for low, high in pairwise((0, 0.05, 0.2, 0.5, 1, 2, math.inf))
            ],
        ),
        (
            "by what was seen",
            [
                *((f"visits {kind}", lambda one, kind=kind: one.visits == kind) for kind in INTERVALS),
                ("pages with a Last-Modified", lambda one: one.dated),
                ("pages without", lambda one: not one.dated),
            ],
        ),
    ]
    for title, rows in groups:
        table = Table(f"Words given, {title}", ["", "right", "wrong", "none", "wrong of given", "wrong of all"])
        for name, takes in rows:
            table.add(name, *_counts([one for one in found if takes(one)]))
        table.add("all", *_counts(found))
        yield table


def wrong_share(found: list[Word]) -> float:
    """Of the words given, those that are not the true one."""
    given = [one for one in found if one.said is not None]
    return sum(one.said != one.true for one in given) / max(1, len(given))


def _counts(found: list[Word]) -> list[str]:
    right = sum(one.said is not None and one.said == one.true for one in found)
    wrong = sum(one.said is not None and one.said != one.true for one in found)
    shares = (wrong / max(1, right + wrong), wrong / max(1, len(found)))
    return [*(f"{count:,}" for count in (right, wrong, len(found) - right - wrong)), *(f"{one:.1%}" for one in shares)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changefreq", description="How true changefreq is.")
    parser.add_argument("--seed", type=int, default=1, help="of all that is left to chance (1)")
    parser.add_argument("--sites", type=int, default=60, help="simulate so many sites (60)")
    parser.add_argument("--pages", type=int, default=60, help="of so many pages each (60)")
    parser.add_argument(
        "--estimated", type=int, default=ESTIMATED, help=f"estimate so many pages of each rate at most ({ESTIMATED})"
    )
    chosen = parser.parse_args()
    began = time.perf_counter()
    random = Random(chosen.seed)
    targets = Table("Targets", ["", "wanted", "found", ""])
    missed = False
    for visits, allowed in ALLOWED.items():
        for kind in INTERVALS:
            table, furthest = by_pace(kind, visits, random, chosen.estimated)
            print(table, flush=True)
            met = furthest <= allowed
            missed |= not met
            wanted = f"within {allowed:.0%}"
            targets.add(f"mean estimate, {visits} visits {kind}", wanted, f"{furthest:.1%}", _met(met))
    found = words(random, chosen.sites, chosen.pages)
    print(*tables(found), sep="\n", flush=True)
    wrong = wrong_share(found)
    missed |= wrong >= 0.05
    targets.add("wrong of all words given", "under 5%", f"{wrong:.1%}", _met(wrong < 0.05))
    print(targets)
    print(f"Seed {chosen.seed}; {time.perf_counter() - began:.0f} s.")
    sys.exit(1 if missed else 0)


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
