"""What the parts of a site are rendered from, and when they are rendered again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from ..evidence.dates import SECONDS_PER_DAY, timestamp_of_w3c
from ..evidence.page_verdict import expires_after
from ..listing.entries import EntryBuilder
from ..listing.policy import EvaluationContext
from ..models import Page, Provider, Route, SitemapUrl
from ..options.table import Options
from ..routing.route_table import LEARNED_SECTION, ROUTES_SECTION
from ..stores.base import PIECE_PAGES, UNLEARNED_PART, PartState
from ..stores.requested_refreshes import RefreshMarks
from ..stores.store_clock import StoreClock
from ..util import in_pieces
from .parts import FOREVER, Part, PartSource

WAIT_SECONDS: Final = 1.0
"""Seconds that a request waits for documents that are being rendered if there are earlier ones to serve."""

MAX_AGE_FACTOR: Final = 10
"""Values are valid for this many times the time that reading them took, or `max_age` if that is longer."""

OLD_PAGE_SECONDS: Final = 60 * 60
"""How often a part is rendered again, at most, because pages in it become too old to be listed."""

States = Mapping[int, PartState]
"""The parts of a site, as `Store.parts` returns them."""


class PartSources:
    """Names the parts of a site, and says what their entries are."""

    def __init__(self, entries: EntryBuilder, options: Options, store_clock: StoreClock) -> None:
        self._entries = entries
        self._options = options
        self._store_clock = store_clock

    def routes(self, evaluation: EvaluationContext, states: States, marks: RefreshMarks) -> PartSource:
        """The static routes: rendered after a change, `refresh()` or `max_age`, as a view's lastmod may be a callable.

        They are rendered by each worker.
        """
        key, now = _key(evaluation, states.get(UNLEARNED_PART), dated=True), evaluation.snapshot.now
        mark = marks.everything.hex()

        def is_due(part: Part | None) -> bool:
            return (
                part is None or part.key != key or part.mark != mark or not 0 <= now - part.at < self._options.max_age
            )

        def entries() -> tuple[Iterable[SitemapUrl], int]:
            return self._entries.route_entries(evaluation), FOREVER

        return PartSource(ROUTES_SECTION, f"{ROUTES_SECTION}-1", key, is_due, entries, mark)

    def values(
        self,
        evaluation: EvaluationContext,
        states: States,
        marks: RefreshMarks,
        *,
        is_expired: bool,
    ) -> list[PartSource]:
        """The pages of each provider: read again if they are older than `max_age`, or after `refresh` or a change.

        Slow providers are called less often, so that they run for a tenth of the time at most. If `refresh` asks for
        one that takes longer than a request waits, it runs for half of the time.
        """
        key = _key(evaluation, states.get(UNLEARNED_PART), dated=False)

        def is_due(mark: str, part: Part | None) -> bool:
            if part is None or is_expired:
                return True
            age, rest = self._store_clock.now() - part.at, MAX_AGE_FACTOR * part.seconds
            if not 0 <= age < max(self._options.max_age, rest):
                return True
            if part.mark != mark and (part.seconds <= WAIT_SECONDS or age >= part.seconds):
                return True
            return part.key != key and age >= rest

        def entries(provider: Provider, routes: Sequence[Route]) -> tuple[Iterable[SitemapUrl], int]:
            return self._entries.provider_entries(evaluation, provider, routes), FOREVER

        return [
            PartSource(
                f"values/{name}",
                name if provider.section is not None else f"{name}-1",
                key,
                partial(is_due, marks.token_of(name).hex()),
                partial(entries, provider, routes),
                marks.token_of(name).hex(),
            )
            for name, (provider, routes) in evaluation.providers.items()
        ]

    def learned(self, evaluation: EvaluationContext, states: States) -> list[PartSource]:
        """The parts of learned pages: rendered if their pages changed, or what they are evaluated by."""

        def is_due(key: str, part: Part | None) -> bool:
            return part is None or part.key != key or self._store_clock.now() >= part.until

        def entries(number: int) -> tuple[Iterable[SitemapUrl], int]:
            snapshot = evaluation.snapshot
            pages = snapshot.store.part(snapshot.site.store_key, number)
            until = self._valid_until(pages, snapshot.now)
            return self._entries.learned_entries(evaluation, pages), until

        return [
            PartSource(
                f"{LEARNED_SECTION}-{number}",
                f"{LEARNED_SECTION}-{number}",
                key,
                partial(is_due, key),
                partial(entries, number),
                max_documents=1,
                pages=state.pages,
            )
            for number, state in sorted(states.items())
            if number != UNLEARNED_PART
            for key in [_key(evaluation, state, dated=True)]
        ]

    def _valid_until(self, pages: Iterable[Page], now: int) -> int:
        """When a part has to be rendered again if nobody visits its pages.

        Pages that are unavailable by their own account go at once. For all else it is rendered at most once in a while:
        each of its pages may be due at a time of its own.
        """
        ends: list[int] = [FOREVER]
        dates: list[int] = []
        visits: list[int] = []
        for page in in_pieces(pages, PIECE_PAGES):
            visits.append(page.last_seen)
            ends += expires_after(page, now)
            if page.last_modified is not None and page.last_modified > now:
                dates.append(page.last_modified)
            if page.stated_date is not None and (moment := timestamp_of_w3c(page.stated_date)) > now:
                dates.append(moment)
        max_age = self._options.max_age_days * SECONDS_PER_DAY
        old = min((visit + max_age + 1 for visit in visits if visit + max_age >= now), default=FOREVER)
        pause = max(1, int(self._options.max_age))
        return min(*ends, max(min(dates, default=FOREVER), now + pause), max(old, now + max(pause, OLD_PAGE_SECONDS)))


def _key(evaluation: EvaluationContext, state: PartState | None, *, dated: bool) -> str:
    """What entries depend on: their pages, options, routes and robots.txt, and the site signals.

    `dated`: whether they are rendered again whenever the signals were computed again.
    """
    record = evaluation.site_signals.record
    version = 0 if state is None else state.version
    return f"{version}/{evaluation.settings_digest}/{record.dated_digest if dated else record.digest}"
