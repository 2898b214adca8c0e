"""The folder for lines: nothing in it outlives its process for long."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sitemap_middleware.access_logs.temporary_folder import temporary_folder

KILLED = """
import os, signal
from sitemap_middleware.access_logs.temporary_folder import temporary_folder

with temporary_folder() as folder:
    (folder / "lines").write_text("66.249.66.1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _temporary_files_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_other_users_cannot_read_it_and_it_is_deleted(tmp_path: Path) -> None:
    with temporary_folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "lines").touch()
    assert list(tmp_path.iterdir()) == []


def test_the_next_import_deletes_that_of_a_killed_one(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    with temporary_folder():
        assert not left.exists()


def test_an_empty_one_is_kept_because_its_import_may_just_begin(tmp_path: Path) -> None:
    new = tmp_path / "sitemap-import-new"
    new.mkdir()
    with temporary_folder():
        assert new.exists()


def test_that_of_a_running_import_is_kept() -> None:
    with temporary_folder() as first:
        (first / "lines").touch()
        with temporary_folder():
            assert (first / "lines").exists()


def test_a_folder_that_a_link_leads_to_is_kept(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "lines").touch()
    (tmp_path / "sitemap-import-x").symlink_to(own)
    with temporary_folder():
        assert (own / "lines").exists()
