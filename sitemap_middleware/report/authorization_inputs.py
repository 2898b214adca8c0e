"""What decides who may read the report: the request as `authorize` gets it, and whether it is from this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from ..http.urls import bare_host

_VERSIONS_OF_PROXIES: Final = ("0.9", "1.0")


class RequestHeaders(Mapping[str, str]):
    """The headers of a request. Their names match in any case; repeated ones are joined by commas."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in headers:
            name = name.lower()
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request for the report, as the option `authorize` is given it."""

    path: str
    """Decoded, below the root path of the app."""
    headers: RequestHeaders
    environ: Mapping[str, Any] | None = None
    """The environ of a WSGI app; None in an ASGI app."""
    scope: Mapping[str, Any] | None = None
    """The scope of an ASGI app; None in a WSGI app."""


def is_this_machine(request: ReportRequest) -> bool:
    """Whether the server and the client of a request are this machine, as far as their addresses tell.

    HTTP/1.0 counts as a proxy's: browsers do not send it, but nginx does, which need not add any other sign.
    """
    if request.environ is not None:
        server, client = request.environ.get("SERVER_NAME"), request.environ.get("REMOTE_ADDR")
        version = str(request.environ.get("SERVER_PROTOCOL")).removeprefix("HTTP/")
    else:
        scope = request.scope or {}
        server, client = (_first(scope.get(name)) for name in ("server", "client"))
        version = str(scope.get("http_version"))
    return version not in _VERSIONS_OF_PROXIES and _is_loopback_address(server) and _is_loopback_address(client)


def is_local_host(host: str) -> bool:
    """Whether a normalized host is this machine: `localhost` or a loopback address, and no other name for it."""
    return _is_loopback_address(bare_host(host).strip("[]"))


def _first(address: Any) -> Any:
    return address[0] if address else None


def _is_loopback_address(host: Any) -> bool:
    if host == "localhost":
        return True
    try:
        return isinstance(host, str) and ip_address(host).is_loopback
    except ValueError:
        return False
