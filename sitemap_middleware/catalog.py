"""The catalog: routes and pages in, entries out. The one place that decides what is listed, and with which words."""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from . import evidence, priority, rate
from .candidates import Candidate, State, decoded, gathered, together
from .dates import w3c
from .entry import NOTHING_SAID
from .location import UNFIT, UNREACHABLE, loc_of, quote_path
from .model import URL, Dated, Explanation, Paced, Provider, Route, Site, Verdict
from .options import Options
from .patterns import Patterns
from .surroundings import Surroundings
from .values import Report, Values

log = logging.getLogger("sitemap_middleware")

_UNSEEN: Final = Verdict(True, "the values of its route name it, and nothing was seen that forbids it")

_DEEDS: Final = re.compile(
    r"(?<![a-z])(?:log|sign)[-_]?(?:out|off)|(?<![a-z])(?:delete|remove|destroy|purge|erase|wipe|drop|clear|flush|reset|revoke"
    r"|cancel|confirm|activate|deactivate|disable|enable|approve|reject|unsubscribe|subscribe|unlink|disconnect"
    r"|shutdown|restart|reboot|reload|kill|stop|start|run|trigger|sync|refresh|rebuild|import|export|migrate|install"
    r"|upgrade|update|create|add|send|cron|task|job|webhook|callback)(?![a-z])",
    re.IGNORECASE,
)
"""Names of what may do something when it is asked for. Such routes are not asked for; once seen, they count as any."""


@dataclass(frozen=True, slots=True)
class View:
    """The candidates of a site, and what the judgement of each rests on."""

    state: State
    candidates: Mapping[str, Candidate]
    reports: Mapping[Provider, Report]
    """What came of the values of routes, as far as they were asked."""
    around: Surroundings
    leading: frozenset[str]
    """Pages that lead to others, where priorities are derived."""


class Catalog:
    """Decides what is listed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._values = Values(options.clock)
        self._skipped: dict[str, int] = {}
        self._warned: set[str] = set()

    def entries(self, state: State) -> list[URL]:
        """The entries of a site, in the order of their paths. `ValuesError` where the values of a route fail."""
        view = self.view(state, whole=True)
        for provider, report in view.reports.items():
            self._warn_of_skipped(provider, report)
        self._values.remember(state.site, (path for path, one in view.candidates.items() if one.entry))
        self._skipped[state.site.base] = sum(report.skipped for report in view.reports.values())
        entries = []
        for _, candidate in sorted(view.candidates.items()):
            loc, _ = self.judged(view, candidate)
            if loc is not None:
                entries.append(self.written(view, loc, candidate)[0])
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
        view = self.view(state)
        candidate = view.candidates.get(quoted)
        route = candidate.route if candidate else state.table.find(state.site, path)
        report = view.reports.get(route.mark.values) if route and route.mark.values else None
        if report is not None and report.failure:
            return Explanation(path, loc, False, str(report.failure), route=route)
        skipped = report.lines() if report else ()
        if candidate is None:
            why = _why_no_candidate(state, path, route)
            return Explanation(path, loc, False, why, route=route if report else None, skipped=skipped)
        _, verdict = self.judged(view, candidate)
        if not verdict.listed:
            return Explanation(
                path, loc, False, verdict.reason, route=candidate.route, page=candidate.page, skipped=skipped
            )
        entry, dated, paced = self.written(view, loc, candidate)
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
        view = self.view(state, asking=False)
        judged = ((path, self.judged(view, candidate)[1]) for path, candidate in sorted(view.candidates.items()))
        return [decoded(path) for path, verdict in judged if verdict.unverified]

    def may_be_asked(self, route: Route, path: str) -> bool:
        """Whether the app may be asked for a decoded path: it is not excluded, nor named like a deed."""
        return self.refused(route, path) is None and _DEEDS.search(f"{path} {route.endpoint}") is None

    def enumerates(self, site: Site, path: str) -> bool | None:
        """Whether a percent-encoded path was among what the routes' values gave when the sitemap was last made.

        None where they were not yet asked by this process.
        """
        return self._values.knows(site, path)

    def skipped(self) -> int:
        """How many items of the routes' values were left out, of all sites, when their sitemaps were last made."""
        return sum(self._skipped.values())

    def view(self, state: State, *, whole: bool = False, asking: bool = True) -> View:
        """A site's candidates, and what the judgement of each rests on.

        Args:
            state: how things stand.
            whole: whether the failure of a route's values is an error, a `ValuesError`.
            asking: whether the routes' values are asked for at all.
        """
        candidates, reports = gathered(
            state, self._values, lambda route: asking and self.refused(route, route.path) is None, whole=whole
        )
        leading = frozenset[str]()
        if self._options.priority == "auto":
            leading = priority.hubs({decoded(path) for path in candidates} | {one.path for one in state.table.routes})
        return View(state, candidates, reports, together(candidates.values()), leading)

    def judged(self, view: View, candidate: Candidate) -> tuple[str | None, Verdict]:
        """The verdict on a URL, and its loc where it is listed."""
        state = view.state
        loc = loc_of(state.site, candidate.path)
        if loc is None:
            return None, Verdict(False, UNFIT)
        verdict = self._verdict(candidate, view.around, state.now)
        if (verdict.listed or verdict.unverified) and not state.rules.allow(loc):
            verdict = Verdict(False, "the app's own robots.txt forbids it")
        return loc if verdict.listed else None, verdict

    def _verdict(self, candidate: Candidate, around: Surroundings, now: int) -> Verdict:
        route, page, options = candidate.route, candidate.page, self._options
        path = decoded(candidate.path)
        if refused := self.refused(route, path):
            return refused
        included = options.include.find(path, route.path) is not None
        if candidate.entry is not None:
            return _UNSEEN if page is None else evidence.verdict(page, options.media_types)
        if page is not None:
            days = options.max_age_days
            if page.learned and page.last_seen < now - days * evidence.SECONDS_A_DAY:
                return Verdict(False, f"nobody was seen to ask for it in the last {days} days")
            if candidate.twin:
                return Verdict(False, f"it is the same page as {decoded(candidate.twin)}")
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

    def refused(self, route: Route, path: str) -> Verdict | None:
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

    def written(self, view: View, loc: str, candidate: Candidate) -> tuple[URL, Dated, Paced | None]:
        """A URL as written, and what its lastmod rests on, and its changefreq where that is inferred."""
        route, options, said = candidate.route, self._options, candidate.entry or NOTHING_SAID
        given = self._given(route) if said.lastmod is None else said.lastmod
        dated = evidence.lastmod(given, candidate.page, route.modified, view.around, view.state.now)
        ranked = (one for one in (said.priority, route.mark.priority, options.priority) if one is not None)
        wanted = next(ranked, None)
        if wanted == "auto":
            wanted = priority.priority(decoded(candidate.path), route.static, view.leading)
        word, paced = said.changefreq or route.mark.changefreq or options.changefreq, None
        if word == "auto":
            paced = rate.changefreq(candidate.page, view.around)
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


def _why_no_candidate(state: State, path: str, found: Route | None) -> str:
    if found is not None and found.builder is not None:
        return "its route enumerates its pages, and this is none of them"
    if found is not None:
        return f"it is one of {found.path}, whose pages are learned, but was not yet seen to be a page"
    for route in state.table.routes:
        if not route.static and Patterns((route.path,)).find(path):
            return f"its route, {route.path}, has parameters, and its pages are not learned"
    return "the app has no static route of this path, and no pattern of learn or include takes it in"
