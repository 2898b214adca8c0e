"""The context of one run, which all checks share: the message collector, the database of URLs and the clock."""

from __future__ import annotations

from dataclasses import dataclass

from .message_collector import MessageCollector
from .statistics_of_all_urls import UrlStatistics
from .temporary_url_database import UrlDatabase


@dataclass(frozen=True, slots=True)
class Run:
    """What the documents of one run share."""

    report: MessageCollector
    documents: UrlDatabase
    facts: UrlStatistics
    now: float
    """The moment by which a date is in the future, in POSIX seconds."""
