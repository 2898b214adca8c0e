"""How many items an object of the package holds, and how large they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

COLLECTIONS = dict | list | set | tuple | deque


def collection_sizes(owner: Any) -> dict[str, int]:
    """The length of each collection that an object reaches, by its place: "owner.cache._recent"."""
    return {place: len(collection) for place, collection in collections_of(owner)}


def collections_of(owner: Any) -> Iterator[tuple[str, Any]]:
    """Each collection that an object reaches through objects of the package, with its place."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("owner", owner)]
    while waiting:
        place, thing = waiting.pop()
        if id(thing) in seen or place.count(".") > 6:
            continue
        seen.add(id(thing))
        if isinstance(thing, COLLECTIONS) and not hasattr(thing, "_fields"):  # the length of a named tuple is fixed
            yield place, thing
        elif type(thing).__module__.startswith("sitemap_middleware") and not isinstance(thing, type):
            names = [*getattr(thing, "__dict__", ())]
            names += [name for base in type(thing).__mro__ for name in getattr(base, "__slots__", ())]
            waiting += [(f"{place}.{name}", getattr(thing, name, None)) for name in names if name != "_connection"]
