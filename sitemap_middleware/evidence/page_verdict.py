"""Decides whether a page's own evidence lets it be listed, and why; and explains that to people.

`listing.policy` adds what only the site as a whole shows, such as soft 404s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..models import Page, Route, SitemapUrl
from .dates import w3c_from_timestamp
from .observations import (
    CANONICAL_REFUSAL,
    HTML_TYPES,
    NOINDEX_HEADER_REFUSAL,
    NOINDEX_META_REFUSAL,
    refusal_kind,
)
from .value_history import VOLATILE, Run


class Verdict(NamedTuple):
    """Whether a URL is listed, and why."""

    listed: bool
    reason: str
    unverified: bool = False
    """Whether nothing is known yet of the URL, or of its HTML, so that the prober requests it."""
    kind: str = ""
    """The reason without its details, such as a path, so that pages can be counted by it; empty if it has none."""


GONE_STATUSES: Final = frozenset({404, 410})
"""Statuses that tell every visitor that the page does not exist."""

_NOINDEX_REFUSALS: Final = frozenset({NOINDEX_HEADER_REFUSAL, NOINDEX_META_REFUSAL})
_EXPIRED: Final = Verdict(False, "its unavailable_after has passed")


def page_verdict(page: Page, media_types: Collection[str], now: int) -> Verdict:
    """Whether the latest evidence of a page lets it be listed at `now`, in POSIX seconds.

    Search engines drop a page that answers with an error, says noindex, or names another page as canonical (RFC 6596).
    A URL in a sitemap that contradicts its page costs the sitemap trust.
    """
    if page.status != 200:
        return Verdict(False, f"it answered {page.status}")
    if page.media_type not in media_types:
        reason = f"it is {page.media_type or 'of no stated type'}, not a page"
        return Verdict(False, reason, kind="it is of another type than a page")
    if page.expires_at is not None and page.expires_at <= now:
        return _EXPIRED
    if page.refusal:
        return Verdict(False, page.refusal, kind=refusal_kind(page.refusal))
    reason = f"it answered 200 with {page.media_type}"
    if page.unconfirmed_at:
        reason += f"; {describe_answer(page)} at {w3c_from_timestamp(page.unconfirmed_at)} waits for confirmation,"
        reason += " because it may concern one visitor only"
    elif page.unread_reason:
        reason += f"; it was not read completely: it {page.unread_reason}"
    return Verdict(True, reason)


def describe_answer(page: Page) -> str:
    """What the answer was that contradicts the page's evidence and is not confirmed."""
    status = page.unconfirmed_status
    return f"an answer of {status}" + (" with another type, noindex or another canonical URL" if status == 200 else "")


def is_listable(page: Page) -> bool:
    """Whether the page could be listed, whatever `media_types` says. A learned page is stored only while that is so."""
    return page.status == 200 and not page.refusal and (page.expires_at is None or page.expires_at > page.last_seen)


def is_gone(page: Page) -> bool:
    """Whether the page told every visitor that it does not exist, or is not to be indexed."""
    return page.status in GONE_STATUSES or (page.status == 200 and page.refusal in _NOINDEX_REFUSALS)


def other_canonical(page: Page) -> str | None:
    """The other URL that a page names as canonical, if only that keeps it from being listed; else None."""
    is_refused = page.refusal.startswith(CANONICAL_REFUSAL) and is_listable(page._replace(refusal=""))
    return page.refusal.removeprefix(CANONICAL_REFUSAL) if is_refused else None


def dropped_between(page: Page, media_types: Collection[str], now: int) -> tuple[int, int] | None:
    """Between which times a page that is not listed ceased to be good; None if the evidence does not tell."""
    end = page.expires_at
    if end is not None and end <= now and page_verdict(page, media_types, end - 1).listed:
        return page.last_seen, end
    if page.status == 200 or page.refusal or not page.content_history:
        return None
    return page.content_history[-1].last, page.last_seen


# For people


class PageEvent(NamedTuple):
    """Something that happened to a page."""

    at: int
    """POSIX seconds."""
    text: str


