"""The results of commands: as text for people, and as JSON and CSV. Colours need a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from rich import box
from rich.table import Table
from rich.text import Text

from ..evidence.dates import w3c_from_timestamp
from ..evidence.page_verdict import UNLINKED, Explanation, observed_facts
from ..indexnow import RECORD_NAME, Queue, decoded_queue
from ..listing.evaluated_urls import COLUMNS, EvaluatedUrl, PageChange
from ..listing.route_report import RouteReport
from ..options.sources import Setting
from ..stores.stored_sites import SiteStatus, StoreStatus
from .terminal import Row, console, print_line, print_rows, printable

_UNDECIDED_ROUTES_HINT: Final = (
    "these routes have parameters, and their pages are neither enumerated, learned nor excluded."
    " Decorate each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)

_UNLINKED_ROUTES_HINT: Final = (
    "these routes are listed, but no page that was read links to them."
    " Link to each, or mark it @sitemap(exclude=True) if it is no page for visitors:"
)

_CHANGE_HEADINGS: Final = {"new": "new", "dropped": "no longer listed", "changed": "changed"}

_MIN_ROUTE_COLUMNS: Final = 30

# explain


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
        "extensions": list(explanation.extensions),
        "status": page.status if page else None,
        "first_seen": w3c_from_timestamp(page.first_seen) if page else None,
        "last_seen": w3c_from_timestamp(page.last_seen) if page else None,
        "unlinked": explanation.unlinked,
        "history": [{"at": w3c_from_timestamp(event.at), "event": event.text} for event in explanation.history],
        "notes": list(notes),
    }


def print_explanation(explanation: Explanation) -> None:
    verdict, *details = str(explanation).splitlines()
    out = console()
    print_line(out, verdict, "bold green" if explanation.listed else "bold red")
    for line in (*details, *observation_lines(explanation)):
        print_line(out, line)


def observation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what was observed of a page, and when, and what happened to it."""
    page = explanation.page
    if page is None:
        if explanation.route is not None:
            yield "seen: no response that counts"
        return
    for name, value in observed_facts(page):
        yield f"{name}: {value}"
    if explanation.history:
        yield "history:"
        for event in explanation.history:
            yield f"  {w3c_from_timestamp(event.at)} {event.text}"


# list


def page_as_json(line: EvaluatedUrl) -> dict[str, Any]:
    return {column: getattr(line, column) for column in COLUMNS}


def page_row(line: EvaluatedUrl) -> Row:
    """The URL and the date of a page and whether no page links to it, or the reason why it is not listed."""
    if not line.listed:
        return line.url, f"not listed: {line.reason}", "dim"
    about = [f"{line.lastmod} ({line.lastmod_from})"] if line.lastmod else []
    return line.url, "; ".join([*about, *([UNLINKED] if line.linked is False else [])]), ""


# changes


def changes_as_json(since: int, changes: Iterable[PageChange], notes: Sequence[str]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, str]]] = {kind: [] for kind in _CHANGE_HEADINGS}
    for change in changes:
        row = {"url": change.url, "at": change.at, "reason": change.reason}
        groups[change.kind].append(row | ({"last_good": change.last_good} if change.last_good else {}))
    return {"since": w3c_from_timestamp(since), **groups, "notes": list(notes)}


def print_changes(changes: Sequence[PageChange], since: int) -> None:
    """Print changes in groups, the latest change of each first."""
    out = console()
    print_line(out, f"changes known since {w3c_from_timestamp(since)}: {len(changes) or 'none'}", "bold")
    for kind, heading in _CHANGE_HEADINGS.items():
        group = sorted((change for change in changes if change.kind == kind), key=lambda change: change.url)
        group.sort(key=lambda change: change.at, reverse=True)
        if group:
            print_line(out, f"{heading}: {len(group)}", "bold")
            print_rows(out, map(_change_row, group))


def _change_row(change: PageChange) -> Row:
    if change.kind == "new":
        return change.url, change.at, ""
    if change.kind == "changed":
        return change.url, f"{change.at} ({change.reason})", ""
    return change.url, f"{change.reason}; its last good answer came between {change.last_good} and {change.at}", ""


# routes


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
        "unlinked": [report.route.path for report in reports if report.unlinked],
        "notes": list(notes),
    }


