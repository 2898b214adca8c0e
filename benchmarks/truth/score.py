"""Scores: which dates are right, wrong, or left out, by what could be known of the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Self

from .script import BEYOND, DAY, KINDS, START, VOLATILE, Page, Site
from .traffic import MODES, WATCHING, Moment, Sights
from .trials import APART, STILL, TRIALS

SKEW: Final = 5 * 60
"""Seconds by which the workers' clocks may differ."""

OURS: Final = MODES
POLICIES: Final = (*OURS, "today's date", "raw-body hash", "Last-Modified alone")

PACES: Final = ("30 visits or more", "10 to 30", "3 to 10", "fewer than 3")


COUNTED: Final = frozenset({*KINDS, *(f"trial: {name}" for name in TRIALS)})
"""The kinds of pages that the totals take in."""
MOVING: Final = frozenset({*VOLATILE, *(f"trial: {name}" for name in STILL)})
"""Kinds of pages that look edited, and are not."""


@dataclass
class Tally:
    """Dates right, wrong and left out."""

    right: int = 0
    wrong: int = 0
    omitted: int = 0

    def add(self, found: bool | None) -> None:
        if found is None:
            self.omitted += 1
        elif found:
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
        """Of all dates that were given."""
        return self.wrong / max(1, self.right + self.wrong)


@dataclass
class Score:
    """What came of one or more sites, by policy and kind of page."""

    end: dict[tuple[str, str], Tally] = field(default_factory=dict)
    between: dict[tuple[str, str], Tally] = field(default_factory=dict)
    changes: dict[tuple[str, str], dict[str, dict[str, bool]]] = field(default_factory=dict)
    """Of each kind, and of what is counted apart: in which modes each change that stood through two visits was ever
    dated."""
    by_pace: dict[str, dict[str, dict[str, bool]]] = field(default_factory=dict)
    """The same, by how often pages are visited between two edits; what is counted apart left out."""
    mistakes: list[str] = field(default_factory=list)
    pages: int = 0
    sites: int = 0

    def take(self, site: Site, moment: Moment, *, last: bool) -> None:
        """Count one site's dates at one moment."""
        table = self.end if last else self.between
        for page in site.pages:
            kind = _kind(site, page)
            sights = moment.sights[WATCHING][page.path]
            if not sights.spans:
                continue
            naive = (
                ("today's date", _day(moment.at)),
                ("raw-body hash", None if sights.changed is None else _second(sights.changed - START)),
                ("Last-Modified alone", None if sights.last_modified is None else _parsed(sights.last_modified)),
            )
            for policy, text in naive if page.path in moment.dates[WATCHING] else ():
                table.setdefault((policy, kind), Tally()).add(None if text is None else right(page, sights, text))
            for mode in OURS:
                if page.path not in moment.dates[mode]:
                    continue
                text, sights = moment.dates[mode][page.path].text, moment.sights[mode][page.path]
                found = None if text is None else right(page, sights, text)
                table.setdefault((mode, kind), Tally()).add(found)
                if found is False:
                    self.mistakes.append(_mistake(site, page, moment, mode))
                self._change(site, page, moment, mode)

    def _change(self, site: Site, page: Page, moment: Moment, mode: str) -> None:
        """Whether the change that brought the present content is dated now, or was at an earlier look."""
        text, sights = moment.dates[mode][page.path].text, moment.sights[mode][page.path]
        if page.volatile:
            return
        epoch = max((one for one in sights.spans if sights.visited_twice(one)), default=None)
        if epoch is None or (interval := observable(sights, epoch)) is None:
            return
        apart = ""
        if page.contents[epoch] in page.contents[:epoch]:
            apart = "back to an earlier content"
        elif site.hidden(page, *interval):
            apart = "in one gap with a deployment"
        elif any(page.contents[one] in page.contents[:one] for one in range(epoch)):
            apart = "after one back to an earlier content"
        fits = text is not None and _fits(page, sights, epoch, text)
        if text is not None and not fits and any(_fits(page, sights, one, text) for one in sights.spans if one > epoch):
            return  # overtaken: what the sitemap says, rightly, is when a later content came
        name = f"{site.name}{page.path} {epoch}"
        kind = _kind(site, page)
        if not apart and not fits and site.reworded(page, interval[1], moment.at):
            if mode in self.changes.get((kind, apart), {}).get(name, {}):
                return
            apart = "before a deployment that each page bears in its own way"
        change = self.changes.setdefault((kind, apart), {}).setdefault(name, {})
        change[mode] = change.get(mode, False) or fits
        if not apart and not site.beyond:
            self.by_pace.setdefault(_pace(site, page), {})[name] = change


def _mistake(site: Site, page: Page, moment: Moment, mode: str) -> str:
    """A wrong date, and all that was to be known; times in days since the beginning."""
    dated, sights = moment.dates[mode][page.path], moment.sights[mode][page.path]
    edits = [round(edit / DAY, 2) for edit in page.edits]
    seen = {epoch: (round(a / DAY, 2), round(b / DAY, 2)) for epoch, (a, b) in sorted(sights.spans.items())}
    return (
        f"{mode}: {site.name}, {page.path} ({_kind(site, page)}) on day {moment.at / DAY:.2f}: {dated.text},"
        f" {dated.source}; Last-Modified {page.last_modified}; edits {edits} seen {seen} gap {page.gap / DAY:.2f}"
    )


def _kind(site: Site, page: Page) -> str:
    if page.trial:
        return f"{'beyond the list' if site.trial in APART else 'trial'}: {site.trial}"
    return page.kind if not site.beyond or page.kind == BEYOND else f"beyond the list: {site.beyond}"


def _pace(site: Site, page: Page) -> str:
    visits = site.days * DAY / (len(page.edits) - 1) / page.gap
    return PACES[sum(visits < least for least in (30, 10, 3))]


def observable(sights: Sights, epoch: int) -> tuple[float, float] | None:
    """Between the last sight of what was before a content and its own first; None where nothing was seen before."""
    first = sights.spans[epoch][0]
    before = [span[1] for one, span in sights.spans.items() if one < epoch]
    return (min(max(before), first), max(*before, first)) if before else None


def right(page: Page, sights: Sights, text: str) -> bool:
    """Whether a date is that of the content last seen twice, or of one seen after it."""
    confirmed = max((one for one in sights.spans if sights.twice(one)), default=min(sights.spans))
    while (before := max((one for one in sights.spans if one < confirmed), default=None)) is not None:
        if page.contents[before] != page.contents[confirmed]:
            break
        confirmed = before  # what came between was never seen
    return any(_fits(page, sights, epoch, text) for epoch in sights.spans if epoch >= confirmed)


def _fits(page: Page, sights: Sights, epoch: int, text: str) -> bool:
    edit = page.edits[epoch]
    intervals = [(edit, edit)]
    if (found := observable(sights, epoch)) is not None:
        intervals.append(found)
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
