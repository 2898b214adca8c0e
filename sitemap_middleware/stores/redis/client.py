"""The connection to a Redis or Valkey, or to a cluster of them: what is asked of it, and how it fails (redis-py)."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from ...exceptions import StoreError
from ...fork_safety import reset_after_fork
from ..page_codec import TooLargeError
from .scripts import Script

MIN_SERVER_VERSION: Final = (6, 2)
"""The oldest Redis that is spoken to."""

RESPONSE_TIMEOUT_SECONDS: Final = 3.0
"""For which an answer, and half of which a connection, is waited for."""

MAX_CACHED_KEYS: Final = 1000
"""Keys of which the node is remembered, at most."""

DEFAULT_KEY_PREFIX: Final = "sitemap"
"""What the names of all keys begin with, where the URL names no other."""

MAX_ERROR_CHARS: Final = 300
"""Characters of what Redis says of a failure, at most, that are shown."""

WRONG_TYPE: Final = "WRONGTYPE"
"""How the message begins of a key that holds something else than a hash."""

_OWN_OPTIONS: Final = ("prefix",)
_CLIENT_OPTIONS: Final = {
    *("db", "username", "password", "client_name", "protocol", "max_connections", "health_check_interval"),
    *("socket_timeout", "socket_connect_timeout", "socket_keepalive"),
}
"""What else may stand in a URL: options of redis-py, and those of these that begin with ssl_."""

_ERRORS: Final = (
    redis.RedisError,
    redis.exceptions.RedisClusterException,  # which is none of the former
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    TypeError,
    LookupError,
)
_DAMAGE_ERRORS: Final = (ValueError, struct.error, TypeError, LookupError)
_FAILED_SCRIPT: Final = re.compile(rf"user_script|not an integer|Script|out of range|{WRONG_TYPE}")


class DamagedError(StoreError):
    """What is kept cannot be read."""


class RedisClient:
    """Asks one Redis; or, where that turns out to be of a cluster, the node that has the key.

    It is connected to when first used, and again in the child after a fork. Each
    command is of one key, so that any cluster takes it.
    """

    def __init__(self, url: str, name: str) -> None:
        """Of a URL, and what it is called in errors; ValueError, which shows no password, where it is wrong."""
        self.name = name
        self._url, self.prefix = _split_url(url)
        self._single = self._create()
        self.reset_after_fork()
        reset_after_fork(self)

    def reset_after_fork(self) -> None:
        """In a forked child: redis-py leaves a parent's connections alone, and makes new ones."""
        self._cluster: RedisCluster | None = None
        self._nodes: dict[tuple[Any, int], redis.Redis] = {}
        self._nodes_of_keys: dict[str, redis.Redis] = {}
        """Of keys, the nodes that keep them, in a cluster that does not tell which nodes it has."""
        self._checked = False

    def close(self) -> None:
        """Let go of all connections; what is asked next makes new ones."""
        cluster, self._cluster, self._checked = self._cluster, None, False
        nodes, self._nodes, self._nodes_of_keys = self._nodes, {}, {}
        for client in (self._single, *nodes.values()):
            with contextlib.suppress(*_ERRORS):
                client.connection_pool.disconnect()
        if cluster is not None:
            let_go: Callable[[], object] = cluster.disconnect_connection_pools
            let_go()

    def execute(self, *command: object) -> Any:
        """The answer to a command; a cluster's that does not say that it is one shows that by naming another node."""
        key = str(command[3] if command[0] in ("EVAL", "EVALSHA") else command[1])
        try:
            return _is_cluster(self._cluster or self._nodes_of_keys.get(key, self._single), *command)
        except redis.exceptions.MovedError as error:
            moved = error
        try:
            self._cluster = RedisCluster.from_url(self._url, **_retry_policy())
        except redis.exceptions.RedisClusterException:  # the account may not ask which nodes there are
            if len(self._nodes_of_keys) >= MAX_CACHED_KEYS:
                self._nodes_of_keys.clear()
            self._nodes_of_keys[key] = self._node_client(moved.host, moved.port)
        return _is_cluster(self._cluster or self._nodes_of_keys[key], *command)

    def _node_client(self, host: str, port: int) -> redis.Redis:
        """A client of another node, which keeps some of the keys."""
        own = self._single.connection_pool
        place = (host or own.connection_kwargs.get("host"), port)
        if place not in self._nodes:
            named = {**own.connection_kwargs, "host": place[0], "port": port}
            pool = redis.ConnectionPool(own.connection_class, own.max_connections, **named)
            self._nodes[place] = redis.Redis(connection_pool=pool)
        return self._nodes[place]

    def run(self, script: Script, key: str, *values: object) -> Any:
        """What a script makes of a key."""
        try:
            return self.execute("EVALSHA", script.digest, 1, key, *values)
        except redis.exceptions.NoScriptError:
            return self.execute("EVAL", script.text, 1, key, *values)

    def keys(self, pattern: str) -> set[bytes]:
        """The names of all keys, of every node, that are like this; all there are are looked at, some at a time."""
        try:
            return set((self._cluster or self._single).scan_iter(pattern, count=1000))
        except redis.exceptions.NoPermissionError as error:
            raise StoreError(
                f"the store {self.name} does not tell which sites it has, for its account may not SCAN:"
                " name them, as --site https://example.com"
            ) from error

    def engine(self) -> tuple[str, str | None]:
        """What it is called, and its version, where the account may ask."""
        try:
            told = _is_cluster(self._single, "INFO", "server")
        except redis.exceptions.ResponseError:
            return "Redis", None
        name = str(told.get("server_name", "redis"))
        version = str(told.get(f"{name}_version"))
        return name.capitalize(), version if self._cluster is None else f"{version}, a cluster"

    def size(self, keys: Iterable[str]) -> int | None:
        """Bytes that keys take, where the account may ask."""
        try:
            return sum(self.execute("MEMORY USAGE", key) or 0 for key in keys)
        except redis.exceptions.ResponseError:
            return None

    @contextlib.contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Raises `StoreError` for whatever fails."""
        try:
            if not self._checked:
                self._check()
                self._checked = True
            yield
        except _ERRORS as error:
            text = str(error)
            if isinstance(error, redis.exceptions.ReadOnlyError) or "READONLY" in text:
                self.close()  # its name may lead to another one soon
                raise StoreError(
                    f"the store {self.name} is a replica, which takes no writes; name the primary"
                ) from error
            if isinstance(error, redis.exceptions.RedisClusterException):
                self.close()  # no node of those it had answers: its name may lead to others by now
            text = _describe_error(text)
            secret = self._single.connection_pool.connection_kwargs.get("password")
            if secret and secret in text:  # an old Redis repeats the command that it does not know
                raise StoreError(f"the store {self.name} does not work now: {text.replace(secret, '***')}") from None
            if isinstance(error, TooLargeError):
                raise StoreError(f"the store {self.name} does not work now: {text}") from error
            if isinstance(error, _DAMAGE_ERRORS):
                raise DamagedError(f"the store {self.name} does not work now: {text}") from error
            if type(error) is redis.exceptions.ResponseError and _FAILED_SCRIPT.search(text):
                raise DamagedError(f"the store {self.name} does not work now: {text}") from None
            raise StoreError(f"the store {self.name} does not work now: {text}") from None

    def _create(self) -> redis.Redis:
        """Of one Redis; nothing is connected yet."""
        try:
            client = redis.Redis.from_url(self._url, **_retry_policy())
            client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
        except Exception:  # of many classes, from version to version
            raise ValueError("has an option, or a value of one, that redis-py does not take with such a URL") from None
        return client

    def _check(self) -> None:
        """Refuse what this code cannot work with, and see whether it is a cluster's."""
        try:
            told = _is_cluster(self._single, "INFO", "server")
        except redis.exceptions.AuthenticationError:
            raise
        except redis.exceptions.ResponseError as error:
            if _asks_for_password(str(error)):
                raise
            return  # the account may not ask, or the command has another name
        version = re.match(r"(\d+)\.(\d+)", str(told.get("redis_version")))
        if version and tuple(map(int, version.groups())) < MIN_SERVER_VERSION:
            lowest = ".".join(map(str, MIN_SERVER_VERSION))
            raise StoreError(f"the store {self.name} is Redis {version[0]}; the minimum is {lowest}")
        if "cluster" in (told.get("redis_mode"), told.get("server_mode")):
            self._cluster = RedisCluster.from_url(self._url, **_retry_policy())


