"""Real web servers in processes of their own, on free loopback ports."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .wire import Answer

ROOT = Path(__file__).parent.parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(
    port: int, path: str, headers: dict[str, str] | None = None, method: str = "GET", host: str = "127.0.0.1"
) -> Answer:
    """One request over a new connection; header names in lower case, the body as sent."""
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request(method, path, headers={"Accept": "text/html,*/*", **(headers or {})})
        response = connection.getresponse()
        body = response.read()
        return Answer(response.status, [(name.lower(), value) for name, value in response.getheaders()], body)
    finally:
        connection.close()


class Server:
    """A running server: its address, its process, its log."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path, host: str) -> None:
        self.port = port
        self.host = host
        self.process = process
        self.log = log

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
        return get(self.port, path, headers, method, self.host)

    def stop(self, with_signal: int = signal.SIGTERM, seconds: float = 20) -> int:
        self.process.send_signal(with_signal)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End the server and all its workers at once, so that none can do another thing."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@contextlib.contextmanager
def serving(
    command: list[str],
    folder: Path,
    port: int,
    *,
    env: dict[str, str] | None = None,
    ready: str = "/",
    host: str = "127.0.0.1",
) -> Iterator[Server]:
    """Run a command (of this interpreter's `-m` modules) until the block ends; enter when it answers at all."""
    log = folder / f"server-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
                "XDG_RUNTIME_DIR": str(folder),  # gunicorn's control socket
                **(env or {}),
            },
            start_new_session=True,
        )
    server = Server(port, process, log, host)
    try:
        _wait(server, ready)
        yield server
    finally:
        if process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.stop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def _wait(server: Server, path: str, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.process.poll() is not None:
            break
        try:
            server.get(path)
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the server did not answer: {server.log.read_text(errors='replace')}")


def uvicorn(target: str, folder: Path, *options: str, **more: object) -> contextlib.AbstractContextManager[Server]:
    port = free_port()
    return serving(["uvicorn", target, "--port", str(port), "--log-level", "warning", *options], folder, port, **more)  # type: ignore[arg-type] # serving names its own


def gunicorn(target: str, folder: Path, *options: str, **more: object) -> contextlib.AbstractContextManager[Server]:
    port = free_port()
    return serving(["gunicorn", target, "--bind", f"127.0.0.1:{port}", *options], folder, port, **more)  # type: ignore[arg-type] # serving names its own
