"""The benchmarks run, small: what they measure is still there, and what they check of it still holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("memory is measured on Linux alone", allow_module_level=True)

HERE = Path(__file__).parent.parent


@pytest.mark.long
def test_the_benchmarks_of_generation_and_scale_run_at_a_small_size_and_are_drawn(tmp_path: Path) -> None:
    sizes = ["--entries", "500", "--rounds", "2", "--pages", "1000"]
    command = [sys.executable, "-m", "benchmarks", "generation", "scale", *sizes, "--plot", str(tmp_path / "plots")]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, tables in (("generation", 3), ("scale", 4)):
        found = json.loads((tmp_path / "plots" / f"{name}.json").read_text())
        assert len(found["tables"]) == tables
        assert "cores" in found["machine"]
        assert found["machine"] in (tmp_path / "plots" / f"{name}.svg").read_text()
    (rendering,) = (table for table in found["tables"] if table["title"].startswith("All documents"))
    assert [row["name"] for row in rendering["rows"]] == ["1,000"]
    assert all(row["from rows, s"] > 0 for row in rendering["rows"])


def test_the_benchmark_of_stores_runs_at_a_small_size(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    sizes = ["--pages", "20", "--rounds", "2", "--items", "5000"]
    command = [sys.executable, "-m", "benchmarks", "stores", *sizes, "--json", str(figures)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tables = json.loads(figures.read_text())["tables"]
    assert [table["title"].partition(",")[0] for table in tables] == [
        "SQLite",
        "PostgreSQL",
        "Redis",
        "memory://",
        "Memory",
    ]
    for table in tables[:-1]:
        assert [row["name"] for row in table["rows"]] == ["new, batches of 20", "changed, batches of 20"]
        assert all(value > 0 for row in table["rows"] for name, value in row.items() if name != "name")
