"""Makes the next item on another thread while one is used, so that two cores work."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def one_ahead(items: Generator[_T]) -> Generator[_T]:
    """Yield items, none of them None, and raise what making one raises. Once closed, nothing runs any more."""
    with ThreadPoolExecutor(1, "sitemap-import") as executor:
        try:
            following = executor.submit(next, items, None)
            while (item := following.result()) is not None:
                following = executor.submit(next, items, None)
                yield item
        finally:
            executor.submit(items.close).result()  # after the item that is being made
