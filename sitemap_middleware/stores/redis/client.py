"""The connection to Redis or Valkey, single or a cluster: commands, scripts and errors (redis-py)."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from ...exceptions import StoreError
from ...fork_safety import reset_after_fork
from ..page_codec import TooLargeError
from .scripts import MAX_COMMAND_VALUES, Script
from .url import split_url

MIN_SERVER_VERSION: Final = (6, 2)
"""Minimum supported Redis version."""

RESPONSE_TIMEOUT_SECONDS: Final = 3.0
"""Timeout for a response. The timeout for connecting is half of it."""

MAX_CACHED_KEYS: Final = 1000
"""Keys whose node is cached."""

MAX_ERROR_CHARS: Final = 300
"""Characters of Redis's error messages that are shown."""

WRONG_TYPE: Final = "WRONGTYPE"
"""Start of the message if a key is not a hash."""

_ERRORS: Final = (
    redis.RedisError,
    redis.exceptions.RedisClusterException,  # not a RedisError
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    TypeError,
    LookupError,
)
_DAMAGE_ERRORS: Final = (ValueError, struct.error, TypeError, LookupError)
_DAMAGE_MESSAGES: Final = re.compile(rf"user_script|not an integer|Script|out of range|{WRONG_TYPE}")
"""Parts of Redis's messages if a script fails on a damaged value."""


class DamagedError(StoreError):
    """A value cannot be read."""


