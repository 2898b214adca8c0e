"""Traffic: visits at irregular times, seen by workers whose clocks differ, and folded late and out of order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from sitemap_middleware.dates import CLOCK_SKEW_SECONDS
from sitemap_middleware.evidence import merge
from sitemap_middleware.evidence.lastmod import LastmodResult, lastmod
from sitemap_middleware.evidence.response_parser import ResponseParser
from sitemap_middleware.evidence.site_signals import site_signals
from sitemap_middleware.evidence.verdict import page_verdict
from sitemap_middleware.history import VOLATILE
from sitemap_middleware.models import Page as Known
from sitemap_middleware.models import Site as Place
from sitemap_middleware.observation.body_sampler import BodySampler
from sitemap_middleware.observation.changed_page_prober import CHECKS_AT_FIRST_SIGHT, CHECKS_WHEN_CHANGED, PAUSE_SECONDS
from sitemap_middleware.observations import CapturedResponse, Observation

from .script import HOUR, OUTSIDE, START, Answer, Page, Site

PLACE: Final = Place("https", "example.com")


WATCHING, VERIFY = MODES = ("with verify=False", "by default")


@dataclass
class Sights:
    """What was seen of one page, by the clock that is right, of what is folded by now: the truth that can be known."""

    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Of each epoch, when it was first and last seen."""
    stamps: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The same by the workers' clocks, in the whole seconds that they note."""
    visited: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The same, of visits alone: what the middleware asked for itself is left out."""
    raw: tuple[int, int, int] | None = None
    """What a policy that compares whole bodies knows: the last digest, its sight, and when it was first seen."""
    changed: int | None = None
    last_modified: str | None = None

    def note(self, at: float, stamp: int, epoch: int, *, asked: bool = False) -> None:
        for table, moment in ((self.spans, at), (self.stamps, stamp), (self.visited, stamp))[: 2 if asked else 3]:
            first, last = table.get(epoch, (moment, moment))
            table[epoch] = min(first, moment), max(last, moment)

    def note_raw(self, stamp: int, body: bytes | None, last_modified: str | None) -> None:
        if body is not None:
            digest = hash(body)
            if self.raw is not None and self.raw[0] != digest:
                self.changed = stamp
            self.raw = digest, stamp, stamp
        self.last_modified = last_modified

    def twice(self, epoch: int) -> bool:
        """Whether it was seen twice, as far as a clock of whole seconds can tell."""
        first, last = self.stamps[epoch]
        return first < last

    def visited_twice(self, epoch: int) -> bool:
        """Whether it stood through two visits."""
        first, last = self.visited.get(epoch, (0, 0))
        return first < last


@dataclass
class Moment:
    """A site as it is known at one moment, in each mode."""

    at: float
    dates: dict[str, dict[str, LastmodResult]]
    """By mode, of each page that is listed."""
    sights: dict[str, dict[str, Sights]]


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


class Swift(ResponseParser):
    """Reads answers that differ from an earlier one by a token outside the main content alone as it read that one.

    Now and then it reads such an answer too, and holds it against that.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[object, Observation] = {}
        self._count = 0

    def parse(self, sighting: CapturedResponse, path: str, route: str, loc: str, **more: bool) -> Observation | None:
        body = None if sighting.body is None else hash(OUTSIDE.sub(b"", sighting.body, 1))
        key = path, sighting.status, *sighting.headers, body
        known = self._seen.get(key)
        at = int(sighting.at)
        self._count += 1
        if known is not None and self._count % 50 and (known.last_modified or 0) <= at:
            return known._replace(at=at)
        found = super().parse(sighting, path, route, loc, **more)
        if known is not None and (known.last_modified or 0) <= at and found != known._replace(at=at):
            raise AssertionError(f"a token outside the main content changed the reading of {sighting.body!r}")
        if found is not None and _reads_so_at_any_time(found, sighting):
            if len(self._seen) >= 50_000:
                self._seen.clear()
            self._seen[key] = found
        return found


def _reads_so_at_any_time(found: Observation, sighting: CapturedResponse) -> bool:
    """Whether a later answer with these headers is read alike: not if its Last-Modified is later than this answer."""
    if found.last_modified is None:
        return all(name != "last-modified" for name, _ in sighting.headers)
    return found.last_modified <= found.at


@dataclass
class Visit:
    """One answer that waits to be folded."""

    at: float
    page: Page
    worker: int
    sighting: CapturedResponse
    answer: Answer


@dataclass
class Asking:
    """The middleware asks for a page again and again, to see whether it says the same."""

    page: Page
    worker: int
    left: int
    digest: int | None = None
    """What the first of these answers said. What was seen before may be hours old, when a store was slow."""


