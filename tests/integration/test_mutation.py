"""Mutation tests: the table of modules and their tests is true."""

from __future__ import annotations

from pathlib import Path

from ..mutation import TESTS

ROOT = Path(__file__).resolve().parents[2]


def test_every_module_and_every_test_file_in_the_table_exists() -> None:
    for module, names in TESTS.items():
        assert (ROOT / "sitemap_middleware" / f"{module.replace('.', '/')}.py").is_file(), module
        for name in names.split():
            assert (ROOT / "tests" / f"{name}.py").is_file(), f"{module}: {name}"


def test_mutation_table_covers_all_of_evidence_and_the_adapters() -> None:
    for package in ("adapters", "evidence"):
        modules = {file.stem for file in (ROOT / "sitemap_middleware" / package).glob("[a-z]*.py")}
        assert modules - {"relative_time_words"} <= {name.partition(".")[2] for name in TESTS}, (
            "relative_time_words has no code"
        )
