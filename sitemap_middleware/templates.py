"""Templates: changes of content that are the site's rather than one page's own.

A digest is a sum over what a page says, so that whatever is taken out and put in
alters it by the same difference on every page. A difference that many pages show
at one moment is a new template; one that comes and goes is a banner, or one arm
of a test. Contents that differ by such a difference alone are one content.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from .history import MANY, MOVING, OVERLAP, History, Run

SAMPLE: Final = 5
"""Pages that must have been seen on both sides of a moment before a change then is held to be one page's own."""

MOST: Final = 0.6
"""The share of those pages that, changing at that moment, shows that it was their template that changed."""

PART: Final = 0.25
"""The share that shows it where they changed by one and the same difference."""

SLACK: Final = OVERLAP // 2
"""Seconds by which a change may be seen earlier or later than it was: workers restart in turn, and clocks differ."""

_MODULUS: Final = 1 << 64


class _Step(NamedTuple):
    """One page's passing from one content to another: its difference, and between which sights it came."""

    page: int
    group: str
    start: int
    end: int
    down: bool
    """Whether by the difference's negative."""
    wavers: bool
    """Whether both contents were seen for longer than workers take to restart."""


class Templates:
    """Every change of content that was seen on the site, to tell one page's own from that of a template."""

    def __init__(self, pages: Iterable[tuple[str, History]]) -> None:
        """Each page's route and contents."""
        pages = [(route, history) for route, history in pages if history]
        sizes = Counter(route for route, _ in pages)
        grouped = [(route if sizes[route] >= SAMPLE else "", history) for route, history in pages]
        borne = Counter(run.value for _, history in grouped for run in history)
        self._common = frozenset(value for value, count in borne.items() if count >= MANY and value != MOVING)
        self._shared, self._wavering = self._shared_of(grouped)
        merged = [(group, self._merged(history)) for group, history in grouped if len(history) > 1]
        alone = [(group, history) for group, history in grouped if len(history) == 1]
        calm = [(group, history) for group, history in (*merged, *alone) if history and not _restless(history)]
        self._site = _Unclear([history for _, history in calm], min(SAMPLE, len(grouped)))
        self._groups = {
            group: _Unclear([history for other, history in calm if other == group], 0)
            for group in {group for group, _ in calm}
        }

    def own(self, route: str, contents: History) -> History:
        """The part of a page's history that is its own, since the last change that may have been a template's.

        What was known before such a change is left out with it: an edit may hide
        behind it, and then the date of an earlier one would be false.
        """
        if len(contents) < 2:
            return contents
        group = self._groups.get(route) or self._groups.get("")
        since: list[Run] = []
        merged = self._merged(contents)
        for run in sorted(merged, key=lambda run: (run.first, run.last)):
            if run.value != MOVING and since:
                start, end = sorted((since[-1].last, run.first))
                if self._site.at(start, end) or (group is not None and group.at(start, end)):
                    since.clear()
            if run.value != MOVING:
                since.append(run)
        since += [run for run in merged if run.value == MOVING]
        return tuple(sorted(since, key=lambda run: (run.last, run.first, run.value)))

    def wavers(self, contents: History) -> bool:
        """Whether a page's contents differ by what comes and goes on the site: banners, the arms of a test."""
        return any(difference in self._wavering for difference, *_ in self._steps(contents))

    def _shared_of(self, pages: list[tuple[str, History]]) -> tuple[frozenset[int], frozenset[int]]:
        """The differences that are no page's own; and those of them that come and go."""
        counted = Counter[int]()
        for _, history in pages:
            if len(history) > 1:
                counted.update({difference for difference, *_ in self._steps(history)})
        several = {difference for difference, count in counted.items() if count > 1}
        found: dict[int, list[_Step]] = {}
        for number, (group, history) in enumerate(pages):
            if len(history) > 1:
                for difference, start, end, down, wavers in self._steps(history):
                    if difference in several:
                        found.setdefault(difference, []).append(_Step(number, group, start, end, down, wavers))
        alive = _Alive(pages)
        kinds = {difference: _kind(steps, alive) for difference, steps in found.items()}
        return (
            frozenset(difference for difference, kind in kinds.items() if kind),
            frozenset(difference for difference, kind in kinds.items() if kind == "wavering"),
        )

    def _steps(self, history: History) -> Iterator[tuple[int, int, int, bool, bool]]:
        runs = [run for run in history if run.value != MOVING and run.value not in self._common]
        runs.sort(key=lambda run: (run.first, run.last))
        for index, before in enumerate(runs):
            for after in runs[index + 1 :]:
                up = (after.value - before.value) % _MODULUS
                down = _MODULUS - up
                start, end = sorted((before.last, after.first))
                yield min(up, down), start, end, down < up, before.last - after.first > OVERLAP

    def _merged(self, history: History) -> History:
        """A history without what many pages say alike, contents that are one content taken for one."""
        runs = [run for run in history if run.value not in self._common]
        merged: list[Run] = []
        classes: list[list[int]] = []
        for run in runs:
            values, whole = [run.value], run
            for other in [index for index, one in enumerate(classes) if run.value != MOVING and self._one(run, one)]:
                values += classes[other]
                whole = Run(whole.value, min(whole.first, merged[other].first), max(whole.last, merged[other].last))
                classes[other] = []
            merged = [one for one, kept in zip(merged, classes, strict=True) if kept]
            classes = [kept for kept in classes if kept]
            merged.append(whole)
            classes.append(values)
        return tuple(sorted(merged, key=lambda run: (run.last, run.first, run.value)))

    def _one(self, run: Run, values: list[int]) -> bool:
        return any(
            min((run.value - value) % _MODULUS, (value - run.value) % _MODULUS) in self._shared
            for value in values
            if value != MOVING
        )


