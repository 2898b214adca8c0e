"""The catalog: routes and pages in, entries out. The one place that decides what is listed, and with which words."""

from __future__ import annotations

import logging
import mimetypes
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

from . import evidence, priority, rate
from .dates import w3c
from .entry import NOTHING_SAID, Entry
from .errors import ValuesError
from .location import UNFIT, UNREACHABLE, loc_of, quote_path
from .model import URL, Dated, Drain, Explanation, Paced, Page, Provider, Route, Site, Verdict
from .options import Options
from .patterns import Patterns
from .robots import Rules
from .surroundings import Surroundings, surroundings
from .urlmap import RouteTable
from .values import Report, Values

log = logging.getLogger("sitemap_middleware")

_UNSEEN: Final = Verdict(True, "the values of its route name it, and nothing was seen that forbids it")

_FILES: Final = re.compile(r"(?:^|\.)static .*<path:filename>$")
"""The endpoint and path under which Flask and its blueprints serve their static folders."""

_DEEDS: Final = re.compile(
    r"(?<![a-z])(?:log|sign)[-_]?(?:out|off)|(?<![a-z])(?:delete|remove|destroy|purge|erase|wipe|drop|clear|flush|reset|revoke"
    r"|cancel|confirm|activate|deactivate|disable|enable|approve|reject|unsubscribe|subscribe|unlink|disconnect"
    r"|shutdown|restart|reboot|reload|kill|stop|start|run|trigger|sync|refresh|rebuild|import|export|migrate|install"
    r"|upgrade|update|create|add|send|cron|task|job|webhook|callback)(?![a-z])",
    re.IGNORECASE,
)
"""Names of what may do something when it is asked for. Such routes are not asked for; once seen, they count as any."""


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


