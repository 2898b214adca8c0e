"""Detects whether this process runs tests, and which test. A test run writes nothing to disk by default."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


def current_test() -> str | None:
    """Return the name of the running test; an empty string between tests; None if this process runs no tests."""
    # A server that a test starts inherits the environment, so check that pytest runs in this very process.
    if "_pytest" in sys.modules and (test := os.environ.get("PYTEST_CURRENT_TEST")):
        return test.rpartition(" ")[0]  # "tests/test_a.py::test_b (call)"
    current = "" if "_pytest" in sys.modules and "PYTEST_VERSION" in os.environ else None
    for frame in _stack_frames() if "unittest.case" in sys.modules else ():
        module = str(frame.f_globals.get("__name__"))
        if module == "unittest.case" and (name := _test_case_name(frame.f_locals.get("self"))):
            return name
        if module.startswith("unittest.") and module != "unittest.mock":
            current = ""
    return current


def is_tested(app: Any) -> bool:
    """Whether this process runs tests, or the app's settings say so (Flask's `TESTING`)."""
    return current_test() is not None or getattr(app, "testing", None) is True


def _stack_frames() -> Iterator[FrameType]:
    """Yield the frames of this thread and of the main thread, because a test client may run the app in a thread."""
    frames = sys._current_frames()
    for thread in {threading.get_ident(), threading.main_thread().ident or 0}:
        frame = frames.get(thread)
        while frame is not None:
            yield frame
            frame = frame.f_back


def _test_case_name(case: Any) -> str:
    """Return the id of a `unittest.TestCase` instance; an empty string for anything else, such as its class."""
    name = getattr(case, "id", None)
    return str(name()) if callable(name) and not isinstance(case, type) else ""
