"""The command `crawlers`: which crawlers come, what they get, and what they miss."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from ..crawlers import ip_range_download as published
from ..crawlers.ip_address_ranges import pack_ranges, unpack_ranges
from ..crawlers.visit_statistics import CrawlerFigures, PathLine
from ..dates import w3c_from_timestamp
from ..observation.verified_visit_counting import RANGES_OWNER, RANGES_RECORD
from ..stores.base import store_name
from ..stores.default_store import only_existing_files
from ..stores.sqlite.memory import MemoryStore
from .command_options import app_options, command
from .command_target import open_target, reporting_errors
from .inspection_commands import open_named_store
from .since_option import parse_since
from .terminal_output import CommandError, Row, console, print_line, print_notes, print_rows, progress

_MAX_LINES: Final = 20
"""Lines of each list that are printed. --json has all."""


@command.command(name="crawlers")
@app_options("APP|STORE")
@click.option("--since", metavar="WHEN", help="Hide rows last visited before WHEN: an age such as 7d, or a date.")
@click.option("--unverified", is_flag=True, help="Count visits that could not be verified, too.")
@click.option("--update", is_flag=True, help="Fetch the address ranges that operators publish, and keep them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def crawlers(app: Any, *, since: str | None, unverified: bool, update: bool, as_json: bool, **options: Any) -> None:
    """Show which crawlers come, and what they get.

    The visits of search and AI crawlers by crawler and by route; listed pages that no crawler got; pages that crawlers
    got and that are not listed; errors; fake crawlers; and fetches of the sitemap. Visits count if the address is the
    crawler's own.

    With --update, the command fetches the address ranges of crawlers from their operators and saves them in the app's
    store. Running apps load them from the store within an hour. Nothing else is shown. The exit status is 2 if an
    operator's list could not be fetched.

    STORE may stand in place of APP with --update only. It is the path of an SQLite file, or a URL.
    """
    if update:
        _update(app, as_json=as_json, **options)
        return
    with reporting_errors(), progress("reading"), open_target(app, **options).started() as target:
        target.main_site()
        snapshots, notes = target.snapshots()
        moment = parse_since(since, snapshots[0].now) if since else 0
        figures = target.service.crawler_figures(snapshots[0], since=moment, count_unverified=unverified)
    if as_json:
        click.echo(json.dumps({"site": snapshots[0].site.base_url, **_asdict_of(figures), "notes": notes}, indent=2))
        return
    _print(snapshots[0].site.base_url, figures)
    print_notes(notes)


def _asdict_of(figures: CrawlerFigures) -> dict[str, Any]:
    """The figures as JSON has them: lists of objects, with times in ISO 8601."""
    lists = ("crawlers", "sections", "not_listed", "errors", "documents")
    return asdict(figures) | {name: [_line_as_json(line) for line in getattr(figures, name)] for name in lists}


def _line_as_json(line: Any) -> dict[str, Any]:
    return {**line._asdict(), "last": None if line.last is None else _time(line.last)}


def _update(app: Any, *, as_json: bool, **options: Any) -> None:
    with reporting_errors(), only_existing_files(), progress("files") as show:
        store = open_named_store(app) or open_target(app, **options).service.store
        store = getattr(store, "effective_store", store)
        if isinstance(store, MemoryStore):
            raise CommandError("the store is memory://, so nothing can be kept in it: give the app another store")
        known, _ = unpack_ranges(store.load(RANGES_OWNER, [RANGES_RECORD]).get(RANGES_RECORD, b""))
        ranges, problems = published.fetch_ranges(published.RANGE_URLS, known, show)
        store.save(RANGES_OWNER, {RANGES_RECORD: pack_ranges(ranges, int(time.time()))})
        name = store_name(store)
        store.close()
    fetched = {url: len(networks) for url, networks in ranges.items() if url not in problems}
    if as_json:
        click.echo(json.dumps({"store": name, "networks": fetched, "problems": problems}, indent=2))
    else:
        out = console()
        print_line(out, f"{name}: files fetched {len(fetched)}, networks {sum(fetched.values())}", "bold")
        print_rows(out, ((url, f"{count} networks", "") for url, count in fetched.items()))
    for url, problem in problems.items():
        CommandError(f"{url}: {problem}").show()
    if problems:
        sys.exit(2)


def _print(base_url: str, figures: CrawlerFigures) -> None:
    out = console()
    never = figures.never_crawled
    print_line(out, f"{base_url}: pages listed {figures.listed}, crawled {figures.crawled}", "bold")
    _print_list("by crawler:", [_crawler_row(line) for line in figures.crawlers])
    _print_list(
        "by route:",
        [
            (line.section, f"{line.crawler}: visits {line.visits}, pages {line.pages}, last {_time(line.last)}", "")
            for line in figures.sections
        ],
    )
    _print_list("listed, and never crawled:", [(path, "", "") for path in never])
    _print_list("crawled, and not listed:", _path_rows(figures.not_listed))
    _print_list("errors:", _path_rows(figures.errors))
    _print_list("the sitemap and robots.txt:", _path_rows(figures.documents))


def _crawler_row(line: Any) -> Row:
    parts = [f"visits {line.visits}, pages {line.pages}, errors {line.errors}"]
    parts += [f"unverified {line.unverified}"] if line.unverified else []
    parts += [f"fake {line.fake}"] if line.fake else []
    parts += [f"last {_time(line.last)}"] if line.last is not None else []
    return line.crawler, ", ".join(parts), ""


def _path_rows(lines: Iterable[PathLine]) -> list[Row]:
    return [
        (
            line.path or "other paths",
            f"{line.status} to {line.crawler}: visits {line.visits}, last {_time(line.last)}",
            "",
        )
        for line in lines
    ]


def _print_list(heading: str, rows: Sequence[Row]) -> None:
    if not rows:
        return
    out = console()
    print_line(out, heading, "bold")
    print_rows(out, ((f"  {text}", about, style) for text, about, style in rows[:_MAX_LINES]))
    if len(rows) > _MAX_LINES:
        print_line(out, f"  and {len(rows) - _MAX_LINES} more: --json prints all")


def _time(timestamp: int) -> str:
    return w3c_from_timestamp(timestamp)
