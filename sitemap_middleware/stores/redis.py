"""`redis://`, `rediss://` and `unix://`: a store in one database of a Redis or Valkey, single or a cluster (redis-py).

A site has these keys, all with the prefix `{sitemap:<SCHEMA_VERSION>:<number of the site>}`, by which a cluster keeps
them on one node. Redis may evict any of them: then the site starts empty.

| key | contents |
|---|---|
| `:site` | its `SiteState` |
| `:index` | a hash: the part of each path |
| `:pages:<part>` | a hash: the page of each path |
| `:records` | a hash: what `save` keeps |
| `:lease:<name>` | who may do a job; it expires |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from ..exceptions import StoreError
from ..models import Page, PageLimits, StoreKey
from ..options.store_urls import hide_passwords, without_password
from ..util import in_pieces, reset_after_fork
from .base import (
    MAX_LEASE_SECONDS,
    PIECE_PAGES,
    SCHEMA_VERSION,
    UNLIMITED,
    Owner,
    PartState,
    SiteState,
    decode_page,
    decode_state,
    encode_page,
    number_of,
    plan_write,
)

Result = TypeVar("Result")

DEFAULT_KEY_PREFIX: Final = "sitemap"

RESPONSE_TIMEOUT_SECONDS: Final = 3.0
"""Timeout for a response. The timeout for connecting is half of it."""

_OWN_OPTIONS: Final = ("prefix", "cluster")
"""Options of the URL that are not redis-py's."""

