"""Every test stands alone: no settings from the environment, a folder of its own to write in, seeds that are printed."""

from __future__ import annotations

import contextvars
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"few": 15, "short": 60, "long": 20_000}
for name, examples in EXAMPLES.items():
    settings.register_profile(name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="run what is marked long, with many more examples, and it alone"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--hypothesis-profile") is None:
        settings.load_profile("long" if config.getoption("--long") else "short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = bool(config.getoption("--long"))
    deselected = [item for item in items if ("long" in item.keywords) != wanted]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if ("long" in item.keywords) == wanted]


class Tally:
    """What a test counts, to be told when all have run."""

    def __init__(self, told: list[tuple[str, object]]) -> None:
        self._told = told
        self._counts: Counter[str] = Counter()
        self._seeds: list[int] = []

    def count(self, *seeds: int, **counts: int) -> None:
        """Count things, and note the seeds that they came of."""
        self._counts.update(counts)
        self._seeds += seeds
        said = [f"{name.replace('_', ' ')} {count:,}" for name, count in self._counts.items()]
        if self._seeds:
            said.append(f"seeds from {self._seeds[0]} to {self._seeds[-1]}")
        self._told[:] = [("tally", ", ".join(said))]


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    return Tally(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]:
        for name, said in report.user_properties:
            if name == "tally":
                terminalreporter.write_line(f"{report.nodeid.partition('::')[2]}: {said}")


def _state_of_the_process() -> dict[str, object]:
    """What a test must leave as it was, or tests that run later depend on it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    # The interpreter itself sets `decimal_context`, where a thread first needs it.
    variables = {one: value for one, value in contextvars.copy_context().items() if one.name != "decimal_context"}
    logger = logging.getLogger("sitemap_middleware")
    return {
        "environment variables": environment,
        "context variables": variables,
        "logging": (logger.level, logger.propagate, logger.disabled, list(logger.handlers)),
    }


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """A test that fails here has passed, and would have changed the result of another."""
    before = _state_of_the_process()
    yield
    after = _state_of_the_process()
    assert {kind: state for kind, state in after.items() if state != before[kind]} == {}


@pytest.fixture(autouse=True)
def _alone(_leaves_nothing_behind: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the commands put the working directory in front
    for name in ("SITEMAP_BASE_URL", "SITEMAP_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type[Any]], Any]]:
    """Makes engines of stores (`tests.support.engines`), and does away with them."""
    with ExitStack() as stack:

        def make(kind: type[Any]) -> Any:
            engine = kind(tmp_path, monkeypatch)
            stack.callback(engine.close)
            return engine

        yield make
