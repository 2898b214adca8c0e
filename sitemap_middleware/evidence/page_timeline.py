"""Lists what happened to one page, for people: when it was first seen, when it changed, and when it went."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..dates import w3c_from_timestamp
from ..explanation import PageEvent
from ..models import Page
from ..value_history import VOLATILE, History
from .page_verdict import describe_answer, page_verdict

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
