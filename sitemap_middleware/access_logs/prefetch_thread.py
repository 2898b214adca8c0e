"""Makes the next item on another thread while one is used, so that two cores work."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def prefetched(items: Generator[_T]) -> Generator[_T]:
    """Yield the items, while another thread makes the next one.

    Closing this generator closes `items`, and waits for the item that is being made.

    Args:
        items: what is to be yielded. None ends it. What it raises is raised here.
    """
    with ThreadPoolExecutor(1, "sitemap-import") as executor:
        try:
            following = executor.submit(next, items, None)
            while (item := following.result()) is not None:
                following = executor.submit(next, items, None)
                yield item
        finally:
            executor.submit(items.close).result()  # after the item that is being made
