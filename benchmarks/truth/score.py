"""Scores: which dates are right, wrong or omitted, judged by what could be observed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Self

from .script import BEYOND, DAY, KINDS, START, VOLATILE, Page, Site
from .traffic import MODES, WATCHING, Moment, PageTruth
from .trials import APART, TRIALS, UNEDITED_TRIALS

SKEW: Final = 5 * 60
"""Seconds by which the workers' clocks may differ."""

OURS: Final = MODES
POLICIES: Final = (*OURS, "today's date", "raw-body hash", "Last-Modified alone")
COUNTED: Final = frozenset({*KINDS, *(f"trial: {name}" for name in TRIALS)})
"""The kinds of pages that the totals count."""
UNEDITED: Final = frozenset({*VOLATILE, *(f"trial: {name}" for name in UNEDITED_TRIALS)})
"""The kinds of pages that look edited although nobody edits them."""


MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass
class Tally:
    """Dates right, wrong and left out."""

    right: int = 0
    wrong: int = 0
    omitted: int = 0

    def add(self, correct: bool | None) -> None:
        if correct is None:
            self.omitted += 1
        elif correct:
            self.right += 1
        else:
            self.wrong += 1

    def __iadd__(self, other: Tally) -> Self:
        self.right, self.wrong, self.omitted = (
            self.right + other.right,
            self.wrong + other.wrong,
            self.omitted + other.omitted,
        )
        return self

    @property
    def wrong_share(self) -> float:
        """The share of wrong dates among those given."""
        return self.wrong / max(1, self.right + self.wrong)


@dataclass
class Undated:
    """A change that two visits saw and no look found dated: why, at the last look that showed it."""

    kind: str
    site: str
    reason: str
    days: float
    """How long before that look the new content was first read."""
    looks: int
    """How many looks showed it."""


@dataclass
class Score:
    """The results of one or more sites, by policy and kind of page."""

    end: dict[tuple[str, str], Tally] = field(default_factory=dict)
    between: dict[tuple[str, str], Tally] = field(default_factory=dict)
    changes: dict[tuple[str, str], dict[str, dict[str, bool]]] = field(default_factory=dict)
    """By kind and reason for counting apart: for each change that two visits saw, whether each mode ever dated it."""
    undated: dict[str, dict[str, Undated]] = field(default_factory=dict)
    """By mode: the changes without a date so far, without what is counted apart."""
    mistakes: list[str] = field(default_factory=list)
    pages: int = 0
    sites: int = 0

    def add_moment(self, site: Site, moment: Moment, *, last: bool) -> None:
        """Count one site's dates at one moment."""
        table = self.end if last else self.between
        for page in site.pages:
            kind = _kind(site, page)
            truth = moment.truth[WATCHING][page.path]
            if not truth.spans:
                continue
            naive = (
                ("today's date", _day(moment.at)),
                ("raw-body hash", None if truth.changed is None else _second(truth.changed - START)),
                ("Last-Modified alone", None if truth.last_modified is None else _parsed(truth.last_modified)),
            )
            for policy, text in naive if page.path in moment.dates[WATCHING] else ():
                table.setdefault((policy, kind), Tally()).add(None if text is None else right(page, truth, text))
            for mode in OURS:
                if page.path not in moment.dates[mode]:
                    continue
                text, truth = moment.dates[mode][page.path].text, moment.truth[mode][page.path]
                correct = None if text is None else right(page, truth, text)
                table.setdefault((mode, kind), Tally()).add(correct)
                if correct is False:
                    self.mistakes.append(_mistake(site, page, moment, mode))
                self._change(site, page, moment, mode)

    def _change(self, site: Site, page: Page, moment: Moment, mode: str) -> None:
        """Record whether the change to the present content is dated now, or was at an earlier moment."""
        text, truth = moment.dates[mode][page.path].text, moment.truth[mode][page.path]
        if page.volatile:
            return
        epoch = max((number for number in truth.spans if truth.visited_twice(number)), default=None)
        if epoch is None or (interval := observable(truth, epoch)) is None:
            return
        apart = ""
        if page.contents[epoch] in page.contents[:epoch]:
            apart = "back to an earlier content"
        elif site.hidden(page, *interval):
            apart = "in one gap with a deployment"
        elif any(page.contents[earlier] in page.contents[:earlier] for earlier in range(epoch)):
            apart = "after one back to an earlier content"
        fits = text is not None and _fits(page, truth, epoch, text)
        if (
            text is not None
            and not fits
            and any(_fits(page, truth, later, text) for later in truth.spans if later > epoch)
        ):
            return  # overtaken: the sitemap rightly gives the date of a later content
        name = f"{site.name}{page.path} {epoch}"
        kind = _kind(site, page)
        if not apart and not fits and site.reworded(page, interval[1], moment.at):
            if mode in self.changes.get((kind, apart), {}).get(name, {}):
                return
            apart = "before a deployment that each page bears in its own way"
        change = self.changes.setdefault((kind, apart), {}).setdefault(name, {})
        change[mode] = change.get(mode, False) or fits
        undated = self.undated.setdefault(mode, {})
        before = undated.pop(name, None)
        if kind in COUNTED and not apart and not change[mode]:
            source = moment.dates[mode][page.path].source
            reason = MOMENT.sub("…", source) if text is None else f"the date of another change, by {source}"
            days = (moment.at - truth.spans[epoch][0]) / DAY
            looks = 1 + (before.looks if before else 0)
            undated[name] = Undated(kind, f"{site.name}, {len(site.pages)} pages", reason, days, looks)


