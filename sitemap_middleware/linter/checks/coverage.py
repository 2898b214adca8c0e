"""Compares the URLs of a sitemap with the pages that the app's middleware knows, and with an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..message import Finding
from ..rules import coverage as rules


class KnownUrl(NamedTuple):
    """What the middleware knows of a URL."""

    url: str
    is_listed: bool
    reason: str
    """Why it is listed or not, as a sentence without a period."""
    status: int | None
    """Of its last response. None if it was never seen."""


def coverage_findings(urls: Iterable[KnownUrl], is_requested: Callable[[str], bool]) -> Iterator[tuple[Finding, str]]:
    """Yield what differs between what is listed and what was seen, with the URL that it is about.

    Args:
        urls: what is known.
        is_requested: whether this run requests a page, so that nobody need be told to do so.
    """
    for known in urls:
        if known.is_listed and known.status is None:
            if not is_requested(known.url):
                yield (rules.NEVER_SEEN, "no response of the page was seen"), known.url
        elif known.is_listed and known.status != 200:
            yield (rules.LISTED_BAD, f"the last response had the status {known.status}"), known.url
        elif not known.is_listed and known.status == 200:
            yield (rules.NOT_LISTED, f"the page is left out: {known.reason}"), known.url


def vanished_findings(urls: Iterable[str]) -> Iterator[tuple[Finding, str]]:
    """Yield a finding for each URL that is no longer listed, with the URL."""
    for url in urls:
        yield (rules.VANISHED, "the URL was listed before"), url
