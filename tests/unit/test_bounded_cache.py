"""What came lately is remembered, and how much is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.bounded_cache import BoundedCache


@given(most=st.integers(2, 12), keys=st.lists(st.integers(0, 20)))
def test_so_many_at_most_and_half_of_them_always_each_with_its_last_value(most: int, keys: list[int]) -> None:
    lately = BoundedCache[int, int](most)
    for value, key in enumerate(keys):
        lately.put(key, value)
        assert lately.get(key) == value
        assert len(lately) <= 2 * (most // 2)
    last = {key: value for value, key in enumerate(keys)}
    put_last = list(dict.fromkeys(reversed(keys)))[: most // 2]
    assert [lately.get(key) for key in put_last] == [last[key] for key in put_last]
    assert all(lately.get(key) in (None, value) for key, value in last.items())
    assert lately.get(21) is None
