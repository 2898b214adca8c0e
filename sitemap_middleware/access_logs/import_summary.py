"""The summary of an import: how many lines of a log were counted, and how many were skipped, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class ImportSummary:
    """What a log had."""

    file: Path
    format: str = ""
    """The name of its format; empty if it is unknown."""
    problem: str = ""
    """Why it was not imported, or not to its end."""
    skipped_bytes: int = 0
    """Decompressed bytes that had been imported before."""
    skipped_rows: int = 0
    """Rows of a table that had been."""
    unfinished: bool = False
    """Whether its last line has no end yet, and so was left out."""
    lines: Counter[str] = field(default_factory=Counter)
    """How many lines were read now, by what became of them: `verified`, `fake` and `unverified` are visits of crawlers;
    `ignored` no requests for a whole page, `other` of other clients, `nameless` without a User-Agent, `other_host` for
    another host, `unknown_page` of a path that is unknown or that no URL can express, and `broken`."""
    crawlers: Counter[str] = field(default_factory=Counter)
    """How many visits of each crawler are verified."""
