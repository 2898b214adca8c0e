"""The buffer of responses: bounded, started lazily, aware of forks, flushed before the process ends."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.exceptions import StoreError
from sitemap_middleware.models import Site
from sitemap_middleware.observation import saving_at_exit
from sitemap_middleware.observation.background_saving import MAX_PENDING_BODY_BYTES, ResponseBuffer

from ...support.waiting import until
from ...support.wire import RequestSpec, wsgi

ROOT = Path(__file__).parents[3]
SITE = Site("https", "example.com")


def captured(path: str = "/", at: float = 1000, status: int = 200) -> CapturedResponse:
    return CapturedResponse(SITE, path, at=at, status=status)


class Merged(list[CapturedResponse]):
    """Collects merged batches; fails while `failing` is set."""

    failing = False

    def __call__(self, batch: list[CapturedResponse]) -> None:
        if self.failing:
            raise RuntimeError("the store is down")
        self.extend(batch)

    @property
    def paths(self) -> list[str]:
        return sorted(response.path for response in self)


def new_buffer(merged: Merged, *, capacity: int = 10, expected: bool = True, interval: float = 3600) -> ResponseBuffer:
    return ResponseBuffer(merged, lambda _: expected, capacity, interval)


def flush_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sitemap"}


def test_thread_starts_with_the_first_response() -> None:
    before = flush_threads()
    buffer = new_buffer(Merged())
    assert not flush_threads() - before
    buffer.record(captured())
    assert len(flush_threads() - before) == 1
    buffer.close()


def test_flush_merges_all_pending_responses() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured("/a"))
    buffer.record(captured("/b"))
    buffer.flush()
    buffer.flush()
    assert merged.paths == ["/a", "/b"]
    buffer.close()


def test_latest_response_of_a_page_replaces_older_ones() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured(at=1))
    buffer.record(captured(at=2))
    buffer.flush()
    assert [response.at for response in merged] == [2]
    buffer.close()


@pytest.mark.parametrize("status", [200, 403])
def test_response_that_is_repeated_is_merged_again_after_each_flush(status: int) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    response = captured()
    response.status = status
    buffer.record(response)
    for _ in range(3):
        buffer.record_again(response)
        buffer.record_again(response)
        buffer.flush()
    assert merged == [response] * 3
    assert (buffer.seen, buffer.dropped) == (7, 0)
    buffer.close()


@pytest.mark.parametrize(("at", "kept"), [(2001.0, 2001.0), (2000.0, 2000.0), (1999.0, 2000.0)])
def test_response_that_is_recorded_at_its_end_replaces_none_that_began_later(at: float, kept: float) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured(at=2000))
    buffer.record_late(captured(at=at))
    buffer.flush()
    assert [response.at for response in merged] == [kept]
    buffer.close()


def test_discarded_response_is_not_merged() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    response = captured()
    buffer.record(response)
    buffer.discard(response)
    buffer.discard(response)
    buffer.flush()
    assert merged == []
    buffer.close()


@pytest.mark.parametrize(("expected", "expected_count"), [(True, 10), (False, 5)])
def test_pending_responses_are_bounded_and_strangers_fill_half_at_most(*, expected: bool, expected_count: int) -> None:
    merged = Merged()
    buffer = new_buffer(merged, capacity=10, expected=expected)
    for number in range(1000):
        buffer.record(captured(f"/{number}"))
    buffer.record(captured("/0", at=2000))
    assert (buffer.seen, buffer.dropped) == (expected_count + 1, 1000 - expected_count)
    buffer.flush()
    assert len(merged) == expected_count
    assert max(response.at for response in merged) == 2000
    buffer.close()


def test_failed_batch_waits_behind_newer_responses() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured("/a"))
    buffer.record(captured("/b"))
    merged.failing = True
    with pytest.raises(RuntimeError):
        buffer.flush()
    buffer.record(captured("/b", at=2000))
    merged.failing = False
    buffer.flush()
    assert sorted((response.path, response.at) for response in merged) == [("/a", 1000), ("/b", 2000)]
    buffer.close()


def test_failed_and_new_responses_share_one_limit() -> None:
    def hanging(batch: list[CapturedResponse]) -> None:
        for number in range(3):
            buffer.record(captured(f"/since/{number}"))
        buffer.record(captured("/5", at=2000))
        raise RuntimeError("the store hung")

    buffer = ResponseBuffer(hanging, lambda _: True, capacity=6, interval=3600)
    for number in range(6):
        buffer.record(captured(f"/{number}"))
    for _ in range(3):
        with pytest.raises(RuntimeError):
            buffer.flush()
        assert (buffer.pending, buffer.dropped) == (6, 3)
    buffer.close()


# What waits for the next flush


def sampled(path: str = "/", body: bytes | None = b"x", file_path: str | None = None) -> CapturedResponse:
    response = CapturedResponse(SITE, path, at=1000, status=200, body=body)
    response.file_path = file_path
    return response


def test_batch_has_the_responses_and_then_the_samples_in_their_order() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    batch = [captured("/b"), captured("/a"), sampled("/b"), sampled("/a")]
    for response in batch[:2]:
        buffer.record(response)
    for response in batch[2:]:
        buffer.record_sample(response)
    assert (buffer.pending, buffer.seen, buffer.dropped) == (4, 2, 0)
    buffer.flush()
    assert merged == batch
    assert (buffer.pending, buffer.seen, buffer.dropped) == (0, 2, 0)
    buffer.close()


def test_samples_are_bounded_in_number() -> None:
    buffer = new_buffer(Merged(), capacity=3)
    for _ in range(5):
        buffer.record_sample(sampled())
    assert (buffer.pending, buffer.dropped) == (3, 2)


def test_samples_are_bounded_in_bytes() -> None:
    buffer = new_buffer(Merged())
    half = bytes(MAX_PENDING_BODY_BYTES // 2)
    dropped = []
    for body in (half, half[1:], b"xx", b"x", b"x", b"", None):
        buffer.record_sample(sampled(body=body))
        dropped.append(buffer.dropped)
    assert dropped == [0, 0, 1, 1, 2, 2, 2]
    buffer.flush()
    buffer.record_sample(sampled(body=half + half))
    assert (buffer.pending, buffer.dropped) == (1, 2), "a flush has made room"


@pytest.mark.parametrize(
    ("statuses", "kept"),
    [
        ((200, 404), [404]),
        ((404, 200), [200]),
        ((200, 410, 404), [404]),
        ((200, 403), [200, 403]),
        ((403, 200), [403, 200]),
        ((200, 302, 302), [200, 302]),
        ((403, 302), [403, 302]),
        ((200, 400), [200]),
        ((200, 500), [200]),
        ((400, 200), [400, 200]),
        ((200, 304), [200, 304]),
    ],
    ids=str,
)
def test_response_that_may_depend_on_the_visitor_waits_beside_the_page(
    statuses: tuple[int, ...], kept: list[int]
) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    for status in statuses:
        buffer.record(captured(status=status))
    buffer.flush()
    assert [response.status for response in merged] == kept
    buffer.close()


@pytest.mark.parametrize(
    ("name", "value"), [("routing_headers", (("x-original-url", "/other"),)), ("host", "www.example.com")]
)
def test_response_to_unusual_headers_waits_beside_the_page_and_can_be_discarded(name: str, value: Any) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    usual, odd = captured(), captured(status=404)
    setattr(odd, name, value)
    for response in (usual, odd):
        buffer.record(response)
    assert buffer.pending == 2
    buffer.discard(odd)
    buffer.discard(captured())
    buffer.flush()
    assert merged == [usual]
    buffer.close()


@pytest.mark.parametrize("sample", [sampled(), sampled(body=None, file_path="/a/file")], ids=["body", "file"])
def test_failed_batch_keeps_its_samples(sample: CapturedResponse) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    response = captured()
    buffer.record(response)
    buffer.record_sample(sample)
    merged.failing = True
    with pytest.raises(RuntimeError):
        buffer.flush()
    assert buffer.pending == 2
    merged.failing = False
    buffer.flush()
    assert merged == [response, sample]
    buffer.close()


def test_buffer_is_idle_if_nothing_is_pending_and_no_flush_runs() -> None:
    idle: list[bool] = []
    buffer = ResponseBuffer(lambda _: idle.append(buffer.is_idle), lambda _: True, interval=3600)
    assert buffer.is_idle
    buffer.record(captured())
    assert not buffer.is_idle
    buffer.flush()
    assert (idle, buffer.is_idle) == ([False], True)
    buffer.record_sample(sampled())
    assert not buffer.is_idle
    buffer.close()


def test_age_of_the_last_flush_is_that_of_the_thread() -> None:
    now = [1000.0]
    merged = Merged()
    buffer = ResponseBuffer(merged, lambda _: True, interval=3600, clock=lambda: now[0])
    now[0] = 1010.0
    assert buffer.last_flush_age_seconds == 0, "no thread runs"
    buffer.record(captured())
    now[0] = 1015.0
    assert buffer.last_flush_age_seconds == 5
    merged.failing = True
    with pytest.raises(RuntimeError):
        buffer.flush()
    assert buffer.last_flush_age_seconds == 5
    merged.failing = False
    buffer.flush()
    assert buffer.last_flush_age_seconds == 0
    now[0] = 900.0
    assert buffer.last_flush_age_seconds == 0, "the clock was set back"
    buffer.close()


def test_flush_that_cannot_begin_in_time_is_left_out() -> None:
    batches: list[list[str]] = []

    def merge(batch: list[CapturedResponse]) -> None:
        batches.append([response.path for response in batch])
        if len(batches) == 1:
            buffer.record(captured("/late"))
            buffer.flush(timeout=0)  # while this one is in progress

    buffer = ResponseBuffer(merge, lambda _: True, interval=3600)
    buffer.record(captured("/early"))
    buffer.flush()
    assert batches == [["/early"]]
    buffer.flush(timeout=0)
    assert batches == [["/early"], ["/late"]]
    buffer.close()


def test_thread_reports_each_flush_and_whether_it_is_the_last() -> None:
    calls: list[Any] = []
    buffer = ResponseBuffer(
        lambda _: None,
        lambda _: True,
        interval=0.001,
        on_flush=calls.append,
        on_last_flush=lambda: calls.append("last"),
    )
    buffer.ensure_thread()
    _until(lambda: calls.count(False) > 1)
    buffer.ensure_thread()
    buffer.close()
    assert (calls[-2:], calls.count(True)) == (["last", True], 1)


def test_close_waits_no_longer_than_its_timeout() -> None:
    begun, released = threading.Event(), threading.Event()

    def hanging(_: Any) -> None:
        begun.set()
        released.wait(60)

    before = flush_threads()
    buffer = ResponseBuffer(hanging, lambda _: True, interval=0.001)
    buffer.record(captured())
    assert begun.wait(30)
    (thread,) = flush_threads() - before
    buffer.close(timeout=0.01)
    assert thread.is_alive()
    released.set()
    thread.join(30)
    assert not thread.is_alive()


def test_thread_is_a_daemon_with_a_name() -> None:
    before = flush_threads()
    buffer = new_buffer(Merged())
    buffer.record(captured())
    (thread,) = flush_threads() - before
    assert thread.daemon
    assert buffer.stop() is thread
    thread.join(10)
    assert buffer.stop() is thread, "whoever calls it again waits for the same thread"
    assert new_buffer(Merged()).stop() is None


# The thread


def test_thread_flushes_and_survives_a_failing_merge(caplog: pytest.LogCaptureFixture) -> None:
    merged = Merged()
    merged.failing = True
    buffer = new_buffer(merged, interval=0.01)
    buffer.record(captured())
    _until(lambda: bool(caplog.records))
    merged.failing = False
    _until(lambda: bool(merged))
    assert "observations of the last seconds could not be" in caplog.text
    buffer.close()


def test_thread_survives_whatever_else_fails_at_a_flush(caplog: pytest.LogCaptureFixture) -> None:
    failing = [RuntimeError("the visits of crawlers cannot be counted")]

    def on_flush(_: object) -> None:
        if failing:
            raise failing.pop()

    merged = Merged()
    buffer = ResponseBuffer(merged, lambda _: True, interval=0.01, on_flush=on_flush)
    buffer.record(captured("/a"))
    _until(lambda: bool(caplog.records))
    buffer.record(captured("/b"))
    _until(lambda: merged.paths == ["/a", "/b"])
    (record,) = caplog.records
    assert record.getMessage() == "the observations of the last seconds could not be saved"
    assert str((record.exc_info or (None, None))[1]) == "the visits of crawlers cannot be counted"
    buffer.close()


def test_failing_store_is_logged_once_and_responses_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    merged: list[CapturedResponse] = []
    merge_calls = threading.Semaphore(0)
    failing = [StoreError("down")] * 3

    def merge(batch: list[CapturedResponse]) -> None:
        merge_calls.release()
        if failing:
            raise failing.pop()
        merged.extend(batch)

    buffer = ResponseBuffer(merge, lambda _: True, interval=0.01)
    buffer.record(captured("/a"))
    for _ in range(4):
        assert merge_calls.acquire(timeout=10)
    buffer.close()
    assert [response.path for response in merged] == ["/a"]
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG], "the guard has said so"


def test_close_flushes_and_ends_the_thread_until_the_next_response() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.close()
    before = flush_threads()
    buffer.record(captured("/a"))
    (thread,) = flush_threads() - before
    buffer.close()
    assert merged.paths == ["/a"]
    assert not thread.is_alive()
    buffer.record(captured("/b"))
    buffer.close()
    assert merged.paths == ["/a", "/b"]


def test_thread_ends_when_its_buffer_is_garbage_collected() -> None:
    before = flush_threads()
    buffer = new_buffer(Merged(), interval=0.01)
    buffer.record(captured())
    (thread,) = flush_threads() - before
    del buffer
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_forked_child_has_its_own_thread_and_responses(tmp_path: Path) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    buffer.record(captured("/parent"))
    child = os.fork()
    if child == 0:  # what fails here is seen by the parent as an exit status
        buffer.record(captured("/child"))
        alive = len(flush_threads()) == 1
        buffer.close()
        os._exit(0 if alive and merged.paths == ["/child"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    buffer.flush()
    assert merged.paths == ["/parent"]
    buffer.close()


def test_middleware_that_nothing_refers_to_is_collected() -> None:
    app = flask.Flask("site")
    app.add_url_rule("/", "home", lambda: "home")
    wrapped = SitemapMiddleware(app, store="memory://", verify=False)
    before = flush_threads()
    assert wsgi(wrapped, RequestSpec("/")).status == 200
    assert len(flush_threads() - before) == 1
    service = weakref.ref(wrapped.service)
    del wrapped

    def is_collected() -> bool:
        gc.collect()
        return service() is None

    until(is_collected)


StartOfThread = Callable[[threading.Thread], None]


def replace_start(monkeypatch: pytest.MonkeyPatch, replaced: Callable[[threading.Thread, StartOfThread], None]) -> None:
    """Have `replaced` called for the threads that this one starts, with what starts them. Others start as usual."""
    test, start = threading.current_thread(), threading.Thread.start

    def patched(thread: threading.Thread) -> None:
        if threading.current_thread() is test:
            replaced(thread, start)
        else:
            start(thread)

    monkeypatch.setattr(threading.Thread, "start", patched)


def test_thread_that_starts_after_its_buffer_is_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[threading.Thread] = []
    buffer = new_buffer(Merged(), interval=0.01)
    with monkeypatch.context() as patched:
        replace_start(patched, lambda thread, _: late.append(thread))
        buffer.record(captured())
    del buffer
    gc.collect()
    [thread] = late
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_repeated_response_has_a_closed_buffer_flush_again() -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    response = captured("/page")
    merged.failing = True
    buffer.record(response)
    buffer.close()
    merged.failing = False
    assert buffer.pending == 1
    before = flush_threads()
    buffer.record_again(response)
    assert len(flush_threads() - before) == 1
    buffer.close()
    assert (merged.paths, buffer.seen) == (["/page"], 2)


def test_close_while_the_thread_is_being_started_has_it_flush_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    merged = Merged()
    buffer = new_buffer(merged)
    started: list[threading.Thread] = []

    def close_first(thread: threading.Thread, start: StartOfThread) -> None:
        started.append(thread)
        buffer.close()
        start(thread)

    replace_start(monkeypatch, close_first)
    buffer.record(captured("/page"))
    [thread] = started
    thread.join(10)
    assert not thread.is_alive()
    assert merged.paths == ["/page"]


SCRIPT = """
    import os, signal, sys
    from flask import Flask
    from sitemap_middleware import SitemapMiddleware
    app = Flask("site")
    app.add_url_rule("/", view_func=lambda: "home")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, store="sqlite:///pages.sqlite3", base_url="https://example.com")
    app.test_client().get("/")
    {end}
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        (
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
            7,
        ),
    ],
    ids=["the end of the script", "sys.exit", "the program's own handler of SIGTERM"],
)
def test_process_exit_flushes_and_keeps_its_exit_status(tmp_path: Path, end: str, status: int) -> None:
    from sitemap_middleware.stores.sqlite.store import SQLiteStore

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT).format(end=end)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=30,
        check=False,
    )
    assert done.returncode == status
    store = SQLiteStore(tmp_path / "pages.sqlite3")
    assert [page.path for page in store.pages("https://example.com")] == ["/"]
    store.close()


