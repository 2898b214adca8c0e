"""Decides whether a page is listed, and gives the reason as a `Verdict`."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ..evidence.dates import SECONDS_PER_DAY
from ..evidence.observations import HTML_TYPES
from ..evidence.page_verdict import Verdict, page_verdict
from ..http.robots_parser import ROBOTS_PATH
from ..http.site_urls import loc_of
from ..http.urls import LOC_LENGTH_REASON
from ..models import Page, Provider, Route, Site
from ..options.table import Options
from .candidates import Candidate, SiteSnapshot, decode_path
from .site_signals_cache import CachedSiteSignals
from .unsafe_routes import operations_reason, unsafe_reason

_STATIC_FILES_RULE: Final = re.compile(r"(?:^|\.)static .*<path:filename>$")
"""The endpoint and path under which Flask and its blueprints serve their static folders."""

_UNREAD_REASON: Final = "its HTML was not read yet, and may say noindex"

_NOT_SHOWN: Final = "no visit has shown yet that it is a page"

_PROVIDED: Final = Verdict(True, "the values of its route include it, and no response forbids it")
_IN_SECTION: Final = Verdict(True, "the option sections includes it")

ROBOTS_TXT_REASON: Final = "it is robots.txt, which is not a page"
ROBOTS_REASON: Final = "the app's robots.txt disallows it"
UNANSWERED: Final = "it has not answered with a page yet"
UNREQUESTED: Final = "it was not requested yet by this process"
OTHER_SLASH: Final = "it is a page under the other slash"
EQUAL_CONTENT: Final = "it has the same content as a page that is listed instead"

UNDECIDED_REASON: Final = "it has parameters, and neither values nor learn"
"""Why a route has no pages if nobody has decided that."""


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """A site at one moment, with everything that the evaluation of its candidates depends on."""

    snapshot: SiteSnapshot
    site_signals: CachedSiteSignals
    hubs: frozenset[str]
    """Paths with other pages below them. Empty unless priorities are derived."""
    settings_digest: str
    """It changes if the options, the routes or robots.txt change what is listed."""
    providers: Mapping[str, tuple[Provider, list[Route]]]
    """The providers and their routes that are not excluded, by the name of the provider's section."""


