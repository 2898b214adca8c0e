"""A MariaDB server, where its program is installed (mariadb-server-core), and the store that the guide writes for it."""

from __future__ import annotations

import atexit
import itertools
import re
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware.stores import Store

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-store.md"
PROGRAM = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin")
"""Servers are not in everybody's PATH."""

_numbers = itertools.count()


def fresh() -> Store:
    """The guide's store of a new database."""
    if PROGRAM is None:
        pytest.skip("MariaDB is not installed")
    import pymysql

    database = f"test_{next(_numbers)}"
    with pymysql.connect(unix_socket=_socket(), user="root") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
    (code,) = re.findall("```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, GUIDE, "exec"), names)
    store: Store = names["MySQLStore"](unix_socket=_socket(), user="root", database=database)
    return store


@cache
def _socket() -> str:
    """That of a server which runs until the tests end, and lets everybody in."""
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    socket = folder / "socket"
    (folder / "data").mkdir()
    options = ["--no-defaults", "--user=root", "--skip-networking", "--skip-grant-tables", f"--socket={socket}"]
    options += [f"--datadir={folder}/data", f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([str(PROGRAM), *options], stdout=log, stderr=log)

    def end() -> None:
        process.kill()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    until = time.monotonic() + 60
    while "ready for connections" not in (folder / "log").read_text():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < until
        time.sleep(0.05)
    return str(socket)
