"""Test runs: whether this process runs tests, and which one runs now. Then nothing is written to disk by default."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

_TEST_RUNNERS: Final = frozenset({"_pytest", "behave", "doctest", "nose2", "ward"})
"""Packages that run tests. Their code is on the stack while a test runs, and while its module is imported."""


def current_test() -> str | None:
    """The name of the test that runs now; empty between tests; None if this process runs no tests.

    The environment alone proves nothing: a server that a test starts inherits it. So pytest must be imported here, too.
    """
    said = os.environ.get("PYTEST_CURRENT_TEST")  # "tests/test_a.py::test_b (call)"
    if said and "_pytest" in sys.modules:
        return said.rpartition(" ")[0]
    found = None
    for frame in _stack_frames():
        module = str(frame.f_globals.get("__name__"))
        if module == "unittest.case" and (name := _test_case_name(frame.f_locals.get("self"))):
            return name
        if module.partition(".")[0] in _TEST_RUNNERS or (module.startswith("unittest.") and module != "unittest.mock"):
            found = ""
    return found


def is_tested(app: Any) -> bool:
    """Whether this process runs tests, or the app's own settings say so (Flask's `TESTING`)."""
    return current_test() is not None or getattr(app, "testing", None) is True


def _stack_frames() -> Iterator[FrameType]:
    """What runs now on this thread, and on the main one: test clients may run an app on a thread of their own."""
    frames = sys._current_frames()
    for thread in {threading.get_ident(), threading.main_thread().ident or 0}:
        frame = frames.get(thread)
        while frame is not None:
            yield frame
            frame = frame.f_back


def _test_case_name(case: Any) -> str:
    """The name of a unittest.TestCase; empty for anything else, such as its class."""
    name = getattr(case, "id", None)
    return str(name()) if callable(name) and not isinstance(case, type) else ""
