"""What an owner asks at a terminal: which pages are listed and why, what becomes of every route, the sitemap as files.

The app is imported and its store is read. But by `build`, it is asked for no page, for its `values` alone, and nothing
is written. `build` writes what it learns to the app's store, and creates none that the app does not name.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress

from ..adapters.asgi import ASGIMiddleware
from ..listing.candidates import SiteSnapshot
from ..models import Explanation
from ..stores import open_store
from ..stores.fallback import only_existing_files
from ..stores.status import store_status
from . import output
from .app_client import app_client
from .app_loader import load_app
from .export import export
from .output import CommandError, printable
from .target import Target, open_target, reporting_errors

_QUERY_NOTE: Final = "a page with a query string is never listed; this is about the page without it"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sitemap-middleware", prog_name="sitemap-middleware")
def command() -> None:
    """Show which pages an app's SitemapMiddleware lists, and why."""


def _app_options(wrapped: Callable[..., None]) -> Callable[..., None]:
    """The argument and the options that every command about an app takes."""
    for decorate in (
        click.option("--base-url", metavar="URL", help="Scheme and host of the site, if the app does not set them."),
        click.option(
            "--root-path", metavar="PATH", help="Path below which the server mounts the app, as in uvicorn --root-path."
        ),
        click.option(
            "--factory", is_flag=True, help="ATTRIBUTE is a factory, even if it does not look like a function."
        ),
        click.argument("app", metavar="MODULE:ATTRIBUTE"),
    ):
        wrapped = decorate(wrapped)
    return wrapped


@command.command()
@_app_options
@click.argument("pages", metavar="PAGE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list with one object for each PAGE.")
def explain(app: str, pages: tuple[str, ...], *, as_json: bool, **options: Any) -> None:
    """Show whether each PAGE is listed, which rule decided, and what was observed.

    PAGE is a URL or a path that starts with a slash. The exit status is 0 if all are listed, 1 if one is not,
    and 2 for an error.
    """
    with reporting_errors():
        about = open_target(app, **options)
        states, notes = about.snapshots()
        told = [(page, *_explain_page(about, page, states)) for page in pages]
    if as_json:
        rows = [
            output.explanation_as_json(one, notes) | ({"listed": False, "reason": _QUERY_NOTE} if query else {})
            for _, one, query in told
            if isinstance(one, Explanation)
        ]
        if rows:
            click.echo(json.dumps(rows, indent=2))
    shown_before = False
    for page, one, query in told:
        if isinstance(one, CommandError):
            one.show()
        elif not as_json:
            if shown_before:
                click.echo()
            if query:
                click.echo(printable(f"{page} is not listed: {_QUERY_NOTE}"))
            output.print_explanation(one, notes)
            shown_before = True
    if any(isinstance(one, CommandError) for _, one, _ in told):
        sys.exit(2)
    sys.exit(0 if all(isinstance(one, Explanation) and one.listed and not query for _, one, query in told) else 1)


def _explain_page(about: Target, page: str, states: Sequence[SiteSnapshot]) -> tuple[Explanation | CommandError, bool]:
    """The explanation of a page, or why there is none; and whether the page has a query string."""
    try:
        state, path, query = about.page(page, states)
    except CommandError as error:
        return error, False
    return about.service.explain(path, state), query


