"""Isolate every test: no settings from the environment, a temporary working directory, seeds in the summary."""

from __future__ import annotations

import contextvars
import gc
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from sitemap_middleware import service
from sitemap_middleware.documents import handler

EXAMPLES = {"few": 15, "short": 60, "long": 20_000}
"""The number of examples of each profile. Only the long one has others in each run: a change must pass or fail alike."""

for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=name != "long",
        suppress_health_check=[HealthCheck.too_slow],
    )


FOLDERS = {"stores": "engines", "servers": "servers"}
"""The marker of all tests of a folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run only the tests marked long, with many more examples")


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # this process is measured; those that it starts, and tests kill, are not
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    if config.getoption("--hypothesis-profile") is None:
        settings.load_profile("long" if config.getoption("--long") else "short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = bool(config.getoption("--long"))
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        for folder, mark in FOLDERS.items():
            if f"tests/{folder}/" in item.nodeid:
                item.add_marker(mark)
    for item in items:  # `item.keywords` would have the ids of parameters, too
        right = (item.get_closest_marker("long") is not None) is wanted
        (selected if right else deselected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = selected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Run slow tests without coverage, which would double their time: other tests reach the same lines."""
    coverage = Coverage.current() if item.get_closest_marker("slow") else None
    if coverage:
        coverage.stop()
    try:
        return (yield)
    finally:
        if coverage:
            coverage.start()


def pytest_collection_finish() -> None:
    """Exempt the modules and the tests from garbage collection: they stay, and a look at them takes a third of a second."""
    gc.collect()
    gc.freeze()
    gc.collect()  # the next is due when a quarter more objects are there than this one leaves


class Tally:
    """Counts of a test, printed in the terminal summary."""

    def __init__(self, user_properties: list[tuple[str, object]]) -> None:
        self._user_properties = user_properties
        self._counts: Counter[str] = Counter()
        self._seeds: list[int] = []

    def count(self, *seeds: int, **counts: int) -> None:
        """Add to the counts, and note the random seeds behind them."""
        self._counts.update(counts)
        self._seeds += seeds
        parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in self._counts.items()]
        if self._seeds:
            parts.append(f"seeds from {self._seeds[0]} to {self._seeds[-1]}")
        self._user_properties[:] = [("tally", ", ".join(parts))]


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    return Tally(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]:
        for name, text in report.user_properties:
            if name == "tally":
                terminalreporter.write_line(f"{report.nodeid.partition('::')[2]}: {text}")


def _process_state() -> dict[str, object]:
    """Global state that a test must restore, because later tests would depend on it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    # The interpreter sets `decimal_context` when a thread first needs it, asgiref the others on Django's first request.
    context = contextvars.copy_context()
    ignored = ("asgiref.local", "deadlock_context", "decimal_context")
    variables = {variable: value for variable, value in context.items() if variable.name not in ignored}
    logger = logging.getLogger("sitemap_middleware")
    return {
        "environment variables": environment,
        "context variables": variables,
        "logging": (logger.level, logger.propagate, logger.disabled, list(logger.handlers)),
    }


@pytest.fixture(autouse=True)
def _restores_process_state() -> Iterator[None]:
    """Fail a test that passed but leaves global state changed."""
    before = _process_state()
    yield
    after = _process_state()
    assert {kind: state for kind, state in after.items() if state != before[kind]} == {}


@pytest.fixture(autouse=True)
def _isolated(_restores_process_state: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the CLI prepends the working directory
    # A request of the middleware may outlast its test: Django would log it among the messages of another test.
    monkeypatch.setattr(logging.getLogger("django.request"), "propagate", False)
    for name in [name for name in os.environ if name.startswith("SITEMAP_")]:
        monkeypatch.delenv(name)
    # Else a busy machine would get the last good document where a test expects the next one.
    monkeypatch.setattr(handler, "DEADLINE_SECONDS", 30.0)


@pytest.fixture(autouse=True)
def _closes_middlewares(_isolated: None) -> Iterator[None]:
    """Close the middlewares that a test made: their threads would run on, and log messages, in later tests."""
    before = WeakSet(service._services)  # which lets go of them: garbage is mostly collected while a test runs
    yield
    for made in set(service._services).difference(before):
        with suppress(Exception):
            made.stop_background_work()
            made.tracker.buffer.close(1)


@pytest.fixture(autouse=True)
def _restores_django_settings() -> Iterator[None]:
    yield
    if django_project := sys.modules.get("tests.support.django_project"):
        django_project.restore()


@pytest.fixture
def start_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type[Any]], Any]]:
    """Starts store engines (`tests.support.engines`) and stops them after the test."""
    with ExitStack() as stack:

        def make(kind: type[Any]) -> Any:
            engine = kind(tmp_path, monkeypatch)
            stack.callback(engine.close)
            return engine

        yield make