class Traffic:
    """A site, its visits, and what the middleware makes of them in each mode."""

    def __init__(self, site: Site) -> None:
        self.known: dict[str, dict[str, Known]] = {mode: {} for mode in MODES}
        self.sights = {mode: {page.path: Sights() for page in site.pages} for mode in MODES}
        self._site = site
        self._random, self._chance = Random(site.seed + 1), Random(site.seed + 2)
        self._reader, self._samplers = Swift(), [BodySampler() for _ in site.clocks]
        self._waiting: list[tuple[float, int, Visit | Asking]] = []
        self._number = 0

    def moments(self, count: int) -> Iterator[Moment]:
        """The site as known at so many moments evenly spread, and at its end."""
        site, random = self._site, self._random
        length = site.days * 24 * HOUR
        looks = [length * (index + 1) / (count + 1) for index in range(count)]
        for at, page, worker in visits(site, random):
            while looks and looks[0] <= at:
                self._fold_until(looks[0])
                yield self._moment(looks.pop(0))
            self._fold_until(at)
            visit = self._visit(page, at, worker, random)
            sampler = self._samplers[worker]
            if visit.sighting.status == 200 and not sampler.is_fresh(visit.sighting):
                sampler.schedule(visit.sighting)
                visit.sighting.body = visit.answer.body
            for _ in range(2 if random.random() < 0.01 else 1):  # now and then one is folded twice
                self._wait(at + lateness(random), visit)
        self._fold_until(float("inf"))
        yield self._moment(length)

    def _moment(self, at: float) -> Moment:
        return Moment(
            at, {mode: dated(known, at, self._site.installed) for mode, known in self.known.items()}, self.sights
        )

    def _visit(self, page: Page, at: float, worker: int, random: Random) -> Visit:
        answer = self._site.answer(page, at, worker, random)
        stamp = START + at + self._site.clock(worker, at)
        sighting = CapturedResponse(PLACE, page.path, at=stamp, status=answer.status, headers=answer.headers)
        return Visit(at, page, worker, sighting, answer)

    def _wait(self, until: float, what: Visit | Asking) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (until, self._number, what))

    def _fold_until(self, end: float) -> None:
        while self._waiting and self._waiting[0][0] <= end:
            now, _, what = heapq.heappop(self._waiting)
            if isinstance(what, Visit):
                self._fold(what, now)
            else:
                self._ask(what, now)

    def _read(self, visit: Visit) -> Observation | None:
        return self._reader.parse(visit.sighting, visit.page.path, visit.page.route, PLACE.base_url + visit.page.path)

    def _stored(self, now: float) -> float:
        """The store's own time, in POSIX seconds: it is on the machine of the first worker."""
        return START + now + self._site.clocks[0]

    def _fold(self, visit: Visit, now: float) -> None:
        seen = self._read(visit)
        path = visit.page.path
        if visit.sighting.body is not None:
            reading = seen.html if seen else None
            self._samplers[visit.worker].record_digest(visit.sighting.page_key, reading.digest if reading else None)
        if seen is None or seen.at > self._stored(now) + CLOCK_SKEW_SECONDS:  # it comes from the future
            return
        seen = seen._replace(merged_at=int(self._stored(now)))
        if seen.html is not None:
            before = self.known[VERIFY].get(path)
            run = (
                next((run for run in before.content_history if run.value == seen.html.digest), None) if before else None
            )
            if run is None or not run.was_repeated:
                asks = CHECKS_WHEN_CHANGED if before and before.content_history else CHECKS_AT_FIRST_SIGHT
                self._wait(now + PAUSE_SECONDS, Asking(visit.page, visit.worker, asks))
        for mode, known in self.known.items():
            if seen.html is not None and self._number % 8 == 0:  # as when its body is folded later than a response
                known[path] = merge.merge_if_changed(known.get(path), seen._replace(html=None))
            known[path] = merge.merge_if_changed(known.get(path), seen)
            if seen.status == 200:
                sights = self.sights[mode][path]
                sights.note_raw(seen.at, visit.sighting.body, dict(visit.answer.headers).get("last-modified"))
                if visit.sighting.body is not None and visit.answer.telling:
                    sights.note(visit.at, seen.at, visit.answer.epoch)

    def _ask(self, asking: Asking, now: float) -> None:
        """Ask once more; where it says something else than before, that is what is written down."""
        if now > self._site.days * 24 * HOUR:
            return
        visit = self._visit(asking.page, now, asking.worker, self._chance)
        visit.sighting.body = visit.answer.body
        seen = self._read(visit)
        if seen is None or seen.html is None or seen.at > self._stored(now) + CLOCK_SKEW_SECONDS:
            return
        path, known = asking.page.path, self.known[VERIFY]
        if asking.digest not in (None, seen.html.digest):
            known[path] = merge.merge_if_changed(known[path], seen._replace(html=replace(seen.html, digest=VOLATILE)))
            return
        known[path] = merge.merge_if_changed(known[path], seen)
        if visit.answer.telling:
            self.sights[VERIFY][path].note(now, seen.at, visit.answer.epoch, asked=True)
        if asking.left > 1:
            self._wait(now + PAUSE_SECONDS, replace(asking, left=asking.left - 1, digest=seen.html.digest))


def dated(known: dict[str, Known], at: float, installed: tuple[int, ...] = ()) -> dict[str, LastmodResult]:
    """What a sitemap would say at a moment, of the pages that it lists."""
    now = START + int(at)
    pages = [page._replace(learned="{" in page.route) for page in known.values()]
    around = site_signals(pages, now=now, installed=installed)
    return {
        path: lastmod(None, page, None, around, now)
        for path, page in zip(known, pages, strict=True)
        if page_verdict(page).listed and around.soft_not_founds.first_equal_page(page) is None
    }
