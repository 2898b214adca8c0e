"""Templates: changes of content that are the site's rather than one page's own.

A digest is a sum over what a page says, so that whatever is taken out and put in
alters it by the same difference on every page. A difference that many pages show
at one moment is a new template; one that comes and goes is a banner, or one arm
of a test. Contents that differ by such a difference alone are one content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Final, NamedTuple

from ..history import OVERLAP_SECONDS, RUN_ORDER, VOLATILE, History, Run
from .content_table import ContentTable, frequent_values
from .lifespans import (
    LIFESPAN_ORDER,
    MIN_PAGES,
    TEMPLATE_CHANGE_SHARE,
    AmbiguousPeriods,
    Lifespans,
    change_gap,
    is_always_new,
    rollbacks,
)

MIN_PAGES_AROUND_CHANGE: Final = 5
"""Pages that must have been seen on both sides of a moment before a change then is held to be one page's own."""

MIN_SAME_DIFFERENCE_PAGES: Final = 3
"""Pages whose change by one difference at one moment shows that it is a template's, whatever their share."""

MAX_DIFFERENCE_PAIRS: Final = 100_000
"""Pairs of what comes and goes with a template, at most, that are looked for as one."""

_MODULUS: Final = 1 << 64
_HALF: Final = _MODULUS // 2


class _ContentStep(NamedTuple):
    """One page's passing from one content to another: its difference, and between which sights it came."""

    page: int
    start: int
    end: int
    is_negative: bool
    """Whether by the difference's negative."""
    is_flapping: bool
    """Whether both contents were seen for longer than workers take to restart."""


class TemplateChanges:
    """Every change of content that was seen on the site, to tell one page's own from that of a template."""

    def __init__(self, of_route: Mapping[str, ContentTable]) -> None:
        """By route, the contents of its pages: of ten thousand, say, for differences take their square, at worst."""
        of_group: defaultdict[str, ContentTable] = defaultdict(ContentTable)
        for route, contents in of_route.items():
            of_group[route if len(contents) >= MIN_PAGES_AROUND_CHANGE else ""].extend(contents)
        self._common = frequent_values(_content_values(of_group), MIN_PAGES) - {VOLATILE}
        self._shared = self._flapping = frozenset[int]()
        """Differences that are no page's own, as any two contents may show them, in either direction and past the
        modulus or not; and those that come and go, alone or together with a template's."""
        self._find_differences(of_group)
        every = Lifespans()
        self._groups: dict[str, AmbiguousPeriods] = {}
        for group, contents in of_group.items():
            lives = self._settled_lifespans(contents)
            every.extend(lives)
            self._groups[group] = AmbiguousPeriods(lives, least=0, many=MIN_PAGES_AROUND_CHANGE)
        self._site = AmbiguousPeriods(every, least=min(MIN_PAGES_AROUND_CHANGE, len(every.first_seen)), many=MIN_PAGES)

    @property
    def unclear_since(self) -> int | None:
        """The moment from which on too few pages were seen to tell anything; more may be seen yet. None: never."""
        return self._site.unclear_since

    def as_tuple(self) -> object:
        """All that this says of what was before `ends`: it is equal where that is."""
        groups = [(group, unclear.settled_turns()) for group, unclear in sorted(self._groups.items())]
        return sorted(self._common), sorted(self._shared), sorted(self._flapping), self._site.settled_turns(), groups

    def own_history(self, route: str, contents: History) -> History:
        """The part of a page's history that is its own, since the last change that may have been a template's.

        What was known before such a change is left out with it: an edit may hide
        behind it, and then the date of an earlier one would be false.
        """
        if len(contents) < 2:
            return contents
        unclear = [self._site, *filter(None, [self._groups.get(route) or self._groups.get("")])]
        merged = self._merge_runs(contents)
        moving = [run for run in merged if run.value == VOLATILE]
        detours = [run for run in rollbacks(merged) if any(one.overlaps(run.first, run.last) for one in unclear)]
        wavered = self._last_flap(contents)
        since: list[Run] = []
        for run in sorted(merged, key=LIFESPAN_ORDER):
            if run in moving or run in detours or run.first <= wavered:
                continue
            if since:
                start, end = change_gap(since, run)
                if any(one.overlaps(start, end) for one in unclear):
                    since = [one for one in since if one.last > run.first]
            since.append(run)
        return tuple(sorted((*since, *moving), key=RUN_ORDER))

    def _settled_lifespans(self, contents: ContentTable) -> Lifespans:
        """The lives of pages whose changes tell something of others', templates' left out."""
        lives = Lifespans()
        for value, first, last in zip(contents.values, contents.first_seen, contents.last_seen, strict=True):
            if value != VOLATILE:
                lives.first_seen.append(first)
                lives.last_seen.append(last)
        for history in map(self._merge_runs, contents.changed):
            if history and not is_always_new(history):
                lives.add(history)
        return lives

    def _last_flap(self, contents: History) -> int:
        """When a content was first seen that differs from another by what comes and goes: the last such moment."""
        if not self._flapping or self._flapping.isdisjoint(_content_differences(runs := self._own_runs(contents))):
            return -1
        return max(end for difference, _, end, *_ in _content_steps(runs) if difference in self._flapping)

    def _find_differences(self, of_group: Mapping[str, ContentTable]) -> None:
        """Find the differences that are no page's own, in the pages that changed."""
        histories = (self._own_runs(history) for contents in of_group.values() for history in contents.changed)
        changed = [runs for runs in histories if len(runs) > 1]
        differences = [_content_differences(runs) for runs in changed]
        counted = Counter(chain.from_iterable(differences))
        several = {difference for difference, count in counted.items() if count > 1}
        if not several:
            return
        found: dict[int, list[_ContentStep]] = {}
        for number, runs in enumerate(changed):
            if not several.isdisjoint(differences[number]):
                for difference, start, end, down, wavers in _content_steps(runs):
                    if difference in several:
                        found.setdefault(difference, []).append(_ContentStep(number, start, end, down, wavers))
        kinds = {difference: _difference_kind(steps) for difference, steps in found.items()}
        wavering = {difference for difference, kind in kinds.items() if kind == "wavering"}
        templates = [difference for difference, kind in kinds.items() if kind == "template"]
        templates.sort(key=lambda difference: (-len(found[difference]), difference))
        self._shared = frozenset(
            shown
            for difference in wavering.union(templates)
            for shown in (difference, -difference, difference - _MODULUS, _MODULUS - difference)
        )
        self._flapping = frozenset(_flapping_differences(wavering, templates))

    def _own_runs(self, history: History) -> list[Run]:
        """The runs that say anything of what a page has of its own, in the order in which they began."""
        runs = [run for run in history if run.value != VOLATILE and run.value not in self._common]
        runs.sort(key=LIFESPAN_ORDER)
        return runs

    def _merge_runs(self, history: History) -> History:
        """A history without what many pages say alike, contents that are one content taken for one."""
        runs = tuple([run for run in history if run.value not in self._common])
        if not self._shared:
            return runs
        merged: list[tuple[Run, list[int]]] = []
        for run in runs:
            whole, values, others = run, [] if run.value == VOLATILE else [run.value], []
            for other in merged:
                if values and not self._shared.isdisjoint([run.value - value for value in other[1]]):
                    whole = Run(run.value, min(whole.first, other[0].first), max(whole.last, other[0].last))
                    values += other[1]
                else:
                    others.append(other)
            merged = [*others, (whole, values)]
        return runs if len(merged) == len(runs) else tuple(sorted([run for run, _ in merged], key=RUN_ORDER))


