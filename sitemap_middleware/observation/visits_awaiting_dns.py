"""Keeps the visits of crawlers until DNS says whose they are, in memory that is bounded whatever DNS does.

Networks take turns, and the one with the most gives way if there are too many. So one network with many addresses does
not keep the visits of others waiting.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Final, NamedTuple

from ..crawlers.ip_address_ranges import parse_address
from ..crawlers.known_crawlers import Crawler
from ..fork_safety import reset_after_fork
from ..models import Site
from .noted_crawler_requests import NotedRequest
from .observer import status_code

MAX_WAITING_SENDERS: Final = 2000
"""Addresses that wait to be verified."""

MAX_WAITING_ROWS: Final = 10_000
"""Rows of all senders: one for each path and status."""

MAX_WAITING_CHARS: Final = 2_000_000
"""Characters of the paths of these rows."""

_CHARS_OF_ROW: Final = 200
"""What a row weighs besides its path, when networks are compared."""

NETWORK_BITS: Final = {4: 24, 6: 48}
"""The size of a network, by IP version: what one customer of a provider easily gets."""


class SenderKey(NamedTuple):
    """Who sent requests, and who he claims to be."""

    crawler: Crawler
    address: str
    is_own: bool
    """Whether the address is certainly the sender's own (`is_own_address`)."""


class Row:
    """Visits of one sender to one path with one status."""

    __slots__ = ("count", "first", "is_document", "last", "path", "site", "status")

    def __init__(self, request: NotedRequest, status: int) -> None:
        self.site: Site = request.site
        self.path: str = request.path
        self.is_document: bool = request.is_document
        self.status: int = status
        self.first: int = int(request.at)
        self.last: int = self.first
        self.count: int = 0


RowKey = tuple[str, str, int, bool]


class Group(NamedTuple):
    """The visits of one sender."""

    sender: SenderKey
    rows: dict[RowKey, Row]

    @property
    def chars(self) -> int:
        return sum(len(row.path) for row in self.rows.values())

    @property
    def weight(self) -> int:
        return self.chars + _CHARS_OF_ROW * len(self.rows)

    def add(self, request: NotedRequest) -> None:
        status = status_code(request.raw_status)
        key = request.site.store_key, request.path, status, request.is_document
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = Row(request, status)
        at = int(request.at)
        row.first, row.last, row.count = min(row.first, at), max(row.last, at), row.count + 1

    def merge(self, other: Group) -> None:
        """Add the visits of another group of the same sender."""
        for key, row in other.rows.items():
            known = self.rows.setdefault(key, row)
            if known is not row:
                known.first, known.last = min(known.first, row.first), max(known.last, row.last)
                known.count += row.count


def grouped(requests: Iterable[NotedRequest]) -> list[Group]:
    """Requests by who sent them, added up."""
    groups: dict[SenderKey, Group] = {}
    for request in requests:
        sender = SenderKey(request.crawler, request.address, request.is_own)
        group = groups.get(sender)
        if group is None:
            group = groups[sender] = Group(sender, {})
        group.add(request)
    return list(groups.values())


class UnverifiedVisits:
    """Groups that wait, by network. Threads may share it."""

    def __init__(self) -> None:
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent counts what waits there."""
        self._lock = threading.Lock()
        self._by_network: dict[str, dict[SenderKey, Group]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_network)

    def add(self, groups: Iterable[Group]) -> list[Group]:
        """Let groups wait. Return those for which there is no room, of the networks with the most."""
        with self._lock:
            for group in groups:
                waiting = self._by_network.setdefault(_network(group.sender.address), {})
                known = waiting.setdefault(group.sender, group)
                if known is not group:
                    known.merge(group)
            return self._shrink()

    def _shrink(self) -> list[Group]:
        waiting = [group for groups in self._by_network.values() for group in groups.values()]
        senders, rows = len(waiting), sum(len(group.rows) for group in waiting)
        chars = sum(group.chars for group in waiting)
        largest = [
            (-sum(group.weight for group in groups.values()), network) for network, groups in self._by_network.items()
        ]
        heapq.heapify(largest)
        removed = []
        while senders > MAX_WAITING_SENDERS or rows > MAX_WAITING_ROWS or chars > MAX_WAITING_CHARS:
            weight, network = largest[0]
            _, group = self._by_network[network].popitem()
            removed.append(group)
            senders, rows, chars = senders - 1, rows - len(group.rows), chars - group.chars
            if self._by_network[network]:
                heapq.heapreplace(largest, (weight + group.weight, network))
            else:
                heapq.heappop(largest)
                del self._by_network[network]
        return removed

    def next(self) -> Group | None:
        """Take the group whose turn it is; None if nothing waits."""
        with self._lock:
            if not self._by_network:
                return None
            network = next(iter(self._by_network))
            groups = self._by_network.pop(network)
            group = groups.pop(next(iter(groups)))
            if groups:
                self._by_network[network] = groups  # behind the others
            return group


def _network(address_text: str) -> str:
    address = parse_address(address_text)
    return "" if address is None else str(ip_network((address, NETWORK_BITS[address.version]), strict=False))
