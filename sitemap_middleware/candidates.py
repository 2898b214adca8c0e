"""Candidates: every URL of a site that routes, values, patterns and pages speak of, before any is judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from .entry import Entry
from .errors import ValuesError
from .evidence import promising
from .location import quote_path
from .model import Drain, Page, Provider, Route, Site
from .robots import Rules
from .surroundings import Surroundings, surroundings
from .urlmap import RouteTable
from .values import Report, Values


@dataclass(frozen=True, slots=True)
class State:
    """All that a site's sitemap is made of, as it is at one moment."""

    site: Site
    table: RouteTable
    pages: Sequence[Page]
    rules: Rules
    now: int
    """POSIX seconds."""
    drain: Drain | None = None
    """What takes from async providers on the app's own event loop, where it is at hand."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A URL that may be listed: its route, what was seen of it, and what its route's values say of it, if anything."""

    path: str
    """Percent-encoded."""
    route: Route
    page: Page | None
    twin: str | None = None
    """The path, with or without a slash at the end, under which the very same page is listed instead."""
    entry: Entry | None = None
    """What the developer says of this page, where the values of its route enumerate it."""


def gathered(
    state: State, values: Values, wanted: Callable[[Route], bool], *, whole: bool = False
) -> tuple[dict[str, Candidate], dict[Provider, Report]]:
    """Every URL that anything speaks of, by percent-encoded path; and what came of each route's values.

    Args:
        state: how things stand on the site.
        values: asks providers.
        wanted: whether a route's values are asked for.
        whole: whether their failure is an error; else it is reported.

    Raises:
        ValuesError: where it must be whole, and a provider fails.
    """
    known: dict[str, Page] = {page.path: page for page in state.pages}
    found: dict[str, Candidate] = {}
    for route in state.table.static(state.site):
        quoted = quote_path(route.path)
        if quoted is not None:
            found[quoted] = Candidate(quoted, route, known.pop(quoted, None))
    reports: dict[Provider, Report] = {}
    for provider, routes in state.table.providers(state.site).items():
        asked = [route for route in routes if wanted(route)]
        if not asked:
            continue
        report = reports[provider] = Report()
        try:
            for one in values.read(state.site, provider, asked, state.drain, report):
                same = found.get(one.path)
                if same is None:
                    found[one.path] = Candidate(one.path, one.route, known.pop(one.path, None), entry=one.entry)
                elif same.entry is None:
                    found[one.path] = replace(same, entry=one.entry)
        except ValuesError as error:
            if whole:
                raise
            report.failure = error
    for page in known.values():
        learned = state.table.find(state.site, decoded(page.path))
        if learned is not None and learned.builder is None:
            found[page.path] = Candidate(page.path, learned, page)
    for path, candidate in found.items():
        twin = found.get(path[:-1] if path.endswith("/") else f"{path}/")
        if twin is not None and _is_copy(candidate, twin):
            found[path] = replace(candidate, twin=twin.path)
    return found, reports


def together(candidates: Collection[Candidate]) -> Surroundings:
    """What the pages of a site tell together."""
    answering = [one for one in candidates if one.page is not None and one.page.status == 200]
    return surroundings(
        pages=[one.page for one in answering if one.page],
        files=[one.route.modified for one in candidates if one.route.modified is not None and not _dated(one.page)],
        learned=[one.page for one in answering if one.page and not one.route.static and one.entry is None],
    )


def _is_copy(candidate: Candidate, twin: Candidate) -> bool:
    """Whether a learned page shows what its twin does, and it is not the one spelled as its route is."""
    page, other = candidate.page, twin.page
    if (
        candidate.entry is not None
        or page is None
        or other is None
        or not page.learned
        or not promising(other)
        or not page.contents
    ):
        return False
    same = bool(other.contents) and page.contents[-1].value == other.contents[-1].value
    return same and candidate.path.endswith("/") != candidate.route.path.endswith("/")


def _dated(page: Page | None) -> bool:
    return page is not None and page.modified is not None


def decoded(path: str) -> str:
    """A percent-encoded path as the app's router sees it."""
    return unquote(path) if "%" in path else path