def print_route_report(sitemap_url: str, reports: Sequence[RouteReport]) -> None:
    out = console()
    pages_seen, pages_listed = sum(report.known for report in reports), sum(report.listed for report in reports)
    routes = sum(not report.is_pattern for report in reports)
    print_line(out, f"{sitemap_url}: routes {routes}, pages seen {pages_seen}, pages listed {pages_listed}", "bold")
    _print_routes(reports)
    undecided = [f"{report.route.path} ({report.route.endpoint})" for report in reports if report.undecided]
    unmatched = [report.verdict.reason for report in reports if report.unmatched]
    failing = [f"{report.route.path}: {report.verdict.reason}" for report in reports if report.failing]
    unlinked = [report.route.path for report in reports if report.unlinked]
    for hint, lines in (
        (_UNDECIDED_ROUTES_HINT, undecided),
        ("these patterns match nothing:", unmatched),
        ("these values or lastmod functions fail, so the sitemap lacks their latest pages or dates:", failing),
        (_UNLINKED_ROUTES_HINT, unlinked),
    ):
        if lines:
            print_line(out, f"{'note' if lines is unlinked else 'warning'}: {hint}", "yellow")
        for line in lines:
            print_line(out, f"  {line}")


def _print_routes(reports: Sequence[RouteReport]) -> None:
    """Print a table with a line for each route."""
    out = console()
    has_hosts = any(report.route.host for report in reports)
    longest = max((len(report.route.path) for report in reports), default=0)
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else box.ASCII2, safe_box=True)
    table.add_column("route", overflow="fold", no_wrap=not out.is_terminal, min_width=min(longest, _MIN_ROUTE_COLUMNS))
    for column in (*(["host"] if has_hosts else []), "listed", "why"):
        table.add_column(column, overflow="fold")
    table.add_column("seen", justify="right")
    table.add_column("lastmod from", overflow="fold")
    for report in reports:
        cells = [
            report.route.path,
            *([report.route.host or ""] if has_hosts else []),
            "yes" if report.verdict.listed else "no",
            report.verdict.reason,
            str(report.known),
            _lastmod_sources(report),
        ]
        style = "yellow" if report.undecided or report.unmatched else "" if report.verdict.listed else "dim"
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    out.print(table)


def _lastmod_sources(report: RouteReport) -> str:
    """Describe where the lastmod of a route's pages comes from, with counts unless the route is a single page."""
    counts = sorted(report.lastmod.items(), key=lambda item: (-item[1], item[0]))
    if report.route.static:
        return "".join(source or "none" for source, _ in counts)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counts)


# status


def status_as_json(status: StoreStatus) -> dict[str, Any]:
    return {
        "store": status.store,
        "pages": sum(site.learned + site.named for site in status.sites),
        "sites": [
            {
                "site": site.site,
                "pages_learned": site.learned,
                "pages_named": site.named,
                "documents": site.parts,
                "last_written": w3c_from_timestamp(site.last_written),
                **(
                    {"indexnow": {"state": queue.state, "pending": queue.pending()}}
                    if (queue := _queue_of(site))
                    else {}
                ),
            }
            for site in status.sites
        ],
    }


def print_status(status: StoreStatus) -> None:
    out = console()
    print_line(out, status.store, "bold")
    for site in status.sites:
        print_line(out, f"site {site.base_url}", "bold")
        learned = f"{site.learned:,} learned, or seen before values named them"
        print_line(out, f"  pages seen: {site.learned + site.named:,} ({learned})")
        print_line(out, f"  documents of learned pages: {site.parts:,}")
        print_line(out, f"  last written: {w3c_from_timestamp(site.last_written)}")
        if (queue := _queue_of(site)) is not None:
            print_line(out, f"  IndexNow: {queue.state}; URLs that wait: {queue.pending():,}")


def _queue_of(site: SiteStatus) -> Queue | None:
    record = site.records.get(RECORD_NAME)
    return None if record is None else decoded_queue(record, 0)


def settings_as_json(settings: Collection[Setting]) -> dict[str, Any]:
    """The value of each option and where it comes from; empty if there are none."""
    options = {setting.name: {"value": setting.public_value, "source": setting.source_name} for setting in settings}
    return {"options": options} if options else {}


def print_settings(settings: Collection[Setting]) -> None:
    """Print the value of each option, and where it comes from."""
    out = console()
    if settings:
        print_line(out, "options", "bold")
    for setting in settings:
        line = f"  {setting.name}: {setting.shown_value} ({setting.source_name})"
        print_line(out, line, "dim" if setting.source == "default" else "")
