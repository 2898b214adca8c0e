"""Finds out whether an address is that of the crawler which a User-Agent names.

Two ways count, as operators document them: the address is in the ranges that they publish; or its name (PTR) ends in
their domain, and that name has this address (A, AAAA). A PTR record alone proves nothing, because the owner of an
address writes it.
"""

from __future__ import annotations

import json
import socket
from bisect import bisect_right
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_address,
    ip_network,
)
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from .known_crawlers import CRAWLERS, Crawler

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest file of ranges that is read."""

MIN_PREFIX_BITS: Final = {4: 8, 6: 16}
"""The widest network, by IP version, that an operator can have. A wider one would verify half of the internet."""

MAX_KNOWN_SENDERS: Final = 100_000
"""Addresses whose identity is kept. If there are more, all are forgotten, and looked up again."""

_DOWNLOAD_SECONDS: Final = 10.0
_LOOKUPS_AT_ONCE: Final = 32


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


class RangesError(ValueError):
    """A file is not one of ranges. The message says why."""


class AddressRanges:
    """Networks that can be searched for an address."""

    def __init__(self, networks: Iterable[Network]) -> None:
        by_version: dict[int, list[Any]] = {4: [], 6: []}
        for network in networks:
            by_version[network.version].append(network)
        self._networks = {version: list(collapse_addresses(found)) for version, found in by_version.items()}
        self._starts = {
            version: [int(network.network_address) for network in found] for version, found in self._networks.items()
        }

    def __contains__(self, address: Address) -> bool:
        position = bisect_right(self._starts[address.version], int(address)) - 1
        return position >= 0 and address in self._networks[address.version][position]


def parse_ranges(content: bytes) -> AddressRanges:
    """The networks of a file.

    Operators write `{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": …}]}`; some give the prefixes as plain
    texts, or the networks under `ip_prefix`, or leave the outer object out. Raises `RangesError`.
    """
    if len(content) > MAX_FILE_BYTES:
        raise RangesError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise RangesError("it is not JSON") from None
    prefixes = parsed.get("prefixes") if isinstance(parsed, dict) else parsed
    if not isinstance(prefixes, list) or not prefixes:
        raise RangesError('it has no list "prefixes"')
    return AddressRanges(_network(text) for entry in prefixes for text in _texts(entry))


def _texts(entry: Any) -> list[Any]:
    if not isinstance(entry, dict):
        return [entry]
    texts = [entry[name] for name in ("ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix") if name in entry]
    if not texts:
        raise RangesError(f"the entry {str(entry)[:80]!r} names no network")
    return texts


def _network(text: Any) -> Network:
    try:
        network = ip_network(text.strip())
    except (ValueError, AttributeError):
        raise RangesError(f"{str(text)[:80]!r} is not a network") from None
    if network.prefixlen < MIN_PREFIX_BITS[network.version]:
        raise RangesError(f"the network {network} is too wide")
    return network


def parse_address(text: str) -> Address | None:
    """The address that a log names, maybe an IPv4 one within IPv6, or one with a zone; None if it is no address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


class Identities:
    """Finds out whose addresses are. Without ranges and the network, all are unverified."""

    def __init__(self, folder: Path | None = None, *, asks_network: bool = False) -> None:
        """Use what is known.

        Args:
            folder: has files of published ranges, by the names that their operators give them, such as bingbot.json.
            asks_network: whether ranges that are not there are fetched from the operators, and DNS is asked.

        Raises:
            RangesError: a file of the folder is not one of ranges.
        """
        self._asks_network = asks_network
        self._ranges: dict[str, AddressRanges | None] = {}
        """By the URL of their file; None if they cannot be had."""
        self._known: dict[tuple[str, str], Identity] = {}
        self.problems: list[str] = []
        """Why ranges could not be fetched."""
        if folder is not None:
            self._read_folder(folder)

    def _read_folder(self, folder: Path) -> None:
        for url in dict.fromkeys(url for crawler in CRAWLERS for url in crawler.range_urls):
            file = folder / url.rpartition("/")[2]
            if file.is_file():
                try:
                    self._ranges[url] = parse_ranges(file.read_bytes())
                except RangesError as error:
                    raise RangesError(f"{file}: {error}") from None

    def of(self, sender: Sender) -> Identity:
        """Whose an address is, as `look_up` found out."""
        return self._known.get((sender[0].name, sender[1]), Identity.UNVERIFIED)

    def look_up(self, senders: Iterable[Sender]) -> None:
        """Find out whose these addresses are: many at once, because each may wait for DNS."""
        wanted = {(crawler.name, address): (crawler, address) for crawler, address in senders}
        if len(self._known) + len(wanted) > MAX_KNOWN_SENDERS:
            self._known.clear()
        new = [sender for key, sender in wanted.items() if key not in self._known]
        for crawler, _ in new:
            self._fetch_ranges(crawler)
        if not self._asks_network:
            found = [self._identity(*sender) for sender in new]
        else:
            with ThreadPoolExecutor(_LOOKUPS_AT_ONCE) as pool:
                found = list(pool.map(lambda sender: self._identity(*sender), new))
        self._known.update(
            {(crawler.name, address): identity for (crawler, address), identity in zip(new, found, strict=True)}
        )

    def _fetch_ranges(self, crawler: Crawler) -> None:
        for url in crawler.range_urls:
            if url in self._ranges:
                continue
            self._ranges[url] = None
            if self._asks_network:
                try:
                    self._ranges[url] = parse_ranges(_download(url))
                except (RangesError, OSError) as error:
                    self.problems.append(f"{url}: {error}")

    def _identity(self, crawler: Crawler, text: str) -> Identity:
        address = parse_address(text)
        if address is None or not address.is_global:  # that of a proxy, or of a developer
            return Identity.UNVERIFIED
        ranges = [self._ranges.get(url) for url in crawler.range_urls]
        if any(found is not None and address in found for found in ranges):
            return Identity.VERIFIED
        if crawler.dns_suffixes and self._asks_network:
            return _ask_dns(crawler.dns_suffixes, address)
        return Identity.FAKE if ranges and None not in ranges else Identity.UNVERIFIED


def _ask_dns(suffixes: tuple[str, ...], address: Address) -> Identity:
    try:
        names = [name.rstrip(".").lower() for name in _names(str(address))]
        own = [name for name in names if name.endswith(tuple(f".{suffix}" for suffix in suffixes))]
        is_own = any(parse_address(found) == address for name in own for found in _addresses(name))
    except (OSError, UnicodeError):  # DNS fails
        return Identity.UNVERIFIED
    return Identity.VERIFIED if is_own else Identity.FAKE


_NO_NAME_ERRORS: Final = frozenset({1, 4})
"""HOST_NOT_FOUND and NO_DATA (netdb.h)."""

_NO_ADDRESS_ERRORS: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


def _names(address: str) -> list[str]:
    """The names of an address (PTR). Raises OSError if DNS fails."""
    try:
        name, aliases, _ = socket.gethostbyaddr(address)
    except socket.herror as error:
        if error.errno in _NO_NAME_ERRORS:
            return []
        raise
    return [name, *aliases]


def _addresses(name: str) -> list[str]:
    """The addresses of a name (A, AAAA). Raises OSError if DNS fails."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _NO_ADDRESS_ERRORS:
            return []
        raise
    return [str(address[0]) for *_, address in found]


def _download(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "sitemap-middleware", "Accept": "application/json"})  # noqa: S310 (ours)
    with urlopen(request, timeout=_DOWNLOAD_SECONDS) as response:  # noqa: S310
        content: bytes = response.read(MAX_FILE_BYTES + 1)
    return content
