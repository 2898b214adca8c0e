"""A proxy between an app and its store: it can cut and hang the connection."""

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
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """Close open connections, and new ones at once."""
        self._refusing = True
        self._drop()

    def hang(self) -> None:
        self._flowing.clear()

    def go_on(self) -> None:
        """Pass on what was held back: it was only slow."""
        self._flowing.set()

    def repair(self) -> None:
        """Work normally again for new connections."""
        self._refusing = False
        self._drop()
        self._flowing.set()

    def close(self) -> None:
        self.cut()
        self._flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or it keeps listening while `accept` waits
        self._accepting.join(1)
        self._listener.close()

    def _drop(self) -> None:
        while self._open:
            source = self._open.pop()
            with contextlib.suppress(OSError):
                source.shutdown(socket.SHUT_RDWR)
            source.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = None if self._refusing else self._connected()
                if server is None:
                    client.close()
                    continue
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _connected(self) -> socket.socket | None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self.target))
        except OSError:  # nothing listens there now
            server.close()
            return None
        return server

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
