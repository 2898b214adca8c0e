"""Servers as their owners run them, and what befalls them: one sitemap in all workers, and an end without delay."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from sitemap_middleware.stores.base import SCHEMA_VERSION

from ..apps.served_site import PAGES, VISITED, body
from ..support import documents, servers
from ..support.waiting import until
from ..support.wire import Answer

Launch = Callable[..., AbstractContextManager[servers.Server]]
Event = Callable[[servers.Server, Path, set[str]], set[str]]
"""What befalls a server whose workers are these processes; those that it has then."""

HOST = {"Host": "localhost"}
"""One site regardless of the port, so that a restarted server is the same site."""
VALUES_ARE_WAITED_FOR = 10
"""Seconds after which a request gives up values that give nothing."""
UNSEEN = "/?ready"
"""A request that does not count as evidence."""
AT_ONCE = 8
"""Seconds in which a server that is told to stop has stopped, on a machine that has other things to do.

A provider that hangs is taken to do so after more of them.
"""

UNVERIFIED = {"SITEMAP_VERIFY": "0"}
"""What visitors get is stored at once: nothing is requested first."""

FLASK = "tests.apps.served_flask"
FASTAPI = "tests.apps.served_fastapi"
UVICORN = ("--worker-class", "uvicorn_worker.UvicornWorker")


def python(app: str, *command: str) -> Launch:
    """A module that is run with the port among its arguments, and a module in the folder that has the app."""

    def launch(folder: Path, **more: str) -> AbstractContextManager[servers.Server]:
        port = servers.free_port()
        Path(folder, "own.py").write_text(f"from {app} import app\n", "utf-8")
        env = {
            "SITEMAP_STORE": f"sqlite:///{folder}/shared.sqlite3",
            "PYTHONWARNINGS": "always::ResourceWarning",
            **more,
        }
        words = [part.replace("PORT", str(port)) for part in command]
        return servers.serving(words, folder, port, env=env, ready=UNSEEN)

    return launch


def gunicorn(app: str, *options: str) -> Launch:
    return python(app, "gunicorn", "own:app", "--bind", "127.0.0.1:PORT", "--workers", "2", *options)


def uvicorn(*options: str) -> Launch:
    return python(FASTAPI, "uvicorn", "own:app", "--port", "PORT", *options)


def hypercorn(kind: str) -> Launch:
    return python(FASTAPI, "hypercorn", "own:app", "--bind", "127.0.0.1:PORT", "--workers", "2", "-k", kind)


def granian(app: str, interface: str) -> Launch:
    launch = python(app, "granian", "own:app", "--port", "PORT", "--workers", "2", "--interface", interface)

    @contextlib.contextmanager
    def begun(folder: Path, **more: str) -> Iterator[servers.Server]:
        with launch(folder, **more) as server:
            # It signals its workers to end only once; a worker that has not started by then misses the signal.
            until(lambda: server.log.read_text().count("Started worker-") == 2)
            yield server

    return begun


def get_answer(server: servers.Server, path: str) -> Answer:
    """One answer. Connections that a worker drops as it ends are the server's matter."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            return server.get(path, HOST)
        time.sleep(0.1)
    raise AssertionError(f"{path} was never answered: {server.log.read_text()}")


def visit(server: servers.Server, times: int = 2) -> None:
    """Several clients at a time ask for each page that there is to visit."""
    with ThreadPoolExecutor(6) as crowd:
        paths = VISITED * times
        for path, answer in zip(paths, crowd.map(lambda path: get_answer(server, path), paths), strict=True):
            assert (answer.status, answer.text) == (200, body(path))


def all_answer(server: servers.Server, count: int) -> None:
    """Wait until so many workers have answered: one that has not started yet would miss the signal to end."""
    processes: set[str | None] = set()

    def answer() -> bool:
        with ThreadPoolExecutor(8) as crowd:
            processes.update(it.header("x-pid") for it in crowd.map(lambda _: get_answer(server, UNSEEN), range(16)))
        return len(processes) >= count

    until(answer)


