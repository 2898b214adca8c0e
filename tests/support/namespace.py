"""`python -m tests.support.namespace`: a network namespace with two cables to this machine (Linux, and allowed to).

By one it is visited, by the other it reaches the store. Each command is a process of its
own: a namespace is entered for good, and what speaks to the kernel (pyroute2) forks.
"""

from __future__ import annotations

import errno
import runpy
import sys
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any

NOT_ALLOWED = 77
"""The exit code if namespaces are not allowed here."""

VISITORS, STORE = "v", "s"
"""Of the two cables, what the names of their ends begin with."""


def ends(first: int, cable: str) -> tuple[str, str]:
    """The addresses of a cable's ends, here and there, in a namespace that has eight from `first` on."""
    at = first + (4 if cable == STORE else 0)
    return str(IPv4Address(at + 1)), str(IPv4Address(at + 2))


def make(name: str, first: int) -> None:
    """A namespace, with its cables plugged in."""
    from pyroute2 import IPRoute, NetNS, netns

    if name in netns.listnetns():  # of a run that was killed
        netns.remove(name)
    netns.create(name)
    with IPRoute() as here, NetNS(name) as there:
        _up(there, "lo")
        for cable in (VISITORS, STORE):
            here.link("add", ifname=cable + name, kind="veth", peer={"ifname": cable, "net_ns_fd": name})
            for side, interface, address in zip((here, there), (cable + name, cable), ends(first, cable), strict=True):
                (index,) = side.link_lookup(ifname=interface)
                side.addr("add", index=index, address=address, prefixlen=30)
                _up(side, interface)


def plug(name: str, state: str) -> None:
    """Plug in the cable to the store ("up"), or pull it ("down"): what is sent is swallowed, and nobody is told."""
    from pyroute2 import IPRoute

    with IPRoute() as here:
        (index,) = here.link_lookup(ifname=STORE + name)
        here.link("set", index=index, state=state)


def remove(name: str) -> None:
    """Away with the namespace, and with it its cables."""
    from pyroute2 import netns

    netns.remove(name)


def run(name: str, module: str) -> None:
    """A module as `python -m` runs it, in the namespace."""
    from pyroute2 import netns

    netns.setns(name)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _up(side: Any, interface: str) -> None:
    (index,) = side.link_lookup(ifname=interface)
    side.link("set", index=index, state="up")


def main(command: str, name: str, *more: str) -> None:
    if command == "make":
        try:
            make(name, int(more[0]))
        except Exception as error:
            if isinstance(error, ImportError | PermissionError) or getattr(error, "code", None) == errno.EPERM:
                sys.exit(NOT_ALLOWED)
            raise
    elif command == "plug":
        plug(name, *more)
    elif command == "remove":
        with suppress(FileNotFoundError):  # it may not have been made
            remove(name)
    else:
        sys.argv[1:] = more[1:]
        run(name, more[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