def _kind(steps: list[_Step], alive: _Alive) -> str:
    """What a difference that several pages showed is: a template's, wavering, or, by the empty string, edits alike.

    A template's comes on many pages at one moment, as often as it comes. Other
    differences waver where they come and go, or where many pages show them, each at a time of its own.
    """
    at_once = 0
    ordered = sorted(steps, key=lambda step: step.end)
    while ordered:
        moment = ordered[0].end
        here = [step for step in ordered if step.start <= moment + OVERLAP]
        ordered = [step for step in ordered if step.start > moment + OVERLAP]
        pages = len({step.page for step in here})
        groups = Counter(group for group, _ in {(step.group, step.page) for step in here})
        if pages >= max(MANY, PART * alive.on_site(moment)) or any(
            count >= max(MANY, PART * alive.of(group, moment)) for group, count in groups.items()
        ):
            at_once += len(here)
    if at_once >= MOST * len(steps):
        return "template"
    comes_and_goes = any(step.wavers for step in steps) or len({step.down for step in steps}) > 1
    many = len({step.page for step in steps}) >= MANY
    apart = max(step.start for step in steps) > min(step.end for step in steps) + OVERLAP
    return "wavering" if comes_and_goes or (many and apart) else ""


class _Alive:
    """How many pages were seen before and after a moment."""

    def __init__(self, pages: list[tuple[str, History]]) -> None:
        self._spans: dict[str, tuple[list[int], list[int]]] = {}
        for group, history in pages:
            firsts, lasts = self._spans.setdefault(group, ([], []))
            firsts.append(min(run.first for run in history))
            lasts.append(max(run.last for run in history))
        for firsts, lasts in self._spans.values():
            firsts.sort()
            lasts.sort()

    def of(self, group: str, moment: int) -> int:
        firsts, lasts = self._spans[group]
        return bisect_left(firsts, moment) - bisect_left(lasts, moment)

    def on_site(self, moment: int) -> int:
        return sum(self.of(group, moment) for group in self._spans)


class _Unclear:
    """The times at which a template may have changed on some pages: most of them changed, or too few were seen."""

    def __init__(self, histories: list[History], least: int) -> None:
        moves: dict[int, list[int]] = {}

        def move(at: int, alive: int, broken: int) -> None:
            both = moves.setdefault(at, [0, 0])
            both[0] += alive
            both[1] += broken

        for history in histories:
            move(min(run.first for run in history), 1, 0)
            move(max(run.last for run in history) + 1, -1, 0)
            for start, end in _breaks(history):
                move(start - SLACK, 0, 1)
                move(end + SLACK + 1, 0, -1)
        alive = broken = 0
        unclear = least > 0
        self._turns: list[int] = []
        """When it becomes unclear and clear again, in turn; unclear before the first, where pages are wanted."""
        self._begins = unclear
        for at in sorted(moves):
            alive += moves[at][0]
            broken += moves[at][1]
            now = alive < least or broken >= max(MANY, MOST * alive)
            if now is not unclear:
                unclear = now
                self._turns.append(at)

    def at(self, start: int, end: int) -> bool:
        """Whether it is unclear at any moment from start to end."""
        first, last = bisect_left(self._turns, start + 1), bisect_left(self._turns, end + 1)
        return first != last or self._begins is (first % 2 == 0)


def _breaks(history: History) -> Iterator[tuple[int, int]]:
    """Between each content and the next, the last sight of the one and the first of the other."""
    ordered = sorted(history, key=lambda run: (run.first, run.last))
    for before, after in pairwise(ordered):
        start, end = sorted((before.last, after.first))
        yield start, end


def _restless(history: History) -> bool:
    """Whether a page is new so often that its changing tells nothing of others."""
    return sum(not run.stood for run in history) >= MANY or any(run.value == MOVING for run in history)