def agreed(server: servers.Server, count: int, besides: frozenset[str] | set[str] = frozenset()) -> set[str]:
    """The processes of so many workers, none of these, once all serve one sitemap, to the byte, with every page."""
    processes: set[str] = set()

    def agree() -> bool:
        with ThreadPoolExecutor(4) as crowd:
            answers = list(crowd.map(lambda _: get_answer(server, "/sitemap.xml"), range(8)))
        processes.clear()
        processes.update(answer.header("x-pid") or "" for answer in answers)
        same = {(answer.status, answer.body, answer.header("etag")) for answer in answers}
        return (
            len(same) == 1 and listed(answers[0]) == PAGES and len(processes) >= count and not processes & set(besides)
        )

    until(agree)
    return processes


def listed(answer: Answer) -> dict[str, int | None]:
    """The pages in a sitemap, and the lastmod of each; empty if there is no sitemap yet."""
    if answer.status != 200:
        return {}
    return {
        loc.removeprefix("http://localhost"): int(documents.lastmod(entry["lastmod"]).timestamp())
        if "lastmod" in entry
        else None
        for loc, entry in documents.entries(answer.body).items()
    }


def sound(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shared.sqlite3")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def clean(server: servers.Server) -> None:
    """The log mentions neither the middleware nor unclosed resources, except the server's own listening sockets."""
    log = server.log.read_text("utf-8", "replace")
    log = re.sub(r".*unclosed <socket.socket .*laddr=.*\n(.*tracemalloc.*\n)?", "", log)
    assert not re.search(r"Traceback|ResourceWarning|Exception|sitemap_middleware|the sitemap", log), log


def ends(server: servers.Server, within: float = AT_ONCE) -> None:
    began = time.monotonic()
    server.stop(signal.SIGTERM, within + 30)
    assert time.monotonic() - began < within, server.log.read_text()


# What may befall a server


def hup(server: servers.Server, folder: Path, before: set[str]) -> set[str]:
    server.process.send_signal(signal.SIGHUP)
    return agreed(server, 2, besides=before)


def touched(server: servers.Server, folder: Path, before: set[str]) -> set[str]:
    Path(folder, "own.py").touch()
    return agreed(server, 1, besides=before)


def one_killed(server: servers.Server, folder: Path, before: set[str]) -> set[str]:
    killed = min(before)
    os.kill(int(killed), signal.SIGKILL)
    return agreed(server, 2, besides={killed})


def many_requests(server: servers.Server, folder: Path, before: set[str]) -> set[str]:
    visit(server, 8)
    return agreed(server, 1, besides=before)


SERVERS: dict[str, tuple[Launch, list[Event]]] = {
    "gunicorn sync": (gunicorn(FLASK), [hup, one_killed]),
    "gunicorn sync --preload": (gunicorn(FLASK, "--preload"), [one_killed]),
    "gunicorn --max-requests": (gunicorn(FLASK, "--max-requests", "20"), [many_requests]),
    "gunicorn gthread": (gunicorn(FLASK, "--threads", "4"), [hup, one_killed]),
    "gunicorn gthread --preload": (gunicorn(FLASK, "--threads", "4", "--preload"), [one_killed]),
    "gunicorn gevent": (gunicorn(FLASK, "-k", "gevent"), [hup, one_killed]),
    "gunicorn gevent --preload": (gunicorn(FLASK, "-k", "gevent", "--preload"), [one_killed]),
    "gunicorn uvicorn": (gunicorn(FASTAPI, *UVICORN), [hup, one_killed]),
    "gunicorn uvicorn --preload": (gunicorn(FASTAPI, *UVICORN, "--preload"), [one_killed]),
    "gunicorn uvicorn --max-requests": (gunicorn(FASTAPI, *UVICORN, "--max-requests", "20"), [many_requests]),
    "uvicorn --workers": (uvicorn("--workers", "2"), [hup, one_killed]),
    "uvicorn --workers --lifespan off": (uvicorn("--workers", "2", "--lifespan", "off"), []),
    "uvicorn --lifespan off": (uvicorn("--lifespan", "off"), []),
    "uvicorn --lifespan on": (uvicorn("--lifespan", "on"), []),
    "uvicorn --reload": (uvicorn("--reload"), [touched]),
    "hypercorn asyncio": (hypercorn("asyncio"), []),
    "hypercorn trio": (hypercorn("trio"), []),
    "granian asgi": (granian(FASTAPI, "asgi"), [hup]),
    "granian wsgi": (granian(FLASK, "wsgi"), [hup]),
    "flask run --reload": (python(FLASK, "flask", "--app", "own", "run", "--port", "PORT", "--reload"), [touched]),
    "fastapi dev": (python(FASTAPI, "fastapi", "dev", "own.py", "--port", "PORT"), [touched]),
    "fastapi run": (python(FASTAPI, "fastapi", "run", "own.py", "--port", "PORT", "--workers", "2"), []),
    "waitress": (python(FLASK, "waitress", "--listen", "127.0.0.1:PORT", "own:app"), []),
}
"""Servers, and what befalls each in turn."""


def each(names: Iterable[str], *usual: str) -> pytest.MarkDecorator:
    """Each of these servers; the usual run takes some of them."""
    rows = [pytest.param(name, marks=[] if name in usual else [pytest.mark.long]) for name in names]
    return pytest.mark.parametrize("name", rows)


@each(
    SERVERS,
    *("gunicorn sync", "gunicorn --max-requests", "gunicorn gevent --preload"),
    *("uvicorn --workers --lifespan off", "hypercorn trio", "granian wsgi", "flask run --reload"),
)  # one of every kind of process, thread and loop
def test_workers_serve_one_sitemap_through_restarts_and_stop_at_once(name: str, tmp_path: Path) -> None:
    launch, events = SERVERS[name]
    with launch(tmp_path) as server:
        visit(server)
        alone = not re.search(r"gunicorn|workers|hypercorn|granian|fastapi run", name)
        processes = agreed(server, 1 if alone else 2)
        for event in events:
            processes = event(server, tmp_path, processes)
        visit(server)
        ends(server)
    clean(server)
    sound(tmp_path)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("uvicorn --lifespan on", -signal.SIGTERM),  # it ends by the signal that ended it; a supervisor does not
        *((name, 0) for name in ("gunicorn gevent --preload", "gunicorn uvicorn --preload", "granian asgi")),
    ],
)
def test_terminated_server_saves_what_was_seen_and_exits_as_before(name: str, status: int, tmp_path: Path) -> None:
    with SERVERS[name][0](tmp_path, **UNVERIFIED) as server:
        all_answer(server, 1 if name.startswith("uvicorn") else 2)
        visit(server, 1)
        assert server.stop(signal.SIGTERM) == status
    assert stored_paths(tmp_path) >= set(VISITED)


