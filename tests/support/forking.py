"""Forking in a process that has no other threads.

Threads of other tests may hold a lock of SQLite at the moment of a fork. A child waits
for it forever, even if it does not use SQLite itself: coverage saves to it when a child ends.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


def run_in_fresh_process(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Call a function of a module in a new process, which has one thread. Returns its result, or raises its error."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def fork_children(
    work: Callable[..., object], arguments: Iterable[tuple[Any, ...]], seconds: float
) -> list[int | None]:
    """Fork a child for each tuple of arguments, all at once. Returns their exit codes; None for one that hung."""
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work, args=each) for each in arguments]
    for child in children:
        child.start()
    for child in children:
        child.join(seconds)
    exit_codes = [child.exitcode for child in children]
    for child in children:
        child.kill()
    return exit_codes
