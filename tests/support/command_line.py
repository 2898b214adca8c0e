"""Run the command line in this process."""

from __future__ import annotations

import inspect
from typing import Any

from click.testing import CliRunner


def cli_runner(**options: Any) -> CliRunner:
    """A runner that keeps standard output and standard error apart, with every version of click."""
    if "mix_stderr" in inspect.signature(CliRunner).parameters:  # before click 8.2
        options["mix_stderr"] = False
    return CliRunner(**options)
