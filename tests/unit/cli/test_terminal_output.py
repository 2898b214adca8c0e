"""What fits a terminal, and what is shown while a command works."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sitemap_middleware.cli.terminal_output import print_line, print_rows

ROOT = Path(__file__).resolve().parents[3]
URL = "https://shop.example/" + "a-long-path/" * 5


def lines(width: int, *, terminal: bool = True) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=width, force_terminal=terminal, color_system=None), file


def test_a_line_is_broken_between_words_and_indented() -> None:
    out, file = lines(24)
    print_line(out, "  one two three four five six seven")
    assert file.getvalue().splitlines() == ["  one two three four", "      five six seven"]


@pytest.mark.parametrize("text", [URL, f"loc: {URL}", f"see {URL} and others"])
def test_a_url_is_in_one_piece(text: str) -> None:
    out, file = lines(24)
    print_line(out, text)
    assert URL in file.getvalue()


def test_rows_are_aligned_and_what_does_not_fit_stands_below() -> None:
    out, file = lines(40)
    print_rows(out, [("/a", "yes", ""), ("/about", "no", ""), ("/b", "", ""), ("/c", "because " * 8, "")])
    assert file.getvalue().splitlines() == [
        "/a      yes",
        "/about  no",
        "/b",
        "/c",
        "    because because because because",
        "    because because because because",
    ]


def test_without_a_terminal_a_row_is_a_line() -> None:
    out, file = lines(40, terminal=False)
    print_rows(out, iter([("/a", "yes", ""), (URL, "because " * 8, "")]))
    assert file.getvalue().splitlines() == ["/a  yes", f"{URL}  {('because ' * 8).rstrip()}"]


APP = """
from flask import Flask
from sitemap_middleware import SitemapMiddleware, sitemap

app = Flask(__name__, static_folder=None)
app.add_url_rule("/<int:number>", "page", sitemap(values=range(2500))(lambda number: "page"))
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", store="memory://", robots=False)
"""


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["list", "own_shop:app", "--csv"], "pages read: 2,000"),
        (["build", "own_shop:app", "--out", "out"], "documents"),
    ],
)
def test_progress_is_shown_on_a_terminal_and_never_in_the_output(arguments: list[str], shown: str) -> None:
    Path("own_shop.py").write_text(APP, "utf-8")
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    with Path("output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sitemap_middleware", *arguments], env=environment, stdout=output, stderr=slave
        )
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):  # Linux raises it when the process has closed the terminal
        while chunk := os.read(master, 65_536):
            seen += chunk
    os.close(master)
    assert process.wait() == 0, seen
    assert shown in seen.decode()
    assert b"\x1b" not in Path("output").read_bytes()
    assert b"pages read" not in Path("output").read_bytes()
