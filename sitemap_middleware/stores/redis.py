"""`redis://`, `rediss://` and `unix://`: a store in one database of a Redis or Valkey, single or a cluster (redis-py).

A site has these keys, all with the prefix `{sitemap:3:<site>}`, by which a cluster keeps them on one node. Deleting
them deletes the site; Redis may evict any of them.

| key | contents |
|---|---|
| `:version` | the version of the site |
| `:index` | a hash: the part of each path |
| `:pages:<part>` | a hash: the page of each path, as `<last seen> <listable> <page_rows>` |
| `:parts` | a hash: for each part the version when one of its pages last changed |
| `:routes` | a hash: how many learned pages each route has |
| `:records` | a hash: what `save` keeps |
| `:lease:<name>` | who may do a job; it expires |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha1
from operator import attrgetter
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from ..evidence.page_verdict import is_listable
from ..exceptions import StoreError
from ..http.urls import hide_passwords, without_password
from ..models import Page, PageLimits, StoreKey
from ..util import reset_after_fork
from .base import (
    MAX_LEASE_SECONDS,
    SCHEMA_VERSION,
    UNLEARNED_PART,
    UNLIMITED,
    EngineStatus,
    Owner,
    PartState,
    Placed,
    batches,
    next_version,
    plan_write,
    routes_of,
)
from .page_rows import decode_page, encode_page

Result = TypeVar("Result")

DEFAULT_KEY_PREFIX: Final = "sitemap"

RESPONSE_TIMEOUT_SECONDS: Final = 3.0
"""Timeout for a response. The timeout for connecting is half of it."""

FIELDS_PER_COMMAND: Final = 2000
"""Fields of a hash that one command reads, and pages that one script deletes."""

MAX_ERROR_CHARS: Final = 300
"""Characters of Redis's error messages that are shown."""

_OWN_OPTIONS: Final = {"prefix", "cluster"}
_CLIENT_OPTIONS: Final = {
    *("db", "username", "password", "client_name", "protocol", "max_connections", "health_check_interval"),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive"),
}
"""Options of redis-py that a URL may contain. Those that begin with `ssl_` are allowed as well."""

