"""What an owner asks at a terminal: why a page is listed or not, what becomes of every route, the sitemap as files.

The app is imported and its store is read. But by `build`, it is asked for no page, for its `values` alone, and nothing
is written.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import click
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..adapters.asgi import ASGI
from ..core import Core
from ..dates import w3c_of
from ..errors import SitemapError
from ..history import latest
from ..listing.candidates import State
from ..listing.survey import Surveyed
from ..location import site_of_base_url
from ..model import Explanation, Site
from ..robots import PATH
from ..stores import open_store
from ..stores.glance import glance
from ..stores.overview import Overview, overview
from .client import asking
from .export import export
from .loading import loaded
from .terminal import Refused, shown

WIDTH: Final = 120
"""Columns of what is not printed on a terminal, so that it is the same everywhere."""

_UNDECIDED: Final = (
    "these routes have parameters, and nothing says what becomes of their pages."
    " Mark each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Ask an app's SitemapMiddleware what it lists, and why."""


def _about_an_app(wrapped: Callable[..., None]) -> Callable[..., None]:
    """The argument and the options that every command takes."""
    for decorate in (
        click.option("--base-url", metavar="URL", help="The site's scheme and host, where the app names none."),
        click.option("--factory", is_flag=True, help="ATTRIBUTE is a function that makes the app."),
        click.argument("app", metavar="MODULE:ATTRIBUTE"),
    ):
        wrapped = decorate(wrapped)
    return wrapped


@command.command()
@_about_an_app
@click.argument("path")
def explain(app: str, path: str, base_url: str | None, *, factory: bool) -> None:
    """Say whether PATH is listed, which rule decided, and what was seen of it.

    PATH is the page's, from the first slash on, as a browser shows it. The exit status is 0 where it is listed, 1 where
    it is not, 2 where that cannot be told.
    """
    if not path.startswith("/"):
        raise Refused(f"{path!r} is no path: give what follows the host, from the first slash on")
    with _spoken():
        core = loaded(app, factory=factory)[1].core
        states, notes = _states(core, base_url)
        told = core.explain(unquote(path), states[0])
    _print_explanation(told, notes)
    sys.exit(0 if told.listed else 1)


@command.command(name="routes")
@_about_an_app
@click.option("--strict", is_flag=True, help="Exit with 1 where nobody said what becomes of a route's pages.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def routes_(app: str, base_url: str | None, *, factory: bool, strict: bool, as_json: bool) -> None:
    """Say what becomes of every route: listed, or why not, and what is known of its pages.

    Routes with parameters whose pages are neither learned nor excluded are named at the end.
    """
    with _spoken():
        core = loaded(app, factory=factory)[1].core
        states, notes = _states(core, base_url)
        surveyed = core.survey(states)
    if as_json:
        click.echo(json.dumps(_as_json(states, surveyed, notes, core.options.path), indent=2))
    else:
        _print_survey(states, surveyed, notes, core.options.path)
    sys.exit(1 if strict and any(one.undecided for one in surveyed) else 0)


@command.command()
@_about_an_app
@click.option("--out", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), required=True, help="Where to.")
def build(app: str, base_url: str | None, out: Path, *, factory: bool) -> None:
    """Write the sitemap as files into DIR: what the app would serve, and beside each file its gzipped twin."""
    with _spoken(), _as_base_url(base_url):
        whole, found = loaded(app, factory=factory)
        core = found.core
        site = _sites(core, base_url)[0]
        if site.loopback and base_url is None:
            raise Refused("no base_url is known, and a sitemap is of one site: give --base-url https://example.com")
        try:
            with (
                asking(whole, site, asynchronous=isinstance(found, ASGI)) as ask,
                Progress(console=Console(stderr=True), transient=True) as progress,
            ):
                task = progress.add_task("documents", total=None)
                written = export(
                    ask,
                    site,
                    core.options.path,
                    out,
                    lambda count, of: progress.update(task, completed=count, total=of),
                )
        except OSError as error:
            raise Refused(f"{out} cannot be written: {error}") from error
        finally:
            found.close()
    click.echo(f"{len(written)} files in {out}")


