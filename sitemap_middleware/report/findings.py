"""Findings: what is to be done about a site, by rules that select pages, and by what is known of the site itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from ..listing.policy import EQUAL_CONTENT, OTHER_SLASH, ROBOTS_REASON, UNANSWERED, UNREQUESTED
from ..listing.route_report import RouteReport

MAX_FINDINGS: Final = 7

UNFETCHED_DAYS: Final = 30
"""Days without a request of a crawler for the sitemap after which that is a finding."""


class Rule(NamedTuple):
    """Something to do about some pages."""

    rank: int
    """The lower, the worse."""
    id: str
    """Also what the list of its pages is asked by."""
    title: str
    why: str
    fix: str
    where: str
    """Which rows of `EvaluatedUrl` they are."""


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# A page that is gone on purpose is no finding unless others link to it.
_FAILS: Final = (
    f"NOT excluded AND (failure != '' OR kind = {_text(UNANSWERED)}"
    " OR status IN (404, 410) AND (linked OR dropped IS NULL))"
)
_FORBIDDEN: Final = f"NOT excluded AND linked AND reason = {_text(ROBOTS_REASON)}"
_TWINS: Final = "SELECT content FROM pages WHERE listed GROUP BY content HAVING count(content) > 1"
_REPEATS: Final = (
    f"NOT excluded AND (kind IN ({_text(EQUAL_CONTENT)}, {_text(OTHER_SLASH)}) OR listed AND content IN ({_TWINS}))"
)
_UNREQUESTED: Final = f"kind = {_text(UNREQUESTED)}"

RULES: Final = (
    Rule(
        30,
        "errors",
        "Pages that answer errors",
        "Visitors and crawlers get nothing there, and links to them lead nowhere.",
        "Mend the view or the link; leave the item out of values; or mark the route @sitemap(exclude=True).",
        _FAILS,
    ),
    Rule(
        50,
        "forbidden",
        "Linked pages that robots.txt forbids",
        "Crawlers find the links and may not read the pages, so they do not see a noindex there either.",
        "Allow them in robots.txt. If crawlers are to stay away, name them in the option exclude.",
        _FORBIDDEN,
    ),
    Rule(
        70,
        "linked",
        "Linked pages that are not listed",
        "Visitors get to them, and the sitemap does not name them: the list says why for each.",
        "Mend that reason. If it is meant, mark the route @sitemap(exclude=True), or name it in the option exclude.",
        f"linked AND NOT (listed OR excluded OR {_UNREQUESTED}) AND NOT ({_FAILS}) AND NOT ({_FORBIDDEN})"
        f" AND NOT ({_REPEATS})",
    ),
    Rule(
        80,
        "repeated",
        "Pages that repeat another page",
        "Search engines take such pages for soft 404s or duplicates, and choose one themselves.",
        "Give each page a text of its own; answer 404 for what does not exist; redirect other spellings of a path.",
        _REPEATS,
    ),
    Rule(
        90,
        "unlinked",
        "Listed pages that no page links to",
        "Such a page is often none for visitors: a fragment, a health check, the end of a form.",
        "Link to it from a page; or mark the route @sitemap(exclude=True).",
        "listed AND linked = 0",
    ),
    Rule(
        110,
        "slow",
        "Pages that take more than a second to answer",
        "Crawlers request fewer pages of a slow site. This is the time that the middleware's own last request took.",
        "Find out what the view waits for, or cache the page.",
        "slow_seconds IS NOT NULL",
    ),
    Rule(
        120,
        "priority",
        "Listed pages that all have one high priority",
        "Priority compares the pages of one site: a value that all share says nothing of any.",
        'Leave priority out, or set it to "auto".',
        "listed AND (SELECT count(*) > 1 AND count(*) = count(priority) AND min(priority) = max(priority)"
        " AND max(priority) > 0.5 FROM pages WHERE listed)",
    ),
    Rule(
        130,
        "undated",
        "Listed pages without a date",
        "Search engines come back at the right time to pages whose dates prove true.",
        "Give lastmod in values or @sitemap, send Last-Modified, or state article:modified_time."
        " Otherwise the first change of the content that is seen dates the page.",
        "listed AND lastmod IS NULL",
    ),
)
"""In the order of their ranks, between which those of the site itself stand."""

SHOWN: Final = {
    "all": "true",
    "listed": "listed",
    "left-out": "NOT listed",
    **{rule.id: rule.where for rule in RULES},
}
"""The lists of pages that the report has, and which pages are in each."""


class Finding(NamedTuple):
    """Something to do about the site, and where the report shows more."""

    rank: int
    """The lower, the worse."""
    title: str
    why: str
    fix: str
    page: str
    """The name of a page of the report."""
    show: str | None = None
    """The list of pages that it shows."""
    concerned: int | None = None
    """How many pages or routes it concerns."""


def findings(
    pages: Iterable[tuple[Rule, int]],
    routes: Sequence[RouteReport],
    *,
    unserved_reason: str | None,
    is_sitemap_forbidden: bool,
    days_unfetched: float,
) -> list[Finding]:
    """What to do, the worst first: at most `MAX_FINDINGS`.

    Args:
        pages: how many pages each rule finds.
        routes: what becomes of each route.
        unserved_reason: why there is no sitemap; None if there is one.
        is_sitemap_forbidden: whether robots.txt disallows the sitemap itself.
        days_unfetched: days since a crawler requested it.
    """
    found = [Finding(rule.rank, rule.title, rule.why, rule.fix, "pages", rule.id, count) for rule, count in pages]
    found += _of_site(routes, unserved_reason, days_unfetched, is_sitemap_forbidden=is_sitemap_forbidden)
    return sorted(found, key=attrgetter("rank"))[:MAX_FINDINGS]


def _of_site(
    routes: Sequence[RouteReport], unserved_reason: str | None, days_unfetched: float, *, is_sitemap_forbidden: bool
) -> Iterator[Finding]:
    """What is to be done about the site itself and its routes."""
    if unserved_reason:
        yield Finding(
            10,
            "The sitemap is not served",
            f"{unserved_reason}.",
            "Search engines get no sitemap until that is mended, if it is not meant.",
            "health",
        )
    if is_sitemap_forbidden:
        yield Finding(
            20,
            "robots.txt forbids the sitemap itself",
            "Search engines may not read it.",
            "Allow its path in robots.txt.",
            "documents",
        )
    if failing := sum(report.failing or report.unmatched for report in routes):
        yield Finding(
            40,
            "Routes whose values or dates fail, and patterns that match nothing",
            "The sitemap lacks pages or dates, or lists what a pattern was to leave out.",
            "The list of routes says what is wrong.",
            "routes",
            concerned=failing,
        )
    if undecided := sum(report.undecided for report in routes):
        yield Finding(
            60,
            "Routes with parameters whose pages nobody names",
            "The sitemap cannot list their pages.",
            "Mark each @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True), or name it in the option"
            " learn or exclude.",
            "routes",
            concerned=undecided,
        )
    if days_unfetched >= UNFETCHED_DAYS:
        yield Finding(
            100,
            f"No crawler has requested the sitemap for {int(days_unfetched)} days",
            "Search engines may not know of it, unless a cache in front of the app answers them.",
            "Submit it in Search Console and Bing Webmaster Tools, and look at what robots.txt says.",
            "documents",
        )
