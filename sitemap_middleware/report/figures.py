"""The figures of `SitemapMiddleware.stats`: one table for metrics, the report and the documentation."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..http.request_filter import IGNORE_REASONS


class Figure(NamedTuple):
    """One figure of `stats`, as a metric."""

    stat: str
    name: str
    """As OpenTelemetry writes it. Prometheus replaces dots, and appends the unit and `_total`."""
    unit: str
    """In UCUM, the notation of OpenTelemetry."""
    description: str
    is_counter: bool
    """Whether it counts from the start of the process; otherwise it is a gauge."""

    @property
    def is_problem(self) -> bool:
        """Whether it is 0 if all is well."""
        return self.stat in _PROBLEMS


_COUNTERS: Final = (
    ("seen", "responses.seen", "{response}", "Responses that count as evidence"),
    ("dropped", "responses.dropped", "{response}", "Responses discarded because the buffer was full"),
    ("merged", "responses.merged", "{response}", "Responses saved to the store"),
    ("unwritable", "responses.unwritable", "{response}", "Responses of paths that cannot be written as a loc"),
    ("refused", "pages.refused", "{page}", "New pages left out by max_pages or max_pages_per_route"),
    ("store_failures", "store.failures", "{call}", "Calls of the store that failed"),
    ("store_losses", "store.losses", "{loss}", "Times that the store had lost what it held of a site"),
    ("unavailable_responses", "responses.unavailable", "{response}", "Answers 503 for the sitemap or robots.txt"),
    ("indexnow_sent", "indexnow.sent", "{url}", "URLs that IndexNow has received"),
    *(
        (f"ignored_{reason}", f"requests.ignored.{reason}", "{request}", f"Requests {description}, no evidence")
        for reason, description in IGNORE_REASONS.items()
    ),
)
_GAUGES: Final = (
    ("pending", "responses.pending", "{response}", "Responses that wait to be saved to the store"),
    ("store_in_memory", "store.in_memory", "{store}", "Whether the store is the process's memory: 1 if it is"),
    ("store_seconds", "store.duration", "s", "Time that the latest call of the store took"),
    ("last_flush_age_seconds", "last_flush.age", "s", "Time since all pending responses were last saved"),
    ("values_age_seconds", "values.age", "s", "Age of the oldest values when last used"),
    ("listed", "entries.listed", "{entry}", "Entries of the sitemap when last generated"),
    ("skipped", "entries.skipped", "{entry}", "Items of values that were skipped when last read"),
    ("indexnow_pending", "indexnow.pending", "{url}", "URLs that IndexNow has still to get"),
    ("indexnow_state", "indexnow.state", "{state}", "0 off, 1 unverified, 2 verifying, 3 good, 4 limited, 5 burnt"),
    ("documents", "documents", "{document}", "Documents of the sitemap when last generated, including indexes"),
)
_PROBLEMS: Final = (
    *("dropped", "unwritable", "refused", "store_failures", "store_losses", "unavailable_responses", "skipped"),
)

FIGURES: Final = tuple(
    Figure(stat, f"sitemap.{name}", unit, description, rows is _COUNTERS)
    for rows in (_COUNTERS, _GAUGES)
    for stat, name, unit, description in rows
)