class Catalog:
    """Decides what is listed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._values = Values(options.clock)
        self._skipped: dict[str, int] = {}
        self._warned: set[str] = set()

    def entries(self, state: State) -> list[URL]:
        """The entries of a site, in the order of their paths. `ValuesError` where the values of a route fail."""
        candidates, reports = self._candidates(state, whole=True)
        for provider, report in reports.items():
            self._warn_of_skipped(provider, report)
        self._values.remember(state.site, (path for path, one in candidates.items() if one.entry))
        self._skipped[state.site.base] = sum(report.skipped for report in reports.values())
        around = _around(candidates.values())
        leading = self._leading(candidates, state.table)
        entries = []
        for _, candidate in sorted(candidates.items()):
            loc, _ = self._judged(state, candidate, around)
            if loc is not None:
                entries.append(self._entry(loc, candidate, around, leading, state.now)[0])
        self._warn_of_flat_priorities(entries)
        return entries

    def explain(self, state: State, path: str) -> Explanation:
        """Why a decoded path is listed or not."""
        quoted = quote_path(path)
        if quoted is None:
            return Explanation(path, None, False, UNREACHABLE)
        loc = loc_of(state.site, quoted)
        if loc is None:
            return Explanation(path, None, False, UNFIT)
        candidates, reports = self._candidates(state)
        candidate = candidates.get(quoted)
        route = candidate.route if candidate else state.table.find(state.site, path)
        report = reports.get(route.mark.values) if route and route.mark.values else None
        if report is not None and report.failure:
            return Explanation(path, loc, False, str(report.failure), route=route)
        skipped = report.lines() if report else ()
        if candidate is None:
            why = _why_no_candidate(state, path, route)
            return Explanation(path, loc, False, why, route=route if report else None, skipped=skipped)
        around = _around(candidates.values())
        _, verdict = self._judged(state, candidate, around)
        if not verdict.listed:
            return Explanation(
                path, loc, False, verdict.reason, route=candidate.route, page=candidate.page, skipped=skipped
            )
        entry, dated, paced = self._entry(loc, candidate, around, self._leading(candidates, state.table), state.now)
        return Explanation(
            path,
            loc,
            True,
            verdict.reason,
            entry,
            dated.source,
            candidate.route,
            candidate.page,
            None if paced is None else paced.source,
            skipped,
        )

    def unverified(self, state: State) -> list[str]:
        """The decoded paths of which the app's own answer decides whether they are listed."""
        candidates, _ = self._candidates(state, asking=False)
        around = _around(candidates.values())
        judged = ((path, self._judged(state, candidate, around)[1]) for path, candidate in sorted(candidates.items()))
        return [_decoded(path) for path, verdict in judged if verdict.unverified]

    def may_be_asked(self, route: Route, path: str) -> bool:
        """Whether the app may be asked for a decoded path: it is not excluded, nor named like a deed."""
        return self._refused(route, path) is None and _DEEDS.search(f"{path} {route.endpoint}") is None

    def enumerates(self, site: Site, path: str) -> bool | None:
        """Whether a percent-encoded path was among what the routes' values gave when the sitemap was last made.

        None where they were not yet asked by this process.
        """
        return self._values.knows(site, path)

    def skipped(self) -> int:
        """How many items of the routes' values were left out, of all sites, when their sitemaps were last made."""
        return sum(self._skipped.values())

    def survey(self, state: State) -> list[Surveyed]:
        """What becomes of each route that answers on this site, in the app's order, and then of each pattern."""
        candidates, reports = self._candidates(state)
        around = _around(candidates.values())
        leading = self._leading(candidates, state.table)
        routes: dict[tuple[bool, str], Route] = {}
        for route in (
            *(route for route in state.table.routes if route.host == state.site.routed),
            *state.table.static(state.site),
            *(self._patterned() if state.site.routed is None else ()),
            *(candidate.route for candidate in candidates.values()),
        ):
            routes.setdefault((route.static, route.path), route)
        pages: dict[tuple[bool, str], list[Candidate]] = {key: [] for key in routes}
        for candidate in candidates.values():
            pages[candidate.route.static, candidate.route.path].append(candidate)
        surveyed = []
        for key, route in routes.items():
            known = sum(page.page is not None for page in pages[key])
            verdict, lastmod, undecided = Verdict(False, UNREACHABLE), Counter[str](), False
            for page in pages[key]:
                loc, verdict = self._judged(state, page, around)
                if loc is not None:
                    dated = self._entry(loc, page, around, leading, state.now)[1]
                    lastmod[dated.source if dated.text else ""] += 1
            report = reports.get(route.mark.values) if route.mark.values else None
            if report is not None and not route.static:
                verdict = _enumerated(report, pages[key], lastmod.total())
            elif not route.static:
                verdict, undecided = self._parametrised(route, known, lastmod.total())
            surveyed.append(Surveyed(state.site, route, verdict, known, lastmod.total(), lastmod, undecided))
        return surveyed

    def _patterned(self) -> list[Route]:
        """The patterns by which pages are learned, each as a route."""
        patterns = (*self._options.include, *self._options.learn)
        return [Route(one.text, "learned from traffic", static=False) for one in patterns if not one.literal]

    def _parametrised(self, route: Route, known: int, listed: int) -> tuple[Verdict, bool]:
        """What becomes of a route with parameters, and whether that is so because nobody has said anything."""
        if refused := self._refused(route, route.path):
            return refused, False
        options = self._options
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

    def _candidates(
        self, state: State, *, whole: bool = False, asking: bool = True
    ) -> tuple[dict[str, Candidate], dict[Provider, Report]]:
        """Every URL of the site that routes, values, patterns and pages speak of, by percent-encoded path.

        And what came of each route's values, if they are asked. Where it must be whole, their failure is an error.
        """
        known: dict[str, Page] = {page.path: page for page in state.pages}
        found: dict[str, Candidate] = {}
        for route in state.table.static(state.site):
            quoted = quote_path(route.path)
            if quoted is not None:
                found[quoted] = Candidate(quoted, route, known.pop(quoted, None))
        reports: dict[Provider, Report] = {}
        for provider, routes in state.table.providers(state.site).items():
            wanted = [route for route in routes if self._refused(route, route.path) is None]
            if not wanted or not asking:
                continue
            report = reports[provider] = Report()
            try:
                for one in self._values.read(state.site, provider, wanted, state.drain, report):
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
            learned = state.table.find(state.site, _decoded(page.path))
            if learned is not None and learned.builder is None:
                found[page.path] = Candidate(page.path, learned, page)
        for path, candidate in found.items():
            twin = found.get(path[:-1] if path.endswith("/") else f"{path}/")
            if twin is not None and _is_copy(candidate, twin):
                found[path] = replace(candidate, twin=twin.path)
        return found, reports

    def _judged(self, state: State, candidate: Candidate, around: Surroundings) -> tuple[str | None, Verdict]:
        """The verdict on a URL, and its loc where it is listed."""
        loc = loc_of(state.site, candidate.path)
        if loc is None:
            return None, Verdict(False, UNFIT)
        verdict = self._verdict(candidate, around, state.now)
        if (verdict.listed or verdict.unverified) and not state.rules.allow(loc):
            verdict = Verdict(False, "the app's own robots.txt forbids it")
        return loc if verdict.listed else None, verdict

    def _verdict(self, candidate: Candidate, around: Surroundings, now: int) -> Verdict:
        route, page, options = candidate.route, candidate.page, self._options
        path = _decoded(candidate.path)
        if refused := self._refused(route, path):
            return refused
        included = options.include.find(path, route.path) is not None
        if candidate.entry is not None:
            return _UNSEEN if page is None else evidence.verdict(page, options.media_types)
        if page is not None:
            days = options.max_age_days
            if page.learned and page.last_seen < now - days * evidence.SECONDS_A_DAY:
                return Verdict(False, f"nobody was seen to ask for it in the last {days} days")
            if candidate.twin:
                return Verdict(False, f"it is the same page as {_decoded(candidate.twin)}")
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
        if options.verify:
            if deed := _DEEDS.search(f"{path} {route.endpoint}"):
                return Verdict(
                    False, f"it was not yet seen, and not asked for: its name, {deed[0]!r}, is that of a deed"
                )
            return Verdict(
                False, "it was not yet seen, nor yet answered when the app was asked for it", unverified=True
            )
        if not options.list_unseen:
            return Verdict(False, "it was not yet seen, and list_unseen is off")
        return Verdict(True, "it is a static route, and nothing was seen that forbids it")

    def _refused(self, route: Route, path: str) -> Verdict | None:
        """Why a path, or a template, is never listed, whatever is seen of it."""
        options = self._options
        if excluding := options.exclude.find(path, route.path):
            return Verdict(False, f"the option exclude names it by {excluding.text!r}")
        if route.mark.exclude:
            return Verdict(False, "it is marked @sitemap(exclude=True)")
        if path == options.path:
            return Verdict(False, "it is the sitemap itself")
        if route.internal and options.include.find(path, route.path) is None:
            return Verdict(False, route.internal)
        return None

    def _entry(
        self, loc: str, candidate: Candidate, around: Surroundings, leading: frozenset[str], now: int
    ) -> tuple[URL, Dated, Paced | None]:
        """A URL as written, and what its lastmod rests on, and its changefreq where that is inferred."""
        route, options, said = candidate.route, self._options, candidate.entry or NOTHING_SAID
        given = self._given(route) if said.lastmod is None else said.lastmod
        dated = evidence.lastmod(given, candidate.page, route.modified, around, now)
        ranked = (one for one in (said.priority, route.mark.priority, options.priority) if one is not None)
        wanted = next(ranked, None)
        if wanted == "auto":
            wanted = priority.priority(_decoded(candidate.path), route.static, leading)
        word, paced = said.changefreq or route.mark.changefreq or options.changefreq, None
        if word == "auto":
            paced = rate.changefreq(candidate.page, around)
            word = paced.word
        return URL(loc, dated.text, word, wanted), dated, paced

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

    def _warn_of_flat_priorities(self, entries: Sequence[URL]) -> None:
        highest = {entry.priority for entry in entries}
        if len(entries) > 1 and len(highest) == 1 and (entries[0].priority or 0) > 0.5:
            self._warn_once(
                "priority",
                "all %d pages of the sitemap have priority %s: it is relative to the site's own, so it says nothing",
                len(entries),
                entries[0].priority,
            )

    def _warn_of_skipped(self, provider: Provider, report: Report) -> None:
        if report.skipped:
            self._warn_once(
                f"values of {provider.place}",
                "of the %d items that the values of %s gave, %d make no page: %s",
                report.given,
                provider.place,
                report.skipped,
                "; ".join(report.examples),
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
        or not evidence.promising(other)
        or not page.contents
    ):
        return False
    same = bool(other.contents) and page.contents[-1].value == other.contents[-1].value
    return same and candidate.path.endswith("/") != candidate.route.path.endswith("/")


def _dated(page: Page | None) -> bool:
    return page is not None and page.modified is not None


def _enumerated(report: Report, pages: Sequence[Candidate], listed: int) -> Verdict:
    """What becomes of a route whose values enumerate its pages."""
    if report.failure:
        return Verdict(False, str(report.failure))
    count = sum(page.entry is not None for page in pages)
    return Verdict(listed > 0, "; ".join((f"values: {count} pages, {listed} listed", *report.lines())))


def _why_no_candidate(state: State, path: str, found: Route | None) -> str:
    if found is not None and found.builder is not None:
        return "its route enumerates its pages, and this is none of them"
    if found is not None:
        return f"it is one of {found.path}, whose pages are learned, but was not yet seen to be a page"
    for route in state.table.routes:
        if not route.static and Patterns((route.path,)).find(path):
            return f"its route, {route.path}, has parameters, and its pages are not learned"
    return "the app has no static route of this path, and no pattern of learn or include takes it in"


def _decoded(path: str) -> str:
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path)
