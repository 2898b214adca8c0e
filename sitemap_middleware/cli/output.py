"""Print the results of commands: as text for people, and as JSON or CSV. Colours need a terminal."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..dates import w3c_from_timestamp
from ..evidence.delisting_confirmation import confirmed_contradiction
from ..evidence.response_parser import HTML_TYPES
from ..history import last_run
from ..listing.candidates import SiteSnapshot
from ..listing.route_report import RouteReport
from ..listing.url_report import UrlReportLine
from ..models import Explanation
from ..settings import Setting
from ..stores.status_reader import StoreStatus

PLAIN_WIDTH_COLUMNS: Final = 120
"""Width of output that does not go to a terminal, so that it is the same everywhere."""

_UNDECIDED_ROUTES_HINT: Final = (
    "these routes have parameters, and their pages are neither enumerated, learned nor excluded."
    " Decorate each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)

_LAST_SEEN_NOTE: Final = "(recorded at most once an hour)"

_PAGE_COLUMNS: Final = ("url", "listed", "reason", "lastmod", "lastmod_from", "route")

_JSON_TYPES: Final = (bool, float, int, str, tuple, type(None))

_LEASE_LABELS: Final = {"forget": "cleanup", "verify": "requests to unvisited pages"}
"""The job that a worker does under a lease, by the lease's name."""


class CommandError(click.ClickException):
    """An error that ends a command. It is printed in one line."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))


def printable(text: str) -> str:
    """Escape what could control the terminal, or cannot be encoded for it."""
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    encoding = sys.stdout.encoding or "utf-8"
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


def console() -> Console:
    is_terminal = sys.stdout.isatty()
    return Console(
        width=None if is_terminal else PLAIN_WIDTH_COLUMNS, force_terminal=is_terminal, highlight=False, emoji=False
    )


def print_explanation(explanation: Explanation, notes: Sequence[str]) -> None:
    verdict, *details = str(explanation).splitlines()
    lines = [Text(printable(verdict), "bold green" if explanation.listed else "bold red")]
    lines += [Text(printable(line)) for line in (*details, *observation_lines(explanation))]
    lines += [Text(printable(f"note: {note}"), "dim") for note in notes]
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True)  # a URL broken into two lines cannot be copied


def observation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what was observed of a page, and when."""
    page = explanation.page
    if page is None:
        if explanation.route is not None:
            yield "seen: never"
        return
    yield f"first seen: {w3c_from_timestamp(page.first_seen)}"
    yield f"last seen: {w3c_from_timestamp(page.last_seen)} {_LAST_SEEN_NOTE}"
    yield f"status: {page.status}"
    yield f"type: {page.media_type or 'none'}"
    if page.last_modified is not None:
        yield f"Last-Modified: {w3c_from_timestamp(page.last_modified)}"
    if page.status != 200 or page.media_type not in HTML_TYPES or confirmed_contradiction(page) is not None:
        return
    if page.read_at:
        yield f"HTML read: {w3c_from_timestamp(page.read_at)}"
    contents = page.content_history
    if content := last_run(contents):
        yield f"content unchanged since {w3c_from_timestamp(content.first)}; versions known: {len(contents)}"


def print_route_report(
    snapshots: Sequence[SiteSnapshot], reports: Sequence[RouteReport], notes: Sequence[str], sitemap_path: str
) -> None:
    out = console()
    pages_seen, pages_listed = sum(report.known for report in reports), sum(report.listed for report in reports)
    heading = (
        f"{snapshots[0].site.base_url}{sitemap_path}:"
        f" routes {len(reports)}, pages seen {pages_seen}, pages listed {pages_listed}"
    )
    out.print(Text(printable(heading), "bold"), soft_wrap=True)
    out.print(_route_table(reports, is_terminal=out.is_terminal))
    undecided = [report.route for report in reports if report.undecided]
    if undecided:
        out.print(Text(f"warning: {_UNDECIDED_ROUTES_HINT}", "yellow"), soft_wrap=True)
        for route in undecided:
            out.print(Text(printable(f"  {route.path} ({route.endpoint})")), soft_wrap=True)
    for note in notes:
        out.print(Text(printable(f"note: {note}"), "dim"), soft_wrap=True)


def _route_table(reports: Sequence[RouteReport], *, is_terminal: bool) -> Table:
    """Build a table with one row for each route, and a column for the host if any route has one."""
    has_hosts = any(report.route.host for report in reports)
    table = Table(box=box.SIMPLE_HEAD if is_terminal else box.ASCII2, safe_box=True)
    for name in ("route", *(["host"] if has_hosts else []), "listed", "why", "seen", "lastmod from"):
        table.add_column(name, overflow="fold", justify="right" if name == "seen" else "left")
    for report in reports:
        cells = [
            report.route.path,
            *([report.route.host or ""] if has_hosts else []),
            "yes" if report.verdict.listed else "no",
            report.verdict.reason,
            str(report.known),
            _lastmod_sources(report),
        ]
        style = "yellow" if report.undecided else "" if report.verdict.listed else "dim"
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    return table


