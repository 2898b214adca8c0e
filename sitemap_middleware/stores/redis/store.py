"""The store for `redis://`, `rediss://` and `unix://` URLs: Redis or Valkey, shared by any number of machines."""

from __future__ import annotations

import functools
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from secrets import token_hex
from typing import Concatenate, Final, ParamSpec, TypeVar

from ...bounded_cache import BoundedCache
from ...evidence.observations import Observation
from ...exceptions import StoreError
from ...fork_safety import reset_after_fork
from ...models import BaseURL, MergeResult, Page, PageLimits, StoreKey
from ..base import MAX_CLOCK_LEAD_SECONDS, MAX_LEASE_SECONDS, UNLIMITED, Block, EngineStatus, LeaseStatus, RecordOwner
from ..compact_page_list import CompactPageList
from .client import WRONG_TYPE, DamagedError, RedisClient
from .keys import KEY_KINDS, parse_key, pattern_of_keys, site_key
from .pages import SitePages
from .repair_in_place import delete_other_types, repair
from .scripts import LEASE_SCRIPT, SAVE_SCRIPT, SERVED_SINCE_SCRIPT, TIME_SCRIPT

MERGE_RETRY_SECONDS: Final = 5.0
"""How long a merge is tried again if other workers merge into the same site."""

MAX_TURN_MILLISECONDS: Final = 2000
"""How long other workers wait for one that takes the turn after its merge has failed."""

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""A repair reads every page of a site, so the next one waits."""

MAX_SITES_WITH_REPAIR_TIME: Final = 1000
"""Sites for which the time of the last repair is remembered."""

log: logging.Logger = logging.getLogger("sitemap_middleware")

_Result = TypeVar("_Result")
_Site = TypeVar("_Site", bound=str)
_Arguments = ParamSpec("_Arguments")


def _repair_and_retry(
    method: Callable[Concatenate[RedisStore, _Site, _Arguments], _Result],
) -> Callable[Concatenate[RedisStore, _Site, _Arguments], _Result]:
    """Decorate a method whose first argument is a site: report errors; if values are damaged, repair and try again."""

    @functools.wraps(method)
    def repairing(store: RedisStore, site: _Site, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            with store._client.reporting_errors():
                return method(store, site, *args, **kwargs)
        except DamagedError as error:
            if not store.repair(site, error):
                raise
        with store._client.reporting_errors():
            return method(store, site, *args, **kwargs)

    return repairing  # type: ignore[return-value] # mypy expects that `site` cannot be passed by name


class RedisStore:
    """A store in one database of a Redis. It connects when it is first used, and again in a forked child.

    A site has five keys (`keys`), which a cluster keeps on one node. Deleting them deletes the site.
    """

    def __init__(self, url: str, name: str) -> None:
        """Parse the URL, without connecting. Raises ValueError, whose message shows no password.

        `name` is the store's name in messages.
        """
        self.name = name
        self._client = RedisClient(url, name)
        self._repaired_at: BoundedCache[str, float] = BoundedCache(MAX_SITES_WITH_REPAIR_TIME)
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Replace the lock in a forked child: a thread of the parent may hold it."""
        self._merge_lock = threading.Lock()

    @_repair_and_retry
    def merge(self, site: StoreKey, observations: Sequence[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        """Merge here, and write the result if the site has not changed meanwhile; else merge again."""
        pages = self._site_pages(site)
        deadline = time.monotonic() + MERGE_RETRY_SECONDS
        owner, has_turn = token_hex(8), False
        if self._merge_lock.acquire(timeout=MERGE_RETRY_SECONDS):
            try:
                while time.monotonic() < deadline:
                    result = pages.merge(observations, limits, owner, has_turn=has_turn)
                    if result is not None:
                        return result
                    while not pages.take_turn(owner, MAX_TURN_MILLISECONDS) and time.monotonic() < deadline:
                        time.sleep(secrets.randbelow(20) / 1000)  # random, so that not all workers ask at once
                    has_turn = True
            finally:
                self._merge_lock.release()
        raise StoreError(
            f"the store {self.name} does not work now: other workers have been writing for {MERGE_RETRY_SECONDS:g} s"
        )

    @_repair_and_retry
    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        return self._site_pages(site).forget(unseen_since, unlisted_since)

    @_repair_and_retry
    def pages(self, site: StoreKey) -> list[Page]:
        return self._site_pages(site).pages()

    @_repair_and_retry
    def find_pages(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self._site_pages(site).find_pages(paths)

    @_repair_and_retry
    def version(self, site: StoreKey) -> int:
        return self._site_pages(site).version()

    @_repair_and_retry
    def blocks(self, site: StoreKey, since: int = 0) -> list[Block]:
        return self._site_pages(site).blocks(since)

    @_repair_and_retry
    def block(self, site: StoreKey, number: int) -> list[Page]:
        return self._site_pages(site).block(number)

    @_repair_and_retry
    def sample(self, site: StoreKey, limit: int) -> CompactPageList:
        return self._site_pages(site).sample(limit)

    @_repair_and_retry
    def served_since(self, site: BaseURL, name: str, etag: str, now: int) -> int:
        key = self._key(site, "documents")
        return int(self._client.run(SERVED_SINCE_SCRIPT, key, name, etag, now, MAX_CLOCK_LEAD_SECONDS))

    @_repair_and_retry
    def load(self, site: RecordOwner, names: Collection[str]) -> dict[str, bytes]:
        names = list(names)
        values = self._client.read_fields(self._key(site, "records"), names)
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    @_repair_and_retry
    def save(self, site: RecordOwner, records: Mapping[str, bytes | None]) -> None:
        saved = [(name, value) for name, value in records.items() if value is not None]
        deleted = [name for name, value in records.items() if value is None]
        names_and_values = [item for pair in saved for item in pair]
        self._client.run(SAVE_SCRIPT, self._key(site, "records"), len(saved), *names_and_values, *deleted)

    @_repair_and_retry
    def lease(self, site: RecordOwner, name: str, owner: str, now: int, seconds: int) -> bool:
        key = self._key(site, "leases")
        return bool(self._client.run(LEASE_SCRIPT, key, name, owner, now, seconds, MAX_LEASE_SECONDS))

    def now(self, site: StoreKey) -> float:
        """The clock of the server that keeps the site, in POSIX seconds."""
        with self._client.reporting_errors():
            seconds, microseconds = self._client.run(TIME_SCRIPT, self._key(site, "pages"))
            return int(seconds) + int(microseconds) / 1e6

    def close(self) -> None:
        self._client.close()

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """Details for the `status` command, of these sites or of all: to find all, it reads the names of all keys."""
        with self._client.reporting_errors():
            keys = {(site, kind): self._key(site, kind) for site in sites for kind in KEY_KINDS} or self._find_keys()
            documents = {site: self._read_times(key) for (site, kind), key in keys.items() if kind == "documents"}
            leases = {site: self._read_times(key) for (site, kind), key in keys.items() if kind == "leases"}
            return EngineStatus(
                *self._client.server_version(),
                self._client.size(keys.values()),
                sorted({site for site, kind in keys if kind == "pages"}),
                {site: max(times.values()) for site, times in documents.items() if times},
                sorted(
                    LeaseStatus(site, name, expires_at)
                    for site, times in leases.items()
                    for name, expires_at in times.items()
                    if expires_at > now
                ),
            )

    def repair(self, site: str, reason: Exception) -> bool:
        """Repair a site, unless this store has just done so. Returns whether it was repaired."""
        now = time.monotonic()
        if now < (self._repaired_at.get(site) or -math.inf) + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at.put(site, now)
        with self._client.reporting_errors():
            if WRONG_TYPE in str(reason):
                deleted: int | None = delete_other_types(self._client, (self._key(site, kind) for kind in KEY_KINDS))
            else:
                deleted = repair(self._client, self._key(site, "pages"), site)
        if deleted is not None:
            log.warning(
                "store %s was damaged (%s) and has been repaired; %d records were lost and will be learned again",
                self.name,
                reason.__cause__ or reason,
                deleted,
            )
        return deleted is not None

    def _site_pages(self, site: str) -> SitePages:
        return SitePages(self._client, site, self._key(site, "pages"))

    def _key(self, site: str, kind: str) -> str:
        return site_key(self._client.prefix, site, kind)

    def _find_keys(self) -> dict[tuple[str, str], str]:
        """All keys of this store, by site and kind."""
        keys = {}
        for key_bytes in self._client.keys(pattern_of_keys(self._client.prefix)):
            key = key_bytes.decode()
            site_and_kind = parse_key(self._client.prefix, key)
            if site_and_kind is not None:
                keys[site_and_kind] = key
        return keys

    def _read_times(self, key: str) -> dict[str, int]:
        """The documents or leases of a key: each value begins with a time, in POSIX seconds."""
        values = self._client.execute("HGETALL", key)
        return {name.decode(): int(value.decode().split(" ", 1)[0]) for name, value in values.items()}
