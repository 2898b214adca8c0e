"""Faults of the middleware are logged once and never raised."""

from __future__ import annotations

import logging

import pytest

from sitemap_middleware.observation.fault_log import FaultLog


def test_first_fault_is_logged_with_its_traceback_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    log_fault = FaultLog()
    for what in ("a response could not be read", "a body could not be sampled"):
        with log_fault.guard(what):
            raise ValueError("odd")
    (record,) = caplog.records
    assert record.getMessage() == "a response could not be read; further faults like this are not logged"
    assert record.exc_info is not None


def test_log_handler_that_raises_does_not_reach_the_app() -> None:
    class Raising(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            raise RuntimeError("the disk is full")

    logger, handler = logging.getLogger("sitemap_middleware"), Raising()
    logger.addHandler(handler)
    try:
        FaultLog()("a response could not be read", ValueError("odd"))
    finally:
        logger.removeHandler(handler)
