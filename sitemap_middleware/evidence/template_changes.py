"""Tells template changes from edits of one page.

A content digest is a sum over the page's words, so a new footer changes the digests of all pages by one difference:

| page | before | after | difference |
|---|---|---|---|
| /a | 1000 | 1007 | +7: the footer |
| /b | 2000 | 2007 | +7: the footer |
| /c | 3000 | 3512 | +512: an edit |

A difference that many pages show at one time is a template change. One that comes and goes (`flapping`) is a banner, or
an arm of an A/B test. Contents that differ only by such differences count as one content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Final, NamedTuple

from ..value_history import OVERLAP_SECONDS, RUN_ORDER, VOLATILE, History, Run
from .periods_of_many_changes import (
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
"""Pages that must have been seen before and after a time for a change then to count as an edit of one page."""

MIN_SAME_DIFFERENCE_PAGES: Final = 3
"""Pages that must show one difference at one time for it to be a template change."""

MAX_DIFFERENCE_PAIRS: Final = 100_000
"""Pairs of a template change and a flapping difference that are tried as one difference."""

_MODULUS: Final = 1 << 64
_HALF: Final = _MODULUS // 2


class _ContentStep(NamedTuple):
    """A page's step from one content to another by some difference, between the times `start` and `end`."""

    page: int
    start: int
    end: int
    is_negative: bool
    """Whether the content changed by the negative of the difference."""
    is_flapping: bool
    """Whether both contents were seen side by side for longer than workers take to restart."""


class TemplateChanges:
    """The observed changes of content on a site, to tell edits of a page from template changes."""

    def __init__(self, contents_by_route: Mapping[str, list[History]]) -> None:
        """Find the template changes.

        Args:
            contents_by_route: the contents of each route's pages. Finding differences may take quadratic time, so a
                large site gives a sample of 10,000 pages.
        """
        contents_by_group: defaultdict[str, list[History]] = defaultdict(list)
        for route, contents in contents_by_route.items():
            contents_by_group[route if len(contents) >= MIN_PAGES_AROUND_CHANGE else ""].extend(contents)
        counts = Counter(
            run.value for contents in contents_by_group.values() for history in contents for run in history
        )
        self._common = frozenset(value for value, count in counts.items() if count >= MIN_PAGES) - {VOLATILE}
        self._shared = self._flapping = frozenset[int]()
        """`_shared`: differences that are not edits, in the four forms in which two signed digests may show them.
        `_flapping`: differences that come and go, alone or together with a template change; without signs."""
        self._find_differences(contents_by_group)
        all_lifespans = Lifespans()
        self._groups: dict[str, AmbiguousPeriods] = {}
        for group, contents in contents_by_group.items():
            lifespans = self._settled_lifespans(contents)
            all_lifespans.extend(lifespans)
            self._groups[group] = AmbiguousPeriods(lifespans, min_seen=0, min_changed=MIN_PAGES)
        self._site = AmbiguousPeriods(
            all_lifespans, min_seen=min(MIN_PAGES_AROUND_CHANGE, len(all_lifespans.first_seen)), min_changed=MIN_PAGES
        )

    @property
    def ambiguous_since(self) -> int | None:
        """The time since which too few pages were read to tell edits from template changes; None if enough were."""
        return self._site.ambiguous_since

    def as_tuple(self) -> object:
        """The template changes before `ambiguous_since`; equal tuples mean equal results of `own_history`."""
        groups = [(group, unclear.settled_turns()) for group, unclear in sorted(self._groups.items())]
        return sorted(self._common), sorted(self._shared), sorted(self._flapping), self._site.settled_turns(), groups

    def own_history(self, route: str, contents: History) -> History:
        """A page's content history without shared differences, from the last possible template change on.

        All history before that change is dropped: an edit may hide behind the change, and then the date of an earlier
        edit would be wrong. A content that was seen once, after one that was seen twice, is not confirmed. It does not
        count as such a change, so nothing is dropped because of it.
        """
        if len(contents) < 2:
            return contents
        periods = [self._site, *filter(None, [self._groups.get(route) or self._groups.get("")])]
        merged = self._merge_runs(contents)
        volatile = [run for run in merged if run.value == VOLATILE]
        rolled_back = [
            run for run in rollbacks(merged) if any(period.overlaps(run.first, run.last) for period in periods)
        ]
        last_flap = self._last_flap(contents)
        own: list[Run] = []
        for run in sorted(merged, key=LIFESPAN_ORDER):
            if run in volatile or run in rolled_back or run.first <= last_flap:
                continue
            if own and (run.was_repeated or not own[-1].was_repeated):  # one reading does not confirm a change
                start, end = change_gap(own, run)
                if any(period.overlaps(start, end) for period in periods):
                    own = [earlier for earlier in own if earlier.last > run.first]
            own.append(run)
        return tuple(sorted((*own, *volatile), key=RUN_ORDER))

    def _settled_lifespans(self, contents: list[History]) -> Lifespans:
        """When the pages were seen and changed, without known template changes and without pages that always change."""
        lifespans = Lifespans()
        for history in contents:
            merged = self._merge_runs(history) if len(history) > 1 else history
            if merged and not is_always_new(merged):
                lifespans.add(merged)
        return lifespans

    def _last_flap(self, contents: History) -> int:
        """When a content last appeared that differs from another by a flapping difference; -1 if none did."""
        if not self._flapping or self._flapping.isdisjoint(_content_differences(runs := self._own_runs(contents))):
            return -1
        return max(end for difference, _, end, *_ in _content_steps(runs) if difference in self._flapping)

    def _find_differences(self, contents_by_group: Mapping[str, list[History]]) -> None:
        """Find the differences that are not edits, in the pages that changed."""
        histories = (self._own_runs(history) for contents in contents_by_group.values() for history in contents)
        changed = [runs for runs in histories if len(runs) > 1]
        differences = [_content_differences(runs) for runs in changed]
        counted = Counter(chain.from_iterable(differences))
        shared_by_pages = {difference for difference, count in counted.items() if count > 1}
        if not shared_by_pages:
            return
        steps_by_difference: dict[int, list[_ContentStep]] = {}
        for number, runs in enumerate(changed):
            if not shared_by_pages.isdisjoint(differences[number]):
                for difference, start, end, is_negative, is_flapping in _content_steps(runs):
                    if difference in shared_by_pages:
                        steps_by_difference.setdefault(difference, []).append(
                            _ContentStep(number, start, end, is_negative, is_flapping)
                        )
        kinds = {difference: _difference_kind(steps) for difference, steps in steps_by_difference.items()}
        flapping = {difference for difference, kind in kinds.items() if kind == "flapping"}
        templates = [difference for difference, kind in kinds.items() if kind == "template"]
        templates.sort(key=lambda difference: (-len(steps_by_difference[difference]), difference))
        self._shared = frozenset(
            signed
            for difference in flapping.union(templates)
            for signed in (difference, -difference, difference - _MODULUS, _MODULUS - difference)
        )
        self._flapping = frozenset(_flapping_differences(flapping, templates))

    def _own_runs(self, history: History) -> list[Run]:
        """The runs without volatile content and without contents of many pages, in the order in which they began."""
        runs = [run for run in history if run.value != VOLATILE and run.value not in self._common]
        runs.sort(key=LIFESPAN_ORDER)
        return runs

    def _merge_runs(self, history: History) -> History:
        """A history without contents of many pages; contents that differ by shared differences become one run."""
        runs = tuple([run for run in history if run.value not in self._common])
        if not self._shared:
            return runs
        merged: list[tuple[Run, list[int]]] = []
        for run in runs:
            joined, values, others = run, [] if run.value == VOLATILE else [run.value], []
            for other in merged:
                if values and not self._shared.isdisjoint([run.value - value for value in other[1]]):
                    joined = Run(run.value, min(joined.first, other[0].first), max(joined.last, other[0].last))
                    values += other[1]
                else:
                    others.append(other)
            merged = [*others, (joined, values)]
        return runs if len(merged) == len(runs) else tuple(sorted([run for run, _ in merged], key=RUN_ORDER))


