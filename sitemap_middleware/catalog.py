"""The catalog: routes and pages in, entries out. The one place that decides what is listed, and with which words."""

from __future__ import annotations

import logging
import mimetypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from . import evidence, priority
from .dates import w3c
from .location import loc_of, quote_path
from .model import Dated, Entry, Explanation, Page, Route, Site, Verdict
from .options import Options
from .patterns import Patterns
from .robots import Rules
from .surroundings import Surroundings, surroundings
from .urlmap import RouteTable

log = logging.getLogger("sitemap_middleware")


@dataclass(frozen=True, slots=True)
class State:
    """All that a site's sitemap is made of, as it is at one moment."""

    site: Site
    table: RouteTable
    pages: Sequence[Page]
    rules: Rules


@dataclass(frozen=True, slots=True)
class Candidate:
    """A URL that may be listed: its route, and what was seen of it, if anything."""

    path: str
    """Percent-encoded."""
    route: Route
    page: Page | None


class Catalog:
    """Decides what is listed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._warned: set[str] = set()

    def entries(self, state: State, now: int) -> list[Entry]:
        """The entries of a site, in the order of their paths."""
        candidates = self._candidates(state)
        around = _around(candidates.values())
        leading = self._leading(candidates, state.table)
        entries = []
        for _, candidate in sorted(candidates.items()):
            loc = loc_of(state.site, candidate.path)
            if loc is not None and self._verdict(candidate, around).listed and state.rules.allow(loc):
                entries.append(self._entry(loc, candidate, around, leading, now)[0])
        self._warn_of_flat_priorities(entries)
        return entries

    def explain(self, state: State, path: str, now: int) -> Explanation:
        """Why a decoded path is listed or not."""
        quoted = quote_path(path)
        if quoted is None:
            return Explanation(path, None, False, "no loc can be written that would lead to this path again")
        loc = loc_of(state.site, quoted)
        if loc is None:
            return Explanation(path, None, False, "its loc would have 2,048 characters or more, or less than 12")
        candidates = self._candidates(state)
        candidate = candidates.get(quoted)
        if candidate is None:
            return Explanation(path, loc, False, _why_no_candidate(state, path))
        around = _around(candidates.values())
        verdict = self._verdict(candidate, around)
        if verdict.listed and not state.rules.allow(loc):
            verdict = Verdict(False, "the app's own robots.txt forbids it")
        if not verdict.listed:
            return Explanation(path, loc, False, verdict.reason, route=candidate.route, page=candidate.page)
        entry, dated = self._entry(loc, candidate, around, self._leading(candidates, state.table), now)
        return Explanation(path, loc, True, verdict.reason, entry, dated.source, candidate.route, candidate.page)

    def _candidates(self, state: State) -> dict[str, Candidate]:
        """Every URL of the site that routes, patterns and pages speak of, by percent-encoded path."""
        known: dict[str, Page] = {page.path: page for page in state.pages}
        found: dict[str, Candidate] = {}
        for route in state.table.static(state.site):
            quoted = quote_path(route.path)
            if quoted is not None:
                found[quoted] = Candidate(quoted, route, known.pop(quoted, None))
        for page in known.values():
            learned = state.table.find(state.site, _decoded(page.path))
            if learned is not None:
                found[page.path] = Candidate(page.path, learned, page)
        return found

    def _verdict(self, candidate: Candidate, around: Surroundings) -> Verdict:
        route, page, options = candidate.route, candidate.page, self._options
        path = _decoded(candidate.path)
        if excluding := options.exclude.find(path, route.path):
            return Verdict(False, f"the option exclude names it by {excluding.text!r}")
        if route.mark.exclude:
            return Verdict(False, "it is marked @sitemap(exclude=True)")
        if path == options.path:
            return Verdict(False, "it is the sitemap itself")
        included = options.include.find(path, route.path) is not None
        if route.internal and not included:
            return Verdict(False, route.internal)
        if page is not None:
            if not route.static and around.soft_404(page):
                return Verdict(
                    False, "many pages of its route have the very same content: they say that nothing is there"
                )
            return evidence.verdict(page, options.media_types)
        if included:
            return Verdict(True, "the option include names it, and nothing seen forbids it")
        if route.hidden:
            return Verdict(False, f"{route.hidden}, and it was not yet seen to be a page")
        if (guessed := mimetypes.guess_type(path)[0]) and guessed not in options.media_types:
            return Verdict(False, f"its name is that of {guessed}, and it was not yet seen to be a page")
        if not options.list_unseen:
            return Verdict(False, "it was not yet seen, and list_unseen is off")
        return Verdict(True, "it is a static route, and nothing was seen that forbids it")

    def _entry(
        self, loc: str, candidate: Candidate, around: Surroundings, leading: frozenset[str], now: int
    ) -> tuple[Entry, Dated]:
        route, options = candidate.route, self._options
        dated = evidence.lastmod(self._given(route), candidate.page, route.modified, around, now)
        wanted = options.priority if route.mark.priority is None else route.mark.priority
        if wanted == "auto":
            wanted = priority.priority(_decoded(candidate.path), route.static, leading)
        return Entry(loc, dated.text, route.mark.changefreq or options.changefreq, wanted), dated

    def _given(self, route: Route) -> date | None:
        """The developer's date; a callable that fails says nothing, with one warning."""
        given = route.mark.lastmod
        if given is None or isinstance(given, date):
            return given
        try:
            told = given()
            if told is not None:
                w3c(told)
        except Exception as error:
            self._warn_once(
                f"lastmod of {route.endpoint}",
                "the lastmod callable of %s (%s) failed, so its page bears no date of it: %s",
                route.endpoint,
                route.path,
                error,
            )
            return None
        return told

    def _leading(self, candidates: Mapping[str, Candidate], table: RouteTable) -> frozenset[str]:
        if self._options.priority != "auto":
            return frozenset()
        paths = {_decoded(path) for path in candidates}
        return priority.hubs(paths | {route.path for route in table.routes})

    def _warn_of_flat_priorities(self, entries: Sequence[Entry]) -> None:
        highest = {entry.priority for entry in entries}
        if len(entries) > 1 and len(highest) == 1 and (entries[0].priority or 0) > 0.5:
            self._warn_once(
                "priority",
                "all %d pages of the sitemap have priority %s: it is relative to the site's own, so it says nothing",
                len(entries),
                entries[0].priority,
            )

    def _warn_once(self, topic: str, message: str, *arguments: object) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            log.warning(message, *arguments)


def _around(candidates: Collection[Candidate]) -> Surroundings:
    answering = [one for one in candidates if one.page is not None and one.page.status == 200]
    return surroundings(
        pages=[one.page for one in answering if one.page],
        files=[one.route.modified for one in candidates if one.route.modified is not None and not _dated(one.page)],
        learned=[one.page for one in answering if one.page and not one.route.static],
    )


def _dated(page: Page | None) -> bool:
    return page is not None and page.modified is not None


def _why_no_candidate(state: State, path: str) -> str:
    if learned := state.table.find(state.site, path):
        return f"it is one of {learned.path}, whose pages are learned, but was not yet seen to be a page"
    for route in state.table.routes:
        if not route.static and Patterns((route.path,)).find(path):
            return f"its route, {route.path}, has parameters, and its pages are not learned"
    return "the app has no static route of this path, and no pattern of learn or include takes it in"


def _decoded(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path)
