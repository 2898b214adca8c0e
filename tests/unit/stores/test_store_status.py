"""The status of any store, read from outside the app without changing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sitemap_middleware.cli.main import command
from sitemap_middleware.stores.sqlite import SQLiteStore
from sitemap_middleware.stores.stored_sites import store_status

from ...support.command_line import cli_runner
from ...support.sample_sites import Page, SampleSite

BASE = "https://bakery.example"


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


def test_looking_changes_nothing(file: Path) -> None:
    before = as_it_lies(file.parent)
    assert run(f"sqlite:///{file}").exit_code == 0
    assert as_it_lies(file.parent) == before


def test_status_of_a_store_in_use(file: Path) -> None:
    sample = bakery(file)
    sample.visit("/bread/baguette")
    status = json.loads(run(f"sqlite:///{file}", "--json").stdout)
    assert status["sites"][0]["pages_learned"] == 4
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
    status = store_status(SQLiteStore(file))
    assert [(site.site, site.learned + site.named) for site in status.sites] == [(BASE, 5), ("loopback:8000/", 1)]
    answer = run(f"sqlite:///{file}", "--site", BASE)
    assert "site https://bakery.example" in answer.stdout
    assert "loopback" not in answer.stdout


def test_empty_store_is_reported(tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "empty.sqlite3").check_writable()
    answer = run(f"sqlite:///{tmp_path}/empty.sqlite3")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [f"sqlite:///{tmp_path}/empty.sqlite3"]


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
