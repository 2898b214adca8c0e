"""The findings of the report: what to do about a site. Each rule says in SQL which evaluated pages it is about."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..listing.policy import EQUAL_CONTENT, OTHER_SLASH, ROBOTS_REASON, UNANSWERED


class Rule(NamedTuple):
    """Something to do about some pages."""

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
_FAILS: Final = f"NOT excluded AND (kind = {_text(UNANSWERED)} OR status IN (404, 410) AND (linked OR dropped IS NULL))"
_FORBIDDEN: Final = f"NOT excluded AND linked AND reason = {_text(ROBOTS_REASON)}"
_REPEATS: Final = f"NOT excluded AND kind IN ({_text(EQUAL_CONTENT)}, {_text(OTHER_SLASH)})"

RULES: Final = (
    Rule(
        "errors",
        "Pages that answer errors",
        "Visitors and crawlers get nothing there, and links to them lead nowhere.",
        "Mend the view or the link; leave the item out of values; or mark the route @sitemap(exclude=True).",
        _FAILS,
    ),
    Rule(
        "forbidden",
        "Linked pages that robots.txt forbids",
        "Crawlers find the links and may not read the pages, so they do not see a noindex there either.",
        "Allow them in robots.txt. If crawlers are to stay away, name them in the option exclude.",
        _FORBIDDEN,
    ),
    Rule(
        "linked",
        "Linked pages that are not listed",
        "Visitors get to them, and the sitemap does not name them: the list says why for each.",
        "Mend that reason. If it is meant, mark the route @sitemap(exclude=True), or name it in the option exclude.",
        f"linked AND NOT listed AND NOT excluded AND NOT ({_FAILS}) AND NOT ({_FORBIDDEN}) AND NOT ({_REPEATS})",
    ),
    Rule(
        "repeated",
        "Pages that repeat another page",
        "Search engines take such pages for soft 404s or duplicates, and choose one themselves.",
        "Answer 404 for what does not exist, and redirect other spellings of a path to one.",
        _REPEATS,
    ),
    Rule(
        "unlinked",
        "Listed pages that no page links to",
        "Such a page is often none for visitors: a fragment, a health check, the end of a form.",
        "Link to it from a page; or mark the route @sitemap(exclude=True).",
        "listed AND linked = 0",
    ),
    Rule(
        "priority",
        "Listed pages that all have one high priority",
        "Priority compares the pages of one site: a value that all share says nothing of any.",
        'Leave priority out, or set it to "auto".',
        "listed AND (SELECT count(*) > 1 AND count(*) = count(priority) AND min(priority) = max(priority)"
        " AND max(priority) > 0.5 FROM pages WHERE listed)",
    ),
    Rule(
        "undated",
        "Listed pages without a date",
        "Search engines come back at the right time to pages whose dates prove true.",
        "Give lastmod in values or @sitemap, send Last-Modified, or state article:modified_time."
        " Otherwise the first change of the content that is seen dates the page.",
        "listed AND lastmod IS NULL",
    ),
)
"""The worst first."""

SHOWN: Final = {
    "all": "true",
    "listed": "listed",
    "left-out": "NOT listed",
    **{rule.id: rule.where for rule in RULES},
}
"""The lists of pages that the report has, and which pages are in each."""
