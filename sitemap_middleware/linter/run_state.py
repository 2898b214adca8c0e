"""What all checks of one run share: the report, the database of URLs, the clock."""

from __future__ import annotations

from dataclasses import dataclass

from .report import Report
from .run_database import SitemapSet
from .whole_set_facts import SetFacts


@dataclass(frozen=True, slots=True)
class Run:
    """What the documents of one run share."""

    report: Report
    documents: SitemapSet
    facts: SetFacts
    now: float
    """The moment by which a date is in the future, in POSIX seconds."""
