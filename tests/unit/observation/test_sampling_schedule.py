"""When the body of a page is sampled again: soon while it changes, and ever later while it does not."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.models import Site
from sitemap_middleware.observation.sampling_schedule import (
    MAX_SAMPLE_INTERVAL_SECONDS,
    MIN_SAMPLE_INTERVAL_SECONDS,
    BodySampler,
    SampleSchedule,
    content_length,
)

SITE = Site("https", "example.com")
LENGTH, TYPE = ("Content-Length", "5"), ("Content-Type", "text/html")
DUE_AT = 10_000.0


@pytest.mark.parametrize(
    ("at", "is_due"),
    [
        (DUE_AT - MAX_SAMPLE_INTERVAL_SECONDS - 1, True),
        (DUE_AT - MAX_SAMPLE_INTERVAL_SECONDS, False),
        (DUE_AT - 0.1, False),
        (DUE_AT, True),
        (DUE_AT + 1, True),
    ],
    ids=["the clock was wrong", "just sampled", "soon due", "due", "overdue"],
)
def test_no_sample_is_due_before_its_time(at: float, *, is_due: bool) -> None:
    schedule = SampleSchedule(DUE_AT, 5, LENGTH, TYPE, None)
    assert schedule.is_due(at, [TYPE, LENGTH]) is is_due


@pytest.mark.parametrize(
    ("length", "media_type", "headers", "is_due"),
    [
        (LENGTH, TYPE, [LENGTH, TYPE], False),
        (LENGTH, TYPE, [("content-length", "5"), ("content-type", "text/html")], False),
        (LENGTH, TYPE, [("content-length", "6"), TYPE], True),
        (LENGTH, TYPE, [("CONTENT-LENGTH", "5"), ("Content-type", "text/html")], False),
        (LENGTH, TYPE, [("CONTENT-LENGTH", "6"), TYPE], True),
        (LENGTH, TYPE, [(b"Content-length", b"6"), (b"CONTENT-TYPE", b"text/html")], True),
        (LENGTH, TYPE, [LENGTH, ("Content-type", "text/plain")], True),
        (LENGTH, TYPE, [LENGTH, ("Content-Type", "text/plain"), ("x-same-chars", "1")], True),
        (LENGTH, TYPE, [LENGTH, ("content-type", "text/plain")], True),
        (LENGTH, TYPE, [TYPE], True),
        (LENGTH, TYPE, [LENGTH], True),
        (LENGTH, TYPE, [], True),
        (None, TYPE, [TYPE], False),
        (None, TYPE, [TYPE, LENGTH], True),
        (LENGTH, None, [LENGTH], False),
        (None, None, [], False),
        ((b"content-length", b"5"), None, [(b"content-length", b"5")], False),
        ((b"content-length", b"5"), None, [(b"content-length", b"6")], True),
        (None, None, [(["content-length"], "5")], False),
        (None, None, [()], False),
        (None, None, [(["content-length"] * 14, "5")], False),
        (None, None, [((None,) * 14, "5")], False),
    ],
)
def test_sample_is_due_at_once_if_length_or_type_is_another(
    length: Any, media_type: Any, headers: Any, *, is_due: bool
) -> None:
    assert SampleSchedule(DUE_AT, 5, length, media_type, None).is_due(DUE_AT - 1, headers) is is_due


@pytest.mark.parametrize(
    "name", ["Content-Length", "content-length", "CONTENT-LENGTH", "Content-length", b"CONTENT-length"]
)
def test_length_is_read_whatever_the_case_of_its_name(name: Any) -> None:
    assert content_length([("x-same-length", "7"), (name, "5")]) == 5


def response(at: float, path: str = "/", headers: Any = (LENGTH, TYPE)) -> CapturedResponse:
    return CapturedResponse(SITE, path, at=at, status=200, headers=headers)


KEY = response(0).page_key


def test_schedule_has_what_was_sent_with_the_sample() -> None:
    sampler = BodySampler()
    assert sampler.find(KEY) is None
    schedule = sampler.schedule(response(1000))
    assert sampler.find(KEY) is schedule
    expected = SampleSchedule(1000 + MIN_SAMPLE_INTERVAL_SECONDS, MIN_SAMPLE_INTERVAL_SECONDS, LENGTH, TYPE, None)
    assert schedule == expected
    assert sampler.schedule(response(2000, headers=[TYPE])) is schedule
    assert (schedule.due_at, schedule.length) == (2000 + MIN_SAMPLE_INTERVAL_SECONDS, None)
    assert sampler.find(response(0, "/other").page_key) is None


def test_next_sample_of_page_is_due_after_an_interval() -> None:
    sampler = BodySampler()
    assert sampler.is_due(response(1000))
    sampler.schedule(response(1000))
    times = (1000, 1000 + MIN_SAMPLE_INTERVAL_SECONDS - 0.1, 1000 + MIN_SAMPLE_INTERVAL_SECONDS)
    assert [sampler.is_due(response(at)) for at in times] == [False, False, True]
    assert sampler.is_due(response(1000, "/other"))
    sampler.forget()
    assert sampler.is_due(response(1000))


def test_interval_doubles_up_to_a_quarter_of_an_hour_while_the_digest_is_equal() -> None:
    sampler = BodySampler()
    schedule = sampler.schedule(response(1000))
    intervals = []
    for _ in range(10):
        sampler.record_digest(KEY, 7)
        intervals.append(schedule.interval)
    doubled = [MIN_SAMPLE_INTERVAL_SECONDS * 2**times for times in range(8)]
    assert intervals == [*doubled, MAX_SAMPLE_INTERVAL_SECONDS, MAX_SAMPLE_INTERVAL_SECONDS]
    assert schedule.due_at == 1000 + MIN_SAMPLE_INTERVAL_SECONDS, "the next sample is as planned"


def test_another_digest_brings_the_next_sample_forward() -> None:
    sampler = BodySampler()
    for digest in (7, 7, 7):
        schedule = sampler.schedule(response(1000))
        sampler.record_digest(KEY, digest)
    assert (schedule.due_at, schedule.interval) == (1010, 20)
    sampler.schedule(response(2000))
    sampler.record_digest(KEY, 8)
    expected = (2000 + MIN_SAMPLE_INTERVAL_SECONDS, MIN_SAMPLE_INTERVAL_SECONDS, 8)
    assert (schedule.due_at, schedule.interval, schedule.digest) == expected


def test_digest_of_a_page_without_a_schedule_is_ignored() -> None:
    sampler = BodySampler()
    sampler.record_digest(KEY, 7)
    assert sampler.find(KEY) is None
