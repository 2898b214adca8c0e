"""Simulated machines: each has its own address and one route to the store, which can be cut."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final, Protocol

from . import namespace
from .proxy import Proxy

LOOPBACK: Final = "127.0.0.2", "127.0.0.3"
"""Addresses of two machines."""

LENT: Final = int(IPv4Address("198.18.0.0"))
"""The first of the addresses that are for tests of networks (RFC 2544)."""


class Machine(Protocol):
    """One of two."""

    address: str
    """The address at which clients reach it."""
    store: str
    """The host and port by which it reaches the store."""
    entry: list[str]
    """The module, with its arguments, that runs another one on this machine."""

    def part(self) -> None:
        """Cut its way to the store."""

    def repair(self) -> None:
        """It is open again."""

    def close(self) -> None:
        """Away with it."""


class Address:
    """An address of the loopback network: what connects to the store from there is refused, or is never answered."""

    def __init__(self, number: int, target: Path, *, answered: bool) -> None:
        self.address = addresses()[number]
        self.entry: list[str] = []
        self._proxy = Proxy(target)
        self.store = f"127.0.0.1:{self._proxy.port}"
        self.part = self._proxy.cut if answered else self._proxy.hang
        self.repair, self.close = self._proxy.repair, self._proxy.close


class Namespace:
    """A network namespace: its cable to the store is pulled."""

    def __init__(self, number: int, target: Path) -> None:
        """Raise PermissionError if namespaces are not allowed here."""
        self._name = f"{os.getpid()}-{number}"
        first = LENT + 8 * (os.getpid() * 2 % 2**14 + number)
        created = self._ask("make", str(first))
        if created.returncode == namespace.NOT_ALLOWED:
            self._ask("remove")
            raise PermissionError
        created.check_returncode()
        _, self.address = namespace.ends(first, namespace.VISITORS)
        here, _ = namespace.ends(first, namespace.STORE)
        self.entry = ["tests.support.namespace", "run", self._name]
        self._proxy = Proxy(target, host=here)
        self.store = f"{here}:{self._proxy.port}"

    def part(self) -> None:
        self._ask("plug", "down").check_returncode()

    def repair(self) -> None:
        self._ask("plug", "up").check_returncode()

    def close(self) -> None:
        self._proxy.close()
        self._ask("remove").check_returncode()

    def _ask(self, command: str, *more: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([sys.executable, "-m", namespace.__name__, command, self._name, *more], check=False)


def addresses() -> list[str]:
    """Of two machines; one address has to do where a system lends the loopback network no more."""
    usable = []
    for host in LOOPBACK:
        with suppress(OSError), socket.socket() as probe:
            probe.bind((host, 0))
            usable.append(host)
    return usable if len(usable) == len(LOOPBACK) else ["127.0.0.1"] * 2


def refused(number: int, target: Path) -> Machine:
    """A machine that is told at once when its way to the store is cut."""
    return Address(number, target, answered=True)


def swallowed(number: int, target: Path) -> Machine:
    """One that is told nothing: what it sends is never answered."""
    try:
        return Namespace(number, target)
    except PermissionError:
        return Address(number, target, answered=False)
