"""What a store in trouble does to the slowest of the app's responses, and how soon what was seen is in it again.

`python -m benchmarks faults [--seconds N]`. The same app runs in two real servers,
each with a store of its own of the same kind, one of which is broken. Both are
asked for the same pages in turn, in an order that is drawn for each, so that they
meet the same weather; beside, a crawler asks both for the sitemap each second.
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

from .pairs import Spread
from .tables import Table

SECONDS: Final = 30.0
SHORT = {"seconds": 0.1}
WINDOW: Final = 500
"""Requests of each server whose p99 is one."""
PAGES: Final = 200
LAG: Final = 0.05
"""Seconds that each message of a slow store takes, there and back."""
BASE: Final = "https://example.com"


@dataclass
class Fault:
    """One of a store in use, and the end of it."""

    store: str
    break_: Callable[[], object]
    mend: Callable[[], object]


def run(seconds: float = SECONDS) -> Iterator[Table]:
    table = Table(
        f"The p99 of a page's time while the store is in trouble for {seconds:g} s, beside a server whose store is not",
        ["", "p99, ms", "beside, ms", "ratio", "from", "to", "p99 of all, ratio", "back after, s"],
        notes=[
            "Seconds are the clock's, for it is waiting that is looked for: other work on the machine is in them.",
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
                ratio = Spread.of(one / other for one, other in zip(windows, others, strict=True))
                one, other = map(_p99, times)
                table.add(name, one * 1e3, other * 1e3, ratio.middle, ratio.low, ratio.high, one / other, back)
        finally:
            server.remove()
    yield table


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100, method="inclusive")[-1]


# The faults


def _faults(
    server: postgres.Server, folder: Path
) -> Iterator[tuple[str, contextlib.AbstractContextManager[Fault], str]]:
    """Each by its name, with the store that is broken and the one that is not."""
    yield "none, as a control", _through(server, lambda _: None, lambda _: None), server.fresh()
    yield "hung", _through(server, Proxy.hang, Proxy.mend), server.fresh()
    yield f"slow, {LAG * 1e3:g} ms a message", _through(server, _lags(LAG), _lags(0)), server.fresh()
    yield "cut", _through(server, Proxy.cut, Proxy.mend), server.fresh()
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
    server: postgres.Server, break_: Callable[[Proxy], object], mend: Callable[[Proxy], object]
) -> Iterator[Fault]:
    proxy = Proxy(server.folder / postgres.SOCKET)
    yield Fault(_url(server, proxy.port), lambda: break_(proxy), lambda: mend(proxy))
    proxy.close()


@contextlib.contextmanager
def _refused(server: postgres.Server) -> Iterator[Fault]:
    """Nothing listens there, until something does again."""
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


# Who asks


def _measured(fault: Fault, beside: str, folder: Path, seconds: float) -> tuple[tuple[list[float], list[float]], float]:
    """The seconds of each request to either server, and those until what was seen is in the store that was broken."""
    with _serving(fault.store, folder) as broken, _serving(beside, folder) as sound:
        both = Asked(broken), Asked(sound)
        for number in range(PAGES):
            for one in both:
                one.ask(f"/posts/{number}")
        for port in (broken, sound):
            assert servers.get(port, "/sitemap.xml", {"Host": "example.com"}).status == 200
        over = threading.Event()
        crawling = [threading.Thread(target=_crawl, args=(port, over)) for port in (broken, sound)]
        fault.break_()
        for thread in crawling:
            thread.start()
        times = _asked(both, seconds)
        over.set()
        for thread in crawling:
            thread.join()
        both[0].ask("/posts/last")
        fault.mend()
        return times, _until_seen(fault.store, "/posts/last")


def _asked(both: tuple[Asked, Asked], seconds: float) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    order = [0, 1]
    shuffle = random.Random(0).shuffle
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[0]) < 2 * WINDOW:
        for number in range(WINDOW):
            shuffle(order)
            for which in order:
                times[which].append(both[which].ask(f"/posts/{number % PAGES}"))
    return times


def _crawl(port: int, over: threading.Event) -> None:
    while not over.wait(1):
        answer = servers.get(port, "/sitemap.xml", {"Host": "example.com"})
        assert answer.status == 200, f"the last good sitemap is not up: {answer.text}"


def _until_seen(url: str, path: str) -> float:
    store = open_store(url, "store")
    began = time.monotonic()
    while not store.find_pages(BASE, [path]):
        assert time.monotonic() < began + 120, "it never came to be in the store"
        time.sleep(0.02)
    store.close()
    return time.monotonic() - began


class Asked:
    """A server, on a connection that stays open."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str) -> float:
        """How many seconds a page takes."""
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
def _serving(store: str, folder: Path) -> Iterator[int]:
    """The port of a server whose app has this store."""
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
