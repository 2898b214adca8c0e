"""Whether a page is listed, by its own evidence, and why."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from ..dates import w3c_from_timestamp
from ..models import Page, UnconfirmedAnswer
from .confirmation import confirmed_contradiction

INDEXABLE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Types that are pages to a search engine. Plain text is robots.txt and health checks."""


class Verdict(NamedTuple):
    """Listed, or not, and the reason in words."""

    listed: bool
    reason: str
    unverified: bool = False
    """Whether the app is to be asked for it: nothing was seen of it yet."""


_OK_VERDICTS: Final = {one: Verdict(True, f"it answered 200 with {one}") for one in INDEXABLE_TYPES}


def page_verdict(page: Page, media_types: Collection[str] = INDEXABLE_TYPES, now: int = 0) -> Verdict:
    """Whether the last evidence of a page lets it be listed at a time in POSIX seconds, with the reason in words."""
    reason = _exclusion_reason(page, media_types, now)
    if reason is not None:
        return Verdict(False, reason)
    if page.contrary and not page.doubtful:
        one = page.contrary[0]
        return Verdict(
            True,
            f"it answered 200 with {page.media_type}; {_in_words(one)} at {w3c_from_timestamp(one.at)} waits for confirmation,"  # noqa: E501
            " since it may have to do with the visitor alone",
        )
    if page.unread:
        return Verdict(True, f"it answered 200 with {page.media_type}; it was not read as a whole: it {page.unread}")
    return _OK_VERDICTS.get(page.media_type) or Verdict(True, f"it answered 200 with {page.media_type}")


def _in_words(answer: UnconfirmedAnswer) -> str:
    return "an answer of another media type" if answer.status == 200 else f"an answer of {answer.status}"


def _exclusion_reason(page: Page, media_types: Collection[str], now: int) -> str | None:
    """Why the page may not be listed; None if it may."""
    reason = None
    if page.status != 200:
        reason = f"it answered {page.status}"
    elif page.media_type not in media_types:
        reason = f"it is {page.media_type or 'of no stated type'}, not a page"
    elif page.noindex:
        reason = "its X-Robots-Tag says noindex"
    elif page.html_noindex:
        reason = "its robots meta tag says noindex"
    elif page.private:
        reason = "its Cache-Control says private"
    elif obstacle := page.obstacle or page.html_obstacle:
        reason = f"it {obstacle}"
    elif has_expired(page, now):
        reason = "its unavailable_after has passed"
    elif canonical := page.canonical or page.html_canonical:
        reason = f"its canonical URL is another: {canonical}"
    elif answer := confirmed_contradiction(page):
        reason = f"{_in_words(answer)} at {w3c_from_timestamp(answer.at)} confirms an earlier one of that kind"
    return reason


def is_listable_elsewhere(page: Page) -> bool:
    """Whether a page would be listed if it did not name another URL as canonical."""
    return bool(page.canonical or page.html_canonical) and is_listable(
        page._replace(canonical=None, html_canonical=None)
    )


def is_listable(page: Page) -> bool:
    """Whether a page may come to be listed as things stand: what is learned from traffic is kept only then."""
    elsewhere = page.canonical or page.html_canonical or page.obstacle or page.html_obstacle
    return (
        page.status == 200
        and not (page.noindex or page.html_noindex or page.private or elsewhere)
        and not has_expired(page, page.last_seen)
        and confirmed_contradiction(page) is None
    )


def has_expired(page: Page, now: int) -> bool:
    """Whether the page has left search engines by this time, as its headers or its robots meta say."""
    return (page.expires is not None and page.expires <= now) or (
        page.html_expires is not None and page.html_expires <= now
    )


def expires_after(page: Page, now: int) -> list[int]:
    """When the page leaves search engines, if that is yet to come."""
    return [end for end in (page.expires, page.html_expires) if end is not None and end > now]
