"""The status of any store, read from outside the app without changing it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sitemap_middleware import Store, StoreError
from sitemap_middleware.cli.main import command
from sitemap_middleware.cli.results_as_json_and_csv import status_as_json
from sitemap_middleware.cli.results_as_text import print_status
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.schema import SCHEMA_VERSION
from sitemap_middleware.stores.sqlite.store import SQLiteStore
from sitemap_middleware.stores.store_status import SiteStatus, store_status

from ...support.command_line import cli_runner
from ...support.sample_sites import Page, SampleSite

BASE = "https://bakery.example"
NOW = 1_750_000_000
NEVER = 32_503_680_000
"""The year 3000: the command has the machine's own clock."""


def run(*arguments: str) -> Result:
    return cli_runner().invoke(command, ["status", *arguments], catch_exceptions=False)


def bakery(file: Path, **options: Any) -> SampleSite:
    pages = {"/": Page(), "/menu": Page(), "/bread/{name}": Page()}
    return SampleSite(
        "wsgi", pages, **{"base_url": BASE, "learn": "/bread/{name}", "store": f"sqlite:///{file}", **options}
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The store of a bakery that was visited, has a sitemap, and is closed."""
    file = tmp_path / "kept" / "sitemap.sqlite3"
    sample = bakery(file)
    sample.visit("/", "/menu", "/bread/rye", "/bread/spelt", "/bread/wheat")
    assert len(sample.locs()) == 5
    sample.app.close()
    return file


def as_it_lies(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_status_lists_a_store_by_site(file: Path) -> None:
    size = file.stat().st_size
    answer = run(f"sqlite:///{file}")
    assert (answer.exit_code, answer.stderr) == (0, "")
    version = f"SQLite {sqlite3.sqlite_version}, file version {SCHEMA_VERSION}"
    assert answer.stdout.splitlines() == [
        f"sqlite:///{file}",
        f"engine: {version}",
        f"size: {size:,} bytes, {size / 5:,.0f} a page",
        f"site {BASE}",
        "  pages seen: 5 (3 learned)",
        "  documents of learned pages: 1",
        "  last seen: 2025-06-15T15:06:40Z (or up to an hour later)",
        "  sitemap unchanged since 2025-06-15T15:06:40Z",
    ]


def test_json_status_says_the_same(file: Path) -> None:
    answer = run(f"sqlite:///{file}", "--json")
    assert answer.exit_code == 0
    status = json.loads(answer.stdout)
    assert status["sites"][0].pop("version") > 0
    assert status == {
        "store": f"sqlite:///{file}",
        "engine": "SQLite",
        "version": f"{sqlite3.sqlite_version}, file version {SCHEMA_VERSION}",
        "bytes": file.stat().st_size,
        "pages": 5,
        "bytes_per_page": file.stat().st_size / 5,
        "sites": [
            {
                "site": BASE,
                "pages_learned": 3,
                "pages_named": 2,
                "blocks": 1,
                "documents": 1,
                "last_seen": "2025-06-15T15:06:40Z",
                "last_changed": "2025-06-15T15:06:40Z",
            }
        ],
        "leases": [],
    }


def test_looking_changes_nothing(file: Path) -> None:
    before = as_it_lies(file.parent)
    assert run(f"sqlite:///{file}").exit_code == 0
    assert as_it_lies(file.parent) == before


def test_status_of_a_store_in_use_counts_all_its_files(file: Path) -> None:
    sample = bakery(file)
    sample.visit("/bread/baguette")
    status = json.loads(run(f"sqlite:///{file}", "--json").stdout)
    assert status["sites"][0]["pages_learned"] == 4
    assert status["bytes"] == sum(path.stat().st_size for path in file.parent.iterdir()) > file.stat().st_size
    sample.app.close()


def test_development_machine_is_listed_as_a_site(file: Path) -> None:
    local = bakery(file, base_url=None)
    local.request("/", host="localhost:8000")
    local.request("/", host="127.0.0.1:8000")
    local.app.flush()
    for host in ("localhost:8000", "127.0.0.1:8000"):
        assert local.request("/sitemap.xml", host=host).status == 200
        local.clock.pass_(60)
    local.app.close()
    store = SQLiteStore(file)
    store.served_since("not a base at all", "/sitemap.xml", '"1"', NOW)
    store.close()
    status = store_status(store, NOW)
    assert [(site.site, site.learned + site.named, site.last_changed) for site in status.sites] == [
        (BASE, 5, NOW),
        ("loopback:8000/", 1, NOW + 60),
    ]
    answer = run(f"sqlite:///{file}", "--site", BASE)
    assert "site https://bakery.example" in answer.stdout
    assert "loopback" not in answer.stdout


def test_running_leases_are_listed(file: Path) -> None:
    store = SQLiteStore(file)
    assert store.lease(BASE, "values/bread", "one", NEVER - 60, 60)
    assert store.lease(BASE, "ended", "one", NOW, 60)
    store.close()
    answer = run(f"sqlite:///{file}")
    assert answer.stdout.splitlines()[-1] == f"values/bread of {BASE}: in use by a process until 3000-01-01T00:00:00Z"
    assert "ended" not in answer.stdout
    (lease,) = json.loads(run(f"sqlite:///{file}", "--json").stdout)["leases"]
    assert lease == {"site": BASE, "name": "values/bread", "until": "3000-01-01T00:00:00Z"}


def test_empty_store_is_reported(tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "empty.sqlite3").check_writable()
    answer = run(f"sqlite:///{tmp_path}/empty.sqlite3")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[2].startswith("size: ")
    assert "a page" not in answer.stdout
    assert json.loads(run(f"sqlite:///{tmp_path}/empty.sqlite3", "--json").stdout)["bytes_per_page"] is None


def older(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    connection.close()


def of_another_program(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA application_id = 1")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (Path.unlink, "no store exists at "),
        (older, f"has version {SCHEMA_VERSION - 1}, but this code reads version {SCHEMA_VERSION}"),
        (of_another_program, "is not a sitemap store"),
        (lambda file: file.write_bytes(b"no database" * 1000), "file is not a database"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_and_left_alone(
    file: Path, spoil: Callable[[Path], Any], error: str
) -> None:
    spoil(file)
    before = as_it_lies(file.parent)
    answer = run(f"sqlite:///{file}")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.count("\n") == 1
    assert error in answer.stderr
    assert as_it_lies(file.parent) == before


def test_a_site_that_the_store_does_not_have_is_refused(file: Path) -> None:
    answer = run(f"sqlite:///{file}", "--site", "https://other.example")
    assert answer.exit_code == 2
    assert "has no pages of the site https://other.example" in answer.stderr


def test_memory_is_known_to_the_process_alone() -> None:
    answer = run("memory://")
    assert answer.exit_code == 2
    assert "only the running app knows" in answer.stderr


@pytest.mark.parametrize("url", ["nosuch://root:secret@db.example/1?password=secret", "sitemap.sqlite3", "own/app:app"])
def test_a_url_of_no_store_is_refused_and_no_password_is_printed(url: str) -> None:
    answer = run(url)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "names no store" in answer.stderr or f"no such file: {url}" in answer.stderr
    assert "secret" not in answer.stderr


# Another engine


class Shared:
    """An engine of one's own, which tells what the contract asks for."""

    name = "shared://store.example"

    def __init__(self) -> None:
        self._pages = MemoryStore()
        self._pages.merge(BASE, [Observation("/", "/", NOW, 200, "text/html")])
        self._pages.merge(BASE, [Observation("/a", "/{x}", NOW, 200, "text/html", learned=True)])

    def __getattr__(self, name: str) -> Any:
        if name == "sites":
            raise AttributeError(name)
        return getattr(self._pages, name)


class Telling(Shared):
    def sites(self) -> list[str]:
        return [BASE]


KEPT = SiteStatus(BASE, 2, 1, 1, 1, 1, None, None)


def test_unknown_engine_is_reported_as_far_as_possible(capsys: pytest.CaptureFixture[str]) -> None:
    store: Store = Telling()  # type: ignore[assignment] # it has every method
    status = store_status(store, NOW)
    sites = [*status.sites, *store_status(Shared(), NOW, [BASE]).sites]  # type: ignore[arg-type] # likewise
    assert [site._replace(version=2) for site in sites] == [KEPT, KEPT]
    print_status(status)
    assert capsys.readouterr().out.splitlines() == [
        "shared://store.example",
        "engine: shared",
        "size: not reported by this engine",
        f"site {BASE}",
        "  pages seen: 2 (1 learned)",
        "  documents of learned pages: 1",
    ]
    as_json = status_as_json(status)
    assert [as_json[name] for name in ("version", "bytes", "bytes_per_page", "leases")] == [None] * 4


def test_engine_without_a_list_of_sites_needs_them_named() -> None:
    store: Store = Shared()  # type: ignore[assignment] # likewise
    with pytest.raises(StoreError, match=r"cannot list its sites: name them, such as --site https://example\.com"):
        store_status(store, NOW)
