"""Trials: sites built to mislead, each in one way. The totals count them like any other."""

from __future__ import annotations

import math
from random import Random
from typing import Final

from .ages import LANGUAGES
from .script import DAY, HOUR, START, Deploy, Jump, Page, Site, Span
from .sites import site

PART: Final = 99
"""The section of the pages that a trial is about."""

TRIALS: Final = (
    "part of one route, one difference",
    "part of own routes, one difference",
    "part of one route, differences of their own",
    "migration",
    "migration among clocks",
    "ages in words",
    "age on one page",
    "facts in JSON-LD",
    "counters in JSON-LD",
    "installed files",
    "clock ahead",
    "clock behind",
    "made-up Last-Modified",
    "made-up statements",
    "numbers that tick each day",
)

APART: Final = ("part of own routes, differences of their own", "kept by a cache")
"""Trials that the totals leave out: nobody who sees the answers alone could tell these pages from edited ones.

A template that changes a few pages, each differently, looks like as many edits at one time. A page seen once
whose Last-Modified is the time at which a cache fetched it looks like one edited then.
"""

UNEDITED_TRIALS: Final = frozenset(
    {
        "kept by a cache",
        "ages in words",
        "age on one page",
        "counters in JSON-LD",
        "installed files",
        "made-up Last-Modified",
        "made-up statements",
        "numbers that tick each day",
    }
)
"""Trials whose pages nobody edits: every date but that of their creation is wrong."""


TICKS: Final = ("Day {} of our journey", "{} days since the last accident", "Accident-free days: {}", "Our streak: {}!")
"""Texts with a number that changes by one each day."""

MADE_UP: Final = ((1, 0), (1, 300), (1, HOUR), (300, 0), (900, 0), (HOUR, 0), (HOUR, HOUR), (DAY, 0), (DAY, DAY))
"""To how many seconds servers round the dates that they make up, and by how many they date them back."""


def trial(name: str, seed: int, size: int, days: float, gaps: tuple[float, float]) -> Site:
    """A random site of one trial; the same for the same arguments."""
    random = Random(f"{name} {seed}")
    trial_site = site(seed, size, days, gaps)
    trial_site.name, trial_site.trial = f"{trial_site.name} ({name})", name
    end = days * DAY
    match name.partition(" ")[0]:
        case "part":
            _part(trial_site, random, end, name)
        case "migration":
            _migration(trial_site, random, name)
        case "ages" | "age":
            count = max(1, size // 2) if name == "ages in words" else 1
            for page in _unedited(trial_site, random, count):
                page.language = random.choice(LANGUAGES)
        case "facts":
            trial_site.last_modified = "none"
            for page in random.sample(trial_site.pages, size // 2):
                page.facts, page.kind, page.trial, page.last_modified = "price", "edited", True, "none"
                page.edits, page.contents = _paced(random, end)
        case "counters":
            for page in _unedited(trial_site, random, size // 2):
                page.facts = "counter"
        case "numbers":
            for page in _unedited(trial_site, random, max(1, size // 2) if random.random() < 0.5 else 1):
                page.tick = (
                    random.choice(TICKS),
                    random.randint(150, 900),
                    random.choice((1, -1)),
                    random.randrange(DAY),
                )
        case "installed":
            trial_site.installed = tuple(START - int(random.uniform(1, 200) * DAY) for _ in range(random.randint(1, 3)))
            for page in _unedited(trial_site, random, 3):
                page.last_modified, page.installed = "installed", random.choice(trial_site.installed)
        case "kept":
            trial_site.cache_seconds = random.uniform(60, 1800)
            for page in _unedited(trial_site, random, size // 2):
                page.last_modified = "now, kept by a cache"
        case "made-up":
            for page in _unedited(trial_site, random, size // 2):
                page.clock = random.choice(MADE_UP)
                if name == "made-up statements":
                    page.states = random.choice(("moment", "day"))
                else:
                    page.last_modified = "made up"
        case "clock":
            start = random.uniform(0.2, 0.7) * end
            long = math.exp(random.uniform(math.log(HOUR), math.log(5 * DAY)))
            far = math.exp(random.uniform(math.log(2 * HOUR), math.log(400 * DAY)))
            worker = random.randrange(len(trial_site.clocks))
            trial_site.jumps = [Jump(worker, Span(start, start + long), far if name == "clock ahead" else -far)]
    return trial_site


def _part(trial_site: Site, random: Random, end: float, name: str) -> None:
    """A template of 5 to 25 % of the pages, changed by separate deployments."""
    trial_site.last_modified = "none"
    count = max(5, round(len(trial_site.pages) * random.uniform(0.05, 0.25)))
    if "own routes" in name and random.random() < 0.5:
        for page in trial_site.pages:
            page.route = page.path
    for number, page in enumerate(random.sample(trial_site.pages, count)):
        page.section, page.trial, page.last_modified = PART, True, "none"
        own = "own routes" in name
        page.path = f"/part-{number}" if own else f"/part/{number}"
        page.route = page.path if own else "/part/{item}"
        page.kind, page.walls = random.choice(("static", "edited")), []
        page.edits, page.contents = _paced(random, end) if page.kind == "edited" else (page.edits[:1], [0])
    reworded = "of their own" in name
    for deploy in trial_site.deploys:
        deploy.visible = deploy.visible and random.random() < 0.5
    at = random.uniform(2, 12) * DAY
    while at < end:
        trial_site.deploys.append(Deploy(at, True, reworded, 1000 + len(trial_site.deploys), (PART,)))
        at += random.uniform(4, 25) * DAY
    trial_site.deploys.sort(key=lambda deploy: deploy.at)


def _migration(trial_site: Site, random: Random, name: str) -> None:
    """All pages bear the time of a migration until they are edited; some, the time of the answer."""
    moved = -random.uniform(1, 60) * DAY
    all_edited = random.random() < 0.5
    end = trial_site.days * DAY
    clocks = random.uniform(0.3, 0.7) if name == "migration among clocks" else 0.0
    for page in trial_site.pages:
        page.last_modified = "now" if random.random() < clocks else "honest"
        if page.last_modified == "honest":
            page.trial = True
            if all_edited:
                page.kind = "edited"
                page.edits, page.contents = _paced(random, end)
            page.edits[0] = moved + random.uniform(0, 20)


def _unedited(trial_site: Site, random: Random, count: int) -> list[Page]:
    """Pages created before the start that nobody edits."""
    pages = random.sample(trial_site.pages, count)
    for page in pages:
        created = -math.exp(random.uniform(math.log(HOUR), math.log(800 * DAY)))
        page.kind, page.edits, page.contents, page.trial = "static", [created], [0], True
        page.walls, page.last_modified = [], "none"
    return pages


def _paced(random: Random, end: float) -> tuple[list[float], list[int]]:
    """Edits at a random pace."""
    pace = math.exp(random.uniform(math.log(2 * DAY), math.log(60 * DAY)))
    edits = [-random.uniform(1, 400) * DAY]
    at = random.expovariate(1 / pace)
    while at < end:
        edits.append(at)
        at += HOUR + random.expovariate(1 / pace)
    return edits, list(range(len(edits)))
