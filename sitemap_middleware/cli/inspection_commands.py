"""The commands that look at an app or a store: explain, list, changes, routes and status.

`explain`, `list`, `changes` and `routes` import the app, start it if it speaks ASGI, request its sitemap, as a crawler
would, and read its store. `status` reads a store, and requests and writes nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import click

from ..http.urls import without_password
from ..indexnow import RECORD_NAME
from ..listing.candidates import SiteSnapshot
from ..listing.evaluated_urls import pages_as_csv
from ..models import Site
from ..options.sources import Setting
from ..stores import Store, open_store
from ..stores.base import store_name
from ..stores.stored_sites import StoreStatus, open_readonly, store_status
from . import results, terminal
from .app_loader import is_app_name, load_app
from .command_target import Target, open_target, reporting_errors
from .terminal import CommandError, console, print_json, print_notes, print_rows, progress

_no_requests_option = click.option(
    "--no-requests",
    is_flag=True,
    help="Do not request the app's sitemap first, for which the middleware requests pages it has not seen.",
)


_View = tuple[Target, list[SiteSnapshot], list[str]]
"""A started app as a command looks at it, with notes."""


@contextlib.contextmanager
def _view(app: Any, what: str, *, no_requests: bool, **options: Any) -> Iterator[_View]:
    """Look at an app. `options` are those of `open_target`."""
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
        print_json([results.explanation_as_json(explanation, notes) for explanation in explanations])
    else:
        for index, explanation in enumerate(explanations):
            if index:
                click.echo()
            results.print_explanation(explanation)
        print_notes(notes if explanations else ())
    for refused in errors:
        refused.show()
    sys.exit(2 if errors else 0 if all(explanation.listed for explanation in explanations) else 1)


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
        print_json([*map(results.page_as_json, lines)])
    else:
        print_rows(console(), map(results.page_row, lines))
    print_notes(notes)
    if failures:  # their pages are missing
        raise CommandError("; ".join(failures))


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

    New pages, pages that are no longer listed, and dates that moved, as far as the store has evidence of them.
    """
    failures: list[str] = []
    with _view(app, "pages read", **options) as (target, snapshots, notes):
        moment = terminal.parse_since(since, snapshots[0].now)
        found = list(target.service.changes(snapshots, moment, failures))
    if as_json:
        print_json(results.changes_as_json(moment, found, notes))
    else:
        results.print_changes(found, moment)
        print_notes(notes)
    if failures:  # their pages are missing
        raise CommandError("; ".join(failures))


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
        print_json(results.route_report_as_json(site, sitemap_url, reports, notes))
    else:
        results.print_route_report(sitemap_url, reports)
        print_notes(notes)
    found = any(report.undecided or report.unmatched or report.failing for report in reports)
    sys.exit(1 if strict and (found or target.running.failure is not None) else 0)


@click.command()
@click.argument("app", metavar="STORE")
@click.option("--site", "sites", metavar="URL", multiple=True, help="Print only this site. May be repeated.")
@terminal.json_option
def status(app: Any, sites: tuple[str, ...], *, as_json: bool) -> None:
    """Show what is in a store.

    For each site: how many pages are known, and when one of them was last written. Nothing is written to the store.

    STORE is the path of an SQLite file, the URL that the app has as its store, or the app itself, as
    MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE.

    For an app, the value of each option is shown, too, and where it comes from.
    """
    with reporting_errors():
        store, settings, named = _open_store(app)
        missing = open_readonly(store)[1] if settings else None  # the options of an app are shown without a store, too
        if missing:
            contents = StoreStatus(store_name(store), [])
        else:
            contents = store_status(store, sites, records=[RECORD_NAME], named=named)
    if as_json:
        print_json(results.status_as_json(contents) | results.settings_as_json(settings))
    else:
        results.print_status(contents)
        results.print_settings(settings)
    if missing:
        print_notes([missing])


def _open_store(target: Any) -> tuple[Store, Collection[Setting], Site | None]:
    """Open the store that a path, a URL, an app or its name stands for. An app has settings and base_url, too."""
    if isinstance(target, str):
        file = Path(target)
        if "://" in target:
            return open_store(target, "STORE"), (), None
        if file.is_file() and file.suffix != ".py":
            return open_store(f"sqlite:///{file.absolute()}", "STORE"), (), None
        if file.is_dir():
            raise CommandError(f"{target} is a folder: give the store's file in it, such as {file / 'sitemap.sqlite3'}")
        if not is_app_name(target):
            shown = without_password(target) if "@" in target else target
            raise CommandError(f"no such file: {shown}; give a store's path or URL, or an app as MODULE:ATTRIBUTE")
    middleware = load_app(target)[1]
    return middleware.service.store, middleware.settings.values(), middleware.service.options.site
