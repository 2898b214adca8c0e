"""Printing: what commands say, for people and as JSON. Without a terminal it is plain text."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..dates import w3c_from_timestamp
from ..evidence.confirmation import confirmed_contradiction
from ..evidence.response_parser import HTML_TYPES
from ..history import last_run
from ..listing.candidates import SiteSnapshot
from ..listing.inventory import InventoryLine
from ..listing.route_report import RouteReport
from ..models import Explanation
from ..stores.status import StoreStatus

PLAIN_WIDTH_COLUMNS: Final = 120
"""Columns of what is not printed on a terminal, so that it is the same everywhere."""

_UNDECIDED_ROUTES_HINT: Final = (
    "these routes have parameters, and their pages are neither enumerated, learned nor excluded."
    " Decorate each with @sitemap(values=...), @sitemap(learn=True) or @sitemap(exclude=True),"
    " or name it in the option learn or exclude:"
)

_LEASE_LABELS: Final = {"forget": "cleanup", "verify": "requests to unvisited pages"}
"""What a worker does while it holds a lease, by the lease's name."""


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
    terminal = sys.stdout.isatty()
    return Console(
        width=None if terminal else PLAIN_WIDTH_COLUMNS, force_terminal=terminal, highlight=False, emoji=False
    )


def print_explanation(told: Explanation, notes: Sequence[str]) -> None:
    out = console()
    verdict, *more = str(told).splitlines()
    lines = [Text(printable(verdict), "bold green" if told.listed else "bold red")]
    lines += [Text(printable(line)) for line in (*more, *_observation_lines(told))]
    lines += [Text(printable(f"note: {note}"), "dim") for note in notes]
    for line in lines:
        out.print(line, soft_wrap=True)  # a loc that is broken in two cannot be copied


def _observation_lines(told: Explanation) -> Iterator[str]:
    """What was seen of a page, and when."""
    page = told.page
    if page is None:
        if told.route is not None:
            yield "seen: never"
        return
    yield f"first seen: {w3c_from_timestamp(page.first_seen)}"
    yield f"last seen: {w3c_from_timestamp(page.last_seen)} (recorded at most once an hour)"
    yield f"status: {page.status}"
    yield f"type: {page.media_type or 'none'}"
    if page.modified is not None:
        yield f"Last-Modified: {w3c_from_timestamp(page.modified)}"
    if page.status != 200 or page.media_type not in HTML_TYPES or confirmed_contradiction(page) is not None:
        return
    if page.read_at:
        yield f"HTML read: {w3c_from_timestamp(page.read_at)}"
    contents = page.content_history
    if content := last_run(contents):
        yield f"content unchanged since {w3c_from_timestamp(content.first)}; versions known: {len(contents)}"


def print_route_report(
    states: Sequence[SiteSnapshot], surveyed: Sequence[RouteReport], notes: Sequence[str], path: str
) -> None:
    out = console()
    known, listed = sum(one.known for one in surveyed), sum(one.listed for one in surveyed)
    heading = f"{states[0].site.base_url}{path}: routes {len(surveyed)}, pages seen {known}, pages listed {listed}"
    out.print(Text(printable(heading), "bold"), soft_wrap=True)
    hosts = any(one.route.host for one in surveyed)
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else box.ASCII2, safe_box=True)
    for name in ("route", *(["host"] if hosts else []), "listed", "why", "seen", "lastmod from"):
        table.add_column(name, overflow="fold", justify="right" if name == "seen" else "left")
    for one in surveyed:
        cells = [one.route.path, *([one.route.host or ""] if hosts else []), "yes" if one.verdict.listed else "no"]
        cells += [one.verdict.reason, str(one.known), _lastmod_sources(one)]
        style = "yellow" if one.undecided else "" if one.verdict.listed else "dim"
        table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
    out.print(table)
    undecided = [one.route for one in surveyed if one.undecided]
    if undecided:
        out.print(Text(f"warning: {_UNDECIDED_ROUTES_HINT}", "yellow"), soft_wrap=True)
        for route in undecided:
            out.print(Text(printable(f"  {route.path} ({route.endpoint})")), soft_wrap=True)
    for note in notes:
        out.print(Text(printable(f"note: {note}"), "dim"), soft_wrap=True)


