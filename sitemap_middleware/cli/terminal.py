"""What the commands share at a terminal: options, lines and rows that fit its width, progress, errors of one line."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.text import Text

from ..evidence.dates import timestamp_of

PLAIN_WIDTH_COLUMNS: Final = 1_000_000
"""Width of what does not go to a terminal: no line of a table is broken for programs."""

_MAX_HTML_ROWS: Final = 1000

_AGE: Final = re.compile(r"(\d{1,6})\s*([mhdw])")
_UNIT_SECONDS: Final = {"m": 60, "h": 60 * 60, "d": 24 * 60 * 60, "w": 7 * 24 * 60 * 60}

_Command = TypeVar("_Command", bound=Callable[..., Any])

Update = Callable[[int, int | None], None]
"""Shows how far a command is: the number of things done, and of all or None."""

Row = tuple[str, str, str]
"""A text, what is said about it, and the style of both."""


class CommandError(click.ClickException):
    """An error that ends a command. It is printed in one line."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.split())))


base_url_option = click.option(
    "--base-url", metavar="URL", help="Scheme and host of the site, if the app does not set them."
)
root_path_option = click.option(
    "--root-path", metavar="PATH", help="Path below which the server mounts the app, as in uvicorn --root-path."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
html_option = click.option(
    "--html", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write a page of HTML."
)


def app_options(wrapped: _Command) -> _Command:
    """Add the argument and the options of every command that is about an app."""
    return click.argument("app")(base_url_option(root_path_option(json_option(wrapped))))


def parse_since(text: str, now: int, option: str = "--since") -> int:
    """Return the POSIX time of an age, such as "7d", or of a date or datetime, in UTC unless it says otherwise.

    Raises `CommandError` if it is neither, or in the future.
    """
    if age := _AGE.fullmatch(text.strip()):
        return max(0, now - int(age[1]) * _UNIT_SECONDS[age[2]])
    try:
        moment = int(timestamp_of(datetime.fromisoformat(text.strip())))
    except (ValueError, OverflowError):
        raise CommandError(
            f"{option}={text!r} is no moment; give an age such as 24h, 7d or 2w, or a date such as 2026-01-31"
        ) from None
    if moment > now:
        raise CommandError(f"{option}={text!r} is in the future")
    return moment


def printable(text: str) -> str:
    """Escape what could control the terminal, or cannot be encoded for it."""
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    encoding = sys.stdout.encoding or "utf-8"
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


def console() -> Console:
    """A console for standard output. Colours and the terminal's width need a terminal."""
    is_terminal = sys.stdout.isatty()
    return Console(
        width=None if is_terminal else PLAIN_WIDTH_COLUMNS, force_terminal=is_terminal, highlight=False, emoji=False
    )


def print_line(out: Console, text: str, style: str = "") -> None:
    """Print a line, which the terminal breaks, so that a URL can be copied whole."""
    out.print(Text(printable(text), style), soft_wrap=True)


def print_rows(out: Console, rows: Iterable[Row]) -> None:
    """Print texts with what is said about each: in one line, for programs such as grep.

    On a terminal what is said is aligned, and stands below if it does not fit.
    """
    rows = list(rows)
    width = max((len(text) for text, _, _ in rows if len(text) <= out.width // 2), default=0) if out.is_terminal else 0
    for text, about, style in rows:
        line = f"{text:<{width}}  {about}".rstrip()
        for part in (text, f"    {about}") if about and len(line) > out.width else (line,):
            print_line(out, part, style)


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, default=str))


def print_notes(notes: Sequence[str]) -> None:
    """Print notes to standard error, so that output for programs stays valid."""
    for note in notes:
        click.echo(printable(f"note: {note}"), err=True)


def write_page(file: Path, template: str, context: dict[str, Any]) -> None:
    """Write one page of HTML that needs no other file. Raises `CommandError` if it cannot be written."""
    from ..report.template_rendering import STYLE, render  # needs the extra report

    more = {"style": STYLE.decode(), "max_rows": _MAX_HTML_ROWS, "made_at": time.time()}
    page = render(template, context | more)
    try:
        file.write_text(page, "utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"open {file}", err=True)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Update]:
    """Show on a terminal, on standard error, that a command works; provide a function that says how far it is."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with Console(stderr=True).status(what, spinner="line") as status:
        yield lambda done, total: status.update(f"{what}: {done:,}" + (f" of {total:,}" if total else ""))
