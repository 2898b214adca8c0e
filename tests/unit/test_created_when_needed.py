"""`created_when_needed`: a part is created once, by whichever thread needs it first, and not before."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sitemap_middleware.created_when_needed import created_part, created_when_needed


class Owner:
    """Has a part, and calls a function whenever one is created."""

    def __init__(self, on_create: Callable[[], object] = int) -> None:
        self._on_create = on_create

    @created_when_needed
    def part(self) -> list[str]:
        """What is needed later."""
        self._on_create()
        return []


def test_part_is_created_when_it_is_needed_first_and_kept() -> None:
    created: list[None] = []
    owner = Owner(lambda: created.append(None))
    assert created_part(owner, "part") is None
    assert created == []
    part = owner.part
    assert owner.part is created_part(owner, "part") is part
    assert created == [None]


def test_each_object_has_a_part_of_its_own() -> None:
    assert Owner().part is not Owner().part


def test_class_has_the_property_with_its_documentation() -> None:
    assert Owner.part.__doc__ == "What is needed later."


def test_creation_that_fails_is_tried_again() -> None:
    errors = [OSError("not yet")]

    def fail_once() -> None:
        if errors:
            raise errors.pop()

    owner = Owner(fail_once)
    with pytest.raises(OSError, match="not yet"):
        _ = owner.part
    assert owner.part == []


def test_threads_that_need_a_part_at_the_same_time_get_the_same_one() -> None:
    barrier = threading.Barrier(2)
    owner = Owner(barrier.wait)  # both create one
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(owner.part)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found[0] is found[1] is owner.part
