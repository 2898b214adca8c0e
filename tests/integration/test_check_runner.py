"""`python3 tests` takes no harm from the coverage of a killed process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from coverage import CoverageData
from coverage.sqldata import SCHEMA

from ..__main__ import remove_unfinished


def test_coverage_of_a_process_that_was_killed_while_it_wrote_is_removed(tmp_path: Path) -> None:
    whole = tmp_path / "coverage.whole"
    data = CoverageData(str(whole))
    data.add_arcs({f"/module_{number}.py": [(-1, 1), (1, 2)] for number in range(500)})
    data.close()
    (tmp_path / "coverage").write_text("is not one of those to combine")
    (tmp_path / "coverage.empty").touch()
    (tmp_path / "coverage.other").write_bytes(b"no database" * 1000)
    (tmp_path / "coverage.cut").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    statements = SCHEMA.split(";")
    for number in range(1, len(statements)):
        with closing(sqlite3.connect(tmp_path / f"coverage.{number}")) as database:
            database.executescript(";".join(statements[:number]))
    remove_unfinished(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"coverage", "coverage.whole"}
    kept = CoverageData(str(whole))
    kept.read()
    assert len(kept.measured_files()) == 500