class RedisClient:
    """A client of one Redis or, if that belongs to a cluster, of the node that has the key.

    It connects when it is first used, and again in a forked child. Each command is for one key, so every cluster
    accepts it.
    """

    def __init__(self, url: str, name: str) -> None:
        """Parse the URL, without connecting. Raises ValueError, whose message shows no password.

        `name` is the store's name in messages.
        """
        self.name = name
        self.prefix: str
        self._url, self.prefix = split_url(url)
        self._single = self._create_client()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """Abandon the parent's clients of a cluster in a forked child. redis-py itself replaces its connections."""
        self._cluster: RedisCluster | None = None
        self._nodes: dict[tuple[Any, int], redis.Redis] = {}
        self._node_of_key: dict[str, redis.Redis] = {}
        """The node of each key, in a cluster of which the account may not list the nodes."""
        self._is_checked = False

    def close(self) -> None:
        """Close all connections. The next command opens new ones."""
        cluster, self._cluster, self._is_checked = self._cluster, None, False
        nodes, self._nodes, self._node_of_key = self._nodes, {}, {}
        for client in (self._single, *nodes.values()):
            with contextlib.suppress(*_ERRORS):
                client.connection_pool.disconnect()
        if cluster is not None:
            disconnect: Callable[[], object] = cluster.disconnect_connection_pools
            disconnect()

    def execute(self, *command: object) -> Any:
        """Execute a command for one key and return its result.

        A node of a cluster that hides that it is one names the node that has the key (MOVED). Then the command is sent
        to that one, and the cluster's other nodes are looked up.
        """
        key = str(command[3] if command[0] in ("EVAL", "EVALSHA") else command[1])
        try:
            return _execute(self._cluster or self._node_of_key.get(key, self._single), *command)
        except redis.exceptions.MovedError as error:
            moved = error
        try:
            self._cluster = RedisCluster.from_url(self._url, **_connection_options())
        except redis.exceptions.RedisClusterException:  # the account may not list the nodes
            if len(self._node_of_key) >= MAX_CACHED_KEYS:
                self._node_of_key.clear()
            self._node_of_key[key] = self._client_of_node(moved.host, moved.port)
        return _execute(self._cluster or self._node_of_key[key], *command)

    def _client_of_node(self, host: str, port: int) -> redis.Redis:
        pool = self._single.connection_pool
        address = (host or pool.connection_kwargs.get("host"), port)
        if address not in self._nodes:
            options = {**pool.connection_kwargs, "host": address[0], "port": port}
            node_pool = redis.ConnectionPool(pool.connection_class, pool.max_connections, **options)
            self._nodes[address] = redis.Redis(connection_pool=node_pool)
        return self._nodes[address]

    def run(self, script: Script, key: str, *arguments: object, other_key: str | None = None) -> Any:
        """Run a script on a key, or on two that one node keeps, and return its result.

        redis-py's `register_script` would load a missing script by SCRIPT LOAD: that takes another permission, and in
        a cluster all primaries. EVAL takes one call, of the node that has the key.
        """
        keys = [key] if other_key is None else [key, other_key]
        try:
            return self.execute("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return self.execute("EVAL", script.text, len(keys), *keys, *arguments)

    def read_fields(self, key: str, fields: Sequence[str], batch: int = MAX_COMMAND_VALUES) -> list[bytes | None]:
        """The values of fields of a hash, read by commands of so many fields each."""
        values: list[bytes | None] = []
        for start in range(0, len(fields), batch):
            values += self.execute("HMGET", key, *fields[start : start + batch])
        return values

    def keys(self, pattern: str) -> set[bytes]:
        """The keys, of all nodes, that match a pattern. It reads the names of all keys, in batches."""
        try:
            return set((self._cluster or self._single).scan_iter(pattern, count=1000))
        except redis.exceptions.NoPermissionError as error:
            raise StoreError(
                f"the store {self.name} cannot list its sites, because its account may not SCAN:"
                " name the sites, as in --site https://example.com"
            ) from error

    def server_version(self) -> tuple[str, str | None]:
        """The name of the server and its version, which is None if the account may not INFO."""
        try:
            info = _execute(self._single, "INFO", "server")
        except redis.exceptions.ResponseError:
            return "Redis", None
        name = str(info.get("server_name", "redis"))
        version = str(info.get(f"{name}_version"))
        return name.capitalize(), version if self._cluster is None else f"{version}, a cluster"

    def size(self, keys: Iterable[str]) -> int | None:
        """Bytes of memory that keys take; None if the account may not ask."""
        try:
            return sum(self.execute("MEMORY USAGE", key) or 0 for key in keys)
        except redis.exceptions.ResponseError:
            return None

    @contextlib.contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Check the server at first use; and raise StoreError for whatever fails, DamagedError for damaged values."""
        try:
            if not self._is_checked:
                self._check_server()
                self._is_checked = True
            yield
        except _ERRORS as error:
            message = str(error)
            if isinstance(error, redis.exceptions.ReadOnlyError) or "READONLY" in message:
                self.close()  # after a failover its name leads to the new primary
                raise StoreError(
                    f"the store {self.name} is a replica, which takes no writes; name the primary"
                ) from error
            if isinstance(error, redis.exceptions.RedisClusterException):
                self.close()  # no known node responds: its name may lead to others by now
            message = describe_error(message)
            password = self._single.connection_pool.connection_kwargs.get("password")
            if password and password in message:  # old Redis quotes a command that it does not know
                message = message.replace(password, "***")
                raise StoreError(f"the store {self.name} does not work now: {message}") from None
            message = f"the store {self.name} does not work now: {message}"
            if isinstance(error, TooLargeError):
                raise StoreError(message) from error
            if isinstance(error, _DAMAGE_ERRORS):
                raise DamagedError(message) from error
            if type(error) is redis.exceptions.ResponseError and _DAMAGE_MESSAGES.search(message):
                raise DamagedError(message) from None
            raise StoreError(message) from None

    def _create_client(self) -> redis.Redis:
        try:
            client = redis.Redis.from_url(self._url, **_connection_options())
            client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
        except Exception:  # its class depends on redis-py's version
            raise ValueError(
                "has an option, or a value of an option, that redis-py does not accept in such a URL"
            ) from None
        return client

    def _check_server(self) -> None:
        """Raise StoreError if the server is too old. Connect to its cluster if it belongs to one."""
        try:
            info = _execute(self._single, "INFO", "server")
        except redis.exceptions.AuthenticationError:
            raise
        except redis.exceptions.ResponseError as error:
            if _asks_for_password(str(error)):
                raise
            return  # the account may not INFO, or the command was renamed
        version = re.match(r"(\d+)\.(\d+)", str(info.get("redis_version")))
        if version and tuple(map(int, version.groups())) < MIN_SERVER_VERSION:
            minimum = ".".join(map(str, MIN_SERVER_VERSION))
            raise StoreError(f"the store {self.name} is Redis {version[0]}; the minimum is {minimum}")
        if "cluster" in (info.get("redis_mode"), info.get("server_mode")):
            self._cluster = RedisCluster.from_url(self._url, **_connection_options())


def _execute(client: redis.Redis | RedisCluster, *command: object) -> Any:
    execute_command: Callable[..., Any] = client.execute_command  # which has no annotations in a cluster's client
    return execute_command(*command)


def _connection_options() -> dict[str, Any]:
    return {
        "socket_timeout": RESPONSE_TIMEOUT_SECONDS,
        "socket_connect_timeout": RESPONSE_TIMEOUT_SECONDS / 2,
        # An idle connection may have been closed, or its node replaced: a second attempt is enough to find out.
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }


def _asks_for_password(message: str) -> bool:
    return "NOAUTH" in message or "HELLO must be called" in message or "Authentication required" in message


def describe_error(message: str) -> str:
    """A message of Redis or redis-py, made readable: no commands with their arguments, no unprintable characters."""
    if _asks_for_password(message):
        return (
            "it asks for a password, and the URL has none: write redis://:password@host, or redis://user:password@host"
        )
    if message.startswith("MOVED ") or re.fullmatch(r"\d+ \S+:\d+", message):
        return "it is a node of a cluster that is changing, or of which some nodes cannot be reached"
    message = re.sub(r"command\s*#\s*\d+\s*\(.*?\)\s*of pipeline caused error:\s*", "", message, flags=re.DOTALL)
    message = re.sub(r"(unknown command\s+\S+?),? with args beginning with:.*", r"\1", message, flags=re.DOTALL)
    return "".join(character if character.isprintable() else " " for character in message[:MAX_ERROR_CHARS])
