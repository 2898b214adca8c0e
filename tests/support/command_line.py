"""Run the command line in this process."""

from __future__ import annotations

import inspect
from typing import Any, Final

from click.testing import CliRunner

RUNNER_OPTIONS: Final[dict[str, Any]] = (
    {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
)
"""Keep standard output and standard error apart, which click does by itself from 8.2 on."""


def cli_runner(**options: Any) -> CliRunner:
    """A runner that keeps standard output and standard error apart, with every version of click."""
    return CliRunner(**RUNNER_OPTIONS, **options)
