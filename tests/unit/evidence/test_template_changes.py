"""Templates: which changes of content are the site's, and which a page's own."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.template_changes import MIN_SAME_PAGES, MIN_SEEN_PAGES, TemplateChanges
from sitemap_middleware.evidence.value_history import VOLATILE, History, add_sighting, last_change

HOUR = 3600
FRAME = 2**63 + 11
"""The difference that a new frame makes."""


def page(*sights: tuple[int, int]) -> History:
    """A history of digests, each seen at an hour; a sum past 64 bits is taken as a digest is."""
    runs: History = ()
    for value, hour in sights:
        runs = add_sighting(runs, (value + 2**63) % 2**64 - 2**63, hour * HOUR)
    return runs


def number(which: int, content: int = 0) -> int:
    """The digest of one page's content: far from any other's."""
    return random.Random(f"{which} {content}").getrandbits(64)


def changed(which: int, frame: int | None = None, content: int = 1) -> History:
    """A page whose content changed between the fifth hour and the ninth: to another one, or by a new frame alone."""
    before, after = number(which), number(which, content) if frame is None else number(which) + frame
    return page((before, 1), (before, 5), (after, 9), (after, 20))


def calm(count: int) -> list[History]:
    """Pages that stay what they are for hundred hours."""
    return [page((number(which), 0), (number(which), 100)) for which in range(1000, 1000 + count)]


def dated(pages: list[History], which: int = 0, routes: list[str] | None = None) -> tuple[int, int] | None:
    """When a page changed, in hours."""
    routes = routes or ["/{x}"] * len(pages)
    of_route = defaultdict(list)
    for route, history in zip(routes, pages, strict=True):
        of_route[route].append(history)
    change = last_change(TemplateChanges(of_route).own_history(routes[which], pages[which]))
    return None if change is None else (change[0] // HOUR, change[1] // HOUR)


def test_edit_is_dated_once_other_pages_were_seen_on_both_sides() -> None:
    early = [page((number(which), 0), (number(which), 7)) for which in range(1, 10)]
    assert dated([changed(0), *early]) is None
    assert dated([changed(0), *early, *calm(MIN_SEEN_PAGES - 2)]) is None
    assert dated([changed(0), *early, *calm(MIN_SEEN_PAGES - 1)]) == (5, 9)


def test_a_small_site_is_dated_by_the_pages_that_it_has() -> None:
    assert dated([changed(0), changed(1)], routes=["/", "/about"]) == (5, 9)
    assert dated([changed(0), changed(1), changed(2)]) is None
    assert TemplateChanges({}).own_history("/", page((1, 1), (2, 2))) == page((1, 1), (2, 2))


# Differences of several pages


@given(st.data(), st.integers(MIN_SEEN_PAGES, 20), st.integers(1, 2**64 - 1))
def test_a_new_frame_on_every_page_changes_no_date(data: st.DataObject, count: int, frame: int) -> None:
    """Less than 60 % of them were edited before it: these keep their dates, and the others none."""
    max_edits = min(MIN_SAME_PAGES, math.ceil(0.6 * count)) - 1
    edited_pages = data.draw(st.sets(st.integers(0, count - 1), max_size=max_edits))
    edits = [which in edited_pages for which in range(count)]
    pages = []
    for which, edited in enumerate(edits):
        own = number(which, 1) if edited else number(which)
        sights = [(number(which), 1), (number(which), 3), (own, 10), (own, 20), (own + frame, 30), (own + frame, 90)]
        pages.append(page(*sights))
    for which, edited in enumerate(edits):
        assert dated(pages, which) == ((3, 10) if edited else None)


@pytest.mark.parametrize("others", [0, 40, 760])
@pytest.mark.parametrize("own_routes", [False, True], ids=["one route", "routes of their own"])
@pytest.mark.parametrize("count", [MIN_SAME_PAGES, 40])
def test_template_of_any_part_of_the_site_dates_none_of_its_pages(count: int, own_routes: bool, others: int) -> None:
    pages = [*(changed(which, FRAME) for which in range(count)), *calm(others)]
    part = [f"/part{which}" if own_routes else "/part/{x}" for which in range(count)]
    routes = [*part, *(f"/other{which}" for which in range(others))]
    assert [dated(pages, which, routes) for which in range(count)] == [None] * count


def test_teaser_added_to_two_pages_is_an_edit_of_both() -> None:
    lists = [changed(which, FRAME) for which in range(MIN_SAME_PAGES - 1)]
    assert dated([*lists, *calm(40)]) == (5, 9)


def test_the_same_edit_of_several_pages_days_apart_dates_each() -> None:
    pages = [
        page((number(n), 0), (number(n), n * 50 + 1), (number(n) + FRAME, n * 50 + 5), (number(n) + FRAME, 900))
        for n in range(4)
    ]
    assert dated([*pages, *calm(40)], 1) == (51, 55)


@pytest.mark.parametrize("back", [0, 1, 2])
def test_a_few_that_change_back_take_no_date_of_the_others(back: int) -> None:
    pages = []
    for n in range(12):
        own, sold = number(n), n * 24 + 50
        ends = [(own + FRAME, n * 24 + 399), (own, n * 24 + 400), (own, 900)] if n < back else [(own + FRAME, 900)]
        pages.append(page((own, 1), (own, sold - 1), (own + FRAME, sold), *ends))
    assert sum(dated([*pages, *calm(40)], n) is not None for n in range(back, 12)) >= 10


@pytest.mark.parametrize("own_routes", [False, True], ids=["one route", "routes of their own"])
def test_edits_during_a_layout_change_are_dated(own_routes: bool) -> None:
    """A template of a few pages does not discredit changes of other pages at the same moment."""
    both = page((number(90), 1), (number(90), 5), (number(90, 1) + FRAME, 9), (number(90, 1) + FRAME, 20))
    edit = number(91, 1)
    before = page((number(91), 0), (number(91), 1), (edit, 2), (edit, 5), (edit + FRAME, 9), (edit + FRAME, 20))
    pages = [both, before, changed(92), *(changed(which, FRAME) for which in range(40)), *calm(320)]
    part = [f"/part{which}" if own_routes else "/part/{x}" for which in range(42)]
    routes = [*part[:2], "/other", *part[2:], *(f"/other{which}" for which in range(320))]
    assert [dated(pages, which, routes) for which in range(3)] == [(5, 9), (1, 2), (5, 9)]


def test_passing_text_of_many_pages_is_not_their_content() -> None:
    sorry = number(99)
    pages = [
        page((number(which), 1), (number(which), 5), (sorry, 6), (sorry, 7), (number(which), 9), (number(which), 50))
        for which in range(MIN_SAME_PAGES)
    ]
    edited = page((number(9), 1), (number(9), 5), (sorry, 6), (sorry, 7), (number(9, 1), 20), (number(9, 1), 30))
    assert dated([edited, *pages, *calm(MIN_SEEN_PAGES)]) == (5, 20)
    assert dated([edited, *pages, *calm(MIN_SEEN_PAGES)], 1) is None
    only = page((sorry, 6), (sorry, 7))
    assert dated([only, edited, *pages, *calm(MIN_SEEN_PAGES)], 1) == (5, 20)


# Moments at which many pages changed, each in its own way


def test_changed_layout_dates_no_page_and_replaces_its_history() -> None:
    pages = [changed(which) for which in range(MIN_SEEN_PAGES)]
    edit, last = number(9, 1), number(9, 2)
    before = page((number(9), 0), (number(9), 1), (edit, 2), (edit, 4), (last, 8), (last, 9))
    assert [dated([before, *pages], which) for which in range(2)] == [None, None]
    assert dated([*pages, *calm(50)]) is None, "many more pages changed than around other times"


def test_an_edit_after_such_a_moment_is_dated() -> None:
    sights = [(number(9), 1), (number(9), 3), (number(9, 1), 5), (number(9, 1), 7)]
    reworded = [
        page((number(which), 1), (number(which), 8), (number(which, 1), 12), (number(which, 1), 50))
        for which in range(MIN_SEEN_PAGES)
    ]
    assert dated([page(*sights), *reworded]) == (3, 5)
    sights += [(number(9, 2), 14), (number(9, 2), 15)]
    assert dated([page(*sights), *reworded]) is None
    assert dated([page(*sights, (number(9, 3), 30), (number(9, 3), 40)), *reworded]) == (15, 30)


def test_volatile_pages_are_no_evidence_and_stay_volatile() -> None:
    moving = add_sighting(changed(0), VOLATILE, 10 * HOUR)
    assert dated([moving, *calm(MIN_SEEN_PAGES)]) is None
    pages = [add_sighting(before, VOLATILE, HOUR) for before in calm(MIN_SEEN_PAGES)]
    assert dated([changed(0), *pages]) == (5, 9), "it is all there is"
