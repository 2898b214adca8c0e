"""Time passes, and nobody visits a page: the sitemap is what a process that starts then would say."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitemap_middleware import sitemap
from sitemap_middleware.evidence.dates import w3c_from_timestamp

from ..support.sample_sites import Clock, Page, SampleSite

LOCAL = "http://testserver"
HOUR, DAY = 3600, 86_400
TEXTS = {"a": b"apples", "b": b"bread", "c": b"cheese", "d": b"dates", "e": b"eggs", "f": b"figs"}
START = int(Clock().now)

Visit = tuple[int, int, int | None, int | None]

VISITS: st.SearchStrategy[list[Visit]] = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 20, HOUR]),  # pause before it
        st.sampled_from([0, 0, 200, HOUR, 3 * DAY]),  # how far the clock is ahead
        st.sampled_from([None, -9 * DAY, -7777, 100, 299]),  # Last-Modified, from the time of the visit
        st.sampled_from([None, -9 * DAY, 100, DAY]),  # the stated date, from the start
    ),
    min_size=1,
    max_size=5,
)


def visited(visits: list[Visit], *, rendering: bool) -> SampleSite:
    """A site after some visits; `rendering`: its sitemap was requested after each of them."""
    site = SampleSite("wsgi", {"/posts/{slug}": Page()}, learn="/posts/*", max_age=0, max_age_days=2)
    for pause, ahead, modified, stated in visits:
        site.clock.pass_(pause)
        right = site.clock.now
        site.clock.pass_(ahead)
        moment = "" if stated is None else w3c_from_timestamp(START + stated)
        page = Page(body=f'<meta property="article:modified_time" content="{moment}"><p>a post</p>'.encode())
        for number, (slug, text) in enumerate(TEXTS.items()):
            own = Page(body=page.body + text)
            if modified is not None:
                date = formatdate(site.clock.now + modified - 1000 * number * (modified < 0), usegmt=True)
                own = own.with_headers(("last-modified", date))
            site.pages["/posts/{slug}"] = own
            site.request(f"/posts/{slug}")
        site.app.flush()
        site.clock.now = right
        if rendering:
            site.locs()
    return site


@pytest.fixture(autouse=True, scope="module")
def _all_is_imported() -> None:
    # Python 3.11 cannot compile a module on one thread while Hypothesis raises the recursion limit on another.
    visited([(0, 0, 100, 100)], rendering=True)


@settings(max_examples=30)
@given(VISITS, st.lists(st.sampled_from([1, 100, 300, 301, HOUR, DAY, 2 * DAY, 2 * DAY + 1]), min_size=1, max_size=4))
def test_the_sitemap_follows_the_time(visits: list[Visit], pauses: list[int]) -> None:
    kept, fresh = visited(visits, rendering=True), visited(visits, rendering=False)
    for pause in pauses:
        kept.clock.pass_(pause)
        fresh.clock.pass_(pause)
        entries = kept.entries()
        for slug in TEXTS:
            known = kept.app.explain(f"/posts/{slug}")
            dated = {"lastmod": known.entry.lastmod} if known.entry and known.entry.lastmod else {}
            assert entries.get(f"{LOCAL}/posts/{slug}") == (dated if known.listed else None)
    assert kept.entries() == fresh.entries()


@pytest.mark.parametrize("ahead", [100, 2 * HOUR])
def test_the_developers_date_comes_when_it_is_no_longer_in_the_future(ahead: int) -> None:
    moment = datetime.fromtimestamp(START + ahead, UTC)
    marks = {"/posts/{slug}": sitemap(learn=True, lastmod=moment)}
    site = SampleSite("wsgi", {"/posts/{slug}": Page()}, marks=marks, max_age=0)
    site.visit("/posts/a")
    assert site.entries()[f"{LOCAL}/posts/a"] == ({"lastmod": w3c_from_timestamp(START)} if ahead < HOUR else {})
    site.clock.pass_(ahead)
    assert site.entries()[f"{LOCAL}/posts/a"] == {"lastmod": w3c_from_timestamp(START + ahead)}