def _lastmod_sources(report: RouteReport) -> str:
    """Describe where the lastmod of a route's pages comes from, with counts unless the route is a single page."""
    counts = sorted(report.lastmod.items(), key=lambda item: (-item[1], item[0]))
    if report.route.static:
        return "".join(source or "none" for source, _ in counts)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counts)


def print_status(status: StoreStatus) -> None:
    lines = [Text(printable(f"{status.store}: {' '.join(filter(None, (status.engine, status.version)))}"), "bold")]
    if status.size is None:
        lines.append(Text("size: not reported by this engine"))
    else:
        per_page = f", {status.size / status.pages:,.0f} a page" if status.pages else ""
        lines.append(Text(f"size: {status.size:,} bytes{per_page}"))
    for site in status.sites:
        lines += [
            Text(printable(f"site {base_url_of_key(site.site)}"), "bold"),
            Text(f"  pages seen: {site.learned + site.named:,} ({site.learned:,} learned)"),
            Text(f"  documents of learned pages: {site.documents:,}"),
        ]
        if site.last_seen is not None:
            lines.append(Text(f"  last seen: {w3c_from_timestamp(site.last_seen)} {_LAST_SEEN_NOTE}"))
        if site.last_changed is not None:
            lines.append(Text(f"  sitemap unchanged since {w3c_from_timestamp(site.last_changed)}"))
    for lease in status.leases or ():
        job = _LEASE_LABELS.get(lease.name, lease.name)
        until = w3c_from_timestamp(lease.until)
        lines.append(Text(printable(f"{job} of {lease.site}: claimed by a worker until {until}")))
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True)


def print_settings(settings: Collection[Setting]) -> None:
    """Print the value of each option, and where it comes from."""
    out = console()
    if settings:
        out.print(Text("options", "bold"))
    for setting in settings:
        value = setting.public_value
        shown = ", ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
        line = " ".join(filter(None, (f"  {setting.name}:", shown, f"({setting.source_name})")))
        out.print(Text(printable(line), "dim" if setting.source == "default" else ""), soft_wrap=True)


def settings_as_json(settings: Collection[Setting]) -> dict[str, Any]:
    """The value of each option and where it comes from, for JSON; empty if there are none."""
    options = {
        setting.name: {
            "value": value if isinstance(value := setting.public_value, _JSON_TYPES) else str(value),
            "source": setting.source_name,
        }
        for setting in settings
    }
    return {"options": options} if options else {}


def print_pages(lines: Iterable[UrlReportLine]) -> None:
    """Print one line for each page: its URL and date, or the reason why it is not listed."""
    out = console()
    for line in lines:
        if line.listed:
            detail = f"{line.lastmod} ({line.lastmod_from})" if line.lastmod else ""
        else:
            detail = f"not listed: {line.reason}"
        out.print(Text(printable(f"{line.url}  {detail}".rstrip()), "" if line.listed else "dim"), soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes to standard error, so that output for programs stays valid."""
    for note in notes:
        print(printable(f"note: {note}"), file=sys.stderr)


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
        "notes": list(notes),
    }


def route_report_as_json(
    snapshots: Sequence[SiteSnapshot], reports: Sequence[RouteReport], notes: Sequence[str], sitemap_path: str
) -> dict[str, Any]:
    base_url = snapshots[0].site.base_url
    return {
        "site": base_url,
        "sitemap": base_url + sitemap_path,
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
        "notes": list(notes),
    }


def status_as_json(status: StoreStatus) -> dict[str, Any]:
    return {
        "store": status.store,
        "engine": status.engine,
        "version": status.version,
        "bytes": status.size,
        "pages": status.pages,
        "bytes_per_page": round(status.size / status.pages, 1) if status.size is not None and status.pages else None,
        "sites": [
            {
                "site": site.site,
                "version": site.version,
                "pages_learned": site.learned,
                "pages_named": site.named,
                "blocks": site.blocks,
                "documents": site.documents,
                "last_seen": None if site.last_seen is None else w3c_from_timestamp(site.last_seen),
                "last_changed": None if site.last_changed is None else w3c_from_timestamp(site.last_changed),
            }
            for site in status.sites
        ],
        "leases": None
        if status.leases is None
        else [
            {"site": lease.site, "name": lease.name, "until": w3c_from_timestamp(lease.until)}
            for lease in status.leases
        ],
    }


def pages_as_json(lines: Iterable[UrlReportLine]) -> list[dict[str, Any]]:
    return [dict(zip(_PAGE_COLUMNS, line, strict=True)) for line in lines]


def pages_as_csv(lines: Iterable[UrlReportLine]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_PAGE_COLUMNS)
    rows.writerows(lines)
    return out.getvalue()


def base_url_of_key(key: str) -> str:
    """Return a base URL by which the site of a store key is found: a development machine's key has only a port."""
    kind, _, rest = key.partition(":")
    if kind != "loopback":
        return key
    port, _, path = rest.partition("/")
    routed_host, _, root = path.partition("/")
    host = routed_host or "localhost"
    return (f"http://{host}:{port}" if port.isdigit() else f"{port}://{host}") + (f"/{root}" if root else "")
