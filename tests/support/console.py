"""Run the console blocks of the documentation in a folder that holds the files of their page."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .servers import ROOT, free_port

SERVERS = ("flask", "gunicorn", "uvicorn")
USUAL_PORTS = re.compile(r"(?<=127\.0\.0\.1:)(?:5000|8000)\b")
SECONDS = 30.0
"""How long a command may take, and how long a page may need to look as the documentation shows it."""


class Console:
    """A shell in a folder. A server runs until the next one starts, or the shell is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        (folder / "bin").mkdir()
        for name in ("python", "python3"):
            self._program(name, "")
        for name in (*SERVERS, "pytest"):
            self._program(name, f"-m {name}")
        self._program("sitemap-middleware", "-m sitemap_middleware")
        self._program("curl", "-m tests.support.fetch")
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SITEMAP_", "PYTEST_"))},
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def _program(self, name: str, arguments: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', "utf-8")
        file.chmod(0o755)

    def run(self, block: str) -> None:
        """Run the commands of a block. Each must print what the block shows, in which … stands for anything."""
        for command, shown in commands(block):
            words = command.split()
            if words[0] in SERVERS and (words[0] != "flask" or words[-1] == "run"):
                self._serve(command)
            else:
                self._command(command, shown)

    def _serve(self, command: str) -> None:
        self.close()
        where = f"--bind 127.0.0.1:{self.port}" if command.startswith("gunicorn") else f"--port {self.port}"
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                f"exec {command} {where}", shell=True, cwd=self.folder, env=self._env, stdout=log, stderr=log
            )
        end = time.monotonic() + SECONDS
        while not _listens(self.port):
            assert time.monotonic() < end, (self.folder / "server.log").read_text("utf-8")
            time.sleep(0.05)

    def _command(self, command: str, shown: str) -> None:
        actual = USUAL_PORTS.sub(str(self.port), command)
        end = time.monotonic() + SECONDS
        while True:
            done = subprocess.run(
                actual,
                shell=True,
                cwd=self.folder,
                env=self._env,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            output = done.stdout.replace(f"127.0.0.1:{self.port}", _usual(command, shown))
            output = "\n".join(line.rstrip() for line in output.strip().splitlines())
            if matches(output, shown) or not self._server or time.monotonic() > end:
                break
            time.sleep(0.2)  # the server's app is asked for pages behind the first answer
        assert done.returncode in (0, 1), (command, done.returncode, output, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        assert matches(output, shown), "\n".join(difflib.ndiff(shown.splitlines(), output.splitlines()))

    def close(self) -> None:
        if self._server:
            self._server.terminate()
            self._server.wait(SECONDS)
            self._server = None


@contextlib.contextmanager
def console(folder: Path) -> Iterator[Console]:
    shell = Console(folder)
    try:
        yield shell
    finally:
        shell.close()


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with a command: {block}"
    return [(command.strip(), shown.strip()) for command, _, shown in (part.partition("\n") for part in parts[1:])]


def matches(output: str, shown: str) -> bool:
    """Whether an output is as shown, if … stands for any text, and nothing is shown for anything."""
    if not shown:
        return True
    pattern = ".*".join(re.escape(part.strip("\n")) for part in shown.split("…"))
    return re.fullmatch(pattern, output, re.DOTALL) is not None


def _usual(command: str, shown: str) -> str:
    return f"127.0.0.1:{ports[0]}" if (ports := USUAL_PORTS.findall(command + shown)) else "127.0.0.1:5000"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