_WRITE: Final = """
local version = redis.call('GET', KEYS[1])
if not tonumber(version) then version = '0' end
if version ~= ARGV[1] then return 0 end
for i = 3, #ARGV, 3 do
  local key, field, value = KEYS[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""
"""Sets or deletes fields of hashes if the site still has a version. Arguments: that version, the new one, and for each
field the number of its key, its name, and its value, which is empty if it is deleted.
"""

_PART: Final = "return table.concat(redis.call('HGETALL', KEYS[1]), '\\n')"
"""The pages of a part as lines, by turns a path and a row: redis-py takes long for thousands of values."""

_OUTDATED: Final = """
local found, rows = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #rows, 2 do
  local seen, listable = string.match(rows[i + 1], '^(%d+) (%d) ')
  seen = tonumber(seen)
  if seen and (seen < tonumber(ARGV[1]) or (listable == '0' and seen < tonumber(ARGV[2]))) then
    found[#found + 1] = rows[i]
    if #found == tonumber(ARGV[3]) then break end
  end
end
return found
"""
"""The paths of a part's pages that `forget` deletes. Arguments: its two times, and how many paths at most."""

_LEASE: Final = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) end
return 1
"""
"""Takes, extends or ends a lease. Arguments: the holder, and the seconds."""

_SHA: Final = {script: sha1(script.encode()).hexdigest() for script in (_WRITE, _PART, _OUTDATED, _LEASE)}  # noqa: S324


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
        return self._run(lambda client: _integer(client.get(self._key(site, "version"))))

    def find(self, site: StoreKey, paths: Collection[str]) -> dict[str, Page]:
        def find(client: Any) -> list[Page]:
            return self._read_rows(client, site, self._read_index(client, site, paths))

        return {page.path: page for page in self._run(find)}

    def write(
        self, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits = UNLIMITED
    ) -> set[str] | None:
        return self._run(lambda client: self._write(client, site, version, pages, limits))

    def parts(self, site: StoreKey) -> dict[int, PartState]:
        def read(client: Any) -> dict[int, PartState]:
            versions = self._read_numbers(client, site, "parts")
            counts = self._count_parts(client, site, versions)
            return {part: PartState(versions[part], count) for part, count in counts.items() if count}

        return self._run(read)

    def part(self, site: StoreKey, number: int) -> list[Page]:
        key = self._key(site, f"pages:{number}")
        lines = self._run(lambda client: _eval(client, _PART, [key], ())).split(b"\n")
        pages = [page for page in map(_decode_row, lines[::2], lines[1::2]) if page is not None]
        if len(pages) < len(lines) // 2:  # a damaged row may have a line feed
            rows = self._run(lambda client: client.hgetall(key))
            pages = [page for page in map(_decode_row, rows.keys(), rows.values()) if page is not None]
        return sorted(pages, key=attrgetter("path"))

    def forget(self, site: StoreKey, unseen_since: int, unlisted_since: int) -> int:
        forgotten = 0
        for part in self.parts(site):
            key, last = self._key(site, f"pages:{part}"), None
            while part != UNLEARNED_PART:
                version = self.version(site)
                arguments = unseen_since, unlisted_since, FIELDS_PER_COMMAND
                found = self._run(partial(_eval, script=_OUTDATED, keys=[key], arguments=arguments))
                if not found or found == last:  # evicted from the index alone
                    break
                paths = [path.decode("utf-8", "replace") for path in found]
                if self.write(site, version, dict.fromkeys(paths)) is not None:
                    forgotten, last = forgotten + len(paths), found
        return forgotten

    def load(self, owner: Owner, names: Collection[str]) -> dict[str, bytes]:
        return self._run(lambda client: _read_fields(client, self._key(owner, "records"), names))

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
        return bool(self._run(lambda client: _eval(client, _LEASE, [key], (holder, min(seconds, MAX_LEASE_SECONDS)))))

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                if self._is_cluster:
                    client.disconnect_connection_pools()  # `close` leaves the sockets to the garbage collector
                client.close()

    # Extras

    def now(self) -> float:
        """The server's clock, in POSIX seconds (`StoreExtras`)."""
        target = {"target_nodes": RedisCluster.RANDOM} if self._is_cluster else {}
        seconds, microseconds = self._run(lambda client: client.time(**target))
        return int(seconds) + int(microseconds) / 1e6

    def status(self) -> EngineStatus:
        """Details for the `status` command (`StoreExtras`): to find all sites, it reads the names of all keys."""
        suffix = "}:version"

        def read(client: Any) -> tuple[str, list[str]]:
            info = client.info("server")
            name = str(info.get("server_name", "redis"))
            start = f"{{{self.prefix}:{SCHEMA_VERSION}:"
            keys = [key.decode() for key in client.scan_iter(f"{_escape_pattern(start)}*{suffix}", count=1000)]
            sites = [_unescape(key[len(start) : -len(suffix)]) for key in keys]
            return f"{name.capitalize()} {info.get(f'{name}_version')}", sorted(sites)

        engine, sites = self._run(read)
        return EngineStatus(engine, None, sites)

    # Inside

    def _write(
        self, client: Any, site: StoreKey, version: int, pages: Mapping[str, Page | None], limits: PageLimits
    ) -> set[str] | None:
        index = self._read_index(client, site, pages)
        versions = self._read_numbers(client, site, "parts")
        counts = self._count_parts(client, site, versions.keys() | index.values())
        placed = {page.path: Placed(index[page.path], page.route) for page in self._read_rows(client, site, index)}
        routes = routes_of(pages, placed)
        route_counts = {
            route: _integer(count) for route, count in _read_fields(client, self._key(site, "routes"), routes).items()
        }
        plan = plan_write(pages, placed, counts, route_counts, limits)
        if not plan.changed_parts:
            return plan.refused if _integer(client.get(self._key(site, "version"))) == version else None
        new_version = next_version(version)
        keys = [self._key(site, kind) for kind in ("version", "index", "parts", "routes")]
        number_of_part = {part: len(keys) + count for count, part in enumerate(sorted(plan.changed_parts), 1)}
        keys += [self._key(site, f"pages:{part}") for part in number_of_part]
        fields: list[tuple[int, object, object]] = []
        for path, part in plan.removed.items():
            fields.append((number_of_part[part], path, ""))
            if path not in plan.saved:
                fields.append((2, path, ""))
        for path, part in plan.saved.items():
            page = pages[path]
            if page is not None:
                fields.append((number_of_part[part], path, _encode_row(page)))
            if index.get(path) != part:
                fields.append((2, path, part))
        fields += [(3, part, new_version if plan.part_counts[part] > 0 else "") for part in plan.changed_parts]
        fields += [
            (4, route, count) for route, count in plan.route_counts.items() if count != route_counts.get(route, 0)
        ]
        arguments = [version, new_version, *(value for field in fields for value in field)]
        return plan.refused if _eval(client, _WRITE, keys, arguments) else None

    def _read_index(self, client: Any, site: str, paths: Collection[str]) -> dict[str, int]:
        """The parts of the stored pages among these paths."""
        parts = _read_fields(client, self._key(site, "index"), paths)
        return {path: int(part) for path, part in parts.items() if part.isdigit()}

    def _read_rows(self, client: Any, site: str, index: Mapping[str, int]) -> list[Page]:
        """The pages of an index."""
        by_part: dict[int, list[str]] = {}
        for path, part in index.items():
            by_part.setdefault(part, []).append(path)
        pages: list[Page | None] = []
        for part, paths in by_part.items():
            rows = _read_fields(client, self._key(site, f"pages:{part}"), paths)
            pages += map(_decode_row, rows.keys(), rows.values())
        return [page for page in pages if page is not None]

    def _read_numbers(self, client: Any, site: str, kind: str) -> dict[int, int]:
        """A hash of numbers."""
        fields = client.hgetall(self._key(site, kind))
        return {int(name): int(value) for name, value in fields.items() if name.isdigit() and value.isdigit()}

    def _count_parts(self, client: Any, site: str, parts: Iterable[int]) -> dict[int, int]:
        """How many pages parts have: Redis may have evicted some."""
        numbers = sorted(parts)
        with client.pipeline(transaction=False) as pipeline:
            for number in numbers:
                pipeline.hlen(self._key(site, f"pages:{number}"))
            return dict(zip(numbers, pipeline.execute(), strict=True))

    def _key(self, owner: str, kind: str) -> str:
        return f"{{{self.prefix}:{SCHEMA_VERSION}:{_escape(owner)}}}:{kind}"

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
            message = hide_passwords(str(error), self._url)[:MAX_ERROR_CHARS]
            message = "".join(character if character.isprintable() else " " for character in message)
            raise StoreError(f"the store {self.name} does not work now: {message}") from None