UNLINKED: Final = "no page that was read links to it"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a URL is listed or not, and where its lastmod and an inferred changefreq come from.

    `str()` returns a text for people.
    """

    path: str
    loc: str | None
    listed: bool
    reason: str
    entry: SitemapUrl | None = None
    lastmod_source: str | None = None
    route: Route | None = None
    page: Page | None = None
    changefreq_source: str | None = None
    extensions: tuple[str, ...] = ()
    """What it says of its images, videos, news and alternates, and who says so."""
    skipped: tuple[str, ...] = ()
    """Items of its route's values that were left out, and why: how many, and the first few."""
    ignored: str | None = None
    """Which requests to this process did not count as evidence, if that may be why nothing is known."""
    note: str | None = None
    """Why the sitemap itself is not served, or was answered with 503, if that is so."""
    history: tuple[PageEvent, ...] = ()
    """What happened to the page, the latest first."""
    unlinked: bool = False
    """Whether it is listed, and no page links to it."""

    def __str__(self) -> str:
        lines = [f"note: {self.note}"] if self.note else []
        lines.append(f"{self.path} is {'listed' if self.listed else 'not listed'}: {self.reason}")
        if self.loc:
            lines.append(f"loc: {self.loc}")
        if self.lastmod_source:
            lastmod = self.entry.lastmod if self.entry and self.entry.lastmod else "none"
            lines.append(f"lastmod: {lastmod} ({self.lastmod_source})")
        if self.changefreq_source:
            word = self.entry.changefreq if self.entry and self.entry.changefreq else "none"
            lines.append(f"changefreq: {word} ({self.changefreq_source})")
        lines += self.extensions
        if self.route:
            lines.append(f"route: {self.route.path} ({self.route.endpoint})")
        if self.unlinked:
            lines.append(f"links: {UNLINKED}")
        provider = self.route and self.route.settings.values
        name = provider.place if provider and provider.any_route else "values"
        lines += [f"{name}: {skipped}" for skipped in self.skipped]
        if self.ignored:
            lines.append(f"ignored: {self.ignored}")
        return "\n".join(lines)


def observed_facts(page: Page, write_time: Callable[[int], str] = w3c_from_timestamp) -> Iterator[tuple[str, str]]:
    """What was observed of a page: names and values."""
    yield "first seen", write_time(page.first_seen)
    yield "last seen", f"{write_time(page.last_seen)} (or up to an hour later)"
    yield "status", str(page.status)
    yield "type", page.media_type or "none"
    if page.last_modified is not None:
        yield "Last-Modified", write_time(page.last_modified)
    if page.stated_date:
        yield "date it states", page.stated_date
    is_page = page.status == 200 and page.media_type in HTML_TYPES  # else these are of an earlier answer
    if is_page and page.read_at:
        yield "HTML read", write_time(page.read_at)
    if is_page and (contents := page.content_history):
        yield "content unchanged since", f"{write_time(contents[-1].first)}; versions known: {len(contents)}"
    for name, value in (("refused", page.refusal), ("not read completely", page.unread_reason)):
        if value:
            yield name, value
    if page.unconfirmed_at:
        yield "waits for confirmation", f"{describe_answer(page)} at {write_time(page.unconfirmed_at)}"


def page_events(
    page: Page, dropped: int | None, write_time: Callable[[int], str] = w3c_from_timestamp
) -> list[PageEvent]:
    """What happened to a page, the latest first; `dropped` is when it was no longer listed, if that is known."""
    events = [PageEvent(page.first_seen, "first seen")]
    for number, run in enumerate(page.content_history, 1):
        events.append(
            _sighting("content that varies" if run.value == VOLATILE else f"content {number}", run, write_time)
        )
    for name, history in (("Last-Modified", page.last_modified_history), ("stated date", page.stated_date_history)):
        events += [_sighting(f"{name} {write_time(run.value)}", run, write_time) for run in history]
    if page.unconfirmed_at:
        events.append(PageEvent(page.unconfirmed_at, f"{describe_answer(page)}, not yet confirmed"))
    events.append(PageEvent(page.last_seen, f"latest evidence: it answered {page.status}"))
    if dropped is not None:
        events.append(PageEvent(dropped, "no longer listed, at this time or before"))
    return sorted(events, key=lambda event: event.at)[::-1]


def _sighting(what: str, run: Run, write_time: Callable[[int], str]) -> PageEvent:
    seen = f"was first seen, and last at {write_time(run.last)}" if run.was_repeated else "was seen once"
    return PageEvent(run.first, f"{what} {seen}")