def _mistake(site: Site, page: Page, moment: Moment, mode: str) -> str:
    """Describe a wrong date with all that could be known; times are days since the start."""
    dated, truth = moment.dates[mode][page.path], moment.truth[mode][page.path]
    edits = [round(edit / DAY, 2) for edit in page.edits]
    seen = {epoch: (round(a / DAY, 2), round(b / DAY, 2)) for epoch, (a, b) in sorted(truth.spans.items())}
    return (
        f"{mode}: {site.name}, {page.path} ({_kind(site, page)}) on day {moment.at / DAY:.2f}: {dated.text},"
        f" {dated.source}; Last-Modified {page.last_modified}; edits {edits} seen {seen} gap {page.gap / DAY:.2f}"
    )


def _kind(site: Site, page: Page) -> str:
    if page.trial:
        return f"{'beyond the list' if site.trial in APART else 'trial'}: {site.trial}"
    return page.kind if not site.beyond or page.kind == BEYOND else f"beyond the list: {site.beyond}"


def observable(truth: PageTruth, epoch: int) -> tuple[float, float] | None:
    """The time from the last sight of the previous content to the first of this one; None if there was none."""
    first = truth.spans[epoch][0]
    before = [span[1] for earlier, span in truth.spans.items() if earlier < epoch]
    return (min(max(before), first), max(*before, first)) if before else None


def right(page: Page, truth: PageTruth, text: str) -> bool:
    """Whether a date belongs to the latest content that was seen twice, or to a later one."""
    confirmed = max((epoch for epoch in truth.spans if truth.twice(epoch)), default=min(truth.spans))
    while (before := max((epoch for epoch in truth.spans if epoch < confirmed), default=None)) is not None:
        if page.contents[before] != page.contents[confirmed]:
            break
        confirmed = before  # the contents in between were never seen
    return any(_fits(page, truth, epoch, text) for epoch in truth.spans if epoch >= confirmed)


def _fits(page: Page, truth: PageTruth, epoch: int, text: str) -> bool:
    edit = page.edits[epoch]
    intervals = [(edit, edit)]
    if (interval := observable(truth, epoch)) is not None:
        intervals.append(interval)
    if len(text) == len("2024-05-01"):
        return any(_day(start - SKEW) <= text <= _day(end + SKEW) for start, end in intervals)
    moment = datetime.fromisoformat(text).timestamp() - START
    return any(start - SKEW <= moment <= end + SKEW for start, end in intervals)


def _day(at: float) -> str:
    return datetime.fromtimestamp(START + at, UTC).date().isoformat()


def _second(at: float) -> str:
    return datetime.fromtimestamp(START + at, UTC).isoformat()


def _parsed(value: str) -> str:
    return parsedate_to_datetime(value).isoformat()