_WRITE: Final = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1]) -- refused if memory is short, unlike DEL, after which nothing would be
for i = 3, #ARGV, 3 do
  local key, field, value = KEYS[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  if field == '' then redis.call('DEL', key)
  elseif value == '' then redis.call('HDEL', key, field)
  else redis.call('HSET', key, field, value) end
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""
"""Changes hashes if a site still has a state. Arguments: that state, the new one, and for each change the number of the
key, the field and its value: without a value the field is deleted, without a field the key.
"""

_LEASE: Final = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) end
return 1
"""
"""Takes, extends or ends a lease. Arguments: the holder, and the seconds."""


class RedisStore:
    """A store in one database. It connects when it is first used, and again in a forked child.

    Args:
        url: the URL; a ValueError, whose message shows no password, if it is malformed. Its own options are `prefix`,
            of the names of all keys, and `cluster=true`.
    """

    def __init__(self, url: str) -> None:
        self.name: str = without_password(url)
        self._url = url
        self._client_url, options = _split_url(url)
        self.prefix: str = options.get("prefix", DEFAULT_KEY_PREFIX)
        self._is_cluster = options.get("cluster", "").lower() in ("1", "true", "yes")
        if not self._is_cluster:
            self._create_client()  # to check the URL
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Abandon the parent's client in a forked child."""
        self._client: Any = None

    # The contract

    def version(self, site: StoreKey) -> int:
        return self._state(site).version

    def parts(self, site: StoreKey) -> dict[int, PartState]:
        return dict(self._state(site).parts)

    def find(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        return self._run(lambda client: self._read_pages(client, site, paths)[1])

    def write(
        self, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits = UNLIMITED
    ) -> set[str] | None:
        return self._run(lambda client: self._write(client, site, version, pages, limits))

    def part(self, site: StoreKey, number: int) -> list[Page]:
        rows = self._run(lambda client: client.hgetall(self._key(site, f"pages:{number}")))
        pages = in_pieces(map(decode_page, rows, rows.values()), PIECE_PAGES)
        return sorted(filter(None, pages), key=attrgetter("path"))

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        wanted = list(names)
        values = self._run(lambda client: client.hmget(self._key(owner, "records"), wanted) if wanted else [])
        return {name: value for name, value in zip(wanted, values, strict=True) if value is not None}

    def save(self, owner: Owner, records: Mapping[str, bytes | None]) -> None:
        key = self._key(owner, "records")
        saved = {name: value for name, value in records.items() if value is not None}

        def save(client: Any) -> None:
            with client.pipeline(transaction=not self._is_cluster) as pipeline:
                if saved:
                    pipeline.hset(key, mapping=saved)
                if deleted := records.keys() - saved.keys():
                    pipeline.hdel(key, *deleted)
                pipeline.execute()

        self._run(save)

    def lease(self, owner: Owner, name: str, holder: str, seconds: int) -> bool:
        key = self._key(owner, f"lease:{name}")
        return bool(self._run(lambda client: client.eval(_LEASE, 1, key, holder, min(seconds, MAX_LEASE_SECONDS))))

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                if self._is_cluster:
                    client.disconnect_connection_pools()  # `close` leaves the sockets to the garbage collector
                client.close()

    def now(self) -> float:
        """The server's clock, in POSIX seconds."""
        target = {"target_nodes": RedisCluster.RANDOM} if self._is_cluster else {}
        seconds, microseconds = self._run(lambda client: client.time(**target))
        return int(seconds) + int(microseconds) / 1e6

    def sites(self) -> list[str]:
        """The keys of all sites, sorted. It reads the names of all keys of the database."""
        start = f"{{{self.prefix}:{SCHEMA_VERSION}:".encode()

        def read(client: Any) -> list[str]:
            keys = [key for key in client.scan_iter("*}:site", count=1000) if key.startswith(start)]
            return [decode_state(client.get(key))[0] for key in keys]

        return sorted(filter(None, self._run(read)))

    # Inside

    def _state(self, site: StoreKey) -> SiteState:
        return decode_state(self._run(lambda client: client.get(self._key(site, "site"))))[1]

    def _write(
        self, client: Any, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits
    ) -> set[str] | None:
        text = client.get(self._key(site, "site")) or b""
        stored = decode_state(text)[1]
        if stored.version != version:
            return None
        # Without all that it had, a site starts empty.
        state = stored if self._is_whole(client, site, stored) else SiteState(version)
        index, found = self._read_pages(client, site, pages if state.parts else ())
        placed = {path: (part, found[path].route if path in found else "") for path, part in index.items()}
        plan = plan_write(state, pages, placed, limits)
        if not plan.saved and not plan.removed:
            return plan.refused
        lost = stored.parts.keys() - state.parts.keys()
        parts = sorted({*plan.saved.values(), *plan.removed.values(), *lost})
        keys = [self._key(site, kind) for kind in ("site", "index", *(f"pages:{part}" for part in parts))]
        number_of_part = {part: number for number, part in enumerate(parts, 3)}
        # Whatever is there of a part that the site does not have was left by an eviction.
        changes: list[tuple[int, str, object]] = [
            (number_of_part[part], "", "") for part in parts if part not in state.parts
        ]
        if not state.parts:
            changes.append((2, "", ""))
        for path, part in plan.removed.items():
            changes.append((number_of_part[part], path, ""))
            if path not in plan.saved:
                changes.append((2, path, ""))
        for path, part in plan.saved.items():
            if (page := pages[path]) is not None:
                changes.append((number_of_part[part], path, encode_page(page)))
            if index.get(path) != part:
                changes.append((2, path, part))
        arguments = [text, plan.state.encode(site), *(value for change in changes for value in change)]
        return plan.refused if client.eval(_WRITE, len(keys), *keys, *arguments) else None

    def _is_whole(self, client: Any, site: StoreKey, state: SiteState) -> bool:
        """Whether the site has all pages of its state: Redis may have evicted some."""
        pages = [part.pages for part in state.parts.values()]
        with client.pipeline(transaction=False) as pipeline:
            for kind in ("index", *(f"pages:{part}" for part in state.parts)):
                pipeline.hlen(self._key(site, kind))
            return bool(pipeline.execute() == [sum(pages), *pages])

    def _read_pages(
        self, client: Any, site: StoreKey, paths: Collection[str]
    ) -> tuple[dict[str, int], dict[str, Page]]:
        """Which of these paths are stored, and in which part; and the pages."""
        wanted = list(paths)
        parts = client.hmget(self._key(site, "index"), wanted) if wanted else ()
        index = {path: int(part) for path, part in zip(wanted, parts, strict=True) if part and part.isdigit()}
        by_part: dict[int, list[str]] = {}
        for path, part in index.items():
            by_part.setdefault(part, []).append(path)
        with client.pipeline(transaction=False) as pipeline:
            for part, its_paths in by_part.items():
                pipeline.hmget(self._key(site, f"pages:{part}"), its_paths)
            rows = list(chain.from_iterable(pipeline.execute()))
        pages = map(decode_page, chain.from_iterable(by_part.values()), rows)
        return index, {page.path: page for page in pages if page is not None}

    def _key(self, owner: str, kind: str) -> str:
        return f"{{{self.prefix}:{SCHEMA_VERSION}:{number_of(owner)}}}:{kind}"

    def _run(self, work: Callable[[Any], Result]) -> Result:
        """The result of a function that talks to Redis. Raises `StoreError` for whatever fails."""
        try:
            if self._client is None:
                self._client = self._create_client()
            return work(self._client)
        except redis.exceptions.MovedError:
            raise StoreError(f"the store {self.name} is a cluster: add cluster=true to its URL") from None
        except Exception as error:  # damaged values, and redis-py's own code, can raise anything
            self.close()  # after a failover its name leads to the new primary
            message = hide_passwords(" ".join(str(error).split()), self._url)
            raise StoreError(f"the store {self.name} does not work now: {message}") from None

    def _create_client(self) -> Any:
        options: dict[str, Any] = {
            "socket_timeout": RESPONSE_TIMEOUT_SECONDS,
            "socket_connect_timeout": RESPONSE_TIMEOUT_SECONDS / 2,
            # An idle connection may have been closed, or its node replaced: a second attempt is enough to find out.
            "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        }
        if self._is_cluster:
            return RedisCluster.from_url(self._client_url, **options)
        try:
            client = redis.Redis.from_url(self._client_url, **options)
            client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
        except Exception:  # its class depends on redis-py's version
            raise ValueError(
                "has an option, or a value of an option, that redis-py does not accept in such a URL"
            ) from None
        return client


def _split_url(url: str) -> tuple[str, dict[str, str]]:
    """The URL for redis-py, and our own options. Raises ValueError, whose message shows no password."""
    base, _, query = url.partition("?")
    try:
        urlsplit(url).port  # noqa: B018 (it raises)
    except ValueError:
        raise ValueError("has a port that is not a number") from None
    options = parse_qsl(query, keep_blank_values=True)
    own = {name: value for name, value in options if name in _OWN_OPTIONS}
    if not own.get("prefix", DEFAULT_KEY_PREFIX) or set(own.get("prefix", "")) & set("{}"):
        raise ValueError("has a prefix that is empty or contains a brace")
    rest = urlencode([(name, value) for name, value in options if name not in _OWN_OPTIONS])
    return f"{base}?{rest}" if rest else base, own
