"""The figures of `SitemapMiddleware.stats`: one table for metrics, the report and the documentation."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..http.request_filter import IGNORE_REASONS


class Figure(NamedTuple):
    """One figure of `stats`, as a metric."""

    stat: str
    """Its key in `stats`."""
    name: str
    """As OpenTelemetry writes it. Prometheus replaces dots, and appends the unit and `_total`."""
    unit: str
    """In UCUM, the notation of OpenTelemetry."""
    is_counter: bool
    """Whether it counts from the start of the process; otherwise it is a gauge."""
    description: str
    is_problem: bool = False
    """Whether it is 0 if all is well."""


def _counter(stat: str, name: str, unit: str, description: str, *, is_problem: bool = False) -> Figure:
    return Figure(stat, f"sitemap.{name}", unit, True, description, is_problem)


def _gauge(stat: str, name: str, unit: str, description: str, *, is_problem: bool = False) -> Figure:
    return Figure(stat, f"sitemap.{name}", unit, False, description, is_problem)


FIGURES: Final = (
    _counter("seen", "responses.seen", "{response}", "Responses that count as evidence"),
    _counter(
        "dropped", "responses.dropped", "{response}", "Responses discarded because the buffer was full", is_problem=True
    ),
    _counter("merged", "responses.merged", "{response}", "Responses saved to the store"),
    _counter(
        "unwritable",
        "responses.unwritable",
        "{response}",
        "Responses of paths that cannot be written as a loc",
        is_problem=True,
    ),
    _counter(
        "refused", "pages.refused", "{page}", "New pages left out by max_pages or max_pages_per_route", is_problem=True
    ),
    _counter("rendered", "parts.rendered", "{part}", "Parts of up to 10,000 learned pages rendered"),
    _counter("store_failures", "store.failures", "{call}", "Calls of the store that failed", is_problem=True),
    _gauge("store_seconds", "store.latency", "s", "Seconds that a call of the store takes, on average"),
    _counter(
        "unavailable_responses",
        "responses.unavailable",
        "{response}",
        "Requests for the sitemap or robots.txt that were answered 503",
        is_problem=True,
    ),
    *(
        _counter(
            f"ignored_{reason}",
            f"requests.ignored.{reason}",
            "{request}",
            f"Requests {description}, no evidence",
        )
        for reason, description in IGNORE_REASONS.items()
    ),
    _gauge("pending", "responses.pending", "{response}", "Responses that wait to be saved to the store"),
    _gauge("last_flush_age_seconds", "last_flush.age", "s", "Time since all pending responses were last saved"),
    _gauge("values_age_seconds", "values.age", "s", "Age of the oldest values when last used"),
    _gauge("listed", "entries.listed", "{entry}", "Entries of the sitemap when last generated"),
    _gauge(
        "skipped", "entries.skipped", "{entry}", "Items of values that were skipped when last read", is_problem=True
    ),
    _gauge("documents", "documents", "{document}", "Documents of the sitemap when last generated, including indexes"),
)
