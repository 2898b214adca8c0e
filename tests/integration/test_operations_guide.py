"""The operator's guide is true: every line of the log is in it, backups can be restored, what it says of upgrades holds."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import sitemap_middleware
from sitemap_middleware.crawlers.known_crawlers import CRAWLERS
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.prometheus_and_opentelemetry import METRICS
from sitemap_middleware.stores.sqlite.schema import SCHEMA_VERSION
from sitemap_middleware.stores.sqlite.store import SQLiteStore

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = Path(sitemap_middleware.__file__).parent
LOUD = {"info", "warning", "warn", "error", "critical", "exception", "log"}
"""Methods of a logger that an operator may come to read."""
PASSED_ON = {"_warn_once": 1, "log_fault": 0, "guard": 0, "_on_error": 0}
"""Methods of the package that log a text passed to them, and the index of that argument."""
SITE = "https://example.com"


def calls() -> Iterator[tuple[str, ast.Call, str, ast.expr]]:
    """Every call that logs: where, which, by what name, and the text."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name, of = node.func.attr, node.func.value
            place = f"{file.relative_to(PACKAGE)}:{node.lineno}"
            if isinstance(of, ast.Name) and of.id in ("log", "logger", "logging") and name in LOUD:
                yield place, node, name, node.args[0]
            elif name in PASSED_ON:
                yield place, node, name, node.args[PASSED_ON[name]]


def lines() -> list[tuple[str, str]]:
    """Every line that the package may log, with … for what differs, and where."""
    entries = []
    for place, _, name, text in calls():
        if isinstance(text, ast.Name) and text.id in ("message", "what"):
            continue  # within one of those that pass it on
        assert isinstance(text, ast.Constant), f"{place} logs a text that is not a literal, which cannot be looked up"
        message = str(text.value)
        if message.startswith("%s; "):
            continue  # likewise
        if name in ("log_fault", "guard", "_on_error"):
            message += "; further faults like this are not logged"
        entries.append((place, re.sub(r"%[sdr]", "…", message)))
    return entries


LINES = lines()


def explained() -> list[str]:
    """The lines that the guide explains, each with a cause and a cure."""
    section = (REFERENCE / "log.md").read_text("utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [line for line, cause, cure in rows if cause and cure]


def test_the_calls_that_log_are_found() -> None:
    assert len(LINES) > 20
    assert {name for _, _, name, _ in calls()} >= {"warning", "exception", *PASSED_ON}


@pytest.mark.parametrize(("place", "line"), LINES, ids=[f"{place}" for place, _ in LINES])
def test_every_line_of_the_log_is_explained(place: str, line: str) -> None:
    assert line in explained(), f"{place} logs a line that docs/reference/log.md does not explain: {line}"


def test_no_line_is_explained_that_is_never_logged() -> None:
    assert set(explained()) <= {line for _, line in LINES}


def test_guide_lists_every_figure_under_its_prometheus_name() -> None:
    text = (REFERENCE / "stats.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE))
    assert list(rows) == [metric.stat for metric in METRICS]
    for metric in METRICS:
        end = "_total" if metric.is_counter else "_seconds" if metric.unit == "s" else ""
        assert rows[metric.stat] == metric.name.replace(".", "_") + end


def test_guide_counts_the_known_crawlers() -> None:
    assert f"get a label value: {len(CRAWLERS)} at most" in (REFERENCE / "stats.md").read_text("utf-8")
    assert f"{len(CRAWLERS)} search and AI crawlers" in (ROOT / "docs" / "howto" / "crawlers.md").read_text("utf-8")


# Backup, upgrade, downgrade


def test_guide_names_the_version_of_the_file() -> None:
    assert f"The file has a version, now {SCHEMA_VERSION};" in (ROOT / "docs" / "operations.md").read_text("utf-8")


def store_with(file: Path, *paths: str) -> SQLiteStore:
    store = SQLiteStore(file)
    store.merge(SITE, [Observation(path, path, 1000, 200, "text/html") for path in paths])
    return store


def paths(file: Path) -> list[str]:
    store = SQLiteStore(file)
    stored = [page.path for page in store.pages(SITE)]
    store.close()
    return stored


@pytest.mark.parametrize("how", ["backup", "VACUUM INTO"])
def test_a_copy_made_while_the_store_is_in_use_is_a_store(how: str, tmp_path: Path) -> None:
    store = store_with(tmp_path / "sitemap.sqlite3", "/a", "/b")
    with closing(sqlite3.connect(tmp_path / "sitemap.sqlite3")) as source:
        if how == "backup":
            with closing(sqlite3.connect(tmp_path / "backup.sqlite3")) as backup:
                source.backup(backup)
        else:
            source.execute("VACUUM INTO ?", (str(tmp_path / "backup.sqlite3"),))
    store.merge(SITE, [Observation("/c", "/c", 2000, 200, "text/html")])
    store.close()
    assert paths(tmp_path / "backup.sqlite3") == ["/a", "/b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.sqlite3", "sitemap.sqlite3"]


def test_a_newer_file_that_was_set_aside_can_be_moved_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "sitemap.sqlite3"
    store_with(file, "/a").close()
    with closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert paths(file) == []
    assert f"is of version {SCHEMA_VERSION + 1}, newer than this code's {SCHEMA_VERSION}" in caplog.text
    (aside,) = tmp_path.glob("sitemap.sqlite3.aside-*")
    aside.replace(file)
    with closing(sqlite3.connect(file)) as newer:  # as the newer code finds it
        assert newer.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)
        assert newer.execute("SELECT path FROM page").fetchall() == [("/a",)]


def test_a_file_that_is_deleted_while_it_is_in_use_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.sqlite3"
    store = store_with(file, "/a")
    for path in tmp_path.iterdir():
        path.unlink()
    store.merge(SITE, [Observation("/b", "/b", 2000, 200, "text/html")])
    store.close()
    assert paths(file) == ["/b"]
