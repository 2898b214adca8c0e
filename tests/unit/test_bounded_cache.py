"""A BoundedCache keeps the keys stored last and never grows beyond its size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.bounded_cache import BoundedCache


@given(max_keys=st.integers(2, 12), keys=st.lists(st.integers(0, 20)))
def test_bounded_size_and_recent_keys_kept(max_keys: int, keys: list[int]) -> None:
    cache = BoundedCache[int, int](max_keys)
    for value, key in enumerate(keys):
        cache.put(key, value)
        assert cache.get(key) == value
        assert len(cache) <= 2 * (max_keys // 2)
    last = {key: value for value, key in enumerate(keys)}
    stored_last = list(dict.fromkeys(reversed(keys)))[: max_keys // 2]
    assert [cache.get(key) for key in stored_last] == [last[key] for key in stored_last]
    assert all(cache.get(key) in (None, value) for key, value in last.items())
    assert cache.get(21) is None


def test_the_older_half_is_dropped_as_a_whole() -> None:
    cache = BoundedCache[int, str](4)
    lengths = []
    for key in range(5):
        cache.put(key, "value")
        lengths.append(len(cache))
    assert lengths == [1, 2, 3, 4, 3]
    assert [cache.get(key) for key in range(5)] == [None, None, "value", "value", "value"]
