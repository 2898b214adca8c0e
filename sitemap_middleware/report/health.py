"""Reads the health of the store and of this process, for a page of the report."""

from __future__ import annotations

import os
from typing import Any

from ..exceptions import StoreError
from ..inspection import ServiceInspection
from ..models import Site
from ..stores.status import StoreStatus, store_status
from .figures import FIGURES


def health(service: ServiceInspection, site: Site, *, is_live: bool = True) -> dict[str, Any]:
    """The state of the store and of this process. Of the figures of `stats`, those that are not 0 are shown.

    `is_live`: whether this process serves the app.
    """
    status: StoreStatus | None = None
    problem: str | None = None
    try:
        status = store_status(service.store, [site.store_key], is_live=is_live)
    except StoreError as error:
        problem = str(error)
    stats = service.stats() if is_live else {}
    return {
        "status": status,
        "problem": problem,
        "figures": [(figure, stats[figure.stat]) for figure in FIGURES if stats.get(figure.stat)],
        "process": os.getpid() if is_live else None,
        "settings": service.options.settings.values(),
        "not_served": service.not_served_reason(),
    }
