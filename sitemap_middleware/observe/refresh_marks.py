"""Carries out `SitemapMiddleware.refresh`: marks in the store what every process that shares it is to bring up to date.

A mark is a token: its time, and random digits. A process reads a provider again if its token is another than when it
did so last. Of the processes that see the mark of a page, the first one requests the page, with the next request for
the sitemap.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Final

from ..exceptions import OptionError, StoreError
from ..http.urls import MAX_LOC_CHARS, quote_path
from ..models import Site, StoreKey
from ..stores.breaker import GuardedStore
from ..util import is_on_event_loop, log, reset_after_fork

WAIT_SECONDS: Final = 1.0
"""Seconds that `refresh` waits for the store, at most."""

EVENT_LOOP_WAIT_SECONDS: Final = 0.1
"""The same on a thread that runs an event loop, which can do nothing else meanwhile."""

MAX_MARKS: Final = 100
"""Pages and providers that may be marked. If there are more, everything is brought up to date."""

MAX_CHANGED: Final = 1000
"""Pages that are known to be changed: the latest. The sender of notices reads them twice a minute."""

CHANGED_SECONDS: Final = 24 * 60 * 60
"""Seconds for which they are known."""

MARK_SECONDS: Final = 60 * 60
"""Seconds for which the mark of a page is looked at."""

_OWNER: Final = StoreKey("sites")
"""The owner of marks, which belong to no site: the process that writes them may not know the root path."""

_LEASE_SECONDS: Final = 5
"""Seconds after which marks may be changed although another process did not finish its change."""


@dataclass(frozen=True, slots=True)
class RefreshMarks:
    """The marks at one moment."""

    everything: bytes = b""
    """The token of the last `refresh()`; empty if there was none."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """The token of the last `refresh(path)` of a page that `values` give, by the name of their section."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """The tokens of the last `refresh(path)` of each decoded path."""

    @property
    def latest(self) -> bytes:
        """Bytes that change with each mark."""
        return b" ".join([self.everything, *map(str.encode, self.pages.values())])

    def token_of(self, section: str) -> bytes:
        """Bytes that change whenever the items of a provider are to be read again."""
        tokens = self.everything + b"/" + self.sections.get(section, "").encode()
        return b"" if tokens == b"/" else blake2b(tokens, digest_size=8).digest()


class Refresher:
    """Collects what is to be brought up to date. Its marks are saved by the background thread, and by each flush."""

    def __init__(
        self,
        store: GuardedStore,
        scope: str,
        clock: Callable[[], float],
        *,
        sections_of: Callable[[str], Iterable[str]],
        wake: Callable[[], None],
    ) -> None:
        """`scope` is a name that all processes of the app have in common, and other apps do not.

        `sections_of` names the providers' sections that a decoded path belongs to, and `wake` has `save` called soon.
        """
        self._store = store
        self._everything, self._some = f"refresh/{scope}", f"refresh/{scope}/some"
        self._changed = f"changed/{scope}"
        self._clock = clock
        self._sections_of = sections_of
        self._wake = wake
        self._latest = RefreshMarks()
        self._done = set[str]()
        """Tokens that this process has dealt with."""
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: the parent marks what it was asked for."""
        self._lock = threading.Lock()
        self._pending: set[tuple[str | None, bool]] = set()
        """Decoded paths, and whether the app says that they are changed; None stands for everything."""
        self._saved = threading.Event()

    def refresh(self, path: str | None, *, is_changed: bool = False) -> None:
        """Ask for a decoded path, or everything, to be brought up to date. Never raises for a store that fails.

        A path that `is_changed` is in `changed` from then on.

        Raises:
            OptionError: the path is not one.
        """
        if path is not None:
            path = str(path)  # it may stand for its text, as what Django's `reverse_lazy` returns
            if not path.startswith("/"):
                raise OptionError(f'refresh({path!r}): give the path of a page, such as refresh("/about"), or nothing')
            if quote_path(path) is None:
                return  # no page has it
        with self._lock:
            self._pending.add((path, is_changed and not {"?", "#"}.intersection(path or "")))  # a query may be secret
            saved = self._saved
        self._wake()
        saved.wait(EVENT_LOOP_WAIT_SECONDS if is_on_event_loop() else WAIT_SECONDS)

    def save(self) -> None:
        """Mark all that is pending. Raises `StoreError`; then it stays pending."""
        with self._lock:
            if not self._pending:
                return
            pending, self._pending = self._pending, set()
            saved, self._saved = self._saved, threading.Event()
        try:
            self._save(pending)
        except BaseException:
            with self._lock:
                self._pending |= pending
            raise
        finally:
            saved.set()

    def load(self) -> RefreshMarks:
        """The marks; those read last if the store fails."""
        try:
            records = self._store.load(_OWNER, [self._everything, self._some])
        except StoreError as error:
            log.debug("refresh marks not read: %s", error)
        else:
            some = _parsed(records.get(self._some))
            self._latest = RefreshMarks(records.get(self._everything, b""), some["sections"], some["pages"])
        return self._latest

    def changed(self) -> dict[str, float]:
        """The decoded paths that the app said are changed, and when last, in POSIX seconds. Raises `StoreError`."""
        with suppress(ValueError, TypeError, AttributeError):
            times = json.loads(self._store.load(_OWNER, [self._changed]).get(self._changed, b"{}"))
            now = self._clock()
            return {path: float(at) for path, at in times.items() if abs(now - float(at)) < CHANGED_SECONDS}
        return {}

    def take_pages(self, site: Site, marks: RefreshMarks, static_paths: Callable[[], list[str]]) -> list[str]:
        """The decoded paths that this process is to request, of those that are marked and that no other process took.

        `static_paths` returns those of the site's static routes.
        """
        paths = [path for path, token in marks.pages.items() if self._is_first(site, token)]
        if marks.everything and self._is_first(site, marks.everything.decode()):
            paths += static_paths()
        return paths

    def _is_first(self, site: Site, token: str) -> bool:
        """Whether no process has dealt with a recent token yet. From now on, this one has."""
        key = f"{site.base_url} {token}"
        if key in self._done or not self._is_recent(token):
            return False
        if len(self._done) >= 10 * MAX_MARKS:
            self._done.clear()
        self._done.add(key)
        try:
            return self._store.take(site.store_key, f"refresh {token}", MARK_SECONDS)
        except StoreError:
            self._done.discard(key)
            return False

    def _token(self) -> str:
        return f"{int(self._clock())}-{secrets.token_hex(8)}"

    def _is_recent(self, token: str) -> bool:
        at = token.partition("-")[0]
        return at.isdecimal() and abs(self._clock() - int(at)) < MARK_SECONDS

    def _save(self, pending: Collection[tuple[str | None, bool]]) -> None:
        """Save marks. If other processes do so at the same time, each waits for its turn, but not for long."""
        # A holder may take its lease twice, so each thread is one of its own.
        take = partial(self._store.take, _OWNER, self._some, of=f"/{threading.get_ident()}")
        for _ in range(10):
            if has_turn := take(_LEASE_SECONDS):
                break
            time.sleep(0.02)
        try:
            records: dict[str, bytes | None] = {self._everything: self._token().encode(), self._some: None}
            paths = {path for path, _ in pending if path is not None}
            if has_turn and (None, False) not in pending and len(paths) <= MAX_MARKS:
                some = _parsed(self._store.load(_OWNER, [self._some]).get(self._some))
                some["sections"] |= {name: self._token() for path in paths for name in self._sections_of(path)}
                some["pages"] = {path: token for path, token in some["pages"].items() if self._is_recent(token)}
                some["pages"] |= {path: self._token() for path in paths if len(path) <= MAX_LOC_CHARS}
                if max(len(some["pages"]), len(some["sections"])) <= MAX_MARKS:
                    records = {self._some: json.dumps(some).encode()}
            changes = {path: self._clock() for path, is_changed in pending if path is not None and is_changed}
            if changes:
                earlier = {path: at for path, at in self.changed().items() if path not in changes}
                latest = [*earlier.items(), *changes.items()][-MAX_CHANGED:]
                records[self._changed] = json.dumps(dict(latest)).encode()
            self._store.save(_OWNER, records)
        finally:
            take(0)


def _parsed(record: bytes | None) -> dict[str, dict[str, str]]:
    """The marks of pages and sections; none if the record is damaged."""
    marks: dict[str, dict[str, str]] = {"sections": {}, "pages": {}}
    with suppress(ValueError, TypeError):
        marks |= json.loads(record or b"")
    return marks
