"""The data type of counted visits, as stores keep them: by crawler, path and status, without addresses."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final, NamedTuple

from ..fork_safety import reset_after_fork

MAX_STORED_ROWS: Final = 500_000
"""Rows that a store keeps for each site. If there are more, some are deleted (`ROWS_AFTER_PRUNING`)."""

ROWS_AFTER_PRUNING: Final = MAX_STORED_ROWS * 9 // 10
"""Rows that are left then: those of verified crawlers first, and of these the ones visited last."""

MAX_PATH_CHARS: Final = 2047
"""Characters of the longest path of its own. A longer one has no place in a sitemap."""

MAX_PENDING_VISITS: Final = 10_000
"""Rows in a `VisitCounter`. This bounds the memory, whatever is requested."""

OTHER_PATHS: Final = ""
"""The path of all visits that are not counted by path: too long, or made up by somebody."""

_MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that every engine stores exactly."""


class CrawlerVisit(NamedTuple):
    """Visits of one crawler to one path with one result.

    Two of the same path, crawler, status, `verified` and `fake` are one: their counts add up.
    """

    path: str
    """The decoded path; `OTHER_PATHS` for those not counted by path."""
    crawler: str
    """The name that the User-Agent claims (`known_crawlers.CRAWLERS`)."""
    verified: bool
    """Whether the addresses are this crawler's."""
    status: int
    """The HTTP status of the responses."""
    first: int
    """The first visit, in POSIX seconds."""
    last: int
    """The last visit, in POSIX seconds."""
    count: int  # type: ignore[assignment] # no method, as tuples have
    fake: bool = False
    """Whether the addresses are somebody else's. Neither verified nor fake: this could not be found out."""


VisitKey = tuple[str, str, int, int]
"""What two rows of the same visits have in common: path, crawler, identity, status."""

VisitRow = tuple[int, int, int]
"""First visit and last visit, in POSIX seconds, and count."""

UNVERIFIED: Final = 0
VERIFIED: Final = 1
FAKE: Final = 2
"""The values of an identity: what `verified` and `fake` say, as one number."""


def visit_key(visit: CrawlerVisit) -> VisitKey:
    identity = VERIFIED if visit.verified else FAKE if visit.fake else UNVERIFIED
    path = visit.path if len(visit.path) <= MAX_PATH_CHARS else OTHER_PATHS
    return path, visit.crawler, identity, visit.status


def visit_of_row(key: VisitKey, first: int, last: int, count: int) -> CrawlerVisit:
    """The visits of a stored row."""
    path, crawler, identity, status = key
    return CrawlerVisit(path, crawler, identity == VERIFIED, status, first, last, count, identity == FAKE)


def add_up(visits: Iterable[CrawlerVisit]) -> dict[VisitKey, VisitRow]:
    """First visit, last visit and count by key, in the order of the keys. Texts are ones that can be written as UTF-8.

    Stores write rows in this order, so that two transactions never wait for each other.
    """
    rows: dict[VisitKey, VisitRow] = {}
    for visit in visits:
        path, crawler, identity, status = visit_key(visit)
        key = _as_text(path), _as_text(crawler), identity, _as_integer(status)
        first, last, count = map(_as_integer, (visit.first, visit.last, visit.count))
        if count > 0:
            rows[key] = _joined(rows.get(key), (first, last, count))
    return dict(sorted(rows.items()))


def _joined(known: VisitRow | None, new: VisitRow) -> VisitRow:
    if known is None:
        return new
    return min(known[0], new[0]), max(known[1], new[1]), known[2] + new[2]


def _as_text(text: str) -> str:
    """The text without lone surrogates, which cannot be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _as_integer(number: float) -> int:
    return max(0, min(int(number), _MAX_INTEGER))


class VisitCounter:
    """Counts visits in bounded memory until they are taken to be stored. Threads may share it.

    If it is full, new paths are counted together as `OTHER_PATHS`, so the sums stay true.
    """

    def __init__(self, max_rows: int = MAX_PENDING_VISITS) -> None:
        self._max_rows = max_rows
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Start empty in a forked child: the parent stores what it has counted."""
        self._lock = threading.Lock()
        self._rows: dict[VisitKey, VisitRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, visits: Iterable[CrawlerVisit]) -> None:
        """Count visits, or put back those that could not be stored."""
        with self._lock:
            for visit in visits:
                key = visit_key(visit)
                known = self._rows.get(key)
                if known is None and len(self._rows) >= self._max_rows:
                    key = (OTHER_PATHS, *key[1:])
                    known = self._rows.get(key)
                self._rows[key] = _joined(known, (visit.first, visit.last, visit.count))

    def take(self) -> list[CrawlerVisit]:
        """What was counted since the last call."""
        with self._lock:
            rows, self._rows = self._rows, {}
        return [visit_of_row(key, *row) for key, row in rows.items()]
