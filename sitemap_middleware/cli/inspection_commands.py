"""The commands that look at an app: explain, list, changes and routes. Colours need a terminal.

They import the app, start it if it speaks ASGI, request its sitemap, as a crawler would, and read its store.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
from rich import box
from rich.table import Table
from rich.text import Text

from ..evidence.dates import w3c_from_timestamp
from ..evidence.page_verdict import UNLINKED, Explanation, observed_facts
from ..listing.candidates import SiteSnapshot
from ..listing.evaluated_urls import COLUMNS, EvaluatedUrl, PageChange, pages_as_csv
from ..listing.route_report import RouteReport
from . import terminal
from .command_target import Target, open_target, reporting_errors
from .terminal import CommandError, Row, console, print_json, print_line, print_notes, print_rows, printable, progress

_UNDECIDED_ROUTES_HINT: Final = (
    "these routes have parameters, and their pages are neither enumerated, learned nor excluded."
    " Decorate each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)

_UNLINKED_ROUTES_HINT: Final = (
    "these routes are listed, but no page that was read links to them."
    " Link to each, or mark it @sitemap(exclude=True) if it is not for visitors:"
)

_CHANGE_HEADINGS: Final = {"new": "first seen", "dropped": "no longer listed", "changed": "changed"}

_MIN_ROUTE_COLUMNS: Final = 30

_no_requests_option = click.option(
    "--no-requests",
    is_flag=True,
    help="Do not request the app's sitemap first, for which the middleware requests pages it has not seen.",
)


@contextlib.contextmanager
def _view(
    app: Any, what: str, *, no_requests: bool, **options: Any
) -> Iterator[tuple[Target, list[SiteSnapshot], list[str]]]:
    """Provide a started app, its sites and notes. `options` are those of `open_target`."""
    with reporting_errors(), progress(what), open_target(app, **options).started() as target:
        yield target, *target.snapshots(requests=not no_requests)


@click.command()
@terminal.app_options
@_no_requests_option
@click.argument("pages", metavar="PAGE...", nargs=-1, required=True)
def explain(app: Any, pages: tuple[str, ...], *, as_json: bool, **options: Any) -> None:
    """Show whether pages are listed, and why.

    For each PAGE, a URL or a path that starts with a slash: which rule decided, and what was observed.
    The exit status is 0 if all are listed, 1 if one is not, and 2 for an error.
    """
    with _view(app, "reading", **options) as (target, snapshots, notes):
        explanations, errors = [], list[CommandError]()
        for page in pages:
            try:
                explanations.append(target.service.explain(*target.find_page(page, snapshots)))
            except CommandError as error:  # the others are explained all the same
                errors.append(error)
    if as_json:
        print_json([_explanation_as_json(explanation, notes) for explanation in explanations])
    else:
        for index, explanation in enumerate(explanations):
            if index:
                click.echo()
            verdict, *details = str(explanation).splitlines()
            print_line(console(), verdict, "bold green" if explanation.listed else "bold red")
            for line in (*details, *_observation_lines(explanation)):
                print_line(console(), line)
        print_notes(notes if explanations else ())
    for refused in errors:
        refused.show()
    sys.exit(2 if errors else 0 if all(explanation.listed for explanation in explanations) else 1)


def _explanation_as_json(explanation: Explanation, notes: Sequence[str]) -> dict[str, Any]:
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


def _observation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what was observed of a page, and when, and what happened to it."""
    page = explanation.page
    if page is None:
        if explanation.listed:  # else the reason says it
            yield "seen: not yet (requests with a cookie or a query do not count)"
        return
    for name, value in observed_facts(page):
        yield f"{name}: {value}"
    if explanation.history:
        yield "history:"
        for event in explanation.history:
            yield f"  {w3c_from_timestamp(event.at)} {event.text}"


