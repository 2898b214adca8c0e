"""Traffic: visits at irregular times, seen by workers whose clocks differ, and folded late and out of order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from sitemap_middleware import evidence
from sitemap_middleware.model import Dated, Observation, Sighting
from sitemap_middleware.model import Page as Known
from sitemap_middleware.model import Site as Place
from sitemap_middleware.observation import Reader
from sitemap_middleware.sampler import Sampler
from sitemap_middleware.surroundings import surroundings

from .script import HOUR, START, Answer, Page, Site

PLACE: Final = Place("https", "example.com")


@dataclass
class Sights:
    """What was seen of one page, by the clock that is right, of what is folded by now: the truth that can be known."""

    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Of each epoch, when it was first and last seen."""
    stamps: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The same by the workers' clocks, in the whole seconds that they note."""
    raw: tuple[int, int, int] | None = None
    """What a policy that compares whole bodies knows: the last digest, its sight, and when it was first seen."""
    changed: int | None = None
    modified: str | None = None

    def note(self, at: float, stamp: int, epoch: int) -> None:
        for table, moment in ((self.spans, at), (self.stamps, stamp)):
            first, last = table.get(epoch, (moment, moment))
            table[epoch] = min(first, moment), max(last, moment)

    def note_raw(self, stamp: int, body: bytes | None, modified: str | None) -> None:
        if body is not None:
            digest = hash(body)
            if self.raw is not None and self.raw[0] != digest:
                self.changed = stamp
            self.raw = digest, stamp, stamp
        self.modified = modified

    def twice(self, epoch: int) -> bool:
        """Whether it stood through two visits, as far as a clock of whole seconds can tell."""
        first, last = self.stamps[epoch]
        return first < last


@dataclass
class Moment:
    """A site as it is known at one moment."""

    at: float
    dates: dict[str, Dated]
    """Of each page that is listed."""
    sights: dict[str, Sights]


def visits(site: Site, random: Random) -> Iterator[tuple[float, Page, int]]:
    """Every visit of every page in its order: when, of which, and answered by which worker."""
    workers, end = len(site.clocks), site.days * 24 * HOUR
    heap = [(random.expovariate(1 / page.gap), number) for number, page in enumerate(site.pages)]
    heapq.heapify(heap)
    while heap[0][0] < end:
        at, number = heap[0]
        page = site.pages[number]
        heapq.heapreplace(heap, (at + random.expovariate(1 / page.gap), number))
        yield at, page, random.randrange(workers)


def lateness(random: Random) -> float:
    """How long until a sighting is folded: seconds, and now and then hours, when a worker's store did not answer."""
    return random.uniform(0, 3 * HOUR) if random.random() < 0.03 else random.expovariate(1 / 2)


def moments(site: Site, count: int) -> Iterator[Moment]:
    """The site as known at so many moments evenly spread, and at its end."""
    random = Random(site.seed + 1)
    reader, samplers = Reader(), [Sampler() for _ in site.clocks]
    known: dict[str, Known] = {}
    sights = {page.path: Sights() for page in site.pages}
    late: list[tuple[float, int, float, Page, int, Sighting, Answer]] = []
    number = 0
    length = site.days * 24 * HOUR
    looks = [length * (index + 1) / (count + 1) for index in range(count)]

    def fold_until(now: float) -> None:
        while late and late[0][0] <= now:
            _, _, at, page, worker, sighting, answer = heapq.heappop(late)
            bare = Sighting(PLACE, page.path, at=sighting.at, status=sighting.status, headers=sighting.headers)
            for one in (bare, sighting) if sighting.body is not None else (bare,):  # as the recorder hands them on
                seen = reader.read(one, page.path, page.route, PLACE.base + page.path)
                if seen is not None:
                    known[page.path] = evidence.fold(known.get(page.path), seen)
            if sighting.body is not None:
                samplers[worker].learned(sighting.key, seen.reading.digest if seen and seen.reading else None)
            if seen is not None:
                _note(sights[page.path], at, seen, sighting, answer)

    for at, page, worker in visits(site, random):
        while looks and looks[0] <= at:
            fold_until(looks[0])
            yield Moment(looks[0], dated(known, looks.pop(0)), sights)
        fold_until(at)
        answer = site.answer(page, at, worker, random)
        sighting = Sighting(
            PLACE, page.path, at=START + at + site.clocks[worker], status=answer.status, headers=answer.headers
        )
        if answer.status == 200 and not samplers[worker].rests(sighting):
            samplers[worker].plan(sighting)
            sighting.body = answer.body
        for _ in range(2 if random.random() < 0.01 else 1):  # now and then one is folded twice
            number += 1
            heapq.heappush(late, (at + lateness(random), number, at, page, worker, sighting, answer))
    fold_until(float("inf"))
    yield Moment(length, dated(known, length), sights)


def dated(known: dict[str, Known], at: float) -> dict[str, Dated]:
    """What a sitemap would say at a moment, of the pages that it lists."""
    now = START + int(at)
    answering = [page for page in known.values() if page.status == 200]
    around = surroundings(answering, (), [page for page in answering if "{" in page.route])
    return {
        path: evidence.lastmod(None, page, None, around, now)
        for path, page in known.items()
        if evidence.verdict(page).listed and not ("{" in page.route and around.soft_404(page))
    }


def _note(sights: Sights, at: float, seen: Observation, sighting: Sighting, answer: Answer) -> None:
    if seen.status != 200:
        return
    headers = dict(answer.headers)
    sights.note_raw(seen.at, sighting.body, headers.get("last-modified"))
    if sighting.body is not None and answer.telling:
        sights.note(at, seen.at, answer.epoch)
