"""A set of paths: few in memory, many in a database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.listing import path_set
from sitemap_middleware.listing.path_set import PathSet

BATCHES = st.lists(st.lists(st.integers(0, 30).map(str), max_size=9), max_size=9)


@pytest.mark.parametrize("most_in_memory", [0, 12, 10**6])
@given(BATCHES)
def test_it_tells_of_each_path_whether_it_is_new(most_in_memory: int, batches: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_set, "MAX_PATHS_IN_MEMORY", most_in_memory)
        paths, known = PathSet(), set[str]()
        for batch in batches:
            expected = []
            for path in batch:
                expected.append(path not in known)
                known.add(path)
            assert paths.add(batch) == expected
        for _ in range(2):
            assert [path for path in map(str, range(31)) if path in paths] == sorted(known, key=int)
            paths.complete()


@pytest.mark.parametrize("most_in_memory", [0, 4, 100], ids=["in a database", "in both", "in memory"])
def test_paths_added_again_are_not_new(most_in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_set, "MAX_PATHS_IN_MEMORY", most_in_memory)
    paths = PathSet()
    assert paths.add(["/a", "/b"]) == [True, True]
    assert paths.add(["/b", "/c"]) == [False, True]
    assert paths.add(["/d", "/d"]) == [True, False]
    assert paths.add(["/e", "/f"]) == [True, True]
    assert paths.add(["/f", "/g", "/g"]) == [False, True, False]
    for _ in range(2):
        assert [path for path in ("/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h") if path not in paths] == ["/h"]
        paths.complete()
