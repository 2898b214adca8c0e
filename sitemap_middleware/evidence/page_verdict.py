"""Decides whether a page's own evidence lets it be listed, and why; and tells what happened to it.

`listing.policy` adds what only the site as a whole shows, such as soft 404s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from ..models import Page, UnconfirmedAnswer
from .dates import w3c_from_timestamp
from .explanation import PageEvent
from .observations import INDEXABLE_TYPES, refusal_kind, refused_canonical
from .value_history import VOLATILE, History


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
    if page.unconfirmed_answers:
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
    if page.status != 200:
        return Verdict(False, f"it answered {page.status}")
    if page.media_type not in media_types:
        reason = f"it is {page.media_type or 'of no stated type'}, not a page"
        return Verdict(False, reason, kind="it is of another type than a page")
    if _has_expired(page, now):
        return Verdict(False, "its unavailable_after has passed")
    refusal = page.refusal or page.html_refusal
    return Verdict(False, refusal, kind=refusal_kind(refusal)) if refusal else None


def describe_answer(answer: UnconfirmedAnswer) -> str:
    """What an answer was that contradicts the page's evidence."""
    return "an answer of another media type" if answer.status == 200 else f"an answer of {answer.status}"


def is_listable(page: Page) -> bool:
    """Whether the page could be listed, whatever `media_types` says. A learned page is stored only while that is so."""
    return (
        page.status == 200
        and not (page.refusal or page.html_refusal)
        and (page.expires_at is page.html_expires_at is None or not _has_expired(page, page.last_seen))
    )


def other_canonical(page: Page) -> str | None:
    """The other URL that a page names as canonical, if only that keeps it from being listed; else None."""
    if not is_listable(page._replace(refusal="", html_refusal="")):
        return None
    found = [refused_canonical(refusal) for refusal in (page.refusal, page.html_refusal) if refusal]
    return found[0] if all(found) and found else None


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


# What happened to a page, for people

WriteTime = Callable[[int], str]
"""Writes POSIX seconds for people."""


def histories(page: Page) -> list[tuple[str, History]]:
    """The histories of a page that are not empty, by what they are about."""
    named = (
        ("content", page.content_history),
        ("Last-Modified", page.last_modified_history),
        ("stated date", page.stated_date_history),
    )
    return [(name, history) for name, history in named if history]


def value_numbers(history: History) -> dict[int, int]:
    """The number of each value of a history, from 0 on, in the order in which they were first seen."""
    return {value: number for number, value in enumerate(dict.fromkeys(run.value for run in history))}


def value_name(name: str, value: int, number: int, write_time: WriteTime) -> str:
    """What a value of the history of a name is called: a date is written, and a content has its number."""
    if name != "content":
        return write_time(value)
    return "content that varies" if value == VOLATILE else f"content {number + 1}"


def page_events(page: Page, dropped: int | None, write_time: WriteTime = w3c_from_timestamp) -> list[PageEvent]:
    """What happened to a page, the latest first.

    Args:
        page: what was observed.
        dropped: when it was no longer listed, in POSIX seconds; None if it is, or if that is not known.
        write_time: writes the times within the texts.
    """
    events = [PageEvent(page.first_seen, "first seen")]
    for name, history in histories(page):
        numbers = value_numbers(history)
        for run in history:
            what = value_name(name, run.value, numbers[run.value], write_time)
            what = what if name == "content" else f"{name} {what}"
            seen = f"was first seen, and last at {write_time(run.last)}" if run.was_repeated else "was seen once"
            events.append(PageEvent(run.first, f"{what} {seen}"))
    events += [
        PageEvent(answer.at, f"{describe_answer(answer)}, not yet confirmed") for answer in page.unconfirmed_answers
    ]
    events.append(PageEvent(page.last_seen, f"latest evidence: it answered {page.status}"))
    if dropped is not None:
        events.append(PageEvent(dropped, "no longer listed, at this time or before"))
    return sorted(events, key=lambda event: event.at)[::-1]


def dropped_between(page: Page, media_types: Collection[str], now: int) -> tuple[int, int] | None:
    """Between which times a page that is not listed ceased to be good; None if the evidence does not tell."""
    ends = [end for end in (page.expires_at, page.html_expires_at) if end is not None and end <= now]
    if ends and page_verdict(page, media_types, min(ends) - 1).listed:
        return page.last_seen, min(ends)
    if page.status == 200 or not page.content_history or page.html_refusal:
        return None
    return page.content_history[-1].last, page.last_seen
