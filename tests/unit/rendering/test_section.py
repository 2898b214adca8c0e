"""What the sections share: background work, which ends when the middleware is closed, and whose faults are logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware.exceptions import StoreError, ValuesError
from sitemap_middleware.rendering.provider_section import AlreadyRunning, ProcessEnding
from sitemap_middleware.rendering.section import BackgroundJob, RenderingResources


class Behind:
    """A request behind which nothing runs before the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def run_in_background(self, job: Callable[[], None]) -> None:
        self.jobs.append(job)


def test_work_that_was_to_end_ends_although_the_app_goes_on() -> None:
    nothing: Any = None
    resources, request = RenderingResources(nothing, nothing, float, 300, 400), Behind()
    before = resources.closing
    resources.run_in_background(request, lambda: None)  # type: ignore[arg-type]
    assert resources.closing is before
    resources.closing.set()
    resources.run_in_background(request, lambda: None)  # type: ignore[arg-type]
    assert before.is_set()
    assert not resources.closing.is_set()
    assert len(request.jobs) == 2


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (LookupError("a fault"), ["a background job of the sitemap failed"]),
        (StoreError("the circuit breaker logs it"), []),
        (ValuesError("logged with the provider"), []),
        (AlreadyRunning(), []),
        (ProcessEnding(), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_of_background_work_is_logged_although_nobody_waits_for_it(
    error: Exception, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        raise error

    job = BackgroundJob(work)
    job.run()
    assert job.done.is_set()
    assert job.error is error
    assert [record.message for record in caplog.records] == logged
    assert all(record.exc_info is not None and record.exc_info[1] is error for record in caplog.records)
