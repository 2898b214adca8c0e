"""Finds out whether an address is that of the crawler which a User-Agent names.

Two ways count, as operators document them: the address is in the ranges that they
publish; or its name (PTR) ends in their domain, and that name has this address (A,
AAAA). A PTR record alone proves nothing, because the owner of an address writes it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from ..bounded_cache import BoundedCache
from .counted_visits import FAKE, UNVERIFIED, VERIFIED
from .ip_address_ranges import Address, AddressRanges, Network, parse_address
from .known_crawlers import Crawler

KNOWN_SECONDS: Final = 24 * 60 * 60
"""How long the answer of DNS is used."""

RETRY_SECONDS: Final = 10 * 60
"""How long it is not asked again after it has failed."""

MAX_KNOWN_ADDRESSES: Final = 10_000
"""Addresses whose answers are kept, in memory only."""


class Resolver(Protocol):
    """What is asked for names and addresses. Both methods raise `OSError` if DNS fails."""

    def names(self, address: str) -> Iterable[str]:
        """The names of an address (PTR); none if it has none."""

    def addresses(self, name: str) -> Iterable[str]:
        """The addresses of a name (A, AAAA); none if there is no such name."""


class SystemResolver:
    """The operating system's resolver, which has timeouts of its own."""

    def names(self, address: str) -> Iterable[str]:
        try:
            name, aliases, _ = socket.gethostbyaddr(address)
        except socket.herror as error:
            if error.errno in _NO_NAME_ERRORS:
                return []
            raise
        return [name, *aliases]

    def addresses(self, name: str) -> Iterable[str]:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _NO_ADDRESS_ERRORS:
                return []
            raise
        return [str(address[0]) for *_, address in found]


_NO_NAME_ERRORS: Final = frozenset({1, 4})
"""HOST_NOT_FOUND and NO_DATA (netdb.h)."""

_NO_ADDRESS_ERRORS: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Verifier:
    """Verifies addresses. It asks DNS, so it may block: it never runs while a page is served."""

    def __init__(self, resolver: Resolver, clock: Callable[[], float]) -> None:
        """Start without ranges.

        Args:
            resolver: asks DNS.
            clock: returns POSIX seconds.
        """
        self._resolver = resolver
        self._clock = clock
        self._ranges: Mapping[str, AddressRanges] = {}
        self._known: BoundedCache[tuple[tuple[str, ...], Address], tuple[int, float]] = BoundedCache(
            MAX_KNOWN_ADDRESSES
        )
        """What DNS says of an address, and until when that is used, by the suffixes that its names should have."""

    def use_ranges(self, ranges: Mapping[str, Iterable[Network]]) -> None:
        """Use these ranges from now on, by the URL of their file."""
        self._ranges = {url: AddressRanges(networks) for url, networks in ranges.items()}

    def identity(self, crawler: Crawler, address_text: str) -> int:
        """Whether an address is the crawler's: `VERIFIED`, `FAKE`, or `UNVERIFIED` if that cannot be found out.

        It is fake only if every way to verify it was tried, and all said no.
        """
        known = self.known_identity(crawler, address_text)
        if known is not None:
            return known
        address = parse_address(address_text)
        assert address is not None
        now = self._clock()
        try:
            identity, seconds = self._ask_dns(crawler.dns_suffixes, address), KNOWN_SECONDS
        except (OSError, UnicodeError):
            identity, seconds = UNVERIFIED, RETRY_SECONDS
        self._known.put((crawler.dns_suffixes, address), (identity, now + seconds))
        return identity

    def known_identity(self, crawler: Crawler, address_text: str) -> int | None:
        """The identity as far as it is known without asking DNS; None if DNS must be asked. It never blocks."""
        address = parse_address(address_text)
        if address is None or not address.is_global or not crawler.is_verifiable:
            return UNVERIFIED  # a private address is that of a proxy, or of a developer
        known_ranges = [self._ranges[url] for url in crawler.range_urls if url in self._ranges]
        if any(address in ranges for ranges in known_ranges):
            return VERIFIED
        if not crawler.dns_suffixes:
            return FAKE if len(known_ranges) == len(crawler.range_urls) else UNVERIFIED
        now, known = self._clock(), self._known.get((crawler.dns_suffixes, address))
        return known[0] if known is not None and now < known[1] <= now + KNOWN_SECONDS else None

    def _ask_dns(self, suffixes: tuple[str, ...], address: Address) -> int:
        names = [name.lower().rstrip(".") for name in self._resolver.names(str(address))]
        own = [name for name in names if any(name.endswith(f".{suffix}") for suffix in suffixes)]
        for name in own[:MAX_NAMES]:
            if address in map(parse_address, self._resolver.addresses(name)):
                return VERIFIED
        return FAKE


MAX_NAMES: Final = 5
"""Names of an address that are looked up. Whoever owns an address can give it any number."""