def _flapping_differences(alone: Collection[int], templates: Sequence[int]) -> set[int]:
    """The differences that come and go, alone or together with a template change.

    If a banner appears between two visits and the template changes as well, the page shows the sum of both differences.
    The sum is a third difference, and looks like another template change if several pages show it at one time. More
    pages show the template change alone, so it comes first in `templates`, and its sums are set aside.

    Args:
        alone: the differences that come and go.
        templates: the differences that look like template changes, the most frequent first.
    """
    own: set[int] = set()
    sums: set[int] = set()
    for template in templates[: MAX_DIFFERENCE_PAIRS // (len(alone) + 1)]:
        if template not in sums:
            own.add(template)
            sums.update(_unsigned(difference + other) for difference in alone for other in (template, -template))
    return sums.union(alone) - own


def _unsigned(difference: int) -> int:
    """The same number for a difference and its negative."""
    up = difference % _MODULUS
    return up if up <= _HALF else _MODULUS - up


def _content_differences(runs: Sequence[Run]) -> set[int]:
    return {_unsigned(run.value - other.value) for run, other in combinations(runs, 2)}


def _content_steps(runs: list[Run]) -> Iterator[tuple[int, int, int, bool, bool]]:
    """For every two contents: their difference, and the fields of a `_ContentStep` except the page."""
    for before, after in combinations(runs, 2):
        up = (after.value - before.value) % _MODULUS
        start, end = sorted((before.last, after.first))
        yield _unsigned(up), start, end, up > _HALF, before.last - after.first > OVERLAP_SECONDS


def _difference_kind(steps: list[_ContentStep]) -> str:
    """What a difference of several pages is: "template", "flapping", or "" for equal edits of few pages.

    A template change comes to many pages at one time, each time it comes. Another difference is flapping if it comes
    and goes, or if many pages show it, each at a different time.
    """
    simultaneous = 0
    ordered = sorted(steps, key=lambda step: step.end)
    while ordered:
        moment = ordered[0].end
        simultaneous_steps = [step for step in ordered if step.start <= moment + OVERLAP_SECONDS]
        ordered = [step for step in ordered if step.start > moment + OVERLAP_SECONDS]
        pages = len({step.page for step in simultaneous_steps})
        if pages >= MIN_SAME_DIFFERENCE_PAGES:
            simultaneous += len(simultaneous_steps)
    if simultaneous >= TEMPLATE_CHANGE_SHARE * len(steps):
        return "template"
    comes_and_goes = any(step.is_flapping for step in steps) or len({step.is_negative for step in steps}) > 1
    many = len({step.page for step in steps}) >= MIN_PAGES
    apart = max(step.start for step in steps) > min(step.end for step in steps) + OVERLAP_SECONDS
    return "flapping" if comes_and_goes or (many and apart) else ""
