"""Connects to hosts of the web, and to no address of the local network.

It connects to the very address that was checked. A name that resolves to another address a moment later (DNS
rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Final
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from .checks.loc import is_local

_MAX_ADDRESSES: Final = 4
"""Addresses of a host that are tried."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and a port. Raises `OSError` if there are none."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the resolver of the system for the addresses of a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [*dict.fromkeys(str(address[0]) for *_, address in found)]


class LocalAddressError(httpx.TransportError):
    """A host has an address of the local network."""


class _CheckedAddresses(httpcore.AsyncNetworkBackend):
    """Resolves a host once for each connection, and connects to what was checked."""

    def __init__(self, resolve: Resolve, *, allow_local: bool) -> None:
        self.allow_local = allow_local
        self.fixed: dict[str, Sequence[str]] = {}
        """The addresses of hosts that are not asked for again."""
        self.resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (of httpcore)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of the host, the first one that accepts."""
        addresses = (await self._addresses(host, port))[:_MAX_ADDRESSES]
        seconds = timeout / len(addresses) if timeout else None
        for address in addresses[:-1]:
            try:
                return await self._network.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(addresses[-1], port, seconds, local_address, socket_options)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = self.fixed.get(host) or await self.resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        if not self.allow_local and any(map(_is_local_address, addresses)):
            raise LocalAddressError(f"{host} has an address of the local network")
        return addresses


class WebTransport(httpx.AsyncHTTPTransport):
    """Carries requests to the web, directly or through the proxies of the environment.

    A proxy finds the address of a host by itself, so that it is not checked here.

    Args:
        resolve: returns the addresses of a host.
        allow_local: whether addresses of the local network are connected to.
    """

    def __init__(self, resolve: Resolve, *, allow_local: bool) -> None:
        context = httpx.create_ssl_context()
        super().__init__(verify=context)
        self._backend = _CheckedAddresses(resolve, allow_local=allow_local)
        # httpx has no argument for the network. Without this attribute, all requests must fail.
        assert isinstance(self._pool, httpcore.AsyncConnectionPool)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=self._backend,
        )
        self._proxies = {
            scheme: httpx.AsyncHTTPTransport(verify=context, proxy=url if "://" in url else f"http://{url}")
            for scheme, url in getproxies().items()
            if scheme in ("http", "https", "all")
        }

    @property
    def allow_local(self) -> bool:
        """Whether addresses of the local network are connected to."""
        return self._backend.allow_local

    async def admit(self, url: httpx.URL) -> None:
        """Allow the local network if the host of a URL is part of it, and connect to its present addresses only.

        Raises `OSError` if it has none.
        """
        host = url.raw_host.decode("ascii")
        addresses = await self._backend.resolve(host, url.port or 0)
        if all(map(_is_local_address, addresses)):
            self._backend.fixed[host] = addresses
            self._backend.allow_local = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        proxy = self._proxies.get(request.url.scheme) or self._proxies.get("all")
        if proxy is not None and not proxy_bypass(request.url.host):
            return await proxy.handle_async_request(request)
        return await super().handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(super().aclose)
            for proxy in self._proxies.values():
                stack.push_async_callback(proxy.aclose)


def _is_local_address(address: str) -> bool:
    return is_local(f"[{address}]" if ":" in address else address)
