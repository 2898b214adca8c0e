"""Finds out whether an address is that of the crawler which a User-Agent names.

Two ways count, as operators document them: the address is in the ranges that they publish; or its name (PTR) ends in
their domain, and that name has this address (A, AAAA). A PTR record alone proves nothing, because the owner of an
address writes it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.request import Request, getproxies, urlopen

from .known_crawlers import Crawler

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a file of ranges that are downloaded. A longer one cannot be read."""

_KNOWN_HOST: Final = "developers.google.com"
_NETWORK_NAMES: Final = ("ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix")
_DOWNLOAD_SECONDS: Final = 10.0
_LOOKUPS_AT_ONCE: Final = 32

_NO_NAME_ERRORS: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Identity(StrEnum):
    """Whose an address is."""

    VERIFIED = "verified"
    """The crawler's own."""
    UNVERIFIED = "unverified"
    """This cannot be found out, or nobody asked."""
    FAKE = "fake"
    """Somebody else's: it is in none of the published ranges, and DNS, if asked, says no."""


Sender = tuple[Crawler, str]
"""A crawler that a User-Agent names, and the address as the log has it."""


def parse_ranges(content: bytes) -> list[Network]:
    """The networks of a file.

    Operators write `{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": …}]}`; some give the prefixes as plain
    texts, or the networks under `ip_prefix`, or leave the outer object out. Raises `ValueError`.
    """
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    prefixes = parsed.get("prefixes") if isinstance(parsed, dict) else parsed
    if not isinstance(prefixes, list) or not prefixes:
        raise ValueError('it has no list "prefixes"')
    return [ip_network(str(text)[:80].strip()) for entry in prefixes for text in _texts(entry)]


def _texts(entry: Any) -> list[Any]:
    return [entry[name] for name in _NETWORK_NAMES if name in entry] if isinstance(entry, dict) else [entry]


def parse_address(text: str) -> Address | None:
    """The address that a log names, maybe an IPv4 one within IPv6, or one with a zone; None if it is no address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


class Identities:
    """Finds out whose addresses are, by the published ranges and DNS; without the network, all are unverified."""

    def __init__(self, *, asks_network: bool) -> None:
        self._asks_network = asks_network
        self._ranges: dict[str, list[Network] | None] = {}
        """By the URL of their file; None if they cannot be had."""
        self._known: dict[Sender, Identity] = {}
        self.problems: list[str] = []

    def look_up(self, senders: Iterable[Sender]) -> Mapping[Sender, Identity]:
        """Find out whose these addresses are: many at once, because each may wait for DNS."""
        wanted = dict.fromkeys(senders)
        new = [sender for sender in wanted if sender not in self._known]
        # A proxy needs no DNS here. Without either, each attempt would only wait for an answer that does not come.
        can_fetch = self._asks_network and (self._dns_works or bool(getproxies()))
        for url in sorted({crawler.ranges_url for crawler, _ in new} - self._ranges.keys() - {""}):
            self._ranges[url] = self._fetch_ranges(url) if can_fetch else None
        with ThreadPoolExecutor(_LOOKUPS_AT_ONCE) as pool:
            self._known.update(zip(new, pool.map(self._identity, new), strict=True))
        return self._known

    def _fetch_ranges(self, url: str) -> list[Network] | None:
        headers = {"User-Agent": "sitemap-middleware", "Accept": "application/json"}
        try:
            with urlopen(Request(url, headers=headers), timeout=_DOWNLOAD_SECONDS) as response:  # noqa: S310 (ours)
                return parse_ranges(response.read(MAX_FILE_BYTES))
        except (ValueError, OSError) as error:
            self.problems.append(f"{url}: {error}")
            return None

    def _identity(self, sender: Sender) -> Identity:
        crawler, address = sender[0], parse_address(sender[1])
        if address is None or not address.is_global:  # that of a proxy, or of a developer
            return Identity.UNVERIFIED
        ranges = self._ranges.get(crawler.ranges_url)
        if any(address in network for network in ranges or ()):
            return Identity.VERIFIED
        if crawler.dns_suffixes and self._asks_network:
            return _ask_dns(crawler.dns_suffixes, address) if self._dns_works else Identity.UNVERIFIED
        return Identity.FAKE if ranges is not None else Identity.UNVERIFIED

    @cached_property
    def _dns_works(self) -> bool:
        """Whether DNS knows a name of the web. Where it is filtered it denies all, which proves nothing, or waits."""
        try:
            return bool(socket.getaddrinfo(_KNOWN_HOST, None))
        except OSError:
            self.problems.append(
                f"DNS does not know {_KNOWN_HOST} here, so nobody was asked by DNS: such visits are unverified"
            )
            return False


def _ask_dns(suffixes: tuple[str, ...], address: Address) -> Identity:
    try:
        name = socket.getnameinfo((str(address), 0), socket.NI_NAMEREQD)[0].rstrip(".").lower()
        if name.endswith(tuple(f".{suffix}" for suffix in suffixes)):
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            if any(parse_address(str(socket_address[0])) == address for *_, socket_address in found):
                return Identity.VERIFIED
    except (OSError, UnicodeError) as error:
        has_no_name = isinstance(error, socket.gaierror) and error.errno in _NO_NAME_ERRORS
        return Identity.FAKE if has_no_name else Identity.UNVERIFIED  # DNS fails
    return Identity.FAKE