def _asks_for_password(text: str) -> bool:
    return "NOAUTH" in text or "HELLO must be called" in text or "Authentication required" in text


def _describe_error(text: str) -> str:
    """What Redis, or its client, says of a failure, in words for people."""
    if _asks_for_password(text):
        return (
            "it asks for a password, and the URL has none: write redis://:password@host, or redis://user:password@host"
        )
    if text.startswith("MOVED ") or re.fullmatch(r"\d+ \S+:\d+", text):
        return "it is a node of a cluster that is changing, or that cannot be reached as a whole"
    text = re.sub(r"command\s*#\s*\d+\s*\(.*?\)\s*of pipeline caused error:\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"(unknown command\s+\S+?),? with args beginning with:.*", r"\1", text, flags=re.DOTALL)
    return "".join(one if one.isprintable() else " " for one in text[:MAX_ERROR_CHARS])


def _is_cluster(client: redis.Redis | RedisCluster, *command: object) -> Any:
    ask: Callable[..., Any] = client.execute_command
    return ask(*command)


def _retry_policy() -> dict[str, Any]:
    return {
        "socket_timeout": RESPONSE_TIMEOUT_SECONDS,
        "socket_connect_timeout": RESPONSE_TIMEOUT_SECONDS / 2,
        # What is idle may have been closed, and a node's place taken by another: once is enough to find out.
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }


def _split_url(url: str) -> tuple[str, str]:
    """The URL for redis-py, and the prefix of our keys; ValueError, which shows no password, where it is wrong."""
    base, _, query = url.partition("?")
    parts = urlsplit(url)
    try:
        parts.port  # noqa: B018 (it is looked at)
    except ValueError:
        raise ValueError("has a port that is no number; of a password, write @ as %40, / as %2F, # as %23") from None
    options = parse_qsl(query, keep_blank_values=True)
    for name, _ in options:
        if name not in _OWN_OPTIONS and name not in _CLIENT_OPTIONS and not name.startswith("ssl_"):
            raise ValueError(
                f"has an option {name!r} that is not known; there are {', '.join(sorted({*_OWN_OPTIONS, *_CLIENT_OPTIONS}))}"  # noqa: E501
            )
    prefix = dict(options).get("prefix", DEFAULT_KEY_PREFIX)
    if not prefix or set(prefix) & set("{}"):
        raise ValueError("has a prefix that is empty or has a brace in it")
    rest = urlencode([(name, value) for name, value in options if name not in _OWN_OPTIONS])
    return f"{base}?{rest}", prefix
