"""The inventory: every URL that is known of a site, listed or not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..stores.base import UNLEARNED_BLOCK
from .candidates import Candidate, learned_candidates
from .policy import EvaluationContext, ListingPolicy


class InventoryLine(NamedTuple):
    """One URL."""

    url: str
    listed: bool
    reason: str
    lastmod: str | None
    lastmod_from: str | None
    route: str


def inventory(catalog: ListingPolicy, view: EvaluationContext) -> Iterator[InventoryLine]:
    """The URLs of routes, of values and of learned pages, each once."""
    return (_line(catalog, view, candidate) for candidate in _candidates(catalog, view))


def _candidates(catalog: ListingPolicy, view: EvaluationContext) -> Iterator[Candidate]:
    state = view.state
    yield from catalog.route_candidates(view)
    for provider, routes in catalog.providers(state).values():
        report, given = catalog.provider_candidates(view, provider, routes)
        yield from given
        if report.failure is not None:
            raise report.failure
    for block in state.store.blocks(state.site.store_key):
        if block.number != UNLEARNED_BLOCK:
            yield from learned_candidates(state, state.store.block(state.site.store_key, block.number))


def _line(catalog: ListingPolicy, view: EvaluationContext, candidate: Candidate) -> InventoryLine:
    loc, verdict = catalog.evaluate(view, candidate)
    url = view.state.site.base_url + candidate.path
    if loc is None:
        return InventoryLine(url, False, verdict.reason, None, None, candidate.route.path)
    entry, dated, _ = catalog.build_entry(view, loc, candidate)
    return InventoryLine(
        url, True, verdict.reason, entry.lastmod, dated.source if entry.lastmod else None, candidate.route.path
    )
