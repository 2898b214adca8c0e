"""Templates: which changes of content are the site's, and which a page's own."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.periods_of_many_changes import MIN_PAGES
from sitemap_middleware.evidence.template_changes import (
    MIN_PAGES_AROUND_CHANGE,
    MIN_SAME_DIFFERENCE_PAGES,
    TemplateChanges,
    _content_steps,
    _ContentStep,
    _difference_kind,
    _flapping_differences,
)
from sitemap_middleware.value_history import OVERLAP_SECONDS, VOLATILE, History, Run, add_sighting, last_change

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


def dated(pages: list[History], which: int = 0, routes: list[str] | None = None) -> tuple[int, int] | None:
    """When a page changed, in hours."""
    routes = routes or ["/{x}"] * len(pages)
    of_route = defaultdict(list)
    for route, history in zip(routes, pages, strict=True):
        of_route[route].append(history)
    change = last_change(TemplateChanges(of_route).own_history(routes[which], pages[which]))
    return None if change is None else (change[0] // HOUR, change[1] // HOUR)


def calm(count: int) -> list[History]:
    """Pages that stay what they are for hundred hours."""
    return [page((number(which), 0), (number(which), 100)) for which in range(1000, 1000 + count)]


def test_edit_among_unchanged_pages_is_dated() -> None:
    edited = page((number(0), 1), (number(0), 5), (number(0, 1), 9), (number(0, 1), 20))
    assert dated([edited, *calm(MIN_PAGES_AROUND_CHANGE)]) == (5, 9)


def test_edit_is_dated_once_other_pages_were_seen_on_both_sides() -> None:
    edited = page((number(0), 1), (number(0), 5), (number(0, 1), 9), (number(0, 1), 20))
    early = [page((number(which), 0), (number(which), 7)) for which in range(1, 10)]
    assert dated([edited, *early]) is None
    assert dated([edited, *early, *calm(MIN_PAGES_AROUND_CHANGE - 2)]) is None
    assert dated([edited, *early, *calm(MIN_PAGES_AROUND_CHANGE - 1)]) == (5, 9)


@given(st.data(), st.integers(MIN_PAGES_AROUND_CHANGE, 20), st.integers(1, 2**64 - 1))
def test_a_new_frame_on_every_page_changes_no_date(data: st.DataObject, count: int, frame: int) -> None:
    """Less than 60 % of them were edited before it: these keep their dates, and the others none."""
    max_edits = min(MIN_PAGES, math.ceil(0.6 * count)) - 1
    edited_pages = data.draw(st.sets(st.integers(0, count - 1), max_size=max_edits))
    edits = [which in edited_pages for which in range(count)]
    pages = []
    for which, edited in enumerate(edits):
        own = number(which, 1) if edited else number(which)
        sights = [(number(which), 1), (number(which), 3), (own, 10), (own, 20), (own + frame, 30), (own + frame, 90)]
        pages.append(page(*sights))
    for which, edited in enumerate(edits):
        assert dated(pages, which) == ((3, 10) if edited else None)


def test_an_edit_that_comes_with_a_new_frame_is_dated() -> None:
    pages = [
        page((number(which), 1), (number(which), 5), (number(which) + FRAME, 9), (number(which) + FRAME, 20))
        for which in range(MIN_PAGES_AROUND_CHANGE)
    ]
    edited = page((number(9), 1), (number(9), 5), (number(9, 1) + FRAME, 9), (number(9, 1) + FRAME, 20))
    assert dated([edited, *pages, *calm(MIN_PAGES_AROUND_CHANGE)]) == (5, 9)


def test_changed_layout_dates_no_page_and_replaces_its_history() -> None:
    pages = [
        page((number(which), 1), (number(which), 5), (number(which, 1), 9), (number(which, 1), 20))
        for which in range(MIN_PAGES_AROUND_CHANGE)
    ]
    assert dated(pages) is None
    before = page(
        (number(9), 0), (number(9), 1), (number(9, 1), 2), (number(9, 1), 4), (number(9, 2), 8), (number(9, 2), 9)
    )
    assert dated([before, *pages]) is None


def test_template_of_one_route_is_recognised_by_its_pages() -> None:
    shop = [
        page((number(which), 1), (number(which), 5), (number(which, 1), 9), (number(which, 1), 20))
        for which in range(MIN_PAGES_AROUND_CHANGE)
    ]
    pages = [*shop, *calm(50)]
    assert dated(pages, routes=["/shop/{x}"] * MIN_PAGES_AROUND_CHANGE + ["/{x}"] * 50) is None
    assert dated(pages) == (5, 9)


def test_template_of_a_few_pages_is_recognised_among_pages_that_always_change() -> None:
    """One page of the route differs at every visit, so four show its template: all that changed."""
    shop = [
        page((number(which), 1), (number(which), 5), (number(which, 1), 9), (number(which, 1), 20))
        for which in range(MIN_PAGES_AROUND_CHANGE - 1)
    ]
    always_new = page(*((number(50, hour), hour) for hour in range(0, 20, 5)))
    pages = [*shop, always_new, *calm(50)]
    routes = ["/shop/{x}"] * MIN_PAGES_AROUND_CHANGE + ["/{x}"] * 50
    assert [dated(pages, which, routes) for which in range(len(shop))] == [None] * len(shop)


def test_content_read_once_takes_away_no_date() -> None:
    """An edit may hide behind the template change, but one reading does not confirm that the content changed."""
    sights = [(number(9), 1), (number(9), 3), (number(9, 1), 5), (number(9, 1), 7)]
    reworded = [
        page((number(which), 1), (number(which), 8), (number(which, 1), 12), (number(which, 1), 50))
        for which in range(MIN_PAGES_AROUND_CHANGE)
    ]
    assert dated([page(*sights), *reworded]) == (3, 5)
    sights.append((number(9, 2), 14))
    assert dated([page(*sights), *reworded]) == (3, 5)
    assert dated([page(*sights, (number(9, 2), 15)), *reworded]) is None
    assert dated([page(*sights, (number(9, 3), 30), (number(9, 3), 40)), *reworded]) == (14, 30)


def test_second_content_read_once_takes_the_date_away() -> None:
    """By then the page changed: by an edit, by the template, or by both."""
    sights = [
        (number(9), 1),
        (number(9), 3),
        (number(9, 1), 5),
        (number(9, 1), 6),
        (number(9, 2), 7),
        (number(9, 3), 12),
    ]
    reworded = [
        page((number(which), 1), (number(which), 8), (number(which, 1), 12), (number(which, 1), 50))
        for which in range(MIN_PAGES_AROUND_CHANGE)
    ]
    assert dated([page(*sights), *reworded]) is None


def test_two_changed_pages_of_a_route_wait_for_more_pages() -> None:
    changed = [
        page((number(which), 1), (number(which), 5), (number(which, 1), 9), (number(which, 1), 20))
        for which in range(2)
    ]
    unseen = [page((number(which), 1), (number(which), 5)) for which in range(2, 9)]
    seen = [page((number(which), 1), (number(which), 20)) for which in range(2, 4)]
    routes = ["/shop/{x}"] * 9 + ["/{x}"] * 50
    assert dated([*changed, *unseen, *calm(50)], routes=routes) is None
    assert dated([*changed, *seen, *unseen[2:], *calm(50)], routes=routes) == (5, 9)


def test_both_pages_of_a_small_site_are_dated_by_edits_at_one_time() -> None:
    changed = [
        page((number(which), 1), (number(which), 5), (number(which, 1), 9), (number(which, 1), 20))
        for which in range(2)
    ]
    assert dated(changed, routes=["/", "/about"]) == (5, 9)


def test_teaser_added_to_two_pages_is_an_edit_of_both() -> None:
    lists = [
        page((number(which), 1), (number(which), 5), (number(which) + FRAME, 9), (number(which) + FRAME, 20))
        for which in range(MIN_SAME_DIFFERENCE_PAGES - 1)
    ]
    assert dated([*lists, *calm(40)]) == (5, 9)


def framed(which: int, since: int = 9) -> History:
    """A page whose frame changed at an hour."""
    own = number(which)
    return page((own, 1), (own, since - 4), (own + FRAME, since), (own + FRAME, since + 11))


@pytest.mark.parametrize("others", [0, 40, 320, 760])
@pytest.mark.parametrize("own_routes", [False, True], ids=["one route", "routes of their own"])
@pytest.mark.parametrize("count", [MIN_SAME_DIFFERENCE_PAGES, 40])
def test_template_of_any_part_of_the_site_dates_none_of_its_pages(count: int, own_routes: bool, others: int) -> None:
    pages = [*(framed(which) for which in range(count)), *calm(others)]
    part = [f"/part{which}" if own_routes else "/part/{x}" for which in range(count)]
    routes = [*part, *(f"/other{which}" for which in range(others))]
    assert [dated(pages, which, routes) for which in range(count)] == [None] * count


@pytest.mark.parametrize("own_routes", [False, True], ids=["one route", "routes of their own"])
def test_edits_during_a_layout_change_are_dated(own_routes: bool) -> None:
    """A template of a few pages does not discredit changes of other pages at the same moment."""
    parts = [framed(which) for which in range(40)]
    both = page((number(90), 1), (number(90), 5), (number(90, 1) + FRAME, 9), (number(90, 1) + FRAME, 20))
    before = page(
        (number(91), 0), (number(91), 1), (number(91, 1), 2), (number(91, 1), 5),
        (number(91, 1) + FRAME, 9), (number(91, 1) + FRAME, 20),
    )  # fmt: skip
    other = page((number(92), 1), (number(92), 5), (number(92, 1), 9), (number(92, 1), 20))
    pages = [both, before, other, *parts, *calm(320)]
    part = [f"/part{which}" if own_routes else "/part/{x}" for which in range(42)]
    routes = [*part[:2], "/other", *part[2:], *(f"/other{which}" for which in range(320))]
    assert [dated(pages, which, routes) for which in range(3)] == [(5, 9), (1, 2), (5, 9)]


def test_banner_that_came_with_a_layout_leaves_other_edits_dated() -> None:
    banner = 2**60 + 5
    with_banner = [
        page((number(which), 1), (number(which), 5), (number(which) + FRAME + banner, 9), (number(which) + FRAME, 20))
        for which in range(MIN_SAME_DIFFERENCE_PAGES)
    ]
    pages = [*with_banner, *(framed(which) for which in range(20, 60)), *calm(100)]
    edited = page(
        (number(91), 0), (number(91), 1), (number(91, 1), 2), (number(91, 1), 5),
        (number(91, 1) + FRAME, 9), (number(91, 1) + FRAME, 20),
    )  # fmt: skip
    assert dated([edited, *pages]) == (1, 2)
    assert all(dated([edited, *pages], 1 + which) is None for which in range(len(pages)))


def test_difference_shown_at_varying_times_dates_no_page() -> None:
    pages = [
        page(
            (number(which), which * 10),
            (number(which), which * 10 + 1),
            (number(which) + FRAME, which * 10 + 5),
            (number(which) + FRAME, which * 10 + 9),
        )
        for which in range(MIN_PAGES)
    ]
    assert dated([*pages, *calm(40)], 1) is None
    assert dated([pages[0], *calm(40)]) == (1, 5)


def test_text_that_moves_between_pages_dates_neither() -> None:
    up = page((number(0), 1), (number(0), 5), (number(0) + FRAME, 9), (number(0) + FRAME, 20))
    down = page((number(1) + FRAME, 30), (number(1) + FRAME, 40), (number(1), 50), (number(1), 60))
    assert dated([up, down, *calm(40)]) is None
    assert dated([up, down, *calm(40)], 1) is None
    later = page(*((number(0) + part, hour) for part, hour in ((0, 1), (FRAME, 9), (FRAME, 20))))
    assert dated([later, down, *calm(40)]) is None


def test_edit_on_a_flapping_page_is_dated_after_two_more_contents() -> None:
    sights = [(number(0), 1), (number(0) + FRAME, 5), (number(0), 9), (number(0) + FRAME, 10)]
    other = page((number(1), 1), (number(1) + FRAME, 5), (number(1), 9))
    sights += [(number(0, 1), 20), (number(0, 1), 30)]
    assert dated([page(*sights), other, *calm(40)]) is None
    sights += [(number(0, 2), 40), (number(0, 2), 50)]
    assert dated([page(*sights), other, *calm(40)]) == (30, 40)


def test_flapping_is_recognised_although_it_came_with_a_new_layout() -> None:
    banner = 2**60 + 5
    framed = [
        page((number(which), 1), (number(which), 30), (number(which) + FRAME, 40), (number(which) + FRAME, 50))
        for which in range(2, 2 + 2 * MIN_PAGES_AROUND_CHANGE)
    ]
    flips = [page((number(which), 1), (number(which) + banner, 5), (number(which), 9)) for which in (0, 1)]
    both = page((number(50), 1), (number(50), 30), (number(50) + FRAME + banner, 40), (number(50) + FRAME + banner, 50))
    assert dated([both, *framed]) == (30, 40)
    assert dated([both, *framed, *flips]) is None


def test_passing_text_of_many_pages_is_not_their_content() -> None:
    sorry = number(99)
    pages = [
        page((number(which), 1), (number(which), 5), (sorry, 6), (sorry, 7), (number(which), 9), (number(which), 50))
        for which in range(MIN_PAGES)
    ]
    edited = page((number(9), 1), (number(9), 5), (sorry, 6), (sorry, 7), (number(9, 1), 20), (number(9, 1), 30))
    assert dated([edited, *pages, *calm(MIN_PAGES_AROUND_CHANGE)]) == (5, 20)
    assert dated([edited, *pages, *calm(MIN_PAGES_AROUND_CHANGE)], 1) is None
    only = page((sorry, 6), (sorry, 7))
    assert dated([only, edited, *pages, *calm(MIN_PAGES_AROUND_CHANGE)], 1) == (5, 20)


def test_rolled_back_deployment_dates_none_of_the_pages_seen_meanwhile() -> None:
    seen_between = [
        page((number(which), 1), (number(which, 1), 30), (number(which), 31), (number(which), 50))
        for which in range(MIN_PAGES)
    ]
    edited_before = page((number(9), 1), (number(9), 3), (number(9, 1), 5), (number(9, 1), 29), (number(9, 1), 50))
    edited_between = page((number(8), 1), (number(8), 29), (number(8, 1), 30), (number(8, 2), 31), (number(8, 2), 40))
    went_along = page(
        (number(7), 1), (number(7), 3), (number(7, 1), 5), (number(7, 2), 30), (number(7, 1), 31), (number(7, 1), 50)
    )
    pages = [edited_before, edited_between, went_along, *seen_between, *calm(40)]
    assert dated(pages, 0) == (3, 5)
    assert dated(pages, 1) is None
    assert dated(pages, 2) == (3, 5)


def test_restored_content_is_not_hidden_by_a_newer_layout() -> None:
    back = page((number(0), 1), (number(0, 1), 5), (number(0, 1), 9), (number(0), 40), (number(0), 50))
    frames = [
        page((number(which), 1), (number(which), 20), (number(which, 1), 21), (number(which, 1), 50))
        for which in range(1, 20)
    ]
    assert dated([back, *frames]) is None


def test_volatile_pages_are_no_evidence_and_stay_volatile() -> None:
    moving = add_sighting(
        page((number(0), 1), (number(0), 5), (number(0, 1), 9), (number(0, 1), 20)), VOLATILE, 10 * HOUR
    )
    assert dated([moving, *calm(MIN_PAGES_AROUND_CHANGE)]) is None
    pages = [add_sighting(before, VOLATILE, HOUR) for before in calm(MIN_PAGES_AROUND_CHANGE)]
    edited = page((number(0), 1), (number(0), 5), (number(0, 1), 9), (number(0, 1), 20))
    assert dated([edited, *pages]) == (5, 9), "it is all there is"


def test_page_only_seen_as_volatile_is_no_evidence() -> None:
    edited = page((number(0), 1), (number(0), 5), (number(0, 1), 9), (number(0, 1), 20))
    moving = [add_sighting(add_sighting((), VOLATILE, 0), VOLATILE, 100 * HOUR) for _ in range(MIN_PAGES_AROUND_CHANGE)]
    assert dated([edited, *calm(MIN_PAGES_AROUND_CHANGE - 1), *moving]) == (5, 9)


@pytest.mark.parametrize("late", [0, OVERLAP_SECONDS // 2])
def test_restarting_workers_show_one_layout_change(late: int) -> None:
    pages = []
    for which in range(2 * MIN_PAGES_AROUND_CHANGE):
        known = page((number(which), 1), (number(which), 10), (number(which) + FRAME, 10), (number(which) + FRAME, 30))
        pages.append(add_sighting(known, number(which), 10 * HOUR + late))
    assert all(dated(pages, which) is None for which in range(len(pages)))


def test_a_site_without_contents_has_no_templates() -> None:
    assert TemplateChanges({}).own_history("/", ()) == ()
    assert TemplateChanges({}).own_history("/", page((1, 1), (2, 2))) == page((1, 1), (2, 2))


# The kinds of differences

LATE = OVERLAP_SECONDS


def step(page: int, start: int, end: int, *, negative: bool = False, flapping: bool = False) -> _ContentStep:
    return _ContentStep(page, start, end, negative, flapping)


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([step(1, 0, 5), step(2, 1, 6), step(3, 2, 7)], "template"),
        ([step(1, 0, 5), step(2, 1, 6)], ""),
        ([step(1, 0, 5), step(1, 1, 6), step(1, 2, 7)], ""),
        ([step(1, 0, 5), step(2, 1, 6), step(3, 5 + LATE, 9 * LATE)], "template"),
        ([step(1, 0, 5), step(2, 1, 6), step(3, 6 + LATE, 9 * LATE)], "flapping"),
        ([step(3, 0, 9 * LATE), step(2, 1, 6), step(1, 0, 5)], "template"),
        ([step(3, 5 + 2 * LATE, 5 + 3 * LATE), step(2, 1, 6), step(1, 0, 5), step(4, 0, 4)], "template"),
        ([step(1, 0, 5), step(2, 1, 6, negative=True)], "flapping"),
        ([step(1, 0, 5), step(2, 1, 6, flapping=True)], "flapping"),
        ([step(1, 0, 5, negative=True), step(2, 1, 6, negative=True)], ""),
        ([step(number, number * 9 * LATE, number * 9 * LATE + 1) for number in range(MIN_PAGES)], "flapping"),
        ([step(number, number * 9 * LATE, number * 9 * LATE + 1) for number in range(MIN_PAGES - 1)], ""),
        ([step(number % 2, number * 9 * LATE, number * 9 * LATE + 1) for number in range(MIN_PAGES)], ""),
    ],
)
def test_kind_of_a_difference_is_told_by_when_pages_show_it(steps: list[_ContentStep], kind: str) -> None:
    assert _difference_kind(steps) == _difference_kind(steps[::-1]) == kind


def test_steps_are_between_every_two_contents() -> None:
    runs = [Run(10, 0, 5), Run(13, 9, 20), Run(11, 21, 30)]
    assert list(_content_steps(runs)) == [
        (3, 5, 9, False, False),
        (1, 5, 21, False, False),
        (2, 20, 21, True, False),
    ]
    far = [Run(2**63 - 1, 0, 5), Run(-(2**63), 5 - LATE, 9)]
    assert list(_content_steps(far)) == [(1, 5 - LATE, 5, False, False)]
    assert [flaps for *_, flaps in _content_steps([far[0], Run(0, 4 - LATE, 9)])] == [True]


def test_sum_of_a_template_and_a_flapping_difference_is_flapping() -> None:
    assert _flapping_differences([5], [100, 105, 95, 7]) == {5, 105, 95, 2, 12} - {7}
    assert _flapping_differences([], [100, 105]) == set()
    assert _flapping_differences([5, 9], []) == {5, 9}


# What is equal


def changes_of(*pages: History) -> TemplateChanges:
    return TemplateChanges({"/{x}": [*pages]})


def test_equal_tuples_show_equal_template_changes() -> None:
    pages = [
        page((number(which), 1), (number(which), 5), (number(which) + 7, 9), (number(which) + 7, 99))
        for which in range(9)
    ]
    common, shared, flapping, site, groups = changes_of(*pages).as_tuple()  # type: ignore[misc] # told by its parts
    assert (common, flapping) == ([], [])
    assert shared == sorted([7, -7, 7 - 2**64, 2**64 - 7])
    assert [group for group, _ in groups] == ["/{x}"]
    assert isinstance(site, type(groups[0][1]))
    again = changes_of(*pages[::-1])
    assert again.as_tuple() == changes_of(*pages).as_tuple() != changes_of(*pages[:2]).as_tuple()


def test_contents_of_many_pages_and_flapping_differences_are_in_the_tuple() -> None:
    same = [page((7, 1), (7, 90)) for _ in range(MIN_PAGES)]
    banner = [
        page(
            (number(which), 1),
            (number(which) + 5, 9 + late),
            (number(which), 30 + late),
            (number(which) + 5, 60 + late),
        )
        for which, late in enumerate(range(0, 900, 100))
    ]
    common, _, flapping, *_ = changes_of(*same, *banner).as_tuple()  # type: ignore[misc] # told by its parts
    assert (common, flapping) == ([7], [5])
