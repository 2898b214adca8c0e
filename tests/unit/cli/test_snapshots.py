"""What every command prints: on a terminal of 80 columns, and for programs.

The texts are in `snapshots/`. After a change that is meant, rewrite them, and read the difference:

    REWRITE_SNAPSHOTS=1 python3 tests tests/unit/cli/test_snapshots.py
    git diff tests/unit/cli/snapshots
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

from sitemap_middleware import __main__

SNAPSHOTS = Path(__file__).parent / "snapshots"
APP = "tests.apps.terminal_bakery:app"
LONG = "/posts/breads-of-the-house-and-how-we-bake-them-in-the-old-stone-oven-behind-the-mill"

COMMANDS = {
    "explain": ["explain", APP, "/menu", "https://bakery.example/offers", "/kitchen", LONG],
    "explain-error": ["explain", APP, "/menu", "menu"],
    "list": ["list", APP],
    "list-not-listed": ["list", APP, "--not-listed"],
    "changes": ["changes", APP],
    "changes-of-a-day": ["changes", APP, "--since", "1d"],
    "routes": ["routes", APP, "--strict"],
    "build": ["build", APP, "--out", "public"],
    "status": ["status", "bakery.sqlite3"],
}
FOR_PROGRAMS = {
    "explain.json": ["explain", APP, "/menu", "/offers", "--json"],
    "list.json": ["list", APP, "--json"],
    "list.csv": ["list", APP, "--csv"],
    "changes.json": ["changes", APP, "--json"],
    "routes.json": ["routes", APP, "--json"],
    "build.json": ["build", APP, "--out", "public", "--json"],
    "status.json": ["status", "bakery.sqlite3", "--json"],
}
UNSTYLED = {"list"}
VARYING = {
    r"SQLite [\d.]+": "SQLite <version>",
    r"last written: \S+": "last written: <time>",
    r"size: [\d,]+ bytes": "size: <bytes>",
    r'"(version|bytes|bytes_per_page|gzip_bytes|last_written)": .*?(,?)$': r'"\1": <varies>\2',
    r"[\d,]+ bytes as": "<bytes> bytes as",
    r'"SQLite <version>.*"': '"SQLite <version>"',
}
"""What depends on the machine."""


class Output(io.StringIO):
    """What a terminal shows, or what goes into a pipe."""

    encoding = "utf-8"

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture(scope="session")  # it can be made once only: its app keeps its store open
def bakery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bakery's site that was visited over ten days."""
    folder = tmp_path_factory.mktemp("bakery")
    with contextlib.chdir(folder):
        from ...apps import terminal_bakery

        terminal_bakery.visit_all()
    return folder


def run(arguments: list[str], columns: int | None) -> tuple[str, str]:
    """Run the program on a terminal of so many columns, or without one; return what it prints, and that as plain text."""
    out, errors = Output(is_terminal=columns is not None), Output(is_terminal=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("LINES", "50")
        patch.setenv("COLUMNS", str(columns or 80))
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        patch.setattr(sys, "argv", ["sitemap-middleware", *arguments])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as end:
            __main__.main()
    printed = out.getvalue()
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    status = end.value.code or 0
    sections = (
        f"$ sitemap-middleware {' '.join(arguments)}\n{plain}",
        f"-- standard error\n{errors.getvalue()}" if errors.getvalue() else "",
        f"-- exit status {status}\n" if status else "",
    )
    lines = "".join(sections).replace(str(Path.cwd()), "/bakery").splitlines()
    return printed, "".join(f"{line.rstrip()}\n" for line in lines)


def check(name: str, text: str) -> None:
    for pattern, constant in VARYING.items():
        text = re.sub(pattern, constant, text, flags=re.MULTILINE)
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("REWRITE_SNAPSHOTS"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_on_a_terminal(name: str, bakery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bakery)
    printed, text = run(COMMANDS[name], 80)
    assert ("\x1b[" in printed) is (name not in UNSTYLED)
    check(name, text)
    printed, _ = run(COMMANDS[name], None)
    assert "\x1b" not in printed


@pytest.mark.parametrize("columns", [80, None])
@pytest.mark.parametrize("name", FOR_PROGRAMS)
def test_for_programs(name: str, columns: int | None, bakery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bakery)
    printed, text = run(FOR_PROGRAMS[name], columns)
    assert "\x1b" not in printed
    check(name, text)
