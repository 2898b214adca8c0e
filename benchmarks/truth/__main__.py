"""`python -m benchmarks.truth`: simulate, score, print; the exit code says whether the targets were met."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from ..tables import Table
from .score import COUNTED, OURS, POLICIES, UNEDITED, Score, Tally
from .script import BEYOND, DAY, HOUR, KINDS, Site
from .sites import site
from .traffic import VERIFY, WATCHING, Traffic
from .trials import APART, TRIALS, trial

BEYONDS = (BEYOND, "Last-Modified of the worker's start", "deployments of one section's template")
WANTED = {WATCHING: (0.003, 0.95), VERIFY: (0.001, 0.95)}
"""By mode: the limit of the share of wrong dates, and the least share of changes dated."""
AGES = {"under a day": 1.0, "under 10 days": 10.0, "more": math.inf}
"""Days since the new content was first read."""
LOOKS = {"one look": 2.0, "2 to 4": 5.0, "5 or more": math.inf}
MOST_SITES = 15
"""Lines of one kind in the table of changes without a date."""
GAPS = (2 * HOUR, 8 * DAY)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description="How true the dates are.")
    parser.add_argument(
        "--pages", type=int, default=10_000, help="the least number of pages; the trials add more (10000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--moments", type=int, default=20, help="moments to check before the end (20)")
    parser.add_argument("--mistakes", type=int, default=10, help="how many wrong dates to print in full (10)")
    parser.add_argument("--undated", action="store_true", help="print why changes have no date")
    parser.add_argument("--without-trials", action="store_true", help="leave out all trials")
    parser.add_argument("--only", action="append", default=[], help="run only this trial; repeat for several")
    options = parser.parse_args()
    trials = [] if options.without_trials else options.only or [*TRIALS, *APART]
    began = time.perf_counter()
    score = Score()
    for simulated in sites(options.seed, options.pages, trials, others=not options.only):
        score.sites += 1
        score.pages += len(simulated.pages)
        for number, moment in enumerate(Traffic(simulated).moments(options.moments)):
            score.add_moment(simulated, moment, last=number == options.moments)
    print(
        f"{score.pages:,} pages of {score.sites} sites, seed {options.seed}, looked at {options.moments} times and at"
        f" the end; {time.perf_counter() - began:.0f} s.\n"
    )
    for title, table in (("at the end", score.end), (f"at {options.moments} moments in between", score.between)):
        print(by_kind(f"Dates {title}", table))
        print(by_policy(f"Policies {title}", table))
    print(by_change(score))
    if options.undated:
        for mode in OURS:
            print(undated(score, mode))
    met = True
    for mode in OURS:
        verdict, all_met = targets(score, mode)
        met = met and all_met
        print(verdict)
    for mistake in score.mistakes[: options.mistakes]:
        print(mistake)
    sys.exit(0 if met else 1)


def sites(seed: int, pages: int, trials: Sequence[str] = (*TRIALS, *APART), *, others: bool = True) -> list[Site]:
    """Sites of 50 to 500 pages, at least `pages` in all, those of the trials, and a few outside the totals."""
    random = Random(seed)
    simulated: list[Site] = []
    days = (30, 90) if pages >= 500 else (8, 12)
    for number, name in enumerate((*TRIALS, *APART)):
        if name in trials:
            for repeat in range(max(1, pages // 2000)):
                size = random.randint(20, max(20, min(300, pages // 8)))
                simulated.append(
                    trial(name, seed * 10_000 + 5_000 + 100 * number + repeat, size, random.uniform(*days), GAPS)
                )
    if not others:
        return simulated
    tried = len(simulated)
    while sum(len(site.pages) for site in simulated[tried:]) < pages:
        size = round(math.exp(random.uniform(math.log(50), math.log(500))))
        simulated.append(site(seed * 10_000 + len(simulated) - tried, size, random.uniform(*days), GAPS))
    for name in BEYONDS:
        simulated += [
            site(seed * 10_000 + 9_000 + len(simulated) + number, 60, 45 if pages >= 500 else 10, GAPS, beyond=name)
            for number in range(max(1, pages // 5000))
        ]
    return simulated


def by_kind(title: str, table: dict[tuple[str, str], Tally]) -> Table:
    heads = [f"{head} {mode}" for mode in OURS for head in ("right", "wrong", "omitted")]
    result = Table(title, ["kind of page", *heads])
    for kind in (*KINDS, *_apart(table)):
        result.add(kind, *(count for mode in OURS for count in _counts(table.get((mode, kind), Tally()))))
    result.add("all but what is beyond the list", *(count for mode in OURS for count in _counts(total(table, mode))))
    return result


def by_policy(title: str, table: dict[tuple[str, str], Tally]) -> Table:
    result = Table(title, ["policy", "right", "wrong", "omitted", "wrong of given", "wrong on volatile pages"])
    for policy in POLICIES:
        combined = total(table, policy)
        volatile = sum(tally.wrong for (name, kind), tally in table.items() if name == policy and kind in UNEDITED)
        result.add(policy, *_counts(combined), f"{combined.wrong_share:.3%}", f"{volatile:,}")
    return result


def by_change(score: Score) -> Table:
    result = Table(
        "Changes that stood through two visits", ["kind of page", "changes", *(f"dated {mode}" for mode in OURS)]
    )
    for (kind, apart), changes in sorted(score.changes.items()):
        result.add(f"{kind}; {apart}" if apart else kind, *_shares(list(changes.values())))
    result.notes.append(
        "Counted apart: changes back to an earlier content, which by the rules of evidence date nothing; those in one"
    )
    result.notes.append(
        "gap between visits with a deployment that changes the same text; and those before a deployment that"
    )
    result.notes.append("changes each page differently, if no look fell in between: it may hide an edit.")
    return result


def undated(score: Score, mode: str) -> Table:
    """The changes that have no date, by reason, by kind of page, and by site."""
    heads = ["", "changes", *(f"{age} old" for age in AGES), *(f"at {looks}" for looks in LOOKS)]
    result = Table(f"Changes without a date, {mode}", heads)
    changes = list(score.undated.get(mode, {}).values())
    for what in ("reason", "kind", "site"):
        for name, count in Counter(getattr(change, what) for change in changes).most_common(MOST_SITES):
            of_name = [change for change in changes if getattr(change, what) == name]
            ages = Counter(_first(AGES, change.days) for change in of_name)
            looks = Counter(_first(LOOKS, change.looks) for change in of_name)
            result.add(
                f"{what}: {name}",
                f"{count:,}",
                *(str(ages[age]) for age in AGES),
                *(str(looks[look]) for look in LOOKS),
            )
    result.notes.append(
        "The age of the new content, and the number of looks that showed it, are those at the last such look."
    )
    return result


def _first(limits: dict[str, float], value: float) -> str:
    """The first name whose limit is above a value."""
    return next(name for name, limit in limits.items() if value < limit)


def targets(score: Score, mode: str) -> tuple[Table, bool]:
    """The targets, and whether all of them were met."""
    result = Table(f"Targets, {mode}", ["", "wanted", "found", ""])
    both = total(score.end, mode)
    both += total(score.between, mode)
    volatile = sum(
        tally.wrong
        for table in (score.end, score.between)
        for (policy, kind), tally in table.items()
        if policy == mode and kind in UNEDITED
    )
    dated = [
        change[mode]
        for (kind, apart), changes in score.changes.items()
        if kind in COUNTED and not apart
        for change in changes.values()
        if mode in change
    ]
    share = sum(dated) / max(1, len(dated))
    wrong, least = WANTED[mode]
    met = volatile == 0, both.wrong_share < wrong, share >= least
    result.add("wrong dates on volatile pages", "0", f"{volatile:,}", _met(met[0]))
    result.add("wrong of all dates given", f"under {wrong:.2%}", f"{both.wrong_share:.3%}", _met(met[1]))
    result.add("changes dated", f"{least:.0%} or more", f"{share:.2%}", _met(met[2]))
    return result, all(met)


def total(table: dict[tuple[str, str], Tally], policy: str) -> Tally:
    combined = Tally()
    for (name, kind), tally in table.items():
        if name == policy and kind in COUNTED:
            combined += tally
    return combined


def _apart(table: dict[tuple[str, str], Tally]) -> list[str]:
    return sorted({kind for _, kind in table if kind not in KINDS})


def _counts(tally: Tally) -> tuple[str, str, str]:
    return f"{tally.right:,}", f"{tally.wrong:,}", f"{tally.omitted:,}"


def _shares(changes: list[dict[str, bool]]) -> tuple[str, ...]:
    cells = [f"{len(changes):,}"]
    for mode in OURS:
        dated = [change[mode] for change in changes if mode in change]
        cells.append(f"{sum(dated) / max(1, len(dated)):.2%}")
    return tuple(cells)


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
