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
from .location import loc_of, quote_path
from .model import Dated, Entry, Explanation, Paced, Page, Route, Site, Verdict
from .options import Options
from .patterns import Patterns
from .robots import Rules
from .surroundings import Surroundings, surroundings
from .urlmap import RouteTable

log = logging.getLogger("sitemap_middleware")

_UNREACHABLE: Final = "no loc can be written that would lead to this path again"
_UNFIT: Final = "its loc would have 2,048 characters or more, or less than 12"

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A URL that may be listed: its route, and what was seen of it, if anything."""

    path: str
    """Percent-encoded."""
    route: Route
    page: Page | None
    twin: str | None = None
    """The path, with or without a slash at the end, under which the very same page is listed instead."""


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
        self._warned: set[str] = set()

    def entries(self, state: State) -> list[Entry]:
        """The entries of a site, in the order of their paths."""
        candidates = self._candidates(state)
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
            return Explanation(path, None, False, _UNREACHABLE)
        loc = loc_of(state.site, quoted)
        if loc is None:
            return Explanation(path, None, False, _UNFIT)
        candidates = self._candidates(state)
        candidate = candidates.get(quoted)
        if candidate is None:
            return Explanation(path, loc, False, _why_no_candidate(state, path))
        around = _around(candidates.values())
        _, verdict = self._judged(state, candidate, around)
        if not verdict.listed:
            return Explanation(path, loc, False, verdict.reason, route=candidate.route, page=candidate.page)
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
        )

    def unverified(self, state: State) -> list[str]:
        """The decoded paths of which the app's own answer decides whether they are listed."""
        candidates = self._candidates(state)
        around = _around(candidates.values())
        judged = ((path, self._judged(state, candidate, around)[1]) for path, candidate in sorted(candidates.items()))
        return [_decoded(path) for path, verdict in judged if verdict.unverified]

    def may_be_asked(self, route: Route, path: str) -> bool:
        """Whether the app may be asked for a decoded path: it is not excluded, nor named like a deed."""
        return self._refused(route, path) is None and _DEEDS.search(f"{path} {route.endpoint}") is None

    def survey(self, state: State) -> list[Surveyed]:
        """What becomes of each route that answers on this site, in the app's order, and then of each pattern."""
        candidates = self._candidates(state)
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
            verdict, lastmod, undecided = Verdict(False, _UNREACHABLE), Counter[str](), False
            for page in pages[key]:
                loc, verdict = self._judged(state, page, around)
                if loc is not None:
                    dated = self._entry(loc, page, around, leading, state.now)[1]
                    lastmod[dated.source if dated.text else ""] += 1
            if not route.static:
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
        for path, candidate in found.items():
            twin = found.get(path[:-1] if path.endswith("/") else f"{path}/")
            if twin is not None and _is_copy(candidate, twin):
                found[path] = replace(candidate, twin=twin.path)
        return found

    def _judged(self, state: State, candidate: Candidate, around: Surroundings) -> tuple[str | None, Verdict]:
        """The verdict on a URL, and its loc where it is listed."""
        loc = loc_of(state.site, candidate.path)
        if loc is None:
            return None, Verdict(False, _UNFIT)
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
    ) -> tuple[Entry, Dated, Paced | None]:
        """An entry, and what its lastmod rests on, and its changefreq where that is inferred."""
        route, options = candidate.route, self._options
        dated = evidence.lastmod(self._given(route), candidate.page, route.modified, around, now)
        wanted = options.priority if route.mark.priority is None else route.mark.priority
        if wanted == "auto":
            wanted = priority.priority(_decoded(candidate.path), route.static, leading)
        word, paced = route.mark.changefreq or options.changefreq, None
        if word == "auto":
            paced = rate.changefreq(candidate.page, around)
            word = paced.word
        return Entry(loc, dated.text, word, wanted), dated, paced

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


def _is_copy(candidate: Candidate, twin: Candidate) -> bool:
    """Whether a learned page shows what its twin does, and it is not the one spelled as its route is."""
    page, other = candidate.page, twin.page
    if page is None or other is None or not page.learned or not evidence.promising(other) or not page.contents:
        return False
    same = bool(other.contents) and page.contents[-1].value == other.contents[-1].value
    return same and candidate.path.endswith("/") != candidate.route.path.endswith("/")


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
