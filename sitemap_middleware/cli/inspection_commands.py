"""The commands that only read: explain, list, changes, routes and status.

`explain`, `list`, `changes` and `routes` import the app, start it if it speaks ASGI, call its `values` and read its
store. `status` reads a store. None of them requests pages or writes anything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ..explanation import Explanation
from ..listing.candidates import SiteSnapshot
from ..options.sources import Setting
from ..stores import Store, open_store
from ..stores.status import store_status
from ..urls import without_password
from . import results_as_json_and_csv, results_as_text
from .app_loader import is_app_name, load_app
from .command_options import NameWithHint, app_options, command, store_hint
from .command_target import Target, open_target, reporting_errors
from .since_option import parse_since
from .terminal_output import CommandError, console, counted, print_line, print_notes, progress

_QUERY_NOTE: Final = "a page with a query string is never listed; this is about the page without it"


@command.command()
@app_options()
@click.argument("pages", metavar="PAGE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each PAGE.")
def explain(app: Any, pages: tuple[str, ...], *, as_json: bool, **options: Any) -> None:
    """Show whether pages are listed, and why.

    For each PAGE, a URL or a path that starts with a slash: which rule decided, and what was observed.
    The exit status is 0 if all are listed, 1 if one is not, and 2 for an error.
    """
    with reporting_errors(), progress("reading"), open_target(app, **options).started() as target:
        snapshots, notes = target.snapshots(are_urls=not any(page.startswith("/") for page in pages))
        explanations, errors = _explain_pages(target, pages, snapshots)
        failures = [
            f"without an earlier sitemap, {target.service.options.path} answers 503 for all pages: {failure}"
            for failure in dict.fromkeys(target.service.failing_values(snapshots))
        ]
    if as_json and explanations:
        rows = [
            results_as_json_and_csv.explanation_as_json(explanation, [*failures, *notes])
            | ({"listed": False, "reason": _QUERY_NOTE} if has_query else {})
            for _, explanation, has_query in explanations
        ]
        click.echo(json.dumps(rows, indent=2))
    elif not as_json:
        for failure in failures:
            print_line(console(), f"warning: {failure}", "bold red")
        for index, (page, explanation, has_query) in enumerate(explanations):
            if index:
                click.echo()
            if has_query:
                print_line(console(), f"{page} is not listed: {_QUERY_NOTE}")
            results_as_text.print_explanation(explanation, notes)
    for error in errors:
        error.show()
    if errors:
        sys.exit(2)
    sys.exit(0 if all(explanation.listed and not has_query for _, explanation, has_query in explanations) else 1)


def _explain_pages(
    target: Target, pages: Sequence[str], snapshots: Sequence[SiteSnapshot]
) -> tuple[list[tuple[str, Explanation, bool]], list[CommandError]]:
    """Return each page with its explanation and whether it has a query string; and the errors of the other pages."""
    explanations, errors = [], []
    for page in pages:
        try:
            snapshot, path, has_query = target.find_page(page, snapshots)
        except CommandError as error:
            errors.append(error)
        else:
            explanations.append((page, target.service.explain(path, snapshot), has_query))
    return explanations, errors


@command.command(name="list")
@app_options()
@click.option("--not-listed", is_flag=True, help="Print the known pages that are not listed, with the reason.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
def list_(app: Any, *, not_listed: bool, form: str | None, **options: Any) -> None:
    """List the pages in the sitemap, with their dates.

    A route without parameters appears after the app's /sitemap.xml was requested once.
    """
    with reporting_errors(), progress("pages read") as update, open_target(app, **options).started() as target:
        snapshots, notes = target.snapshots()
        lines = [
            line for line in counted(target.service.url_report(snapshots), update) if line.listed is not not_listed
        ]
    if form == "json":
        click.echo(json.dumps(results_as_json_and_csv.pages_as_json(lines), indent=2))
    elif form == "csv":
        click.echo(results_as_json_and_csv.pages_as_csv(lines), nl=False)
    else:
        results_as_text.print_pages(lines)
    print_notes(notes)


@command.command()
@app_options()
@click.option(
    "--since",
    metavar="WHEN",
    default="7d",
    show_default=True,
    help="An age such as 24h, 7d or 2w, or a date or datetime such as 2026-01-31.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def changes(app: Any, *, since: str, as_json: bool, **options: Any) -> None:
    """Show what changed in the sitemap.

    New pages, pages that are no longer listed, and dates that moved, as far as the store has evidence of them.
    """
    with reporting_errors(), progress("pages read"), open_target(app, **options).started() as target:
        snapshots, notes = target.snapshots()
        moment = parse_since(since, snapshots[0].now)
        found = list(target.service.changes(snapshots, moment))
    if as_json:
        click.echo(json.dumps(results_as_json_and_csv.changes_as_json(moment, found, notes), indent=2))
    else:
        results_as_text.print_changes(found, moment, notes)


@command.command(name="routes")
@app_options()
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 1 if a route with parameters is neither enumerated, learned nor excluded, if values fail, if a"
    " pattern of an option matches nothing, or if the app does not start.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def routes_(app: Any, *, strict: bool, as_json: bool, **options: Any) -> None:
    """Show what becomes of every route.

    For each route: whether it is listed, why not, and how many of its pages were seen.

    Routes with parameters that are neither enumerated, learned nor excluded are repeated at the end, and so are
    values that fail, and patterns of the options exclude, include and learn that match nothing.
    """
    with reporting_errors(), progress("reading"), open_target(app, **options).started() as target:
        snapshots, notes = target.snapshots()
        reports = target.service.route_report(snapshots)
    sitemap_path = target.service.options.path
    if as_json:
        click.echo(
            json.dumps(results_as_json_and_csv.route_report_as_json(snapshots, reports, notes, sitemap_path), indent=2)
        )
    else:
        results_as_text.print_route_report(snapshots, reports, notes, sitemap_path)
    found = any(report.undecided or report.unmatched or report.failing for report in reports)
    sys.exit(1 if strict and (found or target.start_failure is not None) else 0)


@command.command()
@click.argument("app", metavar="STORE", type=NameWithHint(store_hint))
@click.option("--site", "sites", metavar="URL", multiple=True, help="Print only this site. May be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(app: Any, sites: tuple[str, ...], *, as_json: bool) -> None:
    """Show what is in a store.

    For each site: how many pages are known, and when one of them was last written. Nothing is written to the store.

    STORE is the path of an SQLite file, the URL that the app has as its store, or the app itself, as
    MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE.

    For an app, the value of each option is shown, too, and where it comes from.
    """
    with reporting_errors():
        store, settings = _open_store(app)
    try:
        with reporting_errors():
            store_contents = store_status(store, sites)
    except CommandError:
        if settings and as_json:
            click.echo(json.dumps(results_as_json_and_csv.settings_as_json(settings), indent=2))
        else:
            results_as_text.print_settings(settings)
        raise
    if as_json:
        contents = results_as_json_and_csv.status_as_json(store_contents)
        click.echo(json.dumps(contents | results_as_json_and_csv.settings_as_json(settings), indent=2))
    else:
        results_as_text.print_status(store_contents)
        results_as_text.print_settings(settings)


def open_named_store(target: Any) -> Store | None:
    """Open the store that a path or a URL names; None if the target is an app or its name."""
    if not isinstance(target, str):
        return None
    if "://" in target:
        return open_store(target, "STORE")
    file = Path(target)
    return open_store(f"sqlite:///{file.absolute()}", "STORE") if file.is_file() and file.suffix != ".py" else None


def _open_store(target: Any) -> tuple[Store, Collection[Setting]]:
    """Open the store that a path, a URL, an app or its name stands for. An app has settings, too."""
    if (store := open_named_store(target)) is not None:
        return store, ()
    if isinstance(target, str):
        file = Path(target)
        if file.is_dir():
            raise CommandError(f"{target} is a folder: give the store's file in it, such as {file / 'sitemap.sqlite3'}")
        if not is_app_name(target):
            shown = without_password(target) if "@" in target else target
            raise CommandError(f"no such file: {shown}; give a store's path or URL, or an app as MODULE:ATTRIBUTE")
    middleware = load_app(target)[1]
    return middleware.service.store, middleware.settings.values()