@command.command(name="list")
@_app_options
@click.option("--not-listed", is_flag=True, help="Print the known pages that are not listed, with the reason.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
def list_(app: str, *, not_listed: bool, form: str | None, **options: Any) -> None:
    """List the pages in the sitemap, with their dates.

    A route without parameters appears after the app was asked for /sitemap.xml once.
    """
    with reporting_errors():
        about = open_target(app, **options)
        states, notes = about.snapshots()
        lines = [line for line in about.service.inventory(states) if line.listed is not not_listed]
    if form == "json":
        click.echo(json.dumps(output.pages_as_json(lines), indent=2))
    elif form == "csv":
        click.echo(output.pages_as_csv(lines), nl=False)
    else:
        output.print_pages(lines)
    output.print_notes(notes)


@command.command(name="routes")
@_app_options
@click.option(
    "--strict", is_flag=True, help="Exit with 1 if a route with parameters is neither enumerated, learned nor excluded."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def routes_(app: str, *, strict: bool, as_json: bool, **options: Any) -> None:
    """Show every route: whether it is listed, why not, and how many of its pages were seen.

    Routes with parameters that are neither enumerated, learned nor excluded are repeated at the end.
    """
    with reporting_errors():
        about = open_target(app, **options)
        states, notes = about.snapshots()
        surveyed = about.service.route_report(states)
    if as_json:
        click.echo(
            json.dumps(output.route_report_as_json(states, surveyed, notes, about.service.options.path), indent=2)
        )
    else:
        output.print_route_report(states, surveyed, notes, about.service.options.path)
    sys.exit(1 if strict and any(one.undecided for one in surveyed) else 0)


@command.command()
@_app_options
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Directory to write the files to.",
)
def build(app: str, *, out: Path, **options: Any) -> None:
    """Write the sitemap that the app serves as files into DIR, each also compressed with gzip.

    The app keeps what it learns in the store that it names. If it names none, the default sitemap.sqlite3 is used
    if there is one; no new one is created.
    """
    with reporting_errors(), only_existing_files():
        about = open_target(app, **options, serving=True)
        site = about.sites()[0]
        if site.loopback and about.base is None:
            raise CommandError(
                "no base_url is known, and a sitemap is of one site: give --base-url https://example.com"
            )
        if other := about.other_site_hint(site):
            raise CommandError(other)
        try:
            with (
                app_client(about.app, site, asynchronous=isinstance(about.located, ASGIMiddleware)) as ask,
                Progress(console=Console(stderr=True), transient=True) as progress,
            ):
                task = progress.add_task("documents", total=None)
                written = export(
                    ask,
                    site,
                    about.service.options.path,
                    out,
                    lambda count, of: progress.update(task, completed=count, total=of),
                )
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error}") from error
        finally:
            about.located.close()
    plain = [file for file in written if file.suffix != ".gz"]
    urls, size = sum(file.read_bytes().count(b"<url>") for file in plain), sum(file.stat().st_size for file in plain)
    counted = f"{urls:,} URL" if urls == 1 else f"{urls:,} URLs"
    click.echo(f"{counted} of {site.base_url}, {size:,} bytes: {len(written)} files in {out}")


@command.command()
@click.argument("target", metavar="STORE")
@click.option("--site", "sites", metavar="URL", multiple=True, help="Print only this site. May be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(target: str, sites: tuple[str, ...], *, as_json: bool) -> None:
    """Show what is in a store: the known pages of each site, and when its sitemap last changed.

    STORE is the path of an SQLite file, the URL that the app has as its store, or the app itself, as MODULE:ATTRIBUTE.
    Nothing is written there.
    """
    with reporting_errors():
        told = store_status(_open_target_store(target), int(time.time()), sites)
    if as_json:
        click.echo(json.dumps(output.status_as_json(told), indent=2))
    else:
        output.print_status(told)


def _open_target_store(target: str) -> Any:
    """The store that a path, a URL or an app names."""
    if "://" in target:
        return open_store(target, "STORE")
    file = Path(target)
    if file.is_file():
        return open_store(f"sqlite:///{file.absolute()}", "STORE")
    if ":" in target and file.parent == Path():
        return load_app(target, factory=False)[1].service.store
    if file.is_dir():
        raise CommandError(f"{target} is a folder: give the store's file in it, such as {file / 'sitemap.sqlite3'}")
    raise CommandError(f"there is no file {target}: give a store's path or URL, or an app as MODULE:ATTRIBUTE")
