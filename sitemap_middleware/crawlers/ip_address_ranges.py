"""Parses the IP address ranges that operators of crawlers publish, packs them for the store, and searches them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_address, ip_network
from typing import Any, Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest file of ranges that is read."""

MAX_NETWORKS: Final = 50_000
"""Networks of one file."""

MIN_PREFIX_BITS: Final = {4: 8, 6: 16}
"""The widest network, by IP version, that an operator can have. A wider one would verify half of the internet."""


class RangesError(ValueError):
    """A file is not one of ranges. The message says why."""


def parse_ranges(content: bytes) -> list[Network]:
    """The networks of a file, without overlaps.

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
    if len(prefixes) > MAX_NETWORKS:
        raise RangesError(f"it has more than {MAX_NETWORKS:,} networks")
    return _collapsed(_network(text) for entry in prefixes for text in _texts(entry))


def _texts(entry: Any) -> Iterable[Any]:
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


def _collapsed(networks: Iterable[Network]) -> list[Network]:
    by_version: dict[int, list[Any]] = {4: [], 6: []}
    for network in networks:
        by_version[network.version].append(network)
    return [network for version in (4, 6) for network in collapse_addresses(by_version[version])]


class AddressRanges:
    """Networks that can be searched for an address."""

    def __init__(self, networks: Iterable[Network]) -> None:
        by_version: dict[int, list[Any]] = {4: [], 6: []}
        for network in _collapsed(networks):
            by_version[network.version].append(network)
        self._networks = by_version
        self._starts = {
            version: [int(network.network_address) for network in networks] for version, networks in by_version.items()
        }

    def __contains__(self, address: Address) -> bool:
        position = bisect_right(self._starts[address.version], int(address)) - 1
        return position >= 0 and address in self._networks[address.version][position]


def pack_ranges(ranges: Mapping[str, Iterable[Network]], updated_at: int) -> bytes:
    """Ranges by the URL of their file, and when they were fetched, as one record of the store."""
    networks = {url: [str(network) for network in networks] for url, networks in ranges.items()}
    return json.dumps({"updated_at": updated_at, "ranges": networks}, separators=(",", ":")).encode()


def unpack_ranges(record: bytes) -> tuple[dict[str, list[Network]], int]:
    """The ranges of a record, and when they were fetched. A damaged record has none, and was fetched at 0."""
    try:
        parsed = json.loads(record)
        ranges = {url: [ip_network(text) for text in networks] for url, networks in parsed["ranges"].items()}
        return ranges, int(parsed["updated_at"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}, 0


def parse_address(text: str) -> Address | None:
    """The address that a server names, maybe an IPv4 one within IPv6, or one with a zone; None if it is no address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