@click.command(name="list")
@terminal.app_options
@_no_requests_option
@click.option("--not-listed", is_flag=True, help="Print the known pages that are not listed, with the reason.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def list_(app: Any, *, not_listed: bool, as_json: bool, as_csv: bool, **options: Any) -> None:
    """List the pages in the sitemap, with their dates."""
    failures: list[str] = []
    with _view(app, "pages read", **options) as (target, snapshots, notes):
        lines = [line for line in target.service.url_report(snapshots, failures) if line.listed is not not_listed]
    if as_csv:
        click.echo(pages_as_csv(lines), nl=False)
    elif as_json:
        print_json([{column: getattr(line, column) for column in COLUMNS} for line in lines])
    else:
        print_rows(console(), map(_page_row, lines))
    print_notes(notes)
    if failures:  # their pages are missing
        raise CommandError("; ".join(failures))


def _page_row(line: EvaluatedUrl) -> Row:
    """The URL and the date of a page and whether no page links to it, or the reason why it is not listed."""
    if not line.listed:
        return line.url, f"not listed: {line.reason}", "dim"
    about = [f"{line.lastmod} ({line.lastmod_from})"] if line.lastmod else []
    return line.url, "; ".join([*about, *([UNLINKED] if line.linked is False else [])]), ""


@click.command()
@terminal.app_options
@_no_requests_option
@click.option(
    "--since",
    metavar="WHEN",
    default="7d",
    show_default=True,
    help="An age such as 24h, 7d or 2w, or a date or datetime such as 2026-01-31.",
)
def changes(app: Any, *, since: str, as_json: bool, **options: Any) -> None:
    """Show what changed in the sitemap.

    Pages first seen, pages no longer listed, and dates that moved, as far as the store has evidence of them.
    """
    failures: list[str] = []
    with _view(app, "pages read", **options) as (target, snapshots, notes):
        moment = terminal.parse_since(since, snapshots[0].now)
        found = list(target.service.changes(snapshots, moment, failures))
    if as_json:
        print_json(_changes_as_json(moment, found, notes))
    else:
        _print_changes(found, moment)
        print_notes(notes)
    if failures:  # their pages are missing
        raise CommandError("; ".join(failures))


def _changes_as_json(since: int, changes: Iterable[PageChange], notes: Sequence[str]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, str]]] = {kind: [] for kind in _CHANGE_HEADINGS}
    for change in changes:
        row = {"url": change.url, "at": change.at, "reason": change.reason}
        groups[change.kind].append(row | ({"last_good": change.last_good} if change.last_good else {}))
    return {"since": w3c_from_timestamp(since), **groups, "notes": list(notes)}


def _print_changes(changes: Sequence[PageChange], since: int) -> None:
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


@click.command(name="routes")
@terminal.app_options
@_no_requests_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 1 if a route with parameters is neither enumerated, learned nor excluded, if values or a lastmod"
    " function fail, if a pattern of an option matches nothing, or if the app does not start.",
)
def routes_(app: Any, *, strict: bool, as_json: bool, **options: Any) -> None:
    """Show what becomes of every route.

    For each route: whether it is listed, why not, and how many of its pages were seen.

    Routes with parameters that are neither enumerated, learned nor excluded are repeated at the end, and so are
    values that fail, and patterns of the options exclude, include and learn that match nothing.
    """
    with _view(app, "reading", **options) as (target, snapshots, notes):
        reports = target.service.route_report(snapshots)
        sitemap_url = snapshots[0].site.base_url + target.service.options.path
    if as_json:
        site = snapshots[0].site.base_url
        print_json(_route_report_as_json(site, sitemap_url, reports, notes))
    else:
        _print_route_report(sitemap_url, reports)
        print_notes(notes)
    found = any(report.undecided or report.unmatched or report.failing for report in reports)
    sys.exit(1 if strict and (found or target.running.failure is not None) else 0)


def _route_report_as_json(
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


def _print_route_report(sitemap_url: str, reports: Sequence[RouteReport]) -> None:
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
        (_UNLINKED_ROUTES_HINT, unlinked),
        (_UNDECIDED_ROUTES_HINT, undecided),
        ("these patterns match nothing:", unmatched),
        ("these values or lastmod functions fail or are wrong, so the sitemap lacks pages or dates:", failing),
    ):
        if lines:
            print_line(out, f"{'note' if lines is unlinked else 'warning'}: {hint}", "yellow")
        for line in lines:
            print_line(out, f"  {line}")


def _print_routes(reports: Sequence[RouteReport]) -> None:
    """Print a table with a line for each route."""
    out = console()
    names = [f"{report.route.host or ''}{report.route.path}" for report in reports]
    longest = max(map(len, names), default=0)
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else box.ASCII2, safe_box=True)
    table.add_column("route", overflow="fold", no_wrap=not out.is_terminal, min_width=min(longest, _MIN_ROUTE_COLUMNS))
    for column in ("listed", "why", "seen", "lastmod from"):
        table.add_column(column, overflow="fold", justify="right" if column == "seen" else "left")
    for name, report in zip(names, reports, strict=True):
        verdict = "yes" if report.verdict.listed else "no"
        why = "it fails, or is wrong: see below" if report.failing else report.verdict.reason  # may be a long error
        cells = [name, verdict, why, str(report.known), _lastmod_sources(report)]
        style = "yellow" if report.undecided or report.unmatched else "" if report.verdict.listed else "dim"
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    out.print(table)


def _lastmod_sources(report: RouteReport) -> str:
    """Describe where the lastmod of a route's pages comes from, with counts unless the route is a single page."""
    counts = sorted(report.lastmod.items(), key=lambda item: (-item[1], item[0]))
    if report.route.static:
        return "".join(source or "none" for source, _ in counts)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counts)
