"""The command `status`: what is in a store. It requests and writes nothing."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from ..evidence.dates import w3c_from_timestamp
from ..indexnow.queue import RECORD_NAME, Queue, decoded_queue
from ..models import Site
from ..options.sources import Setting
from ..options.store_urls import without_password
from ..stores import Store, open_store
from ..stores.base import store_name
from ..stores.stored_sites import SiteStatus, StoreStatus, open_readonly, store_status
from . import terminal
from .app_loader import is_app_name, load_app
from .command_target import reporting_errors
from .terminal import CommandError, console, print_json, print_line, print_notes


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
            contents = store_status(store, sites, record=RECORD_NAME, named=named)
    if as_json:
        print_json(_status_as_json(contents, settings))
    else:
        _print_status(contents, settings)
    note = missing or (None if contents.sites else f"nothing is saved in {contents.store} yet")
    print_notes([note] if note else ())


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


def _status_as_json(status: StoreStatus, settings: Collection[Setting]) -> dict[str, Any]:
    sites: list[dict[str, Any]] = [
        {
            "site": site.site,
            "pages_learned": site.learned,
            "pages_named": site.named,
            "documents": site.parts,
            "last_written": w3c_from_timestamp(site.last_written),
        }
        for site in status.sites
    ]
    for row, site in zip(sites, status.sites, strict=True):
        if (queue := _queue_of(site)) is not None:
            row["indexnow"] = {"state": queue.state, "pending": queue.pending()}
    pages = sum(site.learned + site.named for site in status.sites)
    options = {setting.name: {"value": setting.public_value, "source": setting.source_name} for setting in settings}
    return {"store": status.store, "pages": pages, "sites": sites, **({"options": options} if options else {})}


def _print_status(status: StoreStatus, settings: Collection[Setting]) -> None:
    out = console()
    print_line(out, status.store, "bold")
    for site in status.sites:
        print_line(out, f"site {site.base_url}", "bold")
        learned = f"{site.learned:,} learned, or seen before values named them"
        print_line(out, f"  pages seen: {site.learned + site.named:,} ({learned})")
        print_line(out, f"  documents of learned pages: {site.parts:,}")
        print_line(out, f"  last written: {w3c_from_timestamp(site.last_written)}")
        if (queue := _queue_of(site)) is not None:
            pending = queue.pending()
            why = " (each is sent every ten minutes at most)" if pending else ""
            print_line(out, f"  IndexNow: {queue.state}; URLs that wait: {pending:,}{why}")
    if settings:
        print_line(out, "options", "bold")
    for setting in settings:
        line = f"  {setting.name}: {setting.shown_value} ({setting.source_name})"
        print_line(out, line, "dim" if setting.source == "default" else "")


def _queue_of(site: SiteStatus) -> Queue | None:
    return None if site.record is None else decoded_queue(site.record, 0)
