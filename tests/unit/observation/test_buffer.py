"""The recorder: bounded, lazy, aware of forks, and emptied before a process ends."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings
from pathlib import Path

import pytest

from sitemap_middleware.exceptions import StoreError
from sitemap_middleware.models import Site
from sitemap_middleware.observation import buffer as recorder_module
from sitemap_middleware.observation.buffer import ResponseBuffer
from sitemap_middleware.observations import CapturedResponse

ROOT = Path(__file__).parents[3]
SITE = Site("https", "example.com")


def sighting(path: str = "/", at: float = 1000, status: int = 200) -> CapturedResponse:
    return CapturedResponse(SITE, path, at=at, status=status)


class Folded(list[CapturedResponse]):
    """Takes batches; fails while `failing`."""

    failing = False

    def __call__(self, batch: list[CapturedResponse]) -> None:
        if self.failing:
            raise RuntimeError("the store is down")
        self.extend(batch)

    @property
    def paths(self) -> list[str]:
        return sorted(one.path for one in self)


def recorder(folded: Folded, *, capacity: int = 10, expected: bool = True, interval: float = 3600) -> ResponseBuffer:
    return ResponseBuffer(folded, lambda _: expected, capacity, interval)


def test_no_thread_starts_before_the_first_sighting() -> None:
    made = recorder(Folded())
    assert made._thread is None
    made.record(sighting())
    assert made._thread in threading.enumerate()
    made.close()


def test_flush_folds_all_that_waits() -> None:
    folded = Folded()
    made = recorder(folded)
    made.record(sighting("/a"))
    made.record(sighting("/b"))
    made.flush()
    made.flush()
    assert folded.paths == ["/a", "/b"]
    made.close()


def test_of_one_page_the_latest_sighting_is_kept() -> None:
    folded = Folded()
    made = recorder(folded)
    made.record(sighting(at=1))
    made.record(sighting(at=2))
    made.flush()
    assert [one.at for one in folded] == [2]
    made.close()


def test_a_sighting_taken_back_is_not_folded() -> None:
    folded = Folded()
    made = recorder(folded)
    one = sighting()
    made.record(one)
    made.discard(one)
    made.discard(one)
    made.flush()
    assert folded == []
    made.close()


@pytest.mark.parametrize(("expected", "kept"), [(True, 10), (False, 5)])
def test_pending_responses_are_bounded_and_strangers_fill_half_at_most(*, expected: bool, kept: int) -> None:
    folded = Folded()
    made = recorder(folded, capacity=10, expected=expected)
    for number in range(1000):
        made.record(sighting(f"/{number}"))
    made.record(sighting("/0", at=2000))
    assert (made.seen, made.dropped) == (kept + 1, 1000 - kept)
    made.flush()
    assert len(folded) == kept
    assert max(one.at for one in folded) == 2000
    made.close()


def test_failed_batch_waits_behind_newer_responses() -> None:
    folded = Folded()
    made = recorder(folded)
    made.record(sighting("/a"))
    made.record(sighting("/b"))
    folded.failing = True
    with pytest.raises(RuntimeError):
        made.flush()
    made.record(sighting("/b", at=2000))
    folded.failing = False
    made.flush()
    assert sorted((one.path, one.at) for one in folded) == [("/a", 1000), ("/b", 2000)]
    made.close()


def test_failed_and_new_responses_share_one_limit() -> None:
    def hanging(batch: list[CapturedResponse]) -> None:
        for number in range(3):
            made.record(sighting(f"/since/{number}"))
        made.record(sighting("/5", at=2000))
        raise RuntimeError("the store hung")

    made = ResponseBuffer(hanging, lambda _: True, capacity=6, interval=3600)
    for number in range(6):
        made.record(sighting(f"/{number}"))
    for _ in range(3):
        with pytest.raises(RuntimeError):
            made.flush()
        assert (made.pending, made.dropped) == (6, 3)
    made.close()


def test_the_thread_folds_by_itself_and_survives_a_fold_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    folded = Folded()
    folded.failing = True
    made = recorder(folded, interval=0.01)
    made.record(sighting())
    _until(lambda: bool(caplog.records))
    folded.failing = False
    _until(lambda: bool(folded))
    assert "could not be folded" in caplog.text
    made.close()


def test_failing_store_is_logged_once_and_responses_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    folded: list[CapturedResponse] = []
    asked = threading.Semaphore(0)
    failing = [StoreError("down")] * 3

    def fold(batch: list[CapturedResponse]) -> None:
        asked.release()
        if failing:
            raise failing.pop()
        folded.extend(batch)

    made = ResponseBuffer(fold, lambda _: True, interval=0.01)
    made.record(sighting("/a"))
    for _ in range(4):
        assert asked.acquire(timeout=10)
    made.close()
    assert [one.path for one in folded] == ["/a"]
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG], "the guard has said so"


def test_close_flushes_and_ends_the_thread_until_the_next_response() -> None:
    folded = Folded()
    made = recorder(folded)
    made.close()
    made.record(sighting("/a"))
    thread = made._thread
    assert thread is not None
    made.close()
    assert folded.paths == ["/a"]
    assert not thread.is_alive()
    made.record(sighting("/b"))
    made.close()
    assert folded.paths == ["/a", "/b"]


def test_a_recorder_that_nobody_holds_takes_its_thread_with_it() -> None:
    made = recorder(Folded(), interval=0.01)
    made.record(sighting())
    thread = made._thread
    assert thread is not None
    del made
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_a_forked_child_has_a_thread_and_sightings_of_its_own(tmp_path: Path) -> None:
    folded = Folded()
    made = recorder(folded)
    made.record(sighting("/parent"))
    child = os.fork()
    if child == 0:  # what fails here is seen by the parent as an exit status
        made.record(sighting("/child"))
        alive = made._thread is not None and made._thread.is_alive()
        made.close()
        os._exit(0 if alive and folded.paths == ["/child"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    made.flush()
    assert folded.paths == ["/parent"]
    made.close()


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_child_of_multiprocessing_folds_what_it_saw_as_it_ends(how: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():  # of threads that other tests left behind
        warnings.simplefilter("ignore", DeprecationWarning)
        child = multiprocessing.get_context(how).Process(target=_visited, args=(tmp_path / "merged",))
        child.start()
    child.join(30)
    assert child.exitcode == 0
    assert (tmp_path / "merged").read_text() == "/"


def _visited(log: Path) -> None:
    _kept.append(recorder(_Written(log)))
    _kept[0].record(sighting())


_kept: list[ResponseBuffer] = []


class _Written(Folded):
    def __init__(self, log: Path) -> None:
        self._log = log

    def __call__(self, batch: list[CapturedResponse]) -> None:
        self._log.write_text(" ".join(one.path for one in batch))


def test_terminated_process_stops_waiting_and_flushes() -> None:
    done: list[str] = []
    made = ResponseBuffer(lambda _: done.append("merged"), lambda _: True, 10, 3600)
    made.record(sighting())
    made.on_shutdown = lambda: done.append("left")
    made.request_flush()
    _until(lambda: done == ["left", "merged"])
    made.close()
    assert done == ["left", "merged"]


def test_thread_can_watch_for_the_exit_before_the_first_response() -> None:
    made = recorder(Folded())
    left = threading.Event()
    made.on_shutdown = left.set
    made.ensure_thread()
    thread = made._thread
    made.ensure_thread()
    assert made._thread is thread
    made.request_flush()
    assert left.wait(10)
    made.close()


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
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
        (
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
            7,
        ),
    ],
    ids=["the end of the script", "sys.exit", "SIGTERM", "the program's own handler of SIGTERM"],
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

def made():
    app = Starlette(routes=[Route("/", lambda _: HTMLResponse("<p>hi"))])
    app = SitemapMiddleware(app, base_url="http://localhost", verify=False, store={store!r})
    asyncio.run(ask(app, "/"))
    asyncio.run(ask(app, "/sitemap.xml"))
    return app

kept = made()
if {dropped}:
    del kept
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


def test_processes_that_end_wait_for_all_recorders_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "_SHUTDOWN_TIMEOUT_SECONDS", 0.5)
    hung, released = threading.Event(), []

    def fold(_: list[CapturedResponse]) -> None:
        hung.wait(30)

    made = [ResponseBuffer(fold, lambda _: True, 10, 3600) for _ in range(5)]
    sound = recorder(Folded())
    for one in (*made, sound):
        one.record(sighting())
        one.on_exit = lambda one=one: released.append(one)  # type: ignore[misc]
    began = time.monotonic()
    recorder_module._close_all()
    assert 0.5 <= time.monotonic() - began < 1.5
    assert sound in released
    assert not set(made) & set(released)
    hung.set()


def _until(true: object, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


@pytest.mark.parametrize("hooked", [True, False])
def test_a_worker_of_uwsgi_folds_by_the_hook_of_its_module(hooked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs no `atexit` with ``--gevent``. The module is uWSGI's own, there is nothing to import."""
    uwsgi, called = types.ModuleType("uwsgi"), []
    if hooked:
        uwsgi.atexit = lambda: called.append("before")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    folded = Folded()
    for _ in range(2):
        recorder(Folded()).record(sighting())
    made = recorder(folded)
    made.record(sighting("/last"))
    uwsgi.atexit()
    assert folded.paths == ["/last"]
    assert called == ["before"] * hooked