HANGING = ("gunicorn sync", "gunicorn gthread", "gunicorn gevent", "gunicorn uvicorn", "gunicorn uvicorn --preload",
           "uvicorn --workers", "uvicorn --lifespan off", "hypercorn asyncio", "hypercorn trio", "granian asgi", "fastapi dev")  # fmt: skip


@each(HANGING, "gunicorn gthread", "uvicorn --lifespan off")
def test_values_that_hang_hold_up_the_end_no_longer_than_they_are_waited_for(name: str, tmp_path: Path) -> None:
    with SERVERS[name][0](tmp_path, SITE_VALUES=str(tmp_path / "asked")) as server, ThreadPoolExecutor(1) as crowd:
        visit(server, 1)
        waiting = crowd.submit(server.get, "/sitemap.xml", HOST)
        until((tmp_path / "asked").exists)
        ends(server, VALUES_ARE_WAITED_FOR + AT_ONCE)
        with contextlib.suppress(OSError):  # some servers drop connections
            assert waiting.result().status in (200, 503), "the pages that wait for no values, or none"
    assert "Traceback" not in server.log.read_text("utf-8", "replace")
    sound(tmp_path)


@each(("gunicorn sync", "uvicorn --workers"), "gunicorn sync")
def test_killed_server_loses_at_most_two_seconds(name: str, tmp_path: Path) -> None:
    launch, _ = SERVERS[name]
    with launch(tmp_path, **UNVERIFIED) as server:
        visit(server)
        until(lambda: stored_paths(tmp_path) >= set(VISITED), 2 + AT_ONCE)  # of itself: nobody asks for a sitemap
        visit(server)
        server.kill()
        sound(tmp_path)
    with launch(tmp_path) as server:
        agreed(server, 2)


def stored_paths(folder: Path) -> set[str]:
    with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(folder / "shared.sqlite3")) as connection:
        return {path for (path,) in connection.execute(f"SELECT path FROM page_{SCHEMA_VERSION}")}
    return set()
