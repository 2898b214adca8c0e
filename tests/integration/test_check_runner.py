"""`python3 tests` chooses rows of long tables, and takes no harm from the coverage of a killed process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from coverage import CoverageData
from coverage.sqldata import SCHEMA

from ..__main__ import FRAMEWORK_FREE, ROOT, remove_unfinished
from ..conftest import FEW_VALUES, ROWS, SOME_ROWS, representative_rows


class Row:
    """A test as pytest collects it, with the number of each parameter's value."""

    def __init__(self, name: str, **indices: int) -> None:
        self.nodeid = f"{name}[{indices}]" if indices else name
        if indices:
            self.callspec = SimpleNamespace(indices=indices)


def chosen(rows: list[Any]) -> list[Any]:
    """Return the representative rows, which are the same whatever the order of all."""
    some = representative_rows(rows)
    assert representative_rows(rows[::-1]) == some
    return list(some)


def test_a_long_table_is_represented_by_a_few_rows_with_each_value_that_names_something() -> None:
    table: list[Any] = [
        Row(f"{SOME_ROWS[0]}::test_table", header=header, protocol=protocol, kind=kind)
        for header in range(FEW_VALUES + 1)
        for protocol in range(2)
        for kind in range(FEW_VALUES)
    ]
    rows = [row.callspec.indices for row in chosen(table)]
    assert {row["kind"] for row in rows} == set(range(FEW_VALUES))
    assert {row["protocol"] for row in rows} == {0, 1}
    assert FEW_VALUES <= len(rows) <= FEW_VALUES + 1


def test_a_table_of_data_is_represented_by_eight_rows() -> None:
    assert len(chosen([Row(f"{SOME_ROWS[0]}::test_table", header=number) for number in range(400)])) == ROWS == 8


@pytest.mark.parametrize(
    "rows",
    [
        [Row(f"{SOME_ROWS[0]}::test_alone")],
        [Row(f"{SOME_ROWS[0]}::test_short", kind=number) for number in range(FEW_VALUES)],
        [Row("tests/frameworks/test_a.py::test_table", framework=number % 9, page=number) for number in range(400)],
        [Row("tests/stores/test_a.py::test_table", store=number % 9, page=number) for number in range(400)],
        [Row("tests/unit/adapters/test_a.py::test_table", page=number) for number in range(400)],
    ],
    ids=["no parameters", "few values", "frameworks", "stores", "adapters"],
)
def test_other_tests_are_represented_by_themselves(rows: list[Any]) -> None:
    assert len(chosen(rows)) == len(rows)


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


@pytest.mark.parametrize("name", SOME_ROWS)
def test_a_file_with_long_tables_exists_and_depends_on_no_framework(name: str) -> None:
    assert (ROOT / name).is_file()
    free = [f"tests/{path}" for path in FRAMEWORK_FREE]
    assert any(name.startswith((f"{path}.py", f"{path}/")) for path in free)
