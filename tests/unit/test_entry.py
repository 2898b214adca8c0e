"""`Entry`: a value that is checked when it is made, and never changes."""

from __future__ import annotations

from datetime import date

import pytest

from sitemap_middleware import Entry, OptionError

RYE = Entry({"slug": "rye"}, lastmod=date(2024, 5, 1), priority=0.8, changefreq="weekly")


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

    def test_shows_what_it_says(self) -> None:
        expected = "Entry(params={'slug': 'rye'}, lastmod=datetime.date(2024, 5, 1), priority=0.8, changefreq='weekly')"
        assert repr(RYE) == expected


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