def print_status(told: StoreStatus) -> None:
    lines = [Text(printable(f"{told.store}: {' '.join(filter(None, (told.engine, told.version)))}"), "bold")]
    each = f", {told.size / told.pages:,.0f} a page" if told.size is not None and told.pages else ""
    lines.append(Text("size: not reported by this engine" if told.size is None else f"size: {told.size:,} bytes{each}"))
    for kept in told.sites:
        lines += [
            Text(printable(f"site {base_url_of_key(kept.site)}"), "bold"),
            Text(f"  pages seen: {kept.learned + kept.named:,} ({kept.learned:,} learned)"),
            Text(f"  documents of learned pages: {kept.documents:,}"),
        ]
        if kept.last_seen is not None:
            lines.append(Text(f"  last seen: {w3c_from_timestamp(kept.last_seen)} (recorded at most once an hour)"))
        if kept.last_changed is not None:
            lines.append(Text(f"  sitemap unchanged since {w3c_from_timestamp(kept.last_changed)}"))
    for lease in told.leases or ():
        job = _LEASE_LABELS.get(lease.name, lease.name)
        lines.append(
            Text(printable(f"{job} of {lease.site}: claimed by a worker until {w3c_from_timestamp(lease.until)}"))
        )
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True)


def status_as_json(told: StoreStatus) -> dict[str, Any]:
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
                "last_seen": None if kept.last_seen is None else w3c_from_timestamp(kept.last_seen),
                "last_changed": None if kept.last_changed is None else w3c_from_timestamp(kept.last_changed),
            }
            for kept in told.sites
        ],
        "leases": None
        if told.leases is None
        else [{"site": one.site, "name": one.name, "until": w3c_from_timestamp(one.until)} for one in told.leases],
    }


def _lastmod_sources(one: RouteReport) -> str:
    """Where the lastmod of a route's pages comes from; of how many each, where it has several."""
    counted = sorted(one.lastmod.items(), key=lambda source: (-source[1], source[0]))
    if one.route.static:
        return "".join(source or "none" for source, _ in counted)
    return "; ".join(f"{source or 'none'}: {count}" for source, count in counted)


def route_report_as_json(
    states: Sequence[SiteSnapshot], surveyed: Sequence[RouteReport], notes: Sequence[str], path: str
) -> dict[str, Any]:
    return {
        "site": states[0].site.base_url,
        "sitemap": states[0].site.base_url + path,
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


def explanation_as_json(told: Explanation, notes: Sequence[str]) -> dict[str, Any]:
    """One explanation for programs."""
    entry, page = told.entry, told.page
    return {
        "path": told.path,
        "loc": told.loc,
        "listed": told.listed,
        "reason": told.reason,
        "route": told.route.path if told.route else None,
        "endpoint": told.route.endpoint if told.route else None,
        "lastmod": entry.lastmod if entry else None,
        "lastmod_from": told.lastmod_source,
        "changefreq": entry.changefreq if entry else None,
        "priority": entry.priority if entry else None,
        "status": page.status if page else None,
        "first_seen": w3c_from_timestamp(page.first_seen) if page else None,
        "last_seen": w3c_from_timestamp(page.last_seen) if page else None,
        "notes": list(notes),
    }


_PAGE_COLUMNS: Final = ("url", "listed", "reason", "lastmod", "lastmod_from", "route")


def print_pages(lines: Iterable[InventoryLine]) -> None:
    """One line a page: its URL and its date, or why it is not listed."""
    out = console()
    for line in lines:
        more = f"{line.lastmod} ({line.lastmod_from})" if line.lastmod else ""
        more = more if line.listed else f"not listed: {line.reason}"
        out.print(Text(printable(f"{line.url}  {more}".rstrip()), "" if line.listed else "dim"), soft_wrap=True)


def print_notes(notes: Iterable[str]) -> None:
    """What cannot be told from here, beside the answer and not in it."""
    for note in notes:
        print(printable(f"note: {note}"), file=sys.stderr)


def pages_as_json(lines: Iterable[InventoryLine]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [dict(zip(_PAGE_COLUMNS, line, strict=True)) for line in lines]


def pages_as_csv(lines: Iterable[InventoryLine]) -> str:
    """The same for spreadsheets."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_PAGE_COLUMNS)
    rows.writerows(lines)
    return out.getvalue()


def base_url_of_key(key: str) -> str:
    """A base_url by which the site of a store's key is found: a development machine's is known by its port alone."""
    kind, _, rest = key.partition(":")
    if kind != "loopback":
        return key
    port, _, path = rest.partition("/")
    routed, _, root = path.partition("/")
    host = routed or "localhost"
    return (f"http://{host}:{port}" if port.isdigit() else f"{port}://{host}") + (f"/{root}" if root else "")
