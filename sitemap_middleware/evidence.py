"""The rules of evidence: what a response teaches, and what all of a page's responses allow us to say.

Pure functions; the time is always handed in, as POSIX seconds. The life of a
page is `read` (one raw response into an observation), `fold` (an observation
into the page), and then, whenever a sitemap is built, `verdict` (is it listed?)
and `lastmod` (when did it change?).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Final

from .history import History, gist, noted
from .location import same_page, same_path
from .model import Dated, Observation, Page, Sighting, Verdict

INDEXABLE: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Types that are pages to a search engine. Plain text is robots.txt and health checks."""

SKEW: Final = 5 * 60
"""Seconds that another machine's clock may be ahead of ours."""

FRESH: Final = 60
"""Seconds within which a Last-Modified could have been made up for the very answer that bears it."""

PACE: Final = 2
"""Seconds by which the distance of a clock to the clock may vary."""

REFRESH: Final = 60 * 60
"""Seconds for which an unchanged page's last sight need not be written again."""

EARLIEST: Final = 631_152_000
"""1990-01-01: no page of the web is older, and a Last-Modified before it is an unset clock."""

TOGETHER: Final = 60
"""Seconds within which one deployment writes all its files."""

_SETTLED: Final = frozenset({300, 301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410, 451})
"""Statuses that say something of the page.

Of the others, 5xx, 408, 425 and 429 pass; 304 has no news; and 400, 406, 412,
413, 414, 416, 417, 421, 422, 431 and their like come of the one request, which
any stranger can write so that it gets one.
"""

_AGENT: Final = re.compile(r"\s*([a-z0-9_.*-]+)\s*:\s*(.*)", re.DOTALL)
_SEARCH_ENGINES: Final = frozenset({"*", "robots", "googlebot", "bingbot"})
_VALUED_DIRECTIVES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_LINK: Final = re.compile(r"<([^<>]*)>((?:[^,<\"]|\"(?:[^\"\\]|\\.)*\")*)")
_RFC_850: Final = re.compile(r", [0-9]{2}-[A-Za-z]{3}-[0-9]{2} ")
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)


def teaches(status: int) -> bool:
    """Whether an answer of this status says anything of its page."""
    return 200 <= status < 300 or status in _SETTLED


def read(sighting: Sighting, path: str, route: str, loc: str) -> Observation | None:
    """What a raw response says of the page at `loc`; None where it says nothing.

    A redirect that only changes scheme or host, to the canonical ones as a rule,
    says nothing of the page, and neither does a status of passing trouble.
    """
    if not teaches(sighting.status):
        return None
    told = _Told(sighting)
    at = int(sighting.at)
    target = told.last("location")
    if 300 <= sighting.status < 400 and target and same_path(loc, target):
        return None
    return Observation(
        path=path,
        route=route,
        at=at,
        status=sighting.status,
        media_type=(told.last("content-type") or "").partition(";")[0].strip().lower()[:127],
        noindex=any(map(forbids_indexing, told.all("x-robots-tag"))),
        private=any("private" in _directives(value) for value in told.all("cache-control")),
        canonical=next(
            (
                target[:2048]
                for value in told.all("link")
                for target in canonical_links(value)
                if not same_page(sighting.site, loc, target)
            ),
            None,
        ),
        modified=plausible(told.all("last-modified"), at),
    )


class _Told:
    """A response's headers, by lower-case name, in their order."""

    def __init__(self, sighting: Sighting) -> None:
        self._headers = [(_text(name).lower(), _text(value)) for name, value in sighting.headers]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._headers if key == name]

    def last(self, name: str) -> str | None:
        values = self.all(name)
        return values[-1] if values else None


def _text(raw: str | bytes) -> str:
    return raw if isinstance(raw, str) else raw.decode("latin-1")


def _directives(value: str) -> set[str]:
    return {item.partition("=")[0].strip().lower() for item in value.split(",")}


def forbids_indexing(value: str) -> bool:
    """Whether an X-Robots-Tag (Google, "Robots meta tag specifications") tells search engines not to index.

    A directive may be for one robot alone (``otherbot: noindex``); those for
    Google's and Bing's count, those for others do not.
    """
    for_us = True
    for item in value.lower().split(","):
        named = _AGENT.fullmatch(item)
        directive = item
        if named and named[1] not in _VALUED_DIRECTIVES:
            for_us = named[1] in _SEARCH_ENGINES
            directive = named[2]
        if for_us and directive.strip() in ("noindex", "none"):
            return True
    return False


def canonical_links(value: str) -> Iterable[str]:
    """The targets of a Link header (RFC 8288) whose relation is canonical (RFC 6596)."""
    for target, parameters in _LINK.findall(value):
        relation = _REL.search(parameters)
        if relation and "canonical" in (relation[1] or relation[2]).lower().split():
            yield target


def plausible(values: Collection[str], at: int) -> int | None:
    """A Last-Modified (RFC 9110, section 8.8.2) that could be true; None where there is none or several differ."""
    if len(set(values)) != 1:
        return None
    from werkzeug.http import parse_date

    value = next(iter(values)).strip()
    try:
        moment = parse_date(value)
        seconds = None if moment is None else int(moment.timestamp())
    except (ValueError, OverflowError):
        return None
    if moment is None or seconds is None or not EARLIEST <= seconds <= at + SKEW:
        return None
    if str(moment.year) not in value and not _RFC_850.search(value):
        return None  # the parser reads the year 0000 as 2000
    return seconds


