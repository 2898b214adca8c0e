"""What fits a terminal, and what is shown while a command works."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


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