def _eval(client: Any, script: str, keys: Sequence[str], arguments: Sequence[object]) -> Any:
    """The result of a script. `register_script` would load it by SCRIPT LOAD, which takes another permission."""
    try:
        return client.evalsha(_SHA[script], len(keys), *keys, *arguments)
    except redis.exceptions.NoScriptError:
        return client.eval(script, len(keys), *keys, *arguments)


def _read_fields(client: Any, key: str, names: Collection[str]) -> dict[str, bytes]:
    """The fields of a hash that exist among these names."""
    found: dict[str, bytes] = {}
    for batch in batches(names, FIELDS_PER_COMMAND):
        values = client.hmget(key, batch)
        found.update((name, value) for name, value in zip(batch, values, strict=True) if value is not None)
    return found


def _encode_row(page: Page) -> str:
    return f"{page.last_seen} {int(is_listable(page))} {encode_page(page)}"


def _decode_row(path: str | bytes, row: bytes) -> Page | None:
    path = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
    return decode_page(path, row.decode("utf-8", "replace").partition(" ")[2].partition(" ")[2])


def _integer(value: bytes | None) -> int:
    return int(value) if value is not None and value.isdigit() else 0


def _split_url(url: str) -> tuple[str, dict[str, str]]:
    """The URL for redis-py, and our own options. Raises ValueError, whose message shows no password."""
    base, _, query = url.partition("?")
    try:
        urlsplit(url).port  # noqa: B018 (it raises)
    except ValueError:
        raise ValueError("has a port that is not a number") from None
    options = parse_qsl(query, keep_blank_values=True)
    for name, _ in options:
        if name not in _OWN_OPTIONS | _CLIENT_OPTIONS and not name.startswith("ssl_"):
            known = ", ".join(sorted(_OWN_OPTIONS | _CLIENT_OPTIONS))
            # The name is not repeated: it may be the rest of a password with a "&".
            raise ValueError(f"has an unknown option; the options are {known} and those of TLS, ssl_...")
    own = {name: value for name, value in options if name in _OWN_OPTIONS}
    if not own.get("prefix", DEFAULT_KEY_PREFIX) or set(own.get("prefix", "")) & set("{}"):
        raise ValueError("has a prefix that is empty or contains a brace")
    rest = urlencode([(name, value) for name, value in options if name not in _OWN_OPTIONS])
    return f"{base}?{rest}" if rest else base, own


def _escape(owner: str) -> str:
    """An owner within the braces by which a cluster chooses the node."""
    return owner.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _unescape(owner: str) -> str:
    return owner.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")


def _escape_pattern(text: str) -> str:
    """A text in a pattern of SCAN."""
    return "".join(f"\\{character}" if character in "\\*?[]^-" else character for character in text)
