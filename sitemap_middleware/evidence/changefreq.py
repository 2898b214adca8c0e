"""`changefreq="auto"`: the word for the median time between the observed changes of a page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..models import Changefreq, Page
from ..value_history import VOLATILE
from .generated_dates import changes_without_content, is_credible
from .site_signals import SiteSignals

MIN_CHANGES: Final = 5

_LONGEST_SECONDS: Final[tuple[tuple[Changefreq, float], ...]] = (
    ("hourly", 5 * 3600),
    ("daily", 3 * 86_400),
    ("weekly", 15 * 86_400),
    ("monthly", 105 * 86_400),
    ("yearly", 2 * 366 * 86_400),
)
"""The longest time between two changes for each word. "always" and "never" are not inferred."""


@dataclass(frozen=True, slots=True)
class ChangefreqResult:
    """An inferred changefreq, or None, and the evidence for that."""

    word: Changefreq | None
    source: str


def changefreq(page: Page | None, signals: SiteSignals) -> ChangefreqResult:
    """The changefreq of a page: by its Last-Modified if that is credible, else by its content."""
    moments: list[int] = []
    if page is not None:
        dates, contents = page.last_modified_history, signals.own_content_history(page)
        if (
            page.last_modified is not None
            and is_credible(dates, page.last_modified)
            and not changes_without_content(dates, page.content_history, signals.deployed_at)
        ):
            moments = sorted(run.value for run in dates if not signals.deployed_at(run.value))
        elif not any(run.value == VOLATILE for run in contents):
            moments = sorted(run.first for run in contents)
    if len(moments) <= MIN_CHANGES:
        return ChangefreqResult(None, f"fewer than {MIN_CHANGES} changes of its own were observed")
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    gap = gaps[len(gaps) // 2]
    word = next((word for word, longest in _LONGEST_SECONDS if gap <= longest), None)
    return ChangefreqResult(word, f"from {len(moments) - 1} changes, half of them within {gap / 3600:,.1f} hours")
