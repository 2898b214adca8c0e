"""What the sections share: their background work ends when the middleware is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sitemap_middleware.rendering.section import RenderingResources


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
