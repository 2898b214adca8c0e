"""`redis://`, `rediss://`, `unix://`: pages kept in Redis or Valkey, shared by any number of machines (redis-py)."""

from __future__ import annotations

import functools
import logging
import math
import re
import secrets
import struct
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Concatenate, Final, ParamSpec, TypeVar

from ...bounded_cache import BoundedCache
from ...exceptions import StoreError
from ...fork_safety import reset_after_fork
from ...models import MergeResult, Page, PageLimits
from ...observations import Observation
from ...urls import has_slash_like, toggle_trailing_slash
from ..base import MAX_LEASE_SECONDS, UNLEARNED_BLOCK, UNLIMITED, Block
from ..batch_merge import BatchMerger
from ..engine_status import EngineStatus, LeaseStatus
from ..packed_pages import PackedPages
from ..page_codec import packed_page
from ..placement import PlacementCursor, Slot
from ..row_ids import row_id, row_id_range
from .client import WRONG_TYPE, DamagedError, RedisClient
from .pages import (
    EMPTY_NAME,
    PageWriter,
    StoredPage,
    block_of,
    count_rows,
    first_place,
    page_name,
    parse_cursor,
    parse_rows,
    unlearned_segments,
)
from .repair import drop_others, repair
from .scripts import (
    BLOCKS_SCRIPT,
    FIND_SCRIPT,
    FORGET_SCRIPT,
    LEASE_SCRIPT,
    MAX_COMMAND_VALUES,
    MERGE_SCRIPT,
    NAME_BYTES,
    SAVE_SCRIPT,
    SEGMENT_SCRIPT,
    SERVED_SINCE_SCRIPT,
    TIME_SCRIPT,
    TURN_SCRIPT,
)

MERGE_RETRY_SECONDS: Final = 5.0
"""Seconds for which a fold is begun again where others were faster."""

MAX_TURN_MILLISECONDS: Final = 2000
"""For which others wait with their folds, at most, for one that they were faster than before."""

_BLOCK_RECORD: Final = struct.Struct("<IIQ")
_MAX_SEGMENTS_READ: Final = 50
"""Segments whose order is read at once: 12 kB each."""

_KEY_KINDS: Final = ("pages", "things", "documents", "leases")
"""Of keys of a site."""

MIN_REPAIR_INTERVAL_SECONDS: Final = 60.0
"""Seconds from one repair of a site to the next, at least: it looks at all pages."""

