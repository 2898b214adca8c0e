"""Stored pages with times that no calendar has: `explain` and the sitemap stay, whatever the store has lost."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from sitemap_middleware.models import Page as StoredPage
from sitemap_middleware.models import UnconfirmedAnswer
from sitemap_middleware.stores.page_codec import packed_page
from sitemap_middleware.value_history import Run

from ..support.sample_sites import Clock, Page, SampleSite

NOW = int(Clock().now)
RUN = Run(NOW - 900_000, NOW - 90_000, NOW)
SOUND = StoredPage(
    "/posts/a", "/posts/{slug}", NOW - 90_000, NOW, 200, "text/html", read_at=NOW, learned=True,
    last_modified=RUN.value, last_modified_history=(RUN,), content_history=(RUN._replace(value=7),),
    stated_date="2025-06-01", stated_date_history=(RUN,), expires_at=NOW + 90_000, html_expires_at=NOW + 90_000,
)  # fmt: skip
HISTORIES = ("last_modified_history", "content_history", "stated_date_history")


def damaged_pages(time: int) -> dict[str, StoredPage]:
    """Copies of the page, each with one time replaced, by the name of that time."""
    fields = ("first_seen", "last_seen", "last_modified", "read_at", "expires_at", "html_expires_at")
    pages = {field: SOUND._replace(**{field: time}) for field in fields}
    for name in HISTORIES:
        for field in Run._fields:
            pages[f"{field} of {name}"] = SOUND._replace(**{name: (RUN, RUN._replace(**{field: time}))})
    pages["answer"] = SOUND._replace(unconfirmed_answers=(UnconfirmedAnswer(time, 404, 1),))
    return pages


@pytest.mark.slow
@pytest.mark.parametrize("time", [2**63 - 1, 2**50, -(2**50), -(2**63)])
@pytest.mark.parametrize("name", damaged_pages(0))
def test_a_damaged_time_fails_neither_explain_nor_the_sitemap(tmp_path: Path, name: str, time: int) -> None:
    file = tmp_path / "pages.sqlite3"
    site = SampleSite(
        "wsgi", {"/": Page(), "/posts/{slug}": Page()}, learn="/posts/*", max_age=0, store=f"sqlite:///{file}"
    )
    site.visit("/", "/posts/a")
    page = damaged_pages(time)[name]
    database = sqlite3.connect(file)
    changed = database.execute("update page set data = ? where path = '/posts/a'", (packed_page(page).data,)).rowcount
    database.commit()
    database.close()
    assert changed == 1
    assert str(site.app.explain("/posts/a")).startswith("/posts/a is ")
    assert "http://testserver/" in site.locs()
    site.app.close()
