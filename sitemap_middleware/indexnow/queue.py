"""What is to be told of a site, and what was: one record in the store, which only the worker with the lease writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import randbelow, token_hex
from typing import Final, Literal, NamedTuple

from ..documents.changes import KEPT_SECONDS, Change

MAX_URLS: Final = 10_000
"""URLs that are kept, and so those of one request. If more wait, the oldest are left to the sitemap."""

RECORD_NAME: Final = "indexnow"
"""The name of the record, and of the lease."""

REPEAT_SECONDS: Final = 10 * 60
"""The shortest time between two notices of one URL."""

MAX_RETRY_AFTER_SECONDS: Final = 24 * 60 * 60
"""The longest pause that an engine can ask for."""

MAX_PAUSE_SECONDS: Final = 6 * 60 * 60
"""The longest pause after failures in a row."""

State = Literal["unverified", "verifying", "good", "limited", "burnt"]
"""The key is not surely public yet; it is, and no engine has confirmed it; all is well; the engine takes less; it
refuses the key for ever."""

STATES: Final[tuple[State, ...]] = ("unverified", "verifying", "good", "limited", "burnt")


class Notice(NamedTuple):
    """What is to be told, or was told last, of one URL. Times are in POSIX seconds."""

    at: float
    """When the change was found, or the app named it."""
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
    since: tuple[float, str]
    """Changes up to this time, and of that second up to this URL, are not told."""
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
        """Have the changes of the sitemap told that were not, and nothing more that it does not say by now.

        What was told is known for as long as its change is kept: that may be absent only while a deployment rolls on.
        """
        latest = {change.loc: change for change in changes}
        for url, notice in list(self.notices.items()):
            kept = KEPT_SECONDS if url in latest or notice.is_done or notice.is_named else 0
            if now - notice.sent_at >= max(kept, REPEAT_SECONDS) and now - notice.at >= kept:
                del self.notices[url]
        for url, change in latest.items():
            if ((change.at, url) > self.since or url in self.notices) and self.is_news(url, change.happened_by):
                self.add(url, change.at)

    def is_news(self, url: str, at: float) -> bool:
        """Whether a change of a URL that had happened by a time is to be told.

        Who is told of a page asks for it after that: so that told of all before.
        """
        before = self.notices.get(url)
        return before is None or not before.is_done or at >= before.sent_at

    def add(self, url: str, at: float, *, is_named: bool = False) -> None:
        """Have a change of a URL told, unless it is known."""
        before = self.notices.get(url)
        if before is None or before.at < at:
            self.notices[url] = Notice(at, before.sent_at if before else 0, is_named=is_named)

    def drop_oldest(self) -> None:
        """Keep no more than `MAX_URLS`: those that changed last."""
        extra = len(self.notices) - MAX_URLS
        if extra > 0:
            oldest = sorted(self.notices, key=lambda url: (self.notices[url].at, url))[:extra]
            self.since = max((self.notices[oldest[-1]].at, oldest[-1]), self.since)
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
        most = max((notice.most for notice in due.values()), default=0)  # new ones before those that were refused
        return [url for url, notice in due.items() if notice.most == most][:most]

    def note(self, urls: Sequence[str], sent_at: int, *, is_done: bool = False, most: int = MAX_URLS) -> None:
        """Note that URLs are sent, and whether that is all."""
        for url in urls:
            self.notices[url] = self.notices[url]._replace(sent_at=sent_at, is_done=is_done, most=most)

    def is_paused(self, now: int) -> bool:
        """Whether nothing is to be requested now."""
        return 0 < self.retry_at - now <= MAX_RETRY_AFTER_SECONDS  # a later time is that of a clock that was wrong

    def pause(self, now: int, seconds: float = 0) -> None:
        """Request nothing for so many seconds, and longer after each failure, by chance, not all sites at once."""
        pause = min(REPEAT_SECONDS * 2**self.failures, MAX_PAUSE_SECONDS)
        self.failures = min(self.failures + 1, 20)
        self.retry_at = now + max(pause + randbelow(pause // 4), min(int(seconds), MAX_RETRY_AFTER_SECONDS))

    def renew(self, key: str) -> None:
        """Begin with another key; what waits is told under that."""
        self.key, self.state, self.retry_at = key, "unverified", 0


def decoded_queue(record: bytes | None, now: int) -> Queue:
    """The queue in a record; an empty one, with a new key, if there is none."""
    with suppress(ValueError, TypeError):
        key, (at, url), state, retry_at, failures, looked_at, notices = json.loads(record or b"")
        if state in STATES and isinstance(notices, Mapping):
            rows = {
                url: Notice(float(at), int(sent_at), bool(is_done), int(most), bool(is_named))
                for url, (at, sent_at, is_done, most, is_named) in notices.items()
            }
            times = int(retry_at), int(failures), int(looked_at)
            return Queue(str(key), (float(at), str(url)), state, *times, rows)
    return Queue(token_hex(16), (now, "~"))  # no URL is later than that
