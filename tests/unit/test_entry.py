"""`Entry`: a value that is checked when it is made, and never changes."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import Entry, OptionError

RYE = Entry({"slug": "rye"}, lastmod=date(2024, 5, 1), priority=0.8, changefreq="weekly")
DATES = (
    None,
    date(2024, 5, 1),
    datetime(2024, 5, 1, 10),  # noqa: DTZ001 (a naive datetime is in UTC)
    datetime(2024, 5, 1, 10, tzinfo=UTC),
    datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=2))),
    "2024-05-01",
    "soon",
    20240501,
)
PRIORITIES = (None, 0.0, -0.0, 0.5, 1.0, 1.5, -1.0, float("nan"), 1, 0, True, Decimal("0.5"), "0.5")
WORDS = (None, "weekly", "auto", "often", "")


def made(**arguments: Any) -> object:
    """The entry that is made of these arguments, with its unusable date, or what its error says."""
    try:
        entry = Entry(**arguments)
    except OptionError as error:
        return str(error)
    return entry, entry.unusable_lastmod, str(entry.priority)


class TestEntry:
    def test_has_what_was_given(self) -> None:
        assert (RYE.params, RYE.lastmod, RYE.priority, RYE.changefreq) == (
            {"slug": "rye"},
            date(2024, 5, 1),
            0.8,
            "weekly",
        )

    def test_keeps_the_parameters_of_a_mapping_that_is_changed_afterwards(self) -> None:
        params = {"slug": "rye"}
        entry = Entry(params)
        params["slug"] = "spelt"
        assert entry.params == {"slug": "rye"}

    @given(
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
        st.sampled_from(DATES),
        st.sampled_from(PRIORITIES),
        st.sampled_from(WORDS),
    )
    def test_plain_and_other_mappings_make_equal_entries_and_errors(
        self, params: dict[str, Any], lastmod: Any, priority: Any, changefreq: Any
    ) -> None:
        others = {"lastmod": lastmod, "priority": priority, "changefreq": changefreq}
        assert made(params=params, **others) == made(params=OrderedDict(params), **others)

    @pytest.mark.parametrize("name", ["params", "lastmod", "priority", "changefreq", "unusable_lastmod"])
    def test_never_changes(self, name: str) -> None:
        with pytest.raises(AttributeError):
            setattr(RYE, name, None)
        with pytest.raises(AttributeError):
            delattr(RYE, name)

    def test_equals_an_entry_that_says_the_same(self) -> None:
        assert Entry({"slug": "rye"}, lastmod="2024-05-01", priority=0.8, changefreq="weekly") == RYE
        assert Entry({"slug": "rye"}) != RYE
        assert Entry({}) != {}

    def test_is_as_hashable_as_its_parameters(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(RYE)

    def test_shows_what_it_says(self) -> None:
        expected = "Entry(params={'slug': 'rye'}, lastmod=datetime.date(2024, 5, 1), priority=0.8, changefreq='weekly')"
        assert repr(RYE) == expected

    def test_can_be_copied_and_pickled(self) -> None:
        pickled = [pickle.loads(pickle.dumps(RYE, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
        for same in (copy.copy(RYE), copy.deepcopy(RYE), *pickled):
            assert same == RYE


def test_the_error_of_a_number_as_date_names_each_accepted_form() -> None:
    with pytest.raises(OptionError) as caught:
        Entry({"slug": "rye"}, lastmod=1_700_000_000)  # type: ignore[arg-type] # the mistake
    expected = 'is not a date; give a datetime.date, a datetime.datetime, or text such as "2024-05-01"'
    assert str(caught.value).endswith(f"lastmod=1700000000 {expected}")


def test_a_subclass_may_have_attributes_of_its_own() -> None:
    class Post(Entry):
        def __init__(self, slug: str) -> None:
            super().__init__({"slug": slug})
            self.slug = slug

    assert (Post("rye").slug, Post("rye").params) == ("rye", {"slug": "rye"})