def _flapping_differences(alone: Collection[int], templates: Sequence[int]) -> set[int]:
    """The differences that come and go: these, and what a template's make together with them.

    Several pages may show such a sum at one moment, so that it looks like a
    template's. But fewer do than show the template's own, which comes before it.

    Args:
        alone: those that come and go without a template's.
        templates: those of templates, the most frequent ones first.
    """
    own: set[int] = set()
    at_once: set[int] = set()
    for template in templates[: MAX_DIFFERENCE_PAIRS // (len(alone) + 1)]:
        if template not in at_once:
            own.add(template)
            at_once.update(_unsigned(difference + other) for difference in alone for other in (template, -template))
    return at_once.union(alone) - own


def _content_values(of_group: Mapping[str, ContentTable]) -> Iterator[int]:
    """Every content of every page."""
    for contents in of_group.values():
        yield from contents.values
        for history in contents.changed:
            for run in history:
                yield run.value


def _unsigned(difference: int) -> int:
    """A difference, or its negative: one number for both."""
    up = difference % _MODULUS
    return up if up <= _HALF else _MODULUS - up


def _content_differences(runs: Sequence[Run]) -> set[int]:
    return {_unsigned(one.value - other.value) for one, other in combinations(runs, 2)}


def _content_steps(runs: list[Run]) -> Iterator[tuple[int, int, int, bool, bool]]:
    """Of every two contents: the difference, and when the one gave way to the other, as in `_ContentStep`."""
    for before, after in combinations(runs, 2):
        up = (after.value - before.value) % _MODULUS
        start, end = sorted((before.last, after.first))
        yield _unsigned(up), start, end, up > _HALF, before.last - after.first > OVERLAP_SECONDS


def _difference_kind(steps: list[_ContentStep]) -> str:
    """What a difference that several pages showed is: a template's, wavering, or, by the empty string, edits alike.

    A template's comes on many pages at one moment, as often as it comes. Other
    differences waver where they come and go, or where many pages show them, each at a time of its own.
    """
    at_once = 0
    ordered = sorted(steps, key=lambda step: step.end)
    while ordered:
        moment = ordered[0].end
        here = [step for step in ordered if step.start <= moment + OVERLAP_SECONDS]
        ordered = [step for step in ordered if step.start > moment + OVERLAP_SECONDS]
        pages = len({step.page for step in here})
        if pages >= MIN_SAME_DIFFERENCE_PAGES:
            at_once += len(here)
    if at_once >= TEMPLATE_CHANGE_SHARE * len(steps):
        return "template"
    comes_and_goes = any(step.is_flapping for step in steps) or len({step.is_negative for step in steps}) > 1
    many = len({step.page for step in steps}) >= MIN_PAGES
    apart = max(step.start for step in steps) > min(step.end for step in steps) + OVERLAP_SECONDS
    return "wavering" if comes_and_goes or (many and apart) else ""
