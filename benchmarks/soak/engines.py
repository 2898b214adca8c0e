"""What the soak kills now and then: the store's engine or, if the store is a file, one of the server's workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final, Protocol

from .processes import began

NAMES: Final = ("redis", "postgresql", "sqlite")


class Engine(Protocol):
    """Where the store is."""

    url: str
    what: str
    """What is killed, in words."""
    fails: bool
    """Whether the store fails meanwhile."""

    @property
    def pid(self) -> int | None:
        """Its process, if one is running."""

    def kill(self, workers: list[int]) -> None:
        """Kill it."""

    def start(self) -> None:
        """Start it again."""

    def remove(self) -> None:
        """End it for good."""


class Redis:
    """With an append-only file that it writes before it answers: what it acknowledged is there after a kill -9. By its
    default, it forgets what it was told while the disk was at work."""

    what, fails = "Redis killed", True

    def __init__(self, _: Path) -> None:
        from tests.support.redis_servers import USUAL, RedisServer

        self._server = RedisServer(USUAL, "--appendonly", "yes", "--appendfsync", "always")
        self.url = self._server.url
        self.start, self.remove = self._server.start, self._server.remove

    @property
    def pid(self) -> int | None:
        return self._server.pid

    def kill(self, _: list[int]) -> None:
        self._server.stop()


class PostgreSQL:
    """Stopped at once, as by a crash: it recovers from its log as it starts."""

    what, fails = "PostgreSQL killed", True

    def __init__(self, _: Path) -> None:
        from tests.support.postgres import Server

        self._server = Server()
        self.url = self._server.url()
        self.start, self.remove = self._server.start, self._server.remove

    @property
    def pid(self) -> int | None:
        file = self._server.folder / "data" / "postmaster.pid"
        return int(file.read_text().split()[0]) if file.exists() else None

    def kill(self, _: list[int]) -> None:
        self._server.stop("immediate")


class SQLite:
    """A file is never down. In its stead the youngest worker is sent SIGTERM, and the server makes a new one."""

    what, fails, pid = "a worker ended", False, None

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/soak.sqlite3"

    def kill(self, workers: list[int]) -> None:
        os.kill(max(workers, key=began), signal.SIGTERM)

    def start(self) -> None:
        pass

    def remove(self) -> None:
        pass


def engine(name: str, folder: Path) -> Engine:
    engine: Engine = {"redis": Redis, "postgresql": PostgreSQL, "sqlite": SQLite}[name](folder)
    return engine
