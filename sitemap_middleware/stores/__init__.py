"""Stores: one package per engine, imported only if its URL is given."""

from __future__ import annotations

import encodings.idna  # noqa: F401 (drivers look hosts up by it, and would have it imported on whatever thread that is)
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from ..exceptions import OptionError
from ..urls import check_store_url, without_password
from .base import STORE_METHODS, Store
from .default_store import FallbackStore
from .sqlite.memory import MemoryStore
from .sqlite.store import SQLiteStore

__all__ = ["FallbackStore", "Store", "open_store"]

_URL_HINT: Final = (
    'use "memory://", "sqlite:///relative.sqlite3", "sqlite:////absolute/path.sqlite3", "redis://host:6379/0",'
    ' "rediss://host:6379/0", "unix:///path/of.sock" or "postgresql://user@host/database"'
)

_OPTIONAL_DRIVERS: Final = {"redis": ("redis", "redis-py"), "postgres": ("postgresql", "psycopg")}
"""The extra and the name of the driver that each of these packages needs."""


def open_store(url: object, place: str) -> Store:
    """The store of a URL; or the store itself, if it is one. Nothing is opened yet.

    Args:
        url: a URL or a `Store`.
        place: where it was given, for error messages, such as "store" or "SITEMAP_STORE".

    Raises:
        OptionError: if no store has this URL, or its driver is missing.
    """
    if not isinstance(url, str):
        if all(callable(getattr(url, name, None)) for name in STORE_METHODS):
            return url  # type: ignore[return-value] # it has every method
        raise OptionError(f"{place}={without_password(url)} is neither a store URL nor a Store; {_URL_HINT}")
    engine, separator, rest = url.partition("://")
    if engine == "memory" and separator and not rest:
        return MemoryStore()
    if engine == "sqlite" and rest.startswith("/") and len(rest) > 1 and "\0" not in rest:
        return SQLiteStore(rest[1:])
    shown = without_password(url)
    try:
        if engine in ("redis", "rediss", "unix", "postgresql", "postgres") and separator:
            check_store_url(url)
        if engine in ("redis", "rediss", "unix") and rest:
            redis: Callable[[str, str], Store] = _import_engine("redis", f"{place}={shown!r}").RedisStore
            return redis(url, shown.removesuffix("?***"))
        if engine in ("postgresql", "postgres") and separator:
            postgres: Callable[[str], Store] = _import_engine("postgres", f"{place}={shown!r}").PostgresStore
            return postgres(url)
    except ValueError as error:
        raise error if isinstance(error, OptionError) else OptionError(f"{place}={shown!r} {error}") from None
    raise OptionError(f"{place}={shown!r} names no store; {_URL_HINT}")


def _import_engine(name: str, place: str) -> Any:
    extra, driver = _OPTIONAL_DRIVERS[name]
    try:
        return import_module(f".{name}.store", __package__)
    except ImportError as error:
        command = f'pip install "sitemap-middleware[{extra}]"'
        raise OptionError(f"{place} needs {driver}: {command} ({error})") from None
