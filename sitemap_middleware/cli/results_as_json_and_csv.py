"""Converts the results of commands to JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from ..evidence.dates import w3c_from_timestamp
from ..evidence.page_verdict import Explanation
from ..listing.route_report import RouteReport
from ..listing.url_report import PageChange, UrlReportLine
from ..options.sources import Setting
from ..stores.status import StoreStatus

_JSON_TYPES: Final = (bool, float, int, str, tuple, type(None))


def explanation_as_json(explanation: Explanation, notes: Sequence[str]) -> dict[str, Any]:
    entry, page, route = explanation.entry, explanation.page, explanation.route
    return {
        "path": explanation.path,
        "loc": explanation.loc,
        "listed": explanation.listed,
        "reason": explanation.reason,
        "route": route.path if route else None,
        "endpoint": route.endpoint if route else None,
        "lastmod": entry.lastmod if entry else None,
        "lastmod_from": explanation.lastmod_source,
        "changefreq": entry.changefreq if entry else None,
        "priority": entry.priority if entry else None,
        "status": page.status if page else None,
        "first_seen": w3c_from_timestamp(page.first_seen) if page else None,
        "last_seen": w3c_from_timestamp(page.last_seen) if page else None,
        "history": [{"at": w3c_from_timestamp(event.at), "event": event.text} for event in explanation.history],
        "dates": [date._asdict() for date in explanation.dates],
        "notes": list(notes),
    }


def route_report_as_json(
    site: str, sitemap_url: str, reports: Sequence[RouteReport], notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "site": site,
        "sitemap": sitemap_url,
        "routes": [
            {
                "route": report.route.path,
                "endpoint": report.route.endpoint,
                "host": report.route.host,
                "static": report.route.static,
                "listed": report.verdict.listed,
                "reason": report.verdict.reason,
                "pages_seen": report.known,
                "pages_listed": report.listed,
                "lastmod_from": {source or "none": count for source, count in sorted(report.lastmod.items())},
                "undecided": report.undecided,
            }
            for report in reports
        ],
        "undecided": [report.route.path for report in reports if report.undecided],
        "unmatched": [report.route.path for report in reports if report.unmatched],
        "notes": list(notes),
    }


def status_as_json(status: StoreStatus) -> dict[str, Any]:
    return {
        "store": status.store,
        "engine": status.engine,
        "bytes": status.size,
        "pages": status.pages,
        "bytes_per_page": round(status.size / status.pages, 1) if status.size is not None and status.pages else None,
        "sites": [
            {
                "site": site.site,
                "pages_learned": site.learned,
                "pages_named": site.named,
                "documents": site.parts,
                "last_written": w3c_from_timestamp(site.last_written),
            }
            for site in status.sites
        ],
    }


def settings_as_json(settings: Collection[Setting]) -> dict[str, Any]:
    """The value of each option and where it comes from; empty if there are none."""
    options = {
        setting.name: {
            "value": value if isinstance(value := setting.public_value, _JSON_TYPES) else str(value),
            "source": setting.source_name,
        }
        for setting in settings
    }
    return {"options": options} if options else {}


def pages_as_csv(lines: Iterable[UrlReportLine]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(UrlReportLine._fields)
    rows.writerows(lines)
    return out.getvalue()


def changes_as_json(since: int, changes: Iterable[PageChange], notes: Sequence[str]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, str]]] = {"new": [], "dropped": [], "changed": []}
    for change in changes:
        row = {"url": change.url, "at": change.at, "reason": change.reason}
        groups[change.kind].append(row | ({"last_good": change.last_good} if change.last_good else {}))
    return {"since": w3c_from_timestamp(since), **groups, "notes": list(notes)}
