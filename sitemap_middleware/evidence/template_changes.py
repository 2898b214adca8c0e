"""Tells template changes from edits of one page.

A content digest is a sum over the page's words, so a new footer changes the digests of all pages by one difference:

| page | before | after | difference |
|---|---|---|---|
| /a | 1000 | 1007 | +7: the footer |
| /b | 2000 | 2007 | +7: the footer |
| /c | 3000 | 3512 | +512: an edit |

A difference that several pages show at one time is a template change. One that comes and goes (`flapping`) is a banner,
or an arm of an A/B test. Contents that differ only by such differences count as one content.

A template may also change each page in another way. So an edit is not dated if unusually many pages changed around its
time, or if too few were seen before and after it to tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations
from operator import attrgetter
from typing import Final, NamedTuple

from .value_history import OVERLAP_SECONDS, RUN_ORDER, VOLATILE, History, Run

MIN_SEEN_PAGES: Final = 5
"""Pages that must have been seen before and after a time for a change then to count as an edit of one page."""

MIN_SAME_PAGES: Final = 3
"""Pages that must show one content, or one difference at one time, for it not to be their own."""

TEMPLATE_CHANGE_SHARE: Final = 0.6
"""If this share of the pages seen before and after a time changed then, their template may have changed."""

MIN_BURST_PAGES: Final = 5
BURST_FACTOR: Final = 4
"""So do this many pages, if it is this many times as many as change around a time on average."""

CHANGE_SLACK_SECONDS: Final = OVERLAP_SECONDS // 2
"""How long before or after its time a change may be seen: workers restart in turn, and clocks differ."""

FOREVER: Final = 1 << 63

_MODULUS: Final = 1 << 64
_BY_START: Final = attrgetter("first", "last")

Period = tuple[int, int]
"""The first and the last second of a time, from -1 to `FOREVER`."""


class _Step(NamedTuple):
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

    def __init__(self, contents_by_route: Mapping[str, Sequence[History]]) -> None:
        """Find the template changes in the contents of each route's pages: of a large site, in those of a sample."""
        by_group: defaultdict[str, list[History]] = defaultdict(list)
        for route, contents in contents_by_route.items():
            by_group[route if len(contents) >= MIN_SEEN_PAGES else ""].extend(contents)
        every = [history for contents in by_group.values() for history in contents]
        counts = Counter(run.value for history in every for run in history)
        self._common = frozenset(value for value, count in counts.items() if count >= MIN_SAME_PAGES) - {VOLATILE}
        """Contents of several pages, such as "We will be back soon"."""
        templates, self._flapping = _shared_differences(map(self._own_runs, every))
        self._shared = templates | self._flapping
        """Differences that are not edits, without signs. `_flapping`: those of them that come and go."""
        settled = {group: self._settled(contents) for group, contents in by_group.items()}
        self._groups = {group: ambiguous_periods(contents, min_seen=0) for group, contents in settled.items()}
        pages = [history for contents in settled.values() for history in contents]
        self._site = ambiguous_periods(pages, min_seen=min(MIN_SEEN_PAGES, len(pages)))

    @property
    def ambiguous_since(self) -> int | None:
        """The time since which too few pages were read to tell edits from template changes; None if enough were."""
        return self._site[-1][0] if self._site and self._site[-1][1] == FOREVER else None

    def own_history(self, route: str, contents: History) -> History:
        """A page's content history without shared differences, from the last possible template change on.

        All history before that change is dropped: an edit may hide behind the change, and then the date of an earlier
        edit would be wrong.
        """
        if len(contents) < 2:
            return contents
        periods = [*self._site, *self._groups.get(route, self._groups.get("", []))]
        last_flap = self._last_flap(contents)
        own: list[Run] = []
        volatile: list[Run] = []
        for run in sorted(self._merge_runs(contents), key=_BY_START):
            if run.value == VOLATILE:
                volatile.append(run)
            elif run.first > last_flap:
                start, end = _gap(own, run)
                if any(first <= end and start <= last for first, last in periods):
                    own = [earlier for earlier in own if earlier.last > run.first]
                own.append(run)
        return tuple(sorted((*own, *volatile), key=RUN_ORDER))

    def _settled(self, contents: Iterable[History]) -> list[History]:
        """The histories without known template changes, and without those of pages that change at every visit."""
        merged = map(self._merge_runs, contents)
        return [history for history in merged if history and all(run.value != VOLATILE for run in history)]

    def _last_flap(self, contents: History) -> int:
        """When a content last appeared that differs from another by a flapping difference; -1 if none did."""
        steps = _steps(0, self._own_runs(contents)) if self._flapping else ()
        return max((step.end for difference, step in steps if difference in self._flapping), default=-1)

    def _own_runs(self, history: History) -> list[Run]:
        """The runs without volatile content and without contents of many pages, in the order in which they began."""
        runs = [run for run in history if run.value != VOLATILE and run.value not in self._common]
        return sorted(runs, key=_BY_START)

    def _merge_runs(self, history: History) -> History:
        """A history without contents of many pages; contents that differ by shared differences become one run."""
        runs = tuple([run for run in history if run.value not in self._common]) if len(history) > 1 else history
        if not self._shared or len(runs) < 2:
            return runs
        merged: list[tuple[Run, list[int]]] = []
        for run in runs:
            joined, values, others = run, [] if run.value == VOLATILE else [run.value], []
            for other in merged:
                if values and not self._shared.isdisjoint([_unsigned(run.value - value) for value in other[1]]):
                    joined = Run(run.value, min(joined.first, other[0].first), max(joined.last, other[0].last))
                    values += other[1]
                else:
                    others.append(other)
            merged = [*others, (joined, values)]
        return tuple(sorted([run for run, _ in merged], key=RUN_ORDER))


