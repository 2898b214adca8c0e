"""Prints the results of commands as text for people. Colours need a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..dates import w3c_from_timestamp
from ..evidence.delisting_confirmation import confirmed_contradiction
from ..evidence.observations import HTML_TYPES
from ..evidence.page_timeline import histories
from ..explanation import Explanation
from ..listing.candidates import SiteSnapshot
from ..listing.changes_since import PageChange
from ..listing.listed_and_unlisted_urls import UrlReportLine
from ..listing.route_report import RouteReport
from ..options.sources import Setting
from ..stores.status import StoreStatus
from ..value_history import last_run
from .sitemap_export import ExportedFile
from .terminal_output import Row, console, print_line, print_rows, printable

_UNDECIDED_ROUTES_HINT: Final = (
    "these routes have parameters, and their pages are neither enumerated, learned nor excluded."
    " Decorate each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)

_UNMATCHED_PATTERNS_HINT: Final = "these patterns match nothing:"

_LAST_SEEN_NOTE: Final = "(or up to an hour later)"

_CHANGE_HEADINGS: Final = {"new": "new", "dropped": "no longer listed", "changed": "changed"}
"""The headings of the groups of changes, in their order."""

_MAX_NARROW_COLUMNS: Final = 16
"""Width of a column of a narrow table, at most."""

_MIN_REASON_COLUMNS: Final = 40
"""Width of the column with the reasons in a table of routes, at least."""


def print_explanation(explanation: Explanation, notes: Sequence[str]) -> None:
    verdict, *details = str(explanation).splitlines()
    out = console()
    print_line(out, verdict, "bold green" if explanation.listed else "bold red")
    for line in (*details, *observation_lines(explanation), *_history_lines(explanation)):
        print_line(out, line)
    for note in notes:
        print_line(out, f"note: {note}", "dim")


def observation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what was observed of a page, and when."""
    page = explanation.page
    if page is None:
        if explanation.route is not None:
            yield "seen: no response that counts"
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


def _history_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what happened to a page and which dates it may have, if that is more than the lines before say."""
    known = 2 + len(histories(explanation.page)) if explanation.page else 0  # first seen, last seen, first values
    if len(explanation.history) > known:
        yield "history:"
        for event in explanation.history:
            yield f"  {w3c_from_timestamp(event.at)} {event.text}"
    if len(explanation.dates) > 1:
        yield "dates:"
        for date in explanation.dates:
            stands = f"{date.date} {'counts' if date.counts else 'is not needed'}" if date.date else "no date"
            yield f"  {stands}: {date.reason}"


def print_route_report(
    snapshots: Sequence[SiteSnapshot], reports: Sequence[RouteReport], notes: Sequence[str], sitemap_path: str
) -> None:
    out = console()
    pages_seen, pages_listed = sum(report.known for report in reports), sum(report.listed for report in reports)
    routes = sum(not report.is_pattern for report in reports)
    heading = (
        f"{snapshots[0].site.base_url}{sitemap_path}:"
        f" routes {routes}, pages seen {pages_seen}, pages listed {pages_listed}"
    )
    print_line(out, heading, "bold")
    out.print(_route_table(out, reports))
    _print_warned_routes(out, _UNDECIDED_ROUTES_HINT, (report for report in reports if report.undecided))
    _print_warned_routes(out, _UNMATCHED_PATTERNS_HINT, (report for report in reports if report.unmatched))
    failing_hint = f"these values fail, so without an earlier sitemap {sitemap_path} answers 503 for all pages:"
    _print_warned_routes(out, failing_hint, (report for report in reports if report.failing))
    for note in notes:
        print_line(out, f"note: {note}", "dim")


def _print_warned_routes(out: Console, hint: str, reports: Iterable[RouteReport]) -> None:
    for number, report in enumerate(reports):
        if not number:
            print_line(out, f"warning: {hint}", "yellow")
        reason, route = report.verdict.reason, report.route
        print_line(out, f"  {reason if report.unmatched or report.failing else f'{route.path} ({route.endpoint})'}")


def _route_table(out: Console, reports: Sequence[RouteReport]) -> Table:
    """Build a table with one row for each route, and a column for the host if any route has one.

    On a terminal that is too narrow for a column of reasons, they stand below the routes.
    """
    has_hosts = any(report.route.host for report in reports)
    columns = {
        "route": [printable(report.route.path) for report in reports],
        **({"host": [printable(report.route.host or "") for report in reports]} if has_hosts else {}),
        "listed": ["yes" if report.verdict.listed else "no" for report in reports],
        "why": [printable(report.verdict.reason) for report in reports],
        "seen": [str(report.known) for report in reports],
        "lastmod from": [_lastmod_sources(report) for report in reports],
    }
    widths = {name: max(map(cell_len, (name, *cells))) for name, cells in columns.items()}
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else box.ASCII2, safe_box=True)
    width_for_reasons = out.width - _table_width(widths) + widths["why"]
    if width_for_reasons >= min(widths["why"], _MIN_REASON_COLUMNS) or not out.is_terminal:
        widths["why"] = min(widths["why"], max(width_for_reasons, _MIN_REASON_COLUMNS))
    else:
        reasons = columns.pop("why")
        columns["route"] = [f"{route}\n{reason}" for route, reason in zip(columns["route"], reasons, strict=True)]
        widths = {name: min(widths[name], _MAX_NARROW_COLUMNS) for name in columns} | {"route": 0}
        widths["route"] = max(out.width - _table_width(widths), _MAX_NARROW_COLUMNS)
        table.leading = 1
    out.width = max(out.width, _table_width(widths))
    for name in columns:
        table.add_column(name, width=widths[name], overflow="fold", justify="right" if name == "seen" else "left")
    for report, cells in zip(reports, zip(*columns.values(), strict=True), strict=True):
        style = "yellow" if report.undecided or report.unmatched else "" if report.verdict.listed else "dim"
        table.add_row(*map(Text, cells), style=style)
    return table


def _table_width(widths: Mapping[str, int]) -> int:
    """The width of a table with columns of these widths, their padding and the lines between."""
    return sum(widths.values()) + 3 * len(widths) + 1


def _lastmod_sources(report: RouteReport) -> str:
    """Describe where the lastmod of a route's pages comes from, with counts unless the route is a single page."""
    counts = sorted(report.lastmod.items(), key=lambda item: (-item[1], item[0]))
    if report.route.static:
        return "".join(source or "none" for source, _ in counts)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counts)


