"""A proxy between an app and its store, which cuts, hangs and drops as it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class Proxy:
    """Listens on a TCP port of this machine, and passes on to a Unix socket what comes, both ways."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close what is open, and whatever comes, at once."""
        self._refusing = True
        self._drop()

    def hang(self) -> None:
        """Accept, and never answer."""
        self._flowing.clear()

    def mend(self) -> None:
        """As ever again, for who connects anew."""
        self._refusing = False
        self._drop()
        self._flowing.set()

    def close(self) -> None:
        """Be no more."""
        self.cut()
        self._flowing.set()
        self._listener.close()

    def _drop(self) -> None:
        while self._open:
            one = self._open.pop()
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._refusing:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self.target))
                self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self._flowing.wait()
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
