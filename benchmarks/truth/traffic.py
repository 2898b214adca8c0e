"""Simulated visits: at irregular times, to workers whose clocks differ, stored late and out of order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from sitemap_middleware.evidence.dates import CLOCK_SKEW_SECONDS
from sitemap_middleware.evidence.lastmod import LastmodResult, lastmod
from sitemap_middleware.evidence.merge import is_worth_writing, merge
from sitemap_middleware.evidence.observations import INDEXABLE_TYPES, Observation, at_merge
from sitemap_middleware.evidence.page_verdict import page_verdict
from sitemap_middleware.evidence.response_headers import ResponseHeaders
from sitemap_middleware.evidence.response_parser import parse_response
from sitemap_middleware.evidence.site_signals import site_signals
from sitemap_middleware.evidence.soft_404 import equal_groups, find_equal_pages
from sitemap_middleware.evidence.value_history import VOLATILE
from sitemap_middleware.http.messages import CapturedResponse
from sitemap_middleware.models import Page as Known
from sitemap_middleware.models import Site as Place
from sitemap_middleware.observe.prober import CHECK_PAUSE_SECONDS, CHECKS
from sitemap_middleware.observe.tracker import BodySampler

from .script import HOUR, OUTSIDE, START, Answer, Page, Site

PLACE: Final = Place("https", "example.com")

WATCHING, VERIFY = MODES = ("with verify=False", "by default")


@dataclass
class PageTruth:
    """What could be known of one page so far: the contents that were stored, with their true times."""

    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    """For each epoch: when it was first and last seen."""
    stamps: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The same by the workers' clocks, in whole seconds."""
    visited: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The same for visits alone, without the requests that the middleware makes itself."""
    raw: tuple[int, int, int] | None = None
    """What a policy that compares whole bodies knows: the last digest, and twice the time at which it was seen."""
    changed: int | None = None
    last_modified: str | None = None

    def note(self, at: float, stamp: int, epoch: int, *, by_middleware: bool = False) -> None:
        for table, moment in ((self.spans, at), (self.stamps, stamp), (self.visited, stamp))[
            : 2 if by_middleware else 3
        ]:
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
        """Whether the epoch was seen twice, at different whole seconds."""
        first, last = self.stamps[epoch]
        return first < last

    def visited_twice(self, epoch: int) -> bool:
        """Whether two visits saw the epoch."""
        first, last = self.visited.get(epoch, (0, 0))
        return first < last


@dataclass
class Moment:
    """What is known of a site at one moment, in each mode."""

    at: float
    dates: dict[str, dict[str, LastmodResult]]
    """By mode, the date of each listed page."""
    truth: dict[str, dict[str, PageTruth]]


def visits(site: Site, random: Random) -> Iterator[tuple[float, Page, int]]:
    """Yield all visits in order of time: the time, the page and the worker that answers."""
    workers, end = len(site.clocks), site.days * 24 * HOUR
    heap = [(random.expovariate(1 / page.gap), number) for number, page in enumerate(site.pages)]
    heapq.heapify(heap)
    while heap[0][0] < end:
        at, number = heap[0]
        page = site.pages[number]
        heapq.heapreplace(heap, (at + random.expovariate(1 / page.gap), number))
        yield at, page, random.randrange(workers)


def merge_delay_seconds(random: Random) -> float:
    """Draw the delay until a response is stored: mostly seconds, sometimes hours, as if the store did not answer."""
    return random.uniform(0, 3 * HOUR) if random.random() < 0.03 else random.expovariate(1 / 2)


class CachingParser:
    """Reuses the result of an earlier answer if the two differ only by a token outside the main content.

    Every fiftieth such answer is parsed all the same, and must give the earlier result.
    """

    def __init__(self) -> None:
        self._seen: dict[object, Observation] = {}
        self._count = 0

    def parse(self, captured: CapturedResponse, path: str, route: str, loc: str) -> Observation | None:
        body = None if captured.body is None else hash(OUTSIDE.sub(b"", captured.body, 1))
        key = path, captured.status, *captured.headers, body
        known = self._seen.get(key)
        at = int(captured.at)
        self._count += 1
        if known is not None and self._count % 50 and (known.last_modified or 0) <= at:
            return known._replace(at=at)
        observation = parse_response(captured, path, route, loc)
        if known is not None and (known.last_modified or 0) <= at and observation != known._replace(at=at):
            raise AssertionError(f"a token outside the main content changed the reading of {captured.body!r}")
        if observation is not None and _parses_alike_later(observation, captured):
            if len(self._seen) >= 50_000:
                self._seen.clear()
            self._seen[key] = observation
        return observation


def _parses_alike_later(observation: Observation, captured: CapturedResponse) -> bool:
    """Whether a later answer with these headers gives the same result: not if its Last-Modified lies in the future."""
    if observation.last_modified is None:
        return all(name != "last-modified" for name, _ in captured.headers)
    return observation.last_modified <= observation.at


@dataclass
class Visit:
    """One answer that waits to be stored."""

    at: float
    page: Page
    worker: int
    captured: CapturedResponse
    answer: Answer


@dataclass
class Recheck:
    """A pending request of the middleware that checks whether a page still has the same content."""

    page: Page
    worker: int
    left: int
    digest: int | None = None
    """The digest of the first of these answers. An earlier one may be hours old if the store was slow."""


class Traffic:
    """A site, its visits, and what the middleware makes of them in each mode."""

    def __init__(self, site: Site) -> None:
        self.known: dict[str, dict[str, Known]] = {mode: {} for mode in MODES}
        self.truth = {mode: {page.path: PageTruth() for page in site.pages} for mode in MODES}
        self._site = site
        self._random, self._chance = Random(site.seed + 1), Random(site.seed + 2)
        self._reader, self._samplers = CachingParser(), [BodySampler() for _ in site.clocks]
        self._waiting: list[tuple[float, int, Visit | Recheck]] = []
        self._number = 0

    def moments(self, count: int) -> Iterator[Moment]:
        """Yield what is known at `count` moments, evenly spread, and at the end."""
        site, random = self._site, self._random
        length = site.days * 24 * HOUR
        looks = [length * (index + 1) / (count + 1) for index in range(count)]
        for at, page, worker in visits(site, random):
            while looks and looks[0] <= at:
                self._process_until(looks[0])
                yield self._moment(looks.pop(0))
            self._process_until(at)
            visit = self._visit(page, at, worker, random)
            sampler = self._samplers[worker]
            if visit.captured.status == 200 and sampler.is_due(visit.captured, ResponseHeaders(visit.captured.headers)):
                visit.captured.body = visit.answer.body
            for _ in range(2 if random.random() < 0.01 else 1):  # 1 % are stored twice
                self._wait(at + merge_delay_seconds(random), visit)
        self._process_until(float("inf"))
        yield self._moment(length)

    def _moment(self, at: float) -> Moment:
        return Moment(
            at, {mode: dated(known, at, self._site.installed) for mode, known in self.known.items()}, self.truth
        )

    def _visit(self, page: Page, at: float, worker: int, random: Random) -> Visit:
        answer = self._site.answer(page, at, worker, random)
        stamp = START + at + self._site.clock(worker, at)
        captured = CapturedResponse(PLACE, page.path, at=stamp, status=answer.status, headers=answer.headers)
        return Visit(at, page, worker, captured, answer)

    def _wait(self, until: float, what: Visit | Recheck) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (until, self._number, what))

    def _process_until(self, end: float) -> None:
        while self._waiting and self._waiting[0][0] <= end:
            now, _, what = heapq.heappop(self._waiting)
            if isinstance(what, Visit):
                self._merge(what, now)
            else:
                self._recheck(what, now)

    def _read(self, visit: Visit) -> Observation | None:
        return self._reader.parse(visit.captured, visit.page.path, visit.page.route, PLACE.base_url + visit.page.path)

    def _stored(self, now: float) -> float:
        """The store's clock, in POSIX seconds. It runs on the machine of the first worker."""
        return START + now + self._site.clocks[0]

    def _merge(self, visit: Visit, now: float) -> None:
        seen = self._read(visit)
        path = visit.page.path
        if visit.captured.body is not None:
            self._samplers[visit.worker].record_digest(visit.captured.page_key, seen.digest if seen else None)
        if seen is None or seen.at > self._stored(now) + CLOCK_SKEW_SECONDS:  # dated in the future
            return
        seen = at_merge(seen, int(self._stored(now)))
        digest = seen.digest  # None, too, if it is dated too long ago
        if digest is not None:
            before = self.known[VERIFY].get(path)
            run = next((run for run in before.content_history if run.value == digest), None) if before else None
            if run is None or not run.was_repeated:
                self._wait(now + CHECK_PAUSE_SECONDS, Recheck(visit.page, visit.worker, CHECKS))
        for mode, known in self.known.items():
            if seen.is_read and self._number % 8 == 0:  # as if the body were stored after the response
                known[path] = _merged(known.get(path), seen._replace(is_read=False, digest=None, stated_date=None))
            known[path] = _merged(known.get(path), seen)
            if seen.status == 200:
                truth = self.truth[mode][path]
                truth.note_raw(seen.at, visit.captured.body, dict(visit.answer.headers).get("last-modified"))
                if digest is not None and visit.answer.telling:
                    truth.note(visit.at, seen.at, visit.answer.epoch)

    def _recheck(self, recheck: Recheck, now: float) -> None:
        """Request the page again; if its content differs from the previous answer, record it as volatile."""
        if now > self._site.days * 24 * HOUR:
            return
        visit = self._visit(recheck.page, now, recheck.worker, self._chance)
        visit.captured.body = visit.answer.body
        seen = self._read(visit)
        if seen is None or seen.at > self._stored(now) + CLOCK_SKEW_SECONDS:
            return
        seen = at_merge(seen, int(self._stored(now)))
        if seen.digest is None:
            return
        path, known = recheck.page.path, self.known[VERIFY]
        if recheck.digest not in (None, seen.digest):
            known[path] = _merged(known[path], seen._replace(digest=VOLATILE))
            return
        known[path] = _merged(known[path], seen)
        if visit.answer.telling:
            self.truth[VERIFY][path].note(now, seen.at, visit.answer.epoch, by_middleware=True)
        if recheck.left > 1:
            self._wait(now + CHECK_PAUSE_SECONDS, replace(recheck, left=recheck.left - 1, digest=seen.digest))


def _merged(known: Known | None, seen: Observation) -> Known:
    """Return what is stored of a page after one more observation."""
    page = merge(known, seen)
    return page if known is None or is_worth_writing(known, page) else known


def dated(known: dict[str, Known], at: float, installed: tuple[int, ...] = ()) -> dict[str, LastmodResult]:
    """Return the date that the sitemap would give each listed page at a moment."""
    now = START + int(at)
    pages = [page._replace(learned="{" in page.route) for page in known.values()]
    around, equal_pages = site_signals(pages, installed=installed), find_equal_pages(equal_groups(pages).values())
    return {
        path: lastmod(None, page, None, around, now)
        for path, page in zip(known, pages, strict=True)
        if page_verdict(page, INDEXABLE_TYPES, 0).listed and page.path not in equal_pages
    }