def print_status(status: StoreStatus) -> None:
    out = console()
    print_line(out, status.store, "bold")
    print_line(out, f"engine: {status.engine}")
    if status.size is None:
        print_line(out, "size: not reported by this engine")
    else:
        per_page = f", {status.size / status.pages:,.0f} a page" if status.pages else ""
        print_line(out, f"size: {status.size:,} bytes{per_page}")
    for site in status.sites:
        print_line(out, f"site {base_url_of_key(site.site)}", "bold")
        print_line(out, f"  pages seen: {site.learned + site.named:,} ({site.learned:,} learned)")
        print_line(out, f"  documents of learned pages: {site.parts:,}")
        print_line(out, f"  last written: {w3c_from_timestamp(site.last_written)}")


def print_settings(settings: Collection[Setting]) -> None:
    """Print the value of each option, and where it comes from."""
    out = console()
    if settings:
        print_line(out, "options", "bold")
    for setting in settings:
        line = f"  {setting.name}: {setting.shown_value} ({setting.source_name})"
        print_line(out, line, "dim" if setting.source == "default" else "")


def print_pages(lines: Iterable[UrlReportLine]) -> None:
    """Print the URL and the date of each page, or the reason why it is not listed."""
    print_rows(console(), map(_page_row, lines))


def _page_row(line: UrlReportLine) -> Row:
    if not line.listed:
        return line.url, f"not listed: {line.reason}", "dim"
    return line.url, f"{line.lastmod} ({line.lastmod_from})" if line.lastmod else "", ""


def print_changes(changes: Sequence[PageChange], since: int, notes: Sequence[str]) -> None:
    """Print changes in groups, the latest change of each first."""
    out = console()
    print_line(out, f"changes known since {w3c_from_timestamp(since)}: {len(changes) or 'none'}", "bold")
    for kind, heading in _CHANGE_HEADINGS.items():
        group = sorted((change for change in changes if change.kind == kind), key=lambda change: change.url)
        group.sort(key=lambda change: change.at, reverse=True)
        if group:
            print_line(out, f"{heading}: {len(group)}", "bold")
            print_rows(out, map(_change_row, group))
    for note in notes:
        print_line(out, f"note: {note}", "dim")


def _change_row(change: PageChange) -> Row:
    if change.kind == "new":
        return change.url, change.at, ""
    if change.kind == "changed":
        return change.url, f"{change.at} ({change.reason})", ""
    return change.url, f"{change.reason}; its last good answer came between {change.last_good} and {change.at}", ""


def print_build(site: str, files: Sequence[ExportedFile], folder: Path) -> None:
    """Print the documents that were written, each with its size, and the totals."""
    out = console()
    print_rows(out, (_file_row(file, folder) for file in files))
    urls, size = sum(file.urls for file in files), sum(file.size for file in files)
    total = f"{_counted(urls, 'URL')} of {site}, {size:,} bytes: {2 * len(files)} files in {folder}"
    print_line(out, total, "bold")


def _file_row(file: ExportedFile, folder: Path) -> Row:
    content = _counted(file.documents, "document") if file.documents else _counted(file.urls, "URL")
    name = file.path.relative_to(folder)
    return str(name), f"{content}, {file.size:,} bytes; {file.gzipped_size:,} bytes as {name.name}.gz", ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def base_url_of_key(key: str) -> str:
    """Return a base URL by which the site of a store key is found: a development machine's key has only a port."""
    kind, _, rest = key.partition(":")
    if kind != "loopback":
        return key
    port, _, path = rest.partition("/")
    routed_host, _, root = path.partition("/")
    host = routed_host or "localhost"
    return (f"http://{host}:{port}" if port.isdigit() else f"{port}://{host}") + (f"/{root}" if root else "")