def joined(page: Page | None, seen: Observation) -> Page:
    """What is known of a page once this is known too, in whatever order it comes to be known.

    The latest evidence decides; of two of one second, the one that forbids more.
    """
    if page is None:
        page = _page(seen, seen.at, ())
    first_seen = min(page.first_seen, seen.at)
    moments = page.moments if seen.modified is None else noted(page.moments, seen.modified, seen.at)
    new = _page(seen, first_seen, moments)
    return new if _rank(new) > _rank(page) else replace(page, first_seen=first_seen, moments=moments)


def fold(page: Page | None, seen: Observation) -> Page:
    """As `joined`, but the very same object where there is no news worth writing down."""
    new = joined(page, seen)
    if page is None or new.last_seen - page.last_seen >= REFRESH or _gist(new) != _gist(page):
        return new
    return page


def _page(seen: Observation, first_seen: int, moments: History) -> Page:
    return Page(
        path=seen.path,
        route=seen.route,
        first_seen=first_seen,
        last_seen=seen.at,
        status=seen.status,
        media_type=seen.media_type,
        noindex=seen.noindex,
        private=seen.private,
        canonical=seen.canonical,
        modified=seen.modified,
        moments=moments,
    )


def _rank(page: Page) -> tuple[object, ...]:
    """The order of evidence: later, then what forbids more, then anything that every worker orders alike."""
    forbids = (page.status != 200, page.noindex, page.private, page.canonical or "")
    return page.last_seen, *forbids, page.status, page.media_type, page.modified or 0, page.route


def _gist(page: Page) -> tuple[object, ...]:
    return page.first_seen, _rank(page)[1:], gist(page.moments)


def verdict(page: Page, media_types: Collection[str] = INDEXABLE) -> Verdict:
    """Whether the last evidence of a page lets it be listed, with the reason in words."""
    if page.status != 200:
        return Verdict(False, f"it answered {page.status}")
    if page.media_type not in media_types:
        return Verdict(False, f"it is {page.media_type or 'of no stated type'}, not a page")
    if page.noindex:
        return Verdict(False, "its X-Robots-Tag says noindex")
    if page.private:
        return Verdict(False, "its Cache-Control says private")
    if page.canonical is not None:
        return Verdict(False, f"its canonical URL is another: {page.canonical}")
    return Verdict(True, f"it answered 200 with {page.media_type}")


def credible(page: Page) -> bool:
    """Whether a page's Last-Modified is a date rather than a clock.

    A value as old as the answer could have been made up for it, so a page must
    be seen to let one stand still. A value that is new on answer after answer,
    always the same distance behind the clock, is a clock.
    """
    stood = any(run.last - run.first >= FRESH for run in page.moments)
    lags = [run.first - run.value for run in page.moments[-3:]]
    if not stood and len(lags) == 3 and max(lags) - min(lags) <= PACE:
        return False
    return any(run.value == page.modified and (stood or run.first - run.value >= FRESH) for run in page.moments)


def deployment(moments: Iterable[int]) -> tuple[int, int]:
    """The span of a minute that holds most of a site's modification times, as first and last second; else nothing.

    Three pages or more, and more than half of all that bear a date: that is
    the moment their files were copied to the server, not when they were written.
    An empty span, (1, 0), where there is no such moment.
    """
    ordered = sorted(moments)
    best, start = (1, 0), 0
    most = max(2, len(ordered) // 2)
    for end, moment in enumerate(ordered):
        while moment - ordered[start] > TOGETHER:
            start += 1
        if end - start + 1 > most:
            most = end - start + 1
            best = (ordered[start], moment)
    return best


def lastmod(given: date | None, page: Page | None, file: int | None, deployed: tuple[int, int], now: int) -> Dated:
    """When a page last changed, by the first of these that holds: the developer's date, a credible Last-Modified.

    Args:
        given: the developer's date, where there is one.
        page: what was seen of it.
        file: the modification time of the file it is served from.
        deployed: the span in which the site was deployed, from `deployment`.
        now: POSIX seconds.
    """
    if given is not None:
        text = w3c(given)
        if _seconds(given) > now + SKEW:
            return Dated(None, f"the developer's date, {text}, has not come yet")
        return Dated(text, "the developer's date")
    moment, source = file, "the file's modification time"
    if page is not None and page.modified is not None:
        moment, source = page.modified, "Last-Modified"
        if file != page.modified and not credible(page):
            return Dated(None, "its Last-Modified is the time of the answer, or was not yet seen to stand still")
    if moment is None:
        return Dated(None, "it bears no date")
    if not EARLIEST <= moment <= now + SKEW:
        return Dated(None, f"{source} cannot be true")
    if deployed[0] <= moment <= deployed[1]:
        return Dated(None, f"{source} is one and the same on most pages, as after a deployment")
    return Dated(w3c(datetime.fromtimestamp(moment, UTC)), source)


def w3c(moment: date) -> str:
    """A date or datetime as W3C's profile of ISO 8601 has it, in UTC; a naive datetime is taken as UTC."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.strftime("%Y-%m-%dT%H:%M:%SZ") if aware.year >= 1000 else aware.date().isoformat()


def _seconds(moment: date) -> float:
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC).timestamp()
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()
