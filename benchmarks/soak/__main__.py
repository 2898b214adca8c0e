"""`python -m benchmarks.soak`: serve, ask, kill, watch; the exit code says whether the targets were met."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

from sitemap_middleware.rendering.responses import FRESH_SECONDS
from tests.support import servers

from . import crawler, report, traffic
from .engines import NAMES, Engine, engine
from .processes import Used, children, resident, workers
from .report import Soak
from .script import BASE, HOST, UNLISTED, Script

SAMPLES = 600
"""Looks at the workers' memory, of a whole run."""
WINDOWS = 90
"""Stretches of time of which each has its quantiles."""
DOWN = 5.0
"""Seconds for which the store's engine is down, at most."""
DOCUMENTS = ("/sitemap.xml", "/sitemap-routes-1.xml")
"""Those that list routes, on a small site and on a large one."""
ADVISED = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""One pool of memory for all threads, and none for what takes more than 128 kB: that is given back at once."""
READY = 60.0
"""Seconds after which there must be a sitemap."""

_FAULT = re.compile(rb"^(?:ERROR|CRITICAL|WARNING sitemap_middleware)\b")
_STORE_WARNING = re.compile(rb"^WARNING sitemap_middleware: store (?:unavailable since|available again after) ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="A site under steady traffic.")
    parser.add_argument("--minutes", type=float, default=60, help="of traffic (60)")
    parser.add_argument("--store", choices=NAMES, default="redis", help="what is to keep the sitemap (redis)")
    parser.add_argument("--protocol", choices=("asgi", "wsgi"), default="asgi", help="uvicorn, or gunicorn (asgi)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server (2)")
    parser.add_argument("--rate", type=float, default=200, help="requests a second (200)")
    parser.add_argument("--pages", type=int, default=3000, help="learned pages (3000)")
    parser.add_argument("--items", type=int, default=50_000, help="enumerated pages (50000)")
    parser.add_argument("--kill-every", type=float, default=4, metavar="MINUTES", help="kill the store's engine (4)")
    parser.add_argument("--warm-up", type=float, metavar="MINUTES", help="before memory is measured (half of all)")
    parser.add_argument("--verify", action="store_true", help="have the middleware verify pages, too")
    parser.add_argument(
        "--malloc",
        choices=("advised", "usual"),
        default="advised",
        help="how the server's glibc keeps memory: as operations.md advises, or as it does by itself (advised)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of all that is left to chance (1)")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="write what was measured there, and draw it")
    chosen = parser.parse_args()
    if chosen.store == "sqlite" and chosen.workers < 2:
        parser.error("one worker is ended now and then: give --workers 2 or more")
    soak = run(chosen)
    tables, met = report.tables(soak)
    for table in tables:
        print(table)
    if chosen.plot:
        report.save(chosen.plot, f"{chosen.store}-{chosen.protocol}", soak)
    sys.exit(0 if met else 1)


def run(chosen: argparse.Namespace) -> Soak:
    seconds = chosen.minutes * 60
    soak = Soak(
        title=f"{chosen.store}, {chosen.protocol}, {chosen.workers} workers",
        machine=f"{os.cpu_count()} cores, {platform.python_implementation()} {platform.python_version()}",
        what="",
        rate=chosen.rate,
        seconds=seconds,
        warm=seconds / 2 if chosen.warm_up is None else chosen.warm_up * 60,
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = engine(chosen.store, folder)
        stack.callback(store.remove)
        soak.what = store.what
        script = Script(int(time.time()), int(seconds), chosen.pages, chosen.items)
        server = stack.enter_context(_serving(chosen, script, store, folder))
        _await_sitemap(server, chosen.workers)
        began = time.time()
        until = began + seconds
        clients = {
            "traffic": _apart(
                traffic.run, script, server.port, until, rate=chosen.rate, width=seconds / WINDOWS, seed=chosen.seed
            ),
            "crawler": _apart(crawler.run, script, server.port, until, chosen.workers),
        }
        kills = _kills(seconds, chosen.kill_every * 60, Random(chosen.seed))
        pids = {name: process.pid for name, (process, _) in clients.items()}
        _watch(soak, server, store, clients=pids, began=began, kills=kills)
        soak.traffic, soak.crawler = (_result(*client) for client in clients.values())
        soak.crawler.unavailable = [(at - began, *rest) for at, *rest in soak.crawler.unavailable]
        soak.logged = _faults(server.log, fails=store.fails)
    return soak


def _serving(chosen: argparse.Namespace, script: Script, store: Engine, folder: Path) -> Any:
    env = {**script.environ(), "SITEMAP_STORE": store.url, "SOAK_VERIFY": str(int(chosen.verify))}
    env |= ADVISED if chosen.malloc == "advised" else {}
    workers = ["--workers", str(chosen.workers)]
    if chosen.protocol == "asgi":
        options = [*workers, "--no-access-log", "--factory"]
        return servers.uvicorn("benchmarks.soak.served:starlette_app", folder, *options, env=env, ready="/about")
    options = [*workers, "--worker-class", "gthread", "--threads", "8", "--keep-alive", "5", "--log-level", "warning"]
    return servers.gunicorn("benchmarks.soak.served:flask_app()", folder, *options, env=env, ready="/about")


def _await_sitemap(server: servers.Server, workers: int) -> None:
    """Have each process serve a sitemap before traffic begins, with nothing in it that is listed until it is first
    seen: what it served last it serves on while the store is down."""
    for path in UNLISTED:
        server.get(path, {"Host": HOST})
    ready: set[tuple[str, str]] = set()
    end = time.monotonic() + READY
    while len(ready) < workers * len(DOCUMENTS):
        for path in DOCUMENTS:
            answer = server.get(path, {"Host": HOST})
            words = _unready(path, answer)
            if words is None:
                ready.add((answer.header("x-pid") or "", path))
            elif time.monotonic() > end:
                raise TimeoutError(f"there is no sitemap: {words}")
            else:
                time.sleep(0.2)
    time.sleep(2 * FRESH_SECONDS)


def _unready(path: str, answer: servers.Answer) -> str | None:
    """Why a document is not yet as it is to be. On a small site there is but the first."""
    if answer.status != 200 and (path, answer.status) != (DOCUMENTS[1], 404):
        return answer.text
    listed = [path for path in UNLISTED if f"{BASE}{path}<" in answer.text]
    return f"{listed[0]} is listed in {path}" if listed else None


def _apart(job: Any, *arguments: Any, **named: Any) -> tuple[Any, Any]:
    """A job in a separate process, and the pipe through which it sends its result."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=job, args=(there, *arguments), kwargs=named, daemon=True)
    process.start()
    there.close()
    return process, here


