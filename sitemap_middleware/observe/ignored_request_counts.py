"""Counts the requests that are not evidence, and remembers why, for `stats` and `explain`."""

from __future__ import annotations

from typing import Final

from ..http.header_rules import IgnoreReason
from ..http.request_filter import IGNORE_REASONS

MAX_REMEMBERED_PATHS: Final = 1000
"""Paths for which the last reason is remembered; all are forgotten if there are more."""

MAX_REMEMBERED_PATH_CHARS: Final = 200
"""Characters of the longest such path."""


class IgnoredRequests:
    """How many requests of this process did not count as evidence, and why the last one for each path did not."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(IGNORE_REASONS, 0)
        self._last_reasons: dict[str, IgnoreReason] = {}

    def count(self, path: str, reason: IgnoreReason) -> None:
        """Count a request for a decoded path."""
        self.counts[reason.reason] += 1
        if len(path) <= MAX_REMEMBERED_PATH_CHARS:
            if len(self._last_reasons) >= MAX_REMEMBERED_PATHS:
                self._last_reasons.clear()
            self._last_reasons[path] = reason

    def summary(self, path: str, *, known: bool) -> str | None:
        """Describe the ignored requests: all of them by reason, and the last one for this path.

        Args:
            path: decoded.
            known: whether the page is known. Then the summary is None unless a request for it was ignored.
        """
        counts, last = dict(self.counts), self._last_reasons.get(path)
        total = sum(counts.values())
        if not total or (known and last is None):
            return None
        by_reason = ", ".join(f"{count} {IGNORE_REASONS[reason]}" for reason, count in counts.items() if count)
        summary = f"of all requests to this process since it began, {total} did not count as evidence: {by_reason}"
        return summary if last is None else f"{summary}; the last of them for this page {last.detail}"
