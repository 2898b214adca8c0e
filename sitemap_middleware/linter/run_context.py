"""The context of one run, which all checks share: the message collector, the database of URLs and the clock."""

from __future__ import annotations

from dataclasses import dataclass

from .message_collector import Report
from .statistics_of_all_urls import SetFacts
from .temporary_url_database import SitemapSet


@dataclass(frozen=True, slots=True)
class Run:
    """What the documents of one run share."""

    report: Report
    documents: SitemapSet
    facts: SetFacts
    now: float
    """The moment by which a date is in the future, in POSIX seconds."""
