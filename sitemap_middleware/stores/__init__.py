"""Stores: one module per engine. The drivers of Redis and PostgreSQL are imported only if their URL is given."""

from __future__ import annotations

import encodings.idna  # noqa: F401 (drivers look hosts up by it, and would import it on whatever thread that is)
from importlib import import_module
from typing import Any, Final

from ..exceptions import OptionError
from ..options.store_urls import check_store_url, without_password
from .base import STORE_METHODS, Store
from .default import FallbackStore
from .sqlite import MemoryStore, SQLiteStore

__all__ = ["FallbackStore", "Store", "open_store"]

_URL_HINT: Final = (
    'use "memory://", "sqlite:///relative.sqlite3", "sqlite:////absolute/path.sqlite3", "redis://host:6379/0",'
    ' "rediss://host:6379/0", "unix:///path/of.sock" or "postgresql://user@host/database"'
)

_SERVERS: Final = {
    **dict.fromkeys(("redis", "rediss", "unix"), ("redis", "RedisStore", "redis", "redis-py")),
    **dict.fromkeys(("postgresql", "postgres"), ("postgresql", "PostgreSQLStore", "postgresql", "psycopg")),
}
"""By scheme: the module and the class of the engine, the extra, and the driver that it needs."""


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
    if engine not in _SERVERS or not separator or not (rest or engine.startswith("postgres")):
        raise OptionError(f"{place}={shown!r} names no store; {_URL_HINT}")
    try:
        check_store_url(url)
    except ValueError as error:
        raise OptionError(f"{place}={shown!r} {error}") from None
    module, class_name, extra, driver = _SERVERS[engine]
    try:
        store_class: Any = getattr(import_module(f".{module}", __package__), class_name)
    except ImportError as error:
        raise OptionError(
            f'{place}={shown!r} needs {driver}: pip install "sitemap-middleware[{extra}]" ({error})'
        ) from None
    try:
        store: Store = store_class(url)
    except ValueError as error:
        raise OptionError(f"{place}={shown!r} {error}") from None
    return store
