"""How a failing store affects the slowest responses of the app, and how soon the store is up to date again.

`python -m benchmarks faults [--seconds N]`. The same app runs in two real servers,
each with its own store of the same kind; one of the stores is broken. Both get
requests for the same pages in random alternation, so that noise on the machine
affects both alike. A crawler also requests the sitemap of both each second.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.stores import open_store
from tests.support import postgres, servers
from tests.support.proxy import Proxy

from .alternating_timing import Spread
from .tables import Table

SECONDS: Final = 30.0
SHORT = {"seconds": 0.1}
WINDOW: Final = 500
"""Requests of each server from which one p99 is computed."""
PAGES: Final = 200
LAG: Final = 0.05
"""Seconds that each message of a slow store takes, there and back."""
BASE: Final = "https://example.com"


@dataclass
class Fault:
    """A store's URL, and how to break and repair it while it is in use."""

    store: str
    break_store: Callable[[], object]
    repair: Callable[[], object]


def run(seconds: float = SECONDS) -> Iterator[Table]:
    table = Table(
        f"The p99 of a page's time while the store is in trouble for {seconds:g} s, beside a server whose store is not",
        ["", "p99, ms", "beside, ms", "ratio", "from", "to", "p99 of all, ratio", "back after, s"],
        notes=[
            "Wall-clock time, because waiting counts; it includes other work on the machine.",
            f"The ratio: the median, and quartiles, over windows of {WINDOW} requests of each server, in turn.",
            "Back: from the end of the trouble to the moment in which a page seen within it is in the store.",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        server = postgres.Server()
        try:
            for number, (name, fault, beside) in enumerate(_faults(server, Path(folder))):
                with fault as trouble:
                    own = Path(folder, str(number))
                    own.mkdir()
                    times, back = _measured(trouble, beside, own, seconds)
                windows = [_p99(times[0][at : at + WINDOW]) for at in range(0, len(times[0]), WINDOW)]
                others = [_p99(times[1][at : at + WINDOW]) for at in range(0, len(times[1]), WINDOW)]
                ratio = Spread.of(broken / sound for broken, sound in zip(windows, others, strict=True))
                broken, sound = map(_p99, times)
                table.add(name, broken * 1e3, sound * 1e3, ratio.middle, ratio.low, ratio.high, broken / sound, back)
        finally:
            server.remove()
    yield table


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100, method="inclusive")[-1]


# The faults


def _faults(
    server: postgres.Server, folder: Path
) -> Iterator[tuple[str, contextlib.AbstractContextManager[Fault], str]]:
    """Yield each fault: its name, the store to break, and the URL of the sound store."""
    yield "none, as a control", _through(server, lambda _: None, lambda _: None), server.fresh()
    yield "hung", _through(server, Proxy.hang, Proxy.repair), server.fresh()
    yield f"slow, {LAG * 1e3:g} ms a message", _through(server, _lags(LAG), _lags(0)), server.fresh()
    yield "cut", _through(server, Proxy.cut, Proxy.repair), server.fresh()
    yield "refused", _refused(server), server.fresh()
    yield "locked (SQLite)", _locked(folder / "broken.sqlite3"), f"sqlite:///{folder}/sound.sqlite3"


def _lags(seconds: float) -> Callable[[Proxy], None]:
    def lag(proxy: Proxy) -> None:
        proxy.lag = seconds

    return lag


def _url(server: postgres.Server, port: int) -> str:
    schema = server.fresh().partition("schema=")[2]
    return f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={schema}"


@contextlib.contextmanager
def _through(
    server: postgres.Server, break_store: Callable[[Proxy], object], repair: Callable[[Proxy], object]
) -> Iterator[Fault]:
    proxy = Proxy(server.folder / postgres.SOCKET)
    yield Fault(_url(server, proxy.port), lambda: break_store(proxy), lambda: repair(proxy))
    proxy.close()


@contextlib.contextmanager
def _refused(server: postgres.Server) -> Iterator[Fault]:
    """Nothing listens on the port until the repair."""
    target = server.folder / postgres.SOCKET
    listening = [Proxy(target)]
    port = listening[0].port
    yield Fault(_url(server, port), lambda: listening.pop().close(), lambda: listening.append(Proxy(target, port)))
    listening.pop().close()


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[Fault]:
    holders: list[sqlite3.Connection] = []

    def lock() -> None:
        holders.append(sqlite3.connect(file, isolation_level=None))
        holders[0].execute("BEGIN EXCLUSIVE")

    yield Fault(f"sqlite:///{file}", lock, lambda: holders.pop().close())


# The requests


def _measured(fault: Fault, beside: str, folder: Path, seconds: float) -> tuple[tuple[list[float], list[float]], float]:
    """Return the seconds of each request to either server, and the seconds until the repaired store is up to date."""
    with serving(fault.store, folder) as broken, serving(beside, folder) as sound:
        both = KeptAliveClient(broken), KeptAliveClient(sound)
        for number in range(PAGES):
            for client in both:
                client.get(f"/posts/{number}")
        for port in (broken, sound):
            assert servers.get(port, "/sitemap.xml", {"Host": "example.com"}).status == 200
        over = threading.Event()
        crawling = [threading.Thread(target=_crawl, args=(port, over)) for port in (broken, sound)]
        fault.break_store()
        for thread in crawling:
            thread.start()
        times = _request_in_turn(both, seconds)
        over.set()
        for thread in crawling:
            thread.join()
        both[0].get("/posts/last")
        fault.repair()
        return times, _until_seen(fault.store, "/posts/last")


def _request_in_turn(both: tuple[KeptAliveClient, KeptAliveClient], seconds: float) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    order = [0, 1]
    shuffle = random.Random(0).shuffle
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[0]) < 2 * WINDOW:
        for number in range(WINDOW):
            shuffle(order)
            for which in order:
                times[which].append(both[which].get(f"/posts/{number % PAGES}"))
    return times