def _result(process: Any, pipe: Any) -> Any:
    with closing(pipe):
        result = pipe.recv()
    process.join()
    return result


def _kills(seconds: float, every: float, random: Random) -> list[tuple[float, float]]:
    """When the engine is killed, and when it is started again: now and then, not at the very beginning nor end."""
    every = min(every, seconds / 3)
    down = min(DOWN, every / 4)
    count = int(seconds / every)
    starts = [(number + random.uniform(0.4, 0.6)) * every for number in range(count)]
    return [(start, start + down) for start in starts if start + down < seconds * 0.9]


def _watch(
    soak: Soak,
    server: servers.Server,
    store: Engine,
    *,
    clients: dict[str, int],
    began: float,
    kills: list[tuple[float, float]],
) -> None:
    """Until the traffic ends, measure memory and CPU time, and kill and start the engine when it is due."""
    used = {name: Used() for name in ("server", "engine", *clients)}
    first: dict[str, float] = {}
    down = 0.0
    pending = sorted([(at, "kill") for at, _ in kills] + [(at, "start") for _, at in kills])
    number = 0
    while (now := time.time() - began) < soak.seconds:
        serving = workers(server.process.pid)
        engine_pid = store.pid
        used["server"].measure([server.process.pid, *serving])
        used["engine"].measure([] if engine_pid is None else [engine_pid, *children(engine_pid)])
        for name, pid in clients.items():
            used[name].measure([pid])
        first = first or {name: used_by.seconds for name, used_by in used.items()}
        for pid in serving:
            if size := resident(pid):
                soak.memory.setdefault(pid, []).append((now, size))
        while pending and pending[0][0] <= now:
            _, action = pending.pop(0)
            if action == "kill":
                down = time.time() - began
                store.kill(serving)
            else:
                store.start()
                soak.kills.append((down, time.time() - began))
        number += 1
        due = min([soak.seconds * number / SAMPLES, *(at for at, _ in pending[:1])])
        time.sleep(max(0.01, due - (time.time() - began)))
    soak.cpu = {name: (used_by.seconds - first[name]) / soak.seconds for name, used_by in used.items()}


def _faults(log: Path, *, fails: bool) -> list[str]:
    """Lines of the log that report a fault, except the warnings expected if the store was made to fail."""
    lines = [line for line in log.read_bytes().splitlines() if _FAULT.match(line)]
    return [line.decode(errors="replace") for line in lines if not (fails and _STORE_WARNING.match(line))]


if __name__ == "__main__":
    main()
