"""Random sites: their pages, deployments and edits."""

from __future__ import annotations

import math
from random import Random

from .script import BEYOND, DAY, HOUR, KINDS, MINUTE, VOLATILE, Deploy, Page, Site, Span


def site(seed: int, size: int, days: float, gaps: tuple[float, float], *, beyond: str = "") -> Site:
    """A random site; the same for the same arguments.

    Args:
        seed: of the random numbers.
        size: the number of its pages.
        days: how long the simulation is.
        gaps: mean seconds between visits, of the most and the least popular pages.
        beyond: a trial that the totals leave out.
    """
    random = Random(seed)
    end = days * DAY
    frame = random.choices(("main", "article", "body"), (60, 15, 25))[0]
    policies = ("none", "honest", "now", "deployment", "mixed")
    last_modified = random.choices(policies, (50, 17, 11, 11, 11))[0]
    if beyond == "Last-Modified of the worker's start":
        last_modified = "start of the worker"
    workers = random.randint(1, 4)
    sections = random.randint(1, 4)
    deploys = _deploys(random, end, sections, parted=beyond == "deployments of one section's template")
    pages = []
    bulk = random.uniform(0, end) if random.random() < 0.2 else None
    for number in range(size):
        section = number % sections
        static = number < 12
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        if beyond == BEYOND:
            kind = BEYOND
        gap = math.exp(random.uniform(*map(math.log, gaps)))
        if random.random() < 0.02:
            gap = min(gap, gaps[0] / 4)
        policy = last_modified
        if policy == "mixed":
            policy = random.choice(("none", "none", "honest", "now"))
        edits, contents = _edits(random, kind, end)
        if bulk is not None and kind.startswith("edited") and random.random() < 0.1:
            at = next((index for index, edit in enumerate(edits) if edit > bulk), len(edits))
            edits.insert(at, bulk)
            contents.insert(at, 1000)
        path = f"/page-{number}" if static else f"/section-{section}/item-{number}"
        route = path if static else f"/section-{section}/{{item}}"
        page = Page(path, route, section, kind, gap, edits, contents, policy)
        if kind.startswith("login wall"):
            page.walls = _spans(random, end, 12 * DAY, 4 * DAY, (302, 401, 403))
        pages.append(page)
    cached = random.random() < 0.2
    return Site(
        name=f"site {seed}",
        seed=seed,
        days=days,
        frame=frame,
        last_modified=last_modified,
        pages=pages,
        deploys=deploys,
        outages=_spans(random, end, 20 * DAY, 3 * HOUR, (503, 500, 502, 429)),
        maintenance=_spans(random, end, 40 * DAY, 2 * HOUR, (200,)) if random.random() < 0.3 else [],
        clocks=[random.uniform(-150, 150) for _ in range(workers)],
        restarts=[random.uniform(0, 300) for _ in range(workers)],
        stale=[random.uniform(0, 300) if cached else 0 for _ in range(workers)],
        beyond=beyond,
    )


def _deploys(random: Random, end: float, sections: int, *, parted: bool) -> list[Deploy]:
    every = tuple(range(sections))
    deploys: list[Deploy] = []
    at = random.expovariate(1 / (14 * DAY))
    while at < end:
        version = len(deploys) + 1
        part = (random.randrange(sections),) if parted else every
        deploys.append(Deploy(at, random.random() < 0.5, random.random() < 0.25, version, part))
        if random.random() < 0.15:  # taken back within the day
            last = deploys[-1]
            before = [deploy.version for deploy in deploys[:-1] if deploy.visible and deploy.reworded == last.reworded]
            at += random.uniform(0.2, 20) * HOUR
            deploys.append(Deploy(at, last.visible, last.reworded, before[-1] if before else 0, part))
        at += HOUR + random.expovariate(1 / (14 * DAY))
    return deploys


def _edits(random: Random, kind: str, end: float) -> tuple[list[float], list[int]]:
    """When contents came, and which; the first came long before the beginning."""
    edits, contents = [-random.uniform(1, 400) * DAY], [0]
    if kind == "A/B test that ends":
        return [*edits, random.uniform(0.2, 0.6) * end], [0, 0]
    if kind == "static" or kind in VOLATILE or kind == BEYOND:
        return edits, contents
    pace = math.exp(random.uniform(math.log(2 * DAY), math.log(60 * DAY)))
    at = random.expovariate(1 / pace)
    while at < end:
        back = kind == "rolled back" and len(contents) > 1 and random.random() < 0.4 and contents[-1] != contents[-2]
        edits.append(at)
        contents.append(contents[-2] if back else max(contents) + 1)
        at += 10 * MINUTE + random.expovariate(1 / pace)
    return edits, contents


def _spans(random: Random, end: float, every: float, long: float, statuses: tuple[int, ...]) -> list[Span]:
    spans = []
    at = random.expovariate(1 / every)
    while at < end:
        spans.append(Span(at, at + random.expovariate(1 / long), random.choice(statuses)))
        at = spans[-1].end + random.expovariate(1 / every)
    return spans