def _crawl(port: int, over: threading.Event) -> None:
    while not over.wait(1):
        answer = servers.get(port, "/sitemap.xml", {"Host": "example.com"})
        assert answer.status == 200, f"the last good sitemap is not up: {answer.text}"


def _until_seen(url: str, path: str) -> float:
    store = open_store(url, "store")
    began = time.monotonic()
    while not store.find_pages(BASE, [path]):
        assert time.monotonic() < began + 120, "the page is not in the store after two minutes"
        time.sleep(0.02)
    store.close()
    return time.monotonic() - began


class KeptAliveClient:
    """A server, on a connection that stays open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path: str) -> float:
        """Request a page; return the seconds that it took."""
        question = f"GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n".encode()
        began = time.perf_counter()
        self._socket.sendall(question)
        got = b""
        while not got.endswith(END):
            data = self._socket.recv(65536)
            assert data, "the server hung up"
            got += data
        taken = time.perf_counter() - began
        assert got.startswith(b"HTTP/1.1 200"), got
        return taken


# The app


END: Final = b"<!-- the end -->"


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f"<!doctype html><title>{request.url.path}</title><p>Hello.{END.decode()}")


@contextlib.contextmanager
def serving(store: str, folder: Path) -> Iterator[int]:
    """The port of a uvicorn server whose app has this store."""
    port = servers.free_port()
    command = ["uvicorn", f"{__name__}:app", "--port", str(port), "--log-level", "warning", "--no-access-log"]
    env = {"BENCHMARK_STORE": store}
    with servers.serving([*command, "--timeout-keep-alive", "600"], folder, port, env=env, ready="/?ready"):
        yield port


def _app() -> Any:
    app = Starlette(routes=[Route("/", page), Route("/posts/{slug}", page)])
    store = os.environ["BENCHMARK_STORE"]
    return SitemapMiddleware(app, base_url=BASE, learn="/posts/{slug}", store=store, verify=False)


app = _app() if os.environ.get("BENCHMARK_STORE") else None