class ListingPolicy:
    """Evaluates candidates by the options, their routes and what was observed of them."""

    def __init__(self, options: Options, probe_failure: Callable[[Site, str], str | None]) -> None:
        """`probe_failure` takes a site and a decoded path, and says what this process's own request for it got.

        It returns nothing if that was evidence, and None if this process has not requested the path.
        """
        self._options = options
        self._probe_failure = probe_failure

    def evaluate(self, context: EvaluationContext, candidate: Candidate) -> tuple[str | None, Verdict]:
        """The loc of a candidate, None unless it is listed, and the verdict on it."""
        snapshot = context.snapshot
        loc = candidate.loc or loc_of(snapshot.site, candidate.path)
        if loc is None:
            return None, Verdict(False, LOC_LENGTH_REASON)
        verdict = self._verdict(candidate, snapshot.now)
        if verdict.unverified:
            verdict = self._unanswered_verdict(context, candidate, verdict)
        # Last, because matching the rules costs more than all the checks before.
        if (verdict.listed or verdict.unverified) and not snapshot.rules.allows(loc):
            own = f'the option robots="{self._options.robots}" keeps the site out of search engines'
            verdict = Verdict(False, own if self._options.hides_all else ROBOTS_REASON)
        return loc if verdict.listed else None, verdict

    def exclusion(self, route: Route, path: str) -> Verdict | None:
        """Why a decoded path, or a route's template, is never listed, whatever its responses; None if it may be."""
        options = self._options
        if options.exclude and (pattern := options.exclude.find(path, route.path)):
            return Verdict(False, f"the option exclude matches it: {pattern.text!r}")
        if route.settings.exclude:
            return Verdict(False, "it is marked @sitemap(exclude=True)")
        if path == options.path:
            return Verdict(False, "it is the sitemap itself")
        if path == ROBOTS_PATH:
            return Verdict(False, ROBOTS_TXT_REASON)
        if options.is_report(path):
            return Verdict(False, "it is the sitemap's report")
        if route.internal and options.include.find(path, route.path) is None:
            return Verdict(False, route.internal)
        return None

    def may_be_probed(self, route: Route, path: str) -> bool:
        """Whether a probe may request a decoded path: it is not excluded, and not named like an action or an API."""
        return self.exclusion(route, path) is None and unsafe_reason(path, route.endpoint) is None

    def _unanswered_verdict(self, context: EvaluationContext, candidate: Candidate, verdict: Verdict) -> Verdict:
        """The verdict on a page that is to be probed, with what this process knows of the last probe."""
        failure = self._probe_failure(context.snapshot.site, decode_path(candidate.path))
        if candidate.page is not None:  # its HTML was not read, so the probe may show that it says noindex
            reason = f"{_UNREAD_REASON}: the last request of the middleware {failure}"
            return verdict._replace(listed=False, reason=reason, kind=_UNREAD_REASON) if failure else verdict
        if verdict.listed:
            return verdict
        if failure:
            reason = f"{UNANSWERED}: the last request of the middleware {failure}"
            return verdict._replace(reason=reason, kind=UNANSWERED)
        if failure is None:
            reason = f"{UNREQUESTED}: request {self._options.path} once"
            return verdict._replace(reason=reason, kind=UNREQUESTED)
        return verdict

    def _verdict(self, candidate: Candidate, now: int) -> Verdict:
        route, page, options = candidate.route, candidate.page, self._options
        path = decode_path(candidate.path)
        if (excluded := self.exclusion(route, path)) is not None:
            return excluded
        if candidate.entry is not None:
            if page is not None:
                return page_verdict(page, options.media_types, now)
            if (provider := route.settings.values) is not None and provider.any_route:
                return Verdict(True, f"{provider.place} includes it, and no response forbids it")
            return _PROVIDED if candidate.loc is None else _IN_SECTION
        # A health check answers like a page, so that its response cannot show that it is one.
        if (
            route.static
            and route.last_modified is None
            and options.include.find(path, route.path) is None
            and (reason := operations_reason(path, route.endpoint))
        ):
            return Verdict(False, f"{reason}; the option include lists it")
        if page is not None:
            return self._observed_verdict(candidate, page, now)
        return self._unobserved_verdict(route, path)

    def _observed_verdict(self, candidate: Candidate, page: Page, now: int) -> Verdict:
        """The verdict on a page that `values` does not name and that was observed."""
        options = self._options
        if page.learned and page.last_seen < now - options.max_age_days * SECONDS_PER_DAY:
            return Verdict(False, f"it was not visited in the last {options.max_age_days} days")
        if candidate.equal_page is not None:
            other = decode_path(candidate.equal_page)
            if other.rstrip("/") == decode_path(candidate.path).rstrip("/"):
                return Verdict(False, f"it is the same page as {other}", kind=OTHER_SLASH)
            reason = f"it has the same content as {other}, which is listed instead"
            return Verdict(False, reason, kind=EQUAL_CONTENT)
        verdict = page_verdict(page, options.media_types, now)
        if not page.read_at and verdict.listed and candidate.route.static and self._is_unread(candidate, page):
            unsafe = unsafe_reason(decode_path(candidate.path), candidate.route.endpoint)
            if options.verify and unsafe is None:
                return verdict._replace(unverified=True)
            why_not = unsafe or "verify is off"
            return Verdict(
                False, f"{_UNREAD_REASON}, and {why_not}: it is read when a visitor gets all of it, or include names it"
            )
        return verdict

    def _is_unread(self, candidate: Candidate, page: Page) -> bool:
        """Whether nobody has read the HTML of a page that is listed on its headers alone, so far."""
        return (
            not page.unread_reason
            and page.media_type in HTML_TYPES
            and self._options.include.find(decode_path(candidate.path), candidate.route.path) is None
        )

    def _unobserved_verdict(self, route: Route, path: str) -> Verdict:
        """The verdict on the static route of a decoded path that was never observed."""
        options = self._options
        if options.include.find(path, route.path) is not None:
            may_be_probed = options.verify and unsafe_reason(path, route.endpoint) is None
            return Verdict(True, "the option include matches it, and no response forbids it", unverified=may_be_probed)
        if route.hidden:
            return Verdict(False, f"{route.hidden.text}, and {_NOT_SHOWN}")
        if (media_type := mimetypes.guess_type(path)[0]) and media_type not in options.media_types:
            unlike = f"its suffix stands for {media_type}, and {_NOT_SHOWN}"
            return Verdict(False, unlike, kind="its suffix stands for another type than a page")
        if route.last_modified is None and (reason := unsafe_reason(path, route.endpoint)):
            return Verdict(False, f"{reason}, and {_NOT_SHOWN}; the option include lists it at once")
        if options.verify:
            return Verdict(
                False,
                "it has not answered with a page yet; an error such as 500, a timeout or a refused Host does not count",
                unverified=True,
            )
        if not options.list_unseen:
            return Verdict(False, "it was not visited yet, and list_unseen is off")
        return Verdict(True, "it is a static route, and no response forbids it")


def decided_reason(route: Route) -> str | None:
    """Why a route with parameters has no pages, although nothing enumerates or learns them; None if nobody decided."""
    if route.settings.learn is False:
        return "it is marked @sitemap(learn=False)"
    if route.hidden and route.hidden.is_declared:
        return route.hidden.text
    if _STATIC_FILES_RULE.search(f"{route.endpoint} {route.path}"):
        return "it serves the app's static files"
    return None