def ambiguous_periods(histories: Sequence[History], *, min_seen: int) -> list[Period]:
    """The times at which a template may have changed, so that an edit then cannot be told from it; in order.

    That is so if fewer than `min_seen` pages were seen before and after a time, if most of these changed around it, or
    if many more changed around it than around other times.
    """
    turns: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    changing_seconds = 0
    for history in histories:
        seen[min(run.first for run in history)] += 1
        seen[max(run.last for run in history) + 1] -= 1
        ordered = sorted(history, key=_BY_START)
        for index in range(1, len(ordered)):
            start, end = _gap(ordered[:index], ordered[index])
            changing_seconds += end - start + 2 * CHANGE_SLACK_SECONDS
            turns[start - CHANGE_SLACK_SECONDS] += 1
            turns[end + CHANGE_SLACK_SECONDS + 1] -= 1
    mean = changing_seconds / max(1, max(seen, default=0) - min(seen, default=0))
    burst = max(MIN_BURST_PAGES, BURST_FACTOR * mean)
    alive = changed = 0
    began = -1 if min_seen > 0 else None
    periods: list[Period] = []
    for at in sorted({*seen, *turns}):
        alive += seen[at]
        changed += turns[at]
        is_ambiguous = (
            alive < min_seen
            or changed >= burst
            or (changed >= MIN_SAME_PAGES and changed >= TEMPLATE_CHANGE_SHARE * alive)
        )
        if is_ambiguous and began is None:
            began = at
        elif not is_ambiguous and began is not None:
            periods.append((began, at - 1))
            began = None
    return periods if began is None else [*periods, (began, FOREVER)]


def _gap(before: Iterable[Run], after: Run) -> Period:
    """The interval in which a content appeared: from the last sight of an earlier content to the first of this one."""
    return max((run.last for run in before if run.last <= after.first), default=after.first), after.first


def _shared_differences(changed: Iterable[Sequence[Run]]) -> tuple[frozenset[int], frozenset[int]]:
    """The differences that are not edits: those of templates, and those that come and go."""
    by_difference: defaultdict[int, list[_Step]] = defaultdict(list)
    for page, runs in enumerate(changed):
        for difference, step in _steps(page, runs):
            by_difference[difference].append(step)
    templates = frozenset(difference for difference, steps in by_difference.items() if _is_template(steps))
    flapping = frozenset(
        difference for difference, steps in by_difference.items() if len(steps) > 1 and _comes_and_goes(steps)
    )
    return templates, flapping - templates


def _unsigned(difference: int) -> int:
    """The same number for a difference and its negative."""
    up = difference % _MODULUS
    return min(up, _MODULUS - up)


def _steps(page: int, runs: Sequence[Run]) -> Iterator[tuple[int, _Step]]:
    """For every two contents of a page: their difference, and the step by it."""
    for before, after in combinations(runs, 2):
        up = (after.value - before.value) % _MODULUS
        start, end = sorted((before.last, after.first))
        is_flapping = before.last - after.first > OVERLAP_SECONDS
        yield _unsigned(up), _Step(page, start, end, up > _MODULUS - up, is_flapping)


def _is_template(steps: Iterable[_Step]) -> bool:
    """Whether a difference came to several pages at one time."""
    turns: Counter[int] = Counter()
    for step in steps:
        if not step.is_flapping:  # the time between is that of several changes
            turns[step.start] += 1
            turns[step.end + OVERLAP_SECONDS + 1] -= 1
    return max(accumulate(turns[at] for at in sorted(turns)), default=0) >= MIN_SAME_PAGES


def _comes_and_goes(steps: Iterable[_Step]) -> bool:
    """Whether a difference goes away again on at least half of the pages that show it."""
    signs: defaultdict[int, set[bool]] = defaultdict(set)
    for step in steps:
        signs[step.page].update((True, False) if step.is_flapping else (step.is_negative,))
    return 2 * sum(len(both) > 1 for both in signs.values()) >= len(signs)