log = logging.getLogger("sitemap_middleware")

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _repairing(call: Callable[Concatenate[RedisStore, str, _P], _T]) -> Callable[Concatenate[RedisStore, str, _P], _T]:
    """A call about a site; where something damaged is in its way, it is made once more after a repair."""

    @functools.wraps(call)
    def repairing(store: RedisStore, site: str, *arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            return call(store, site, *arguments, **named)
        except DamagedError as error:
            if not store.repair(site, error):
                raise
        return call(store, site, *arguments, **named)

    return repairing  # type: ignore[return-value] # wraps tells mypy of names for arguments that have none


class RedisStore:
    """A store in one database of a Redis, which is connected to when first used, and again in the child after a fork.

    Of each site there are four keys, which a cluster keeps together: its pages,
    things, documents and leases. To delete them is to forget the site.
    """

    def __init__(self, url: str, name: str) -> None:
        """Of a URL, and what it is called in errors; ValueError, which shows no password, where it is wrong."""
        self.name = name
        self._client = RedisClient(url, name)
        self._repaired_at: BoundedCache[str, float] = BoundedCache(1000)
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: whoever was folding is not there."""
        self._merging = threading.Lock()

    @_repairing
    def merge(self, site: str, observations: Sequence[Observation], caps: PageLimits = UNLIMITED) -> MergeResult:
        """Fold observations into what is there, and write it down if it still is; begin again where it is not."""
        until = time.monotonic() + MERGE_RETRY_SECONDS
        owner, waited = token_hex(8), False
        if self._merging.acquire(timeout=MERGE_RETRY_SECONDS):
            try:
                with self._client.reporting_errors():
                    while time.monotonic() < until:
                        folded = self._merge_once(site, observations, caps, owner, waited=waited)
                        if folded is not None:
                            return folded
                        self._wait_for_turn(site, owner, until)
                        waited = True
            finally:
                self._merging.release()
        raise StoreError(
            f"the store {self.name} does not work now: others have been writing for {MERGE_RETRY_SECONDS:g} s"
        )

    @_repairing
    def forget(self, site: str, unseen_since: int, unlisted_since: int) -> int:
        """Block by block, so that Redis is not held up: a call that failed may have forgotten some."""
        with self._client.reporting_errors():
            last = self._cursor(site)[0].block
            moments = (unseen_since, unlisted_since)
            return sum(
                self._client.run(FORGET_SCRIPT, self._pages(site), block, *moments) for block in range(1, last + 1)
            )

    @_repairing
    def pages(self, site: str) -> list[Page]:
        with self._client.reporting_errors():
            filling, named = self._cursor(site)
            segments = [*unlearned_segments(named), *range(1, filling.block + 1)]
            pages = {page.path: page for segment in segments for page in self._read_segment(site, segment)}
            return [pages[path] for path in sorted(pages)]

    @_repairing
    def find_pages(self, site: str, paths: Collection[str]) -> dict[str, Page]:
        with self._client.reporting_errors():
            rows = self._find_rows(site, [page_name(path) for path in paths])
            wanted = set(paths)
            return {row.path: row.page() for row in rows if row.path in wanted}

    @_repairing
    def version(self, site: str) -> int:
        with self._client.reporting_errors():
            (version,) = self._values(self._pages(site), ["v"])
            return int(version or 0)

    @_repairing
    def blocks(self, site: str, since: int = 0) -> list[Block]:
        with self._client.reporting_errors():
            found = iter(self._client.run(BLOCKS_SCRIPT, self._pages(site), since))
            return [Block(number, *_BLOCK_RECORD.unpack(known)) for number, known in zip(found, found, strict=True)]

    @_repairing
    def block(self, site: str, number: int) -> list[Page]:
        with self._client.reporting_errors():
            segments = unlearned_segments(self._cursor(site)[1]) if number == UNLEARNED_BLOCK else [number]
            return [page for segment in segments for page in self._read_segment(site, segment)]

    @_repairing
    def sample(self, site: str, most: int) -> PackedPages:
        with self._client.reporting_errors():
            filling, given = self._cursor(site)
            named = self._segment_names(site, unlearned_segments(given))
            learned = self._segment_names(site, range(1, filling.block + 1))
            first, end = row_id_range(1, 1, filling.block or 1)
            some = _sample_evenly(
                named, row_id(1, Slot(UNLEARNED_BLOCK, 0)), given, max(most - len(learned), most // 2)
            )
            some += _sample_evenly(learned, first, end - first, most - len(some))
            sample = PackedPages()
            sample.extend((row.path, row.route, row.data) for row in self._find_rows(site, some))
            return sample

    @_repairing
    def served_since(self, site: str, name: str, etag: str, now: int) -> int:
        with self._client.reporting_errors():
            return int(self._client.run(SERVED_SINCE_SCRIPT, self._key(site, "documents"), name, etag, now))

    @_repairing
    def load(self, site: str, names: Collection[str]) -> dict[str, bytes]:
        with self._client.reporting_errors():
            names = list(names)
            values = self._values(self._key(site, "things"), names)
            return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    @_repairing
    def save(self, site: str, things: Mapping[str, bytes | None]) -> None:
        kept = [one for name, value in things.items() if value is not None for one in (name, value)]
        dropped = [name for name, value in things.items() if value is None]
        with self._client.reporting_errors():
            self._client.run(SAVE_SCRIPT, self._key(site, "things"), len(kept) // 2, *kept, *dropped)

    @_repairing
    def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
        with self._client.reporting_errors():
            return bool(
                self._client.run(LEASE_SCRIPT, self._key(site, "leases"), name, owner, now, seconds, MAX_LEASE_SECONDS)
            )

    def now(self, site: str) -> float:
        """The server's time."""
        with self._client.reporting_errors():
            seconds, microseconds = self._client.run(TIME_SCRIPT, self._pages(site))
            return int(seconds) + int(microseconds) / 1e6

    def close(self) -> None:
        self._client.close()

    def status(self, now: int, sites: Sequence[str] = ()) -> EngineStatus:
        """What else there is to know, for people.

        To find all sites, every key of the database is looked at; not where some are named.
        """
        with self._client.reporting_errors():
            named = {(site, what): self._key(site, what) for site in sites for what in _KEY_KINDS}
            keys = named or self._keys()
            changed = {site: self._pairs(key) for (site, what), key in keys.items() if what == "documents"}
            leases = {site: self._pairs(key) for (site, what), key in keys.items() if what == "leases"}
            return EngineStatus(
                *self._client.engine(),
                self._client.size(keys.values()),
                sorted({site for site, what in keys if what == "pages"}),
                {site: max(since for since, _ in pairs.values()) for site, pairs in changed.items() if pairs},
                sorted(
                    LeaseStatus(site, name, until)
                    for site, pairs in leases.items()
                    for name, (until, _) in pairs.items()
                    if until > now
                ),
            )

    def repair(self, site: str, reason: Exception) -> bool:
        """Repair a site's pages, or its keys that are no hashes, unless that was done a moment ago; whether it was."""
        now = time.monotonic()
        if now < (self._repaired_at.get(site) or -math.inf) + MIN_REPAIR_INTERVAL_SECONDS:
            return False
        self._repaired_at.put(site, now)
        with self._client.reporting_errors():
            if WRONG_TYPE in str(reason):
                dropped: int | None = drop_others(self._client, (self._key(site, what) for what in _KEY_KINDS))
            else:
                dropped = repair(self._client, self._pages(site), site)
        if dropped is not None:
            log.warning(
                "the sitemap's store %s was damaged (%s) and was repaired; %d records were lost, and are learned again",
                self.name,
                reason.__cause__ or reason,
                dropped,
            )
        return dropped is not None

    def _keys(self) -> dict[tuple[str, str], str]:
        """All keys that are ours, by site and kind."""
        begins = f"{{{self._client.prefix}:"
        found = {}
        for raw in self._client.keys(f"{_escape_pattern(begins)}*"):
            key = raw.decode()
            tag, _, what = key.removeprefix(begins).rpartition("}:")
            if what in _KEY_KINDS:
                found[_unescaped(tag), what] = key
        return found

    def _pairs(self, key: str) -> dict[str, tuple[int, str]]:
        """The documents, or leases, of a key: a time, and what goes with it."""
        found = self._client.execute("HGETALL", key).items()
        split = ((name.decode(), value.decode().split(" ", 1)) for name, value in found)
        return {name: (int(at), more) for name, (at, more) in split}

    # The fold

    def _merge_once(
        self, site: str, observations: Sequence[Observation], caps: PageLimits, owner: str, *, waited: bool
    ) -> MergeResult | None:
        """Fold once; None where others have written meanwhile."""
        key = self._pages(site)
        names = {path: page_name(path) for path in sorted({seen.path for seen in observations})}
        routes = list({seen.route for seen in observations})
        (version, total, filling, twins, *known), found = self._read(
            site, names.values(), ["v", "n", "f", "t", *(f"c{route}" for route in routes)]
        )
        if version and not filling:
            raise ValueError("what new pages go into is not there")
        counts = dict(zip(routes, (int(count or 0) for count in known), strict=True))
        rows = {row.path: row for row in found}
        others = int(total or 0) - sum(counts.values())  # of routes that this batch does not speak of, under no name
        census = BatchMerger({**counts, "": others}, caps)

        def page_of(path: str) -> Page | None:
            row = rows.get(path)
            return None if row is None else row.page()

        changed = list(map(packed_page, census.merge(page_of, observations)))
        folded = census.result()
        if not changed:
            if waited:
                self._client.run(TURN_SCRIPT, key, owner, 0)
            return folded
        writing = PageWriter(site, names, *parse_cursor(filling))
        writing.write(changed, rows)
        has_twins = twins == b"1" or any(page.learned and not has_slash_like(page.path, page.route) for page in changed)
        if has_twins:
            own = {page.path for page in changed}
            for row in self._find_rows(
                site, [page_name(path) for path in {toggle_trailing_slash(path) for path in own} - own]
            ):
                writing.changed_blocks[block_of(row.segment)] += 0
        moved = list(census.count_changes.items())
        written = self._client.run(
            MERGE_SCRIPT, key, owner, version or "", writing.serialized_cursor, int(has_twins), sum(by for _, by in moved),  # noqa: E501
            *count_rows(moved), *writing.arguments(),
        )  # fmt: skip
        return folded if written else None

    def _wait_for_turn(self, site: str, owner: str, until: float) -> None:
        """Wait for one's turn."""
        while (
            not self._client.run(TURN_SCRIPT, self._pages(site), owner, MAX_TURN_MILLISECONDS)
            and time.monotonic() < until
        ):
            time.sleep(secrets.randbelow(20) / 1000)  # so that not all ask at once

    # Reading

    def _cursor(self, site: str) -> tuple[PlacementCursor, int]:
        (filling,) = self._values(self._pages(site), ["f"])
        return parse_cursor(filling)

    def _read_segment(self, site: str, segment: int) -> list[Page]:
        rows, block = self._client.run(SEGMENT_SCRIPT, self._pages(site), segment)
        pages = [row.page() for row in parse_rows(rows)]
        if block and _BLOCK_RECORD.unpack(block)[1] != len(pages):
            raise ValueError(f"block {segment} has {len(pages)} pages")
        return pages

    def _segment_names(self, site: str, segments: Sequence[int]) -> dict[int, bytes]:
        """The names of the pages of segments, in order, by the numbers that their rows would have in a table."""
        found = {}
        for some in _batches(segments, _MAX_SEGMENTS_READ):
            orders = self._values(self._pages(site), [f"o{segment}" for segment in some])
            for segment, order in zip(some, orders, strict=True):
                first = row_id(1, first_place(segment))
                for at in range(0, len(order or b""), NAME_BYTES):
                    found[first + at // NAME_BYTES] = (order or b"")[at : at + NAME_BYTES]
        return {row: name for row, name in found.items() if name != EMPTY_NAME}

    def _find_rows(self, site: str, names: Sequence[bytes]) -> list[StoredPage]:
        """The pages of these names, as many as there are."""
        return [row for some in _batches(names) for row in self._read(site, some, [])[1]]

    def _read(
        self, site: str, names: Iterable[bytes], fields: Sequence[str]
    ) -> tuple[list[bytes | None], Iterator[StoredPage]]:
        """What stands in fields, and the pages of some names, as they are at one moment."""
        pages, *values = self._client.run(FIND_SCRIPT, self._pages(site), b"".join(names), *fields)
        return values, parse_rows(pages)

    # Keys

    def _key(self, site: str, what: str) -> str:
        """A key's name. By what stands in braces a cluster tells which node keeps it: all of a site are together."""
        return f"{{{self._client.prefix}:{_escaped(site)}}}:{what}"

    def _pages(self, site: str) -> str:
        return self._key(site, "pages")

    def _values(self, key: str, fields: Sequence[str | bytes]) -> list[bytes | None]:
        """The values of fields of a hash."""
        return [value for some in _batches(fields) for value in self._client.execute("HMGET", key, *some)]


def _batches(values: Sequence[_T], most: int = MAX_COMMAND_VALUES) -> Iterator[Sequence[_T]]:
    """So many at once."""
    for start in range(0, len(values), most):
        yield values[start : start + most]


def _sample_evenly(order: Mapping[int, bytes], first: int, span: int, most: int) -> list[bytes]:
    """So many of the names whose rows lie in a span, evenly."""
    if len(order) <= most:
        return list(order.values())
    rows = list(order)
    found = {bisect_left(rows, first + span * number // most) for number in range(most)}
    return [order[rows[at]] for at in sorted(found) if at < len(rows)]


def _escaped(site: str) -> str:
    """A site's key without braces."""
    return site.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _escape_pattern(text: str) -> str:
    """A pattern of Redis's that this text alone is like."""
    return re.sub(r"([\\*?\[\]^-])", r"\\\1", text)


def _unescaped(tag: str) -> str:
    return tag.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")