@command.command()
@click.argument("url", metavar="STORE_URL")
@click.option("--site", "sites", metavar="URL", multiple=True, help="Of this site alone; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(url: str, sites: tuple[str, ...], *, as_json: bool) -> None:
    """Say what is in the store that STORE_URL names: of each site, pages, documents, and when they changed.

    STORE_URL is what the app has as its store, such as sqlite:////path/of/sitemap.sqlite3. Nothing is written there.
    """
    with _spoken():
        told = overview(open_store(url, "STORE_URL"), int(time.time()), sites)
    if as_json:
        click.echo(json.dumps(_status_as_json(told), indent=2))
    else:
        _print_status(told)


# The app


@contextlib.contextmanager
def _as_base_url(base_url: str | None) -> Iterator[None]:
    """Have an app that names no base_url take this one as it is imported."""
    before = os.environ.get("SITEMAP_BASE_URL")
    if base_url is not None:
        os.environ["SITEMAP_BASE_URL"] = base_url
    try:
        yield
    finally:
        os.environ.pop("SITEMAP_BASE_URL", None)
        if before is not None:
            os.environ["SITEMAP_BASE_URL"] = before


@contextlib.contextmanager
def _spoken() -> Iterator[None]:
    """Errors of ours, as one line; and what the app prints meanwhile, beside the answer and not in it."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SitemapError as error:
        raise Refused(str(error)) from error


# Its sites


def _sites(core: Core, base_url: str | None) -> list[Site]:
    """The sites of the app, the one asked about first."""
    sites = core.sites(None if base_url is None else site_of_base_url(base_url, "--base-url"))
    if not sites:
        raise Refused(
            f"the app's base_url is another than --base-url={base_url!r}: leave it off, or name a host it has"
        )
    return sites


def _states(core: Core, base_url: str | None) -> tuple[list[State], list[str]]:
    """How things stand on each site of the app, the one asked about first; and what cannot be told from here."""
    sites = _sites(core, base_url)
    notes = dict[str, None]()
    if base_url is None and core.options.site is None:
        notes[f"no base_url is known, so this is the site {sites[0].base}; --base-url names another"] = None
    states = []
    for site in sites:
        store, missing = glance(core.store)
        states.append(core.look(site, store))
        if missing:
            notes[missing] = None
    if not states[0].table.routes:
        notes["no URL map could be read of the app, so its pages are those that include and learn name"] = None
    if core.options.robots and not sites[0].root and states[0].table.may_answer(PATH):
        notes["the app's own robots.txt is not read here; what it forbids is not listed, whatever is said above"] = None
    return states, list(notes)


# What is printed


def _console() -> Console:
    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else WIDTH, force_terminal=terminal, highlight=False, emoji=False)


def _print_explanation(told: Explanation, notes: Sequence[str]) -> None:
    console = _console()
    verdict, *more = str(told).splitlines()
    lines = [Text(shown(verdict), "bold green" if told.listed else "bold red")]
    lines += [Text(shown(line)) for line in (*more, *_seen(told))]
    lines += [Text(shown(f"note: {note}"), "dim") for note in notes]
    for line in lines:
        console.print(line, soft_wrap=True)  # a loc that is broken in two cannot be copied


def _seen(told: Explanation) -> Iterator[str]:
    """What was seen of a page, and when."""
    page = told.page
    if page is None:
        if told.route is not None:
            yield "seen: never"
        return
    yield f"first seen: {w3c_of(page.first_seen)}"
    yield f"last seen: {w3c_of(page.last_seen)}, or up to an hour later"
    yield f"status: {page.status}"
    yield f"type: {page.media_type or 'none'}"
    if page.modified is not None:
        yield f"Last-Modified: {w3c_of(page.modified)}"
    if page.read_at:
        yield f"HTML read: {w3c_of(page.read_at)}"
    if content := latest(page.contents):
        yield f"content as it is: since {w3c_of(content.first)}; versions kept in mind: {len(page.contents)}"


def _print_survey(states: Sequence[State], surveyed: Sequence[Surveyed], notes: Sequence[str], path: str) -> None:
    console = _console()
    known, listed = sum(one.known for one in surveyed), sum(one.listed for one in surveyed)
    heading = f"{states[0].site.base}{path}: routes {len(surveyed)}, pages seen {known}, pages listed {listed}"
    console.print(Text(shown(heading), "bold"), soft_wrap=True)
    hosts = any(one.route.host for one in surveyed)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, safe_box=True)
    for name in ("route", *(["host"] if hosts else []), "listed", "why", "seen", "lastmod from"):
        table.add_column(name, overflow="fold", justify="right" if name == "seen" else "left")
    for one in surveyed:
        cells = [one.route.path, *([one.route.host or ""] if hosts else []), "yes" if one.verdict.listed else "no"]
        cells += [one.verdict.reason, str(one.known), _sources(one)]
        style = "yellow" if one.undecided else "" if one.verdict.listed else "dim"
        table.add_row(*(Text(shown(cell)) for cell in cells), style=style)
    console.print(table)
    undecided = [one.route for one in surveyed if one.undecided]
    if undecided:
        console.print(Text(f"warning: {_UNDECIDED}", "yellow"), soft_wrap=True)
        for route in undecided:
            console.print(Text(shown(f"  {route.path} ({route.endpoint})")), soft_wrap=True)
    for note in notes:
        console.print(Text(shown(f"note: {note}"), "dim"), soft_wrap=True)


def _print_status(told: Overview) -> None:
    lines = [Text(shown(f"{told.store}: {' '.join(filter(None, (told.engine, told.version)))}"), "bold")]
    each = f", {told.size / told.pages:,.0f} a page" if told.size is not None and told.pages else ""
    lines.append(Text("size: not told by this engine" if told.size is None else f"size: {told.size:,} bytes{each}"))
    for kept in told.sites:
        lines += [
            Text(shown(f"site {kept.site}"), "bold"),
            Text(f"  pages: {kept.learned:,} learned, {kept.named:,} of routes and values"),
            Text(f"  learned pages: {kept.blocks:,} blocks in {kept.documents:,} documents"),
            Text(f"  version: {kept.version}"),
        ]
        if kept.last_seen is not None:
            lines.append(Text(f"  last seen: {w3c_of(kept.last_seen)}, or up to an hour later"))
        if kept.last_changed is not None:
            lines.append(Text(f"  sitemap as it is: since {w3c_of(kept.last_changed)}"))
    for lease in told.leases or ():
        lines.append(Text(shown(f"leased: {lease.name} of {lease.site}, until {w3c_of(lease.until)}")))
    console = _console()
    for line in lines:
        console.print(line, soft_wrap=True)


def _status_as_json(told: Overview) -> dict[str, Any]:
    return {
        "store": told.store,
        "engine": told.engine,
        "version": told.version,
        "bytes": told.size,
        "pages": told.pages,
        "bytes_per_page": round(told.size / told.pages, 1) if told.size is not None and told.pages else None,
        "sites": [
            {
                "site": kept.site,
                "version": kept.version,
                "pages_learned": kept.learned,
                "pages_named": kept.named,
                "blocks": kept.blocks,
                "documents": kept.documents,
                "last_seen": None if kept.last_seen is None else w3c_of(kept.last_seen),
                "last_changed": None if kept.last_changed is None else w3c_of(kept.last_changed),
            }
            for kept in told.sites
        ],
        "leases": None
        if told.leases is None
        else [{"site": one.site, "name": one.name, "until": w3c_of(one.until)} for one in told.leases],
    }


def _sources(one: Surveyed) -> str:
    """Where the lastmod of a route's pages comes from; of how many each, where it has several."""
    counted = sorted(one.lastmod.items(), key=lambda source: (-source[1], source[0]))
    if one.route.static:
        return "".join(source or "none" for source, _ in counted)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counted)


def _as_json(states: Sequence[State], surveyed: Sequence[Surveyed], notes: Sequence[str], path: str) -> dict[str, Any]:
    return {
        "site": states[0].site.base,
        "sitemap": states[0].site.base + path,
        "routes": [
            {
                "route": one.route.path,
                "endpoint": one.route.endpoint,
                "host": one.route.host,
                "static": one.route.static,
                "listed": one.verdict.listed,
                "reason": one.verdict.reason,
                "pages_seen": one.known,
                "pages_listed": one.listed,
                "lastmod_from": {source or "none": count for source, count in sorted(one.lastmod.items())},
                "undecided": one.undecided,
            }
            for one in surveyed
        ],
        "undecided": [one.route.path for one in surveyed if one.undecided],
        "notes": list(notes),
    }
