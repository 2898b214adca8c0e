"""The survey: what becomes of every route of an app, for people and for CI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .candidates import Candidate, State
from .catalog import Catalog
from .location import UNREACHABLE
from .model import Route, Site, Verdict
from .options import Options
from .values import Report

_FILES: Final = re.compile(r"(?:^|\.)static .*<path:filename>$")
"""The endpoint and path under which Flask and its blueprints serve their static folders."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What becomes of one route, or of one pattern that names pages."""

    site: Site | None
    """None where it answers on none of those looked at."""
    route: Route
    verdict: Verdict
    known: int = 0
    """Pages of it of which something was seen."""
    listed: int = 0
    lastmod: Mapping[str, int] = field(default_factory=dict)
    """Where the lastmod of the pages listed comes from, and of how many; under no name, how many have none."""
    undecided: bool = False
    """Whether it has parameters, and nobody has said what is to become of its pages."""


def survey(catalog: Catalog, options: Options, state: State) -> list[Surveyed]:
    """What becomes of each route that answers on this site, in the app's order, and then of each pattern."""
    view = catalog.view(state)
    routes: dict[tuple[bool, str], Route] = {}
    for route in (
        *(route for route in state.table.routes if route.host == state.site.routed),
        *state.table.static(state.site),
        *(_patterned(options) if state.site.routed is None else ()),
        *(candidate.route for candidate in view.candidates.values()),
    ):
        routes.setdefault((route.static, route.path), route)
    pages: dict[tuple[bool, str], list[Candidate]] = {key: [] for key in routes}
    for candidate in view.candidates.values():
        pages[candidate.route.static, candidate.route.path].append(candidate)
    surveyed = []
    for key, route in routes.items():
        known = sum(page.page is not None for page in pages[key])
        verdict, lastmod, undecided = Verdict(False, UNREACHABLE), Counter[str](), False
        for page in pages[key]:
            loc, verdict = catalog.judged(view, page)
            if loc is not None:
                dated = catalog.written(view, loc, page)[1]
                lastmod[dated.source if dated.text else ""] += 1
        report = view.reports.get(route.mark.values) if route.mark.values else None
        if report is not None and not route.static:
            verdict = _enumerated(report, pages[key], lastmod.total())
        elif not route.static:
            verdict, undecided = _parametrised(catalog, options, route, known, lastmod.total())
        surveyed.append(Surveyed(state.site, route, verdict, known, lastmod.total(), lastmod, undecided))
    return surveyed


def _patterned(options: Options) -> list[Route]:
    """The patterns by which pages are learned, each as a route."""
    patterns = (*options.include, *options.learn)
    return [Route(one.text, "learned from traffic", static=False) for one in patterns if not one.literal]


def _parametrised(catalog: Catalog, options: Options, route: Route, known: int, listed: int) -> tuple[Verdict, bool]:
    """What becomes of a route with parameters, and whether that is so because nobody has said anything."""
    if refused := catalog.refused(route, route.path):
        return refused, False
    learning = options.include.find(route.path, route.path) or options.learn.find(route.path, route.path)
    if route.mark.learn or (learning and learning.text == route.path):
        if not known:
            return Verdict(False, "its pages are learned, and none was seen yet"), False
        return Verdict(listed > 0, f"its pages are learned: {listed} listed, of {known} known"), False
    if learning:
        return Verdict(False, f"its pages are learned as those of {learning.text}"), False
    if route.mark.learn is False:
        return Verdict(False, "it is marked @sitemap(learn=False)"), False
    if route.hidden and route.hidden.startswith("it declares"):
        return Verdict(False, route.hidden), False
    if _FILES.search(f"{route.endpoint} {route.path}"):
        return Verdict(False, "it serves the app's static files"), False
    return Verdict(False, "it has parameters, and its pages are not learned"), True


def _enumerated(report: Report, pages: Sequence[Candidate], listed: int) -> Verdict:
    """What becomes of a route whose values enumerate its pages."""
    if report.failure:
        return Verdict(False, str(report.failure))
    count = sum(page.entry is not None for page in pages)
    return Verdict(listed > 0, "; ".join((f"values: {count} pages, {listed} listed", *report.lines())))
