"""IndexNow from several processes, which are killed while they send."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from ..support import servers
from ..support.indexnow import Engine, running
from ..support.sample_sites import Clock
from ..support.waiting import until


@pytest.mark.slow  # a minute: the lease of the killed worker has to end
def test_a_worker_that_is_killed_while_it_sends_loses_nothing_and_repeats_nothing_at_once(tmp_path: Path) -> None:
    clock, port = Clock(), servers.free_port()
    engine = Engine(clock)

    def move(seconds: float) -> None:
        clock.pass_(seconds)
        (tmp_path / "new").write_text(str(clock.now))
        (tmp_path / "new").replace(tmp_path / "clock")

    def write(*items: str) -> None:
        (tmp_path / "new").write_text(" ".join(items))
        (tmp_path / "new").replace(tmp_path / "items")

    move(0)
    write("rye")
    with running(engine.server) as endpoint:
        environment = {
            "SITEMAP_STORE": f"sqlite:///{tmp_path}/shared.sqlite3",
            "SITEMAP_BASE_URL": f"http://127.0.0.1:{port}",
            "SITEMAP_INDEXNOW_ENDPOINT": endpoint,
        }
        command = ["gunicorn", "tests.apps.announcing_site:app", "--bind", f"127.0.0.1:{port}"]
        command += ["--workers", "2", "--worker-class", "gthread"]
        with servers.serving(command, tmp_path, port, env=environment, ready="/pid") as server:

            def workers() -> set[int]:
                found = set()
                for _ in range(6):
                    with suppress(OSError, HTTPException):  # it has just been killed
                        found.add(int(server.get("/pid").body))
                return found

            def kill(*_: Any) -> tuple[int, str, dict[str, str]]:
                for pid in workers():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return 0, "", {}

            def passes() -> None:
                """Let five minutes pass, as the workers see them, and have each worker serve a page."""
                move(300)
                for _ in range(6):
                    with suppress(OSError, HTTPException):
                        server.get("/items/rye")

            server.get("/sitemap.xml")
            until(lambda: passes() or engine.clock() > 1_750_000_000 + 3000, 180)
            assert engine.requests == []
            before = workers()
            answer, engine.take = engine.take, lambda message: (answer(message), kill())[1]  # type: ignore[method-assign]
            write("rye", "oat", "spelt")
            until(lambda: passes() or engine.requests, 180)
            engine.take = answer  # type: ignore[method-assign]
            engine.received.clear()  # the worker died before it learned that
            until(lambda: (now := workers()) and not now & before, 180)
            until(lambda: passes() or engine.received, 180, every=1)
            for _ in range(5):
                passes()
    assert engine.paths() == {"/items/oat": 1, "/items/spelt": 1}
    engine.check()