DROPPED = """
import asyncio, sys
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware

async def ask(app, path):
    scope = {{
        "type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"host", b"localhost"), (b"accept", b"text/html")], "http_version": "1.1",
    }}
    async def receive(): return {{"type": "http.request", "body": b"", "more_body": False}}
    async def send(_): pass
    await app(scope, receive, send)

def wrapped_app():
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse("<p>hi"))])
    app = SitemapMiddleware(app, base_url="http://localhost", verify=False, store={store!r})
    asyncio.run(ask(app, "/"))
    asyncio.run(ask(app, "/sitemap.xml"))
    return app

site = wrapped_app()
if {dropped}:
    del site
"""


@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize("store", ["sqlite:///{}/pages.sqlite3", "memory://", None])
def test_middleware_that_is_never_closed_leaves_nothing_open_at_exit(
    dropped: bool, store: str | None, tmp_path: Path
) -> None:
    code = DROPPED.format(store=store and store.format(tmp_path), dropped=dropped)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore::PendingDeprecationWarning", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_process_exit_waits_once_for_all_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    hung, released, waits = threading.Event(), [], []
    join, before = threading.Thread.join, flush_threads()

    def recording_join(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread in ours:  # and not one of a buffer that another test left
            waits.append(timeout)
        join(thread, timeout)

    def hang(_: list[CapturedResponse]) -> None:
        hung.wait(30)

    def buffer(ingest: Callable[[list[CapturedResponse]], None], name: str) -> ResponseBuffer:
        return ResponseBuffer(ingest, lambda _: True, 10, 3600, on_exit=lambda: released.append(name))

    buffers = [*(buffer(hang, "hanging") for _ in range(5)), buffer(Merged(), "sound")]
    for response_buffer in buffers:
        response_buffer.record(captured())
    ours = flush_threads() - before
    monkeypatch.setattr(threading.Thread, "join", recording_join)
    saving_at_exit.close_all(1.0)
    assert len(waits) == 6
    assert sum(waits) < 2.5  # a second for a thread that hangs and one for the sound one at most, not one for each
    assert released == ["sound"]
    hung.set()


def test_second_end_of_a_process_waits_for_the_flush_that_the_first_began() -> None:
    began, may_end = threading.Event(), threading.Event()
    calls: list[str] = []

    def ingest(_: list[CapturedResponse]) -> None:
        began.set()
        may_end.wait(30)
        calls.append("saved")

    buffer = ResponseBuffer(ingest, lambda _: True, 10, 3600, on_exit=lambda: calls.append("closed"))
    buffer.record(captured())
    first = threading.Thread(target=saving_at_exit.close_all)
    first.start()
    assert began.wait(10)
    saving_at_exit.close_all(0.01)
    assert calls == [], "the store is open as long as the flush runs"
    second = threading.Thread(target=saving_at_exit.close_all)
    second.start()
    may_end.set()
    first.join(10)
    second.join(10)
    assert calls == ["saved", "closed", "closed"]


def _until(true: object, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)
