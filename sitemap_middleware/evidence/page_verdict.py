"""Decides whether a page's own evidence lets it be listed, and why.

`listing.policy` adds what only the site as a whole shows, such as soft 404s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from ..dates import w3c_from_timestamp
from ..models import Page, UnconfirmedAnswer
from .delisting_confirmation import confirmed_contradiction
from .observations import INDEXABLE_TYPES


class Verdict(NamedTuple):
    """Whether a URL is listed, and why."""

    listed: bool
    reason: str
    unverified: bool = False
    """Whether nothing is known yet of the URL, or of its HTML, so that the prober requests it."""
    kind: str = ""
    """The reason without its details, such as a path, so that pages can be counted by it; empty if it has none."""


_OK_VERDICTS: Final = {
    media_type: Verdict(True, f"it answered 200 with {media_type}") for media_type in INDEXABLE_TYPES
}


def page_verdict(page: Page, media_types: Collection[str] = INDEXABLE_TYPES, now: int = 0) -> Verdict:
    """Whether the latest evidence of a page lets it be listed at `now`, in POSIX seconds."""
    excluded = _exclusion(page, media_types, now)
    if excluded is not None:
        return excluded
    ok = f"it answered 200 with {page.media_type}"
    if page.unconfirmed_answers and not page.is_unconfirmed:
        answer = page.unconfirmed_answers[0]
        return Verdict(
            True,
            f"{ok}; {describe_answer(answer)} at {w3c_from_timestamp(answer.at)} waits for confirmation, because it may"
            " concern one visitor only",
        )
    if page.unread_reason:
        return Verdict(True, f"{ok}; it was not read completely: it {page.unread_reason}")
    return _OK_VERDICTS.get(page.media_type) or Verdict(True, ok)


def _exclusion(page: Page, media_types: Collection[str], now: int) -> Verdict | None:
    """Why the page may not be listed, or None.

    Search engines drop a page that answers with an error, says noindex, or names another page as canonical (RFC 6596).
    A URL in a sitemap that contradicts its page costs the sitemap trust.
    """
    reason, kind = None, ""
    if page.status != 200:
        reason = f"it answered {page.status}"
    elif page.media_type not in media_types:
        reason, kind = (
            f"it is {page.media_type or 'of no stated type'}, not a page",
            "it is of another type than a page",
        )
    elif page.noindex:
        reason = "its X-Robots-Tag says noindex"
    elif page.html_noindex:
        reason = "its robots meta tag says noindex"
    elif page.private:  # RFC 9111, section 5.2.2.7: the response is meant for one user
        reason = "its Cache-Control says private"
    elif obstacle := page.obstacle or page.html_obstacle:
        reason, kind = f"it {obstacle}", f"it {obstacle.partition(':')[0]}"
    elif _has_expired(page, now):
        reason = "its unavailable_after has passed"
    elif canonical := page.canonical or page.html_canonical:
        reason, kind = f"its canonical URL is another: {canonical}", "its canonical URL is another"
    elif answer := confirmed_contradiction(page):
        reason = f"{describe_answer(answer)} at {w3c_from_timestamp(answer.at)} confirms an earlier one of that kind"
        kind = "repeated answers show that it is no longer a page"
    return None if reason is None else Verdict(False, reason, kind=kind)


def describe_answer(answer: UnconfirmedAnswer) -> str:
    """What an answer was that contradicts the page's evidence."""
    return "an answer of another media type" if answer.status == 200 else f"an answer of {answer.status}"


def is_listable(page: Page) -> bool:
    """Whether the page could be listed, whatever `media_types` says. A learned page is stored only while that is so."""
    elsewhere = page.canonical or page.html_canonical or page.obstacle or page.html_obstacle
    return (
        page.status == 200
        and not (page.noindex or page.html_noindex or page.private or elsewhere)
        and (page.expires_at is page.html_expires_at is None or not _has_expired(page, page.last_seen))
        and (not page.unconfirmed_answers or confirmed_contradiction(page) is None)
    )


def is_listable_elsewhere(page: Page) -> bool:
    """Whether only a canonical link to another URL keeps the page from being listed."""
    return bool(page.canonical or page.html_canonical) and is_listable(
        page._replace(canonical=None, html_canonical=None)
    )


def _has_expired(page: Page, now: int) -> bool:
    """Whether an unavailable_after in the page's headers or robots meta tag has passed."""
    return (page.expires_at is not None and page.expires_at <= now) or (
        page.html_expires_at is not None and page.html_expires_at <= now
    )


def expires_after(page: Page, now: int) -> list[int]:
    """The times after `now` at which an unavailable_after takes effect."""
    if page.expires_at is None and page.html_expires_at is None:
        return []
    return [end for end in (page.expires_at, page.html_expires_at) if end is not None and end > now]
