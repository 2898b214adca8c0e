"""The stores, one module an engine, each imported only when its URL is given."""

from __future__ import annotations

from typing import Final

from ..errors import OptionError
from .base import CALLS, Store
from .default import DefaultStore

__all__ = ["DefaultStore", "Store", "open_store"]

_CURE: Final = (
    'give "memory://", or "sqlite:///relative.sqlite3", or "sqlite:////absolute/path.sqlite3",'
    ' or "redis://host:6379/0", or "rediss://", or "unix:///path/of.sock"'
)


def open_store(url: object, place: str) -> Store:
    """The store that a URL names; nothing is opened yet.

    Raises `OptionError`, which names the value, the place it was given and the
    cure, for a URL of no known engine.
    """
    if not isinstance(url, str):
        if all(callable(getattr(url, name, None)) for name in CALLS):
            return url  # type: ignore[return-value] # it was just asked for every method
        raise OptionError(f"{place}={url!r} is neither a store URL nor a Store; {_CURE}")
    engine, separator, rest = url.partition("://")
    if engine == "memory" and separator and not rest:
        from .memory import MemoryStore

        return MemoryStore()
    if engine == "sqlite" and rest.startswith("/") and len(rest) > 1 and "\0" not in rest:
        from .sqlite import SQLiteStore

        return SQLiteStore(rest[1:])
    shown = _without_password(url)
    if engine in {"redis", "rediss", "unix"} and rest:
        try:
            from .redis import RedisStore
        except ModuleNotFoundError as error:
            if error.name != "redis":
                raise
            raise OptionError(f'{place}={shown!r} needs redis-py: pip install "sitemap-middleware[redis]"') from None
        try:
            return RedisStore(url, shown.removesuffix("?***"))
        except ValueError as error:
            raise OptionError(f"{place}={shown!r} {error}") from None
    raise OptionError(f"{place}={shown!r} names no store; {_CURE}")


def _without_password(url: str) -> str:
    """A URL as it may be shown: nothing before an @, where a password stands, and no query, where one may stand."""
    scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
    secret, at, host = rest.rpartition("@")
    shown, query, _ = host.partition("?")
    if "?" in secret:  # whether that is in a password or begins the query, nobody knows
        shown = ""
    return scheme + separator + (f"***@{shown}" if at else shown) + ("?***" if query else "")
