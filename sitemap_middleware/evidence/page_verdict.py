"""Decides whether a page's own evidence lets it be listed, and why.

`listing.policy` adds what only the site as a whole shows, such as soft 404s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from ..models import Page
from .dates import w3c_from_timestamp
from .observations import INDEXABLE_TYPES, refusal_kind, refused_canonical


class Verdict(NamedTuple):
    """Whether a URL is listed, and why."""

    listed: bool
    reason: str
    unverified: bool = False
    """Whether nothing is known yet of the URL, or of its HTML, so that the prober requests it."""
    kind: str = ""
    """The reason without its details, such as a path, so that pages can be counted by it; empty if it has none."""


_EXPIRED: Final = Verdict(False, "its unavailable_after has passed")


def page_verdict(page: Page, media_types: Collection[str] = INDEXABLE_TYPES, now: int = 0) -> Verdict:
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
    return "an answer of another media type" if status == 200 else f"an answer of {status}"


def is_listable(page: Page) -> bool:
    """Whether the page could be listed, whatever `media_types` says. A learned page is stored only while that is so."""
    return page.status == 200 and not page.refusal and (page.expires_at is None or page.expires_at > page.last_seen)


def other_canonical(page: Page) -> str | None:
    """The other URL that a page names as canonical, if only that keeps it from being listed; else None."""
    return refused_canonical(page.refusal) if is_listable(page._replace(refusal="")) else None


def dropped_between(page: Page, media_types: Collection[str], now: int) -> tuple[int, int] | None:
    """Between which times a page that is not listed ceased to be good; None if the evidence does not tell."""
    end = page.expires_at
    if end is not None and end <= now and page_verdict(page, media_types, end - 1).listed:
        return page.last_seen, end
    if page.status == 200 or page.refusal or not page.content_history:
        return None
    return page.content_history[-1].last, page.last_seen
