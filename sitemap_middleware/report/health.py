"""Reads the health of the store and of this process, for a page of the report."""

from __future__ import annotations

import os
from typing import Any, Final

from ..exceptions import StoreError
from ..explanations_and_statistics import ServiceInspection
from ..models import Site
from ..stores.status import StoreStatus, store_status

FIGURES: Final = {
    "seen": "responses that count as evidence",
    "dropped": "responses discarded because the buffer was full",
    "merged": "responses saved to the store",
    "refused": "new pages left out by max_pages or max_pages_per_route",
    "unwritable": "responses of paths that no URL can express",
    "skipped": "items of values that make no page",
    "listed": "entries of the sitemaps that this process has made",
    "documents": "documents of these sitemaps, including indexes",
    "rendered": "blocks of learned pages rendered",
    "pending": "responses not saved yet",
    "last_flush_age_seconds": "seconds since all pending responses were saved",
    "store_failures": "calls of the store that failed",
    "unavailable_responses": "requests for the sitemap answered 503",
    "values_age_seconds": "seconds since the oldest values were read",
}
"""What the figures of `stats` are. Those of ignored requests explain themselves by their names."""

PROBLEMS: Final = ("dropped", "refused", "unwritable", "skipped", "store_failures", "unavailable_responses")
"""Figures that are 0 if all is well."""


def health(service: ServiceInspection, site: Site, *, is_live: bool = True) -> dict[str, Any]:
    """The state of the store, which is read when the template needs it, and of this process.

    `is_live`: whether this process serves the app.
    """
    stats = service.stats() if is_live else {}

    def read_store() -> tuple[StoreStatus | None, str | None]:
        """The status of the store, or why there is none."""
        try:
            return store_status(service.store, [site.store_key], is_live=is_live), None
        except StoreError as error:
            return None, str(error)

    return {
        "read_store": read_store,
        "stats": [(name, value, label(name), name in PROBLEMS and value > 0) for name, value in stats.items()],
        "process": os.getpid() if is_live else None,
        "settings": [
            (setting.name, setting.shown_value, setting.source_name) for setting in service.options.settings.values()
        ],
        "not_served": service.not_served_reason(),
    }


def label(name: str) -> str:
    """What a figure of `stats` is."""
    if name.startswith("ignored_"):
        return f"requests that are no evidence: {name.removeprefix('ignored_').replace('_', ' ')}"
    return FIGURES.get(name, name.replace("_", " "))
