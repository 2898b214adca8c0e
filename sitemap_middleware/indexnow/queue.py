"""What is to be sent, and what was: one record for each site, which only the worker with the lease writes.

Each URL is noted before it is sent, and again when it was received. A worker that dies between has sent it or not; so
it is sent again, but not within ten minutes, which IndexNow asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import randbelow, token_hex
from typing import Final, Literal, NamedTuple

from ..documents.changes import Change
from .protocol import MAX_RETRY_AFTER_SECONDS

MAX_URLS: Final = 10_000
"""URLs that are kept, and so those of one request. If more wait, the oldest are left to the sitemap."""

RECORD_NAME: Final = "indexnow"
"""The name of the record, and of the lease."""

REPEAT_SECONDS: Final = 10 * 60
"""The shortest time between two notices of one URL."""

MAX_PAUSE_SECONDS: Final = 6 * 60 * 60
"""The longest pause after failures in a row."""

State = Literal["unverified", "verifying", "good", "limited", "burnt"]
"""The key is not public yet; it is, and no engine has confirmed it; all is well; the engine takes less; it refuses the
key for ever."""

STATES: Final[tuple[State, ...]] = ("unverified", "verifying", "good", "limited", "burnt")


class Notice(NamedTuple):
    """What is to be told, or was told last, of one URL. Times are in POSIX seconds."""

    at: int
    """When it changed."""
    sent_at: int = 0
    """When it was last sent; 0 if never."""
    is_done: bool = False
    """Whether that was received, or is not to be repeated."""
    most: int = MAX_URLS
    """The most URLs that it may be sent with: half of those of the last request that was not valid."""
    is_named: bool = False
    """Whether the app named it, by `changed`."""


@dataclass(slots=True)
class Queue:
    """The notices of a site, and what is known of its key."""

    key: str
    since: int
    """Changes up to then are not told."""
    state: State = "unverified"
    retry_at: int = 0
    """Until when nothing is requested."""
    failures: int = 0
    """In a row."""
    looked_at: int = 0
    """When the sitemap was last brought up to date."""
    notices: dict[str, Notice] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The stored form."""
        fields = self.key, self.since, self.state, self.retry_at, self.failures, self.looked_at
        return json.dumps([*fields, {url: notice[:] for url, notice in self.notices.items()}]).encode()

    def add_changes(self, changes: Iterable[Change], now: int) -> None:
        """Have the changes of the sitemap told that were not, and nothing more of pages that are not listed by now."""
        latest = {change.loc: change.at for change in changes if change.at > self.since or change.loc in self.notices}
        for url, notice in list(self.notices.items()):
            is_awaited = notice.is_named and not notice.is_done
            if url not in latest and not is_awaited and now - notice.sent_at >= REPEAT_SECONDS:
                del self.notices[url]
        for url, at in latest.items():
            self._add(url, at)

    def add_named(self, urls: Iterable[str], now: int) -> None:
        """Have URLs told that the app named."""
        for url in urls:
            self._add(url, now, is_named=True)

    def _add(self, url: str, at: int, *, is_named: bool = False) -> None:
        before = self.notices.get(url)
        if before is None or before.at < at:
            self.notices[url] = Notice(at, before.sent_at if before else 0, is_named=is_named)

    def drop_oldest(self) -> None:
        """Keep no more than `MAX_URLS`: those that changed last."""
        extra = len(self.notices) - MAX_URLS
        if extra > 0:
            oldest = sorted(self.notices, key=lambda url: self.notices[url].at)[:extra]
            self.since = max(self.notices[oldest[-1]].at, self.since)
            for url in oldest:
                del self.notices[url]

    def pending(self) -> int:
        """How many URLs wait."""
        return sum(not notice.is_done for notice in self.notices.values())

    def due(self, now: int) -> list[str]:
        """The URLs of the next request; none if nothing is to be sent now."""
        due = {
            url: notice
            for url, notice in self.notices.items()
            if not notice.is_done and not 0 <= now - notice.sent_at < REPEAT_SECONDS
        }
        most = min((notice.most for notice in due.values()), default=0)
        return [url for url, notice in due.items() if notice.most == most][:most]

    def note(self, urls: Sequence[str], sent_at: int, *, is_done: bool = False, most: int = MAX_URLS) -> None:
        """Note that URLs are sent, and whether that is all."""
        for url in urls:
            self.notices[url] = self.notices[url]._replace(sent_at=sent_at, is_done=is_done, most=most)

    def is_paused(self, now: int) -> bool:
        """Whether nothing is to be requested now."""
        return 0 < self.retry_at - now <= MAX_RETRY_AFTER_SECONDS  # a later time is that of a clock that was wrong

    def pause(self, now: int, seconds: int = 0) -> None:
        """Request nothing for so many seconds, and longer after each failure, by chance: all sites would come at once.

        The longest pause is several hours.
        """
        pause = min(REPEAT_SECONDS * 2**self.failures, MAX_PAUSE_SECONDS)
        self.failures = min(self.failures + 1, 20)
        self.retry_at = now + max(pause + randbelow(pause // 4), seconds)

    def succeed(self, state: State) -> None:
        """Note that nothing stands in the way of further requests."""
        self.state, self.failures, self.retry_at = state, 0, 0


def decoded_queue(record: bytes | None, now: int, key: str | None) -> Queue:
    """The queue in a record, for a key that the option names, or else any; an empty one if there is none."""
    with suppress(ValueError, TypeError):
        known, since, state, retry_at, failures, looked_at, notices = json.loads(record or b"")
        if state in STATES and isinstance(notices, Mapping):
            rows = {
                url: Notice(int(at), int(sent_at), bool(is_done), int(most), bool(is_named))
                for url, (at, sent_at, is_done, most, is_named) in notices.items()
            }
            queue = Queue(str(known), int(since), state, int(retry_at), int(failures), int(looked_at), rows)
            if key not in (None, known):  # what waits is told under the new key
                queue.key, queue.state, queue.failures, queue.retry_at = key or "", "unverified", 0, 0
            return queue
    return Queue(key or token_hex(16), now)
