"""What is told of changes, as the feed shows it: each true one, and nothing that only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import feedparser
import flask
import pytest

from sitemap_middleware import sitemap
from sitemap_middleware.documents import changes, xml
from sitemap_middleware.models import BaseURL
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.bakery import BASE, DAY, NOW, Bakery
from ...support.documents import entries, locs
from ...support.sample_sites import Clock
from ...support.waiting import until


def test_the_first_sitemap_tells_of_nothing() -> None:
    bakery = Bakery()
    bakery.items = {"rye": NOW - 100}
    bakery.visit("/", "/notes/first")
    bakery.get()
    bakery.visit("/notes/second")  # an old page, for all we know
    bakery.pass_(3600)
    assert bakery.told() == {}


def test_new_and_edited_pages_are_told_once() -> None:
    bakery = Bakery()
    bakery.items = {"rye": NOW - DAY, "oat": None}
    bakery.visit("/notes/old")
    bakery.pass_(12 * DAY)
    bakery.items |= {"rye": int(bakery.clock()), "spelt": None}
    bakery.visit("/notes/new")
    bakery.pass_(3600)
    assert bakery.told() == {"/items/rye": "changed", "/items/spelt": "listed", "/notes/new": "listed"}
    before = bakery.get("/changes.atom").body
    bakery.pass_(DAY)
    assert bakery.get("/changes.atom").body == before
    bakery.pass_(30 * DAY)
    assert bakery.told() == {}


def test_a_date_that_moves_all_the_time_tells_of_nothing() -> None:
    bakery = Bakery()
    bakery.items = {"clock": NOW, "rye": NOW - DAY}
    for minute in range(0, 120, 5):
        bakery.items["clock"] = int(bakery.clock())
        if minute == 60:
            bakery.items["rye"] = int(bakery.clock())
        bakery.pass_(300)
    assert bakery.told() == {"/items/rye": "changed"}


@pytest.mark.parametrize("edited", [NOW - 400 * DAY, NOW - 900 * DAY, None])
def test_a_date_that_was_corrected_is_no_change(edited: int | None) -> None:
    bakery = Bakery()
    bakery.items = {"rye": NOW - 500 * DAY, "oat": None}
    bakery.pass_(DAY)
    bakery.items = {"rye": edited, "oat": edited}
    bakery.pass_(DAY)
    assert bakery.told() == {}


def test_a_page_that_comes_back_is_new_only_if_it_was_gone() -> None:
    bakery = Bakery()
    bakery.items = {"rye": None, "oat": None, "spelt": None}
    bakery.visit("/", "/items/rye", "/items/oat", "/items/spelt")
    bakery.pass_(2 * DAY)
    bakery.statuses = {"/items/rye": 404, "/items/spelt": 0}
    bakery.visit("/items/rye", "/items/spelt")
    del bakery.items["oat"]  # such as by a query that gives less for once
    bakery.pass_(3600)
    assert bakery.told() == {}
    bakery.statuses = {}
    bakery.items["oat"] = None
    bakery.visit("/items/rye", "/items/spelt")
    bakery.pass_(3600)
    assert bakery.told() == {"/items/rye": "listed", "/items/spelt": "listed"}


@pytest.mark.parametrize(
    "change",
    [
        lambda options: options | {"base_url": "https://www.example.com"},
        lambda options: options | {"exclude": ("/items/oat",)},
        lambda options: options | {"store": MemoryStore()},
        lambda options: options | {"sections": True},
        lambda options: options | {"include": ("/notes/from-2015",)},
    ],
)
def test_changed_settings_tell_of_nothing(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    options: dict[str, Any] = {"store": MemoryStore(), "clock": Clock(NOW), "gone": True}
    for settings in (options, change(options), options):
        bakery = Bakery(**settings)
        bakery.items = {"rye": NOW - DAY, "oat": None}
        bakery.visit("/items/oat", "/notes/a")
        bakery.pass_(2 * DAY)
        assert bakery.told() == {}
        assert gone(bakery) == []


def test_more_changes_than_are_kept_are_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_CHANGES", 5)
    bakery = Bakery()
    bakery.items = {"rye": None}
    bakery.pass_(DAY)
    bakery.items |= {f"n{number}": None for number in range(6)}
    bakery.pass_(DAY)
    assert bakery.told() == {}
    bakery.pass_(DAY)
    for number in range(9):
        bakery.items[f"later{number}"] = None
        bakery.pass_(900)
    assert list(bakery.told()) == [f"/items/later{number}" for number in range(8, 3, -1)]


def test_a_store_that_was_lost_makes_no_visited_page_new() -> None:
    bakery = Bakery()
    for _ in range(2):
        bakery.visit("/", "/notes/a")
        bakery.pass_(DAY)
        bakery.visit("/notes/b")
        bakery.pass_(DAY)
        assert bakery.told() == {}
        bakery = Bakery(clock=bakery.clock)


@pytest.mark.parametrize("way", ["excluded", "moved", "not learned", "login"])
def test_what_may_not_be_listed_by_now_is_not_told(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_CHANGES", 5)
    options: dict[str, Any] = {"store": MemoryStore(), "clock": Clock(NOW)}
    bakery = Bakery(**options)
    bakery.items = {f"n{number}": None for number in range(9)}
    bakery.visit("/notes/old")
    bakery.pass_(12 * DAY)
    bakery.items["secret"] = None
    bakery.visit("/notes/secret", "/items/secret")
    bakery.pass_(3600)
    assert bakery.told() == {"/items/secret": "listed", "/notes/secret": "listed"}
    changed = {"excluded": {"exclude": ("/items/*", "/notes/*")}, "moved": {"sections": True}}
    later = Bakery(**options, **changed.get(way, {}))
    if way == "not learned":
        later.flask.view_functions["notes"] = lambda **_: "private"
    if way == "login":
        later.statuses = {"/notes/secret": 401, "/items/secret": 404}
        later.visit("/notes/secret", "/items/secret")
    if way in ("excluded", "login"):  # before the sitemap is made again
        later.items = bakery.items
        assert later.told() == {}
    later.items = {}
    later.pass_(3600)
    assert later.told() == ({"/notes/secret": "listed"} if way == "moved" else {})


def test_items_that_move_to_the_next_document_are_no_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_ENTRIES", 3)
    bakery = Bakery()
    bakery.items = {f"n{number}": NOW for number in range(7)}
    bakery.pass_(DAY)
    bakery.items = {"a&b": NOW, "it's": None} | bakery.items
    bakery.pass_(3600)
    assert bakery.told() == {"/items/a&b": "listed", "/items/it's": "listed"}


@pytest.mark.parametrize("record", [b"{", b"7", b"[1, [2]]", b'[1, [["u", "listed", "now", null]]]'])
def test_a_damaged_record_of_changes_is_absent(record: bytes) -> None:
    store = MemoryStore()
    bakery = Bakery(store=store)
    bakery.items = {"rye": None}
    bakery.pass_(DAY)
    store.save(BaseURL(BASE), {"changes/values/items-1": record, "changes": record})
    assert bakery.told() == {}
    bakery.items["oat"] = None
    bakery.pass_(3600)
    assert bakery.told() == {"/items/oat": "listed"}


def test_deployments_and_template_changes_tell_of_nothing_but_edits_do() -> None:
    paths = [f"/notes/{name}" for name in ("rye", "oat", "spelt", "bun", "roll", "cake", "pie", "tart")]
    bakery = Bakery()
    template, texts = ["<header>A</header>"], {path: f"all about {path}" for path in paths}
    deployed = [NOW - 100 * DAY]

    def note(slug: str) -> flask.Response:
        text = f"<!doctype html><main>{template[0]}{texts[flask.request.path]}</main>"
        return flask.Response(text, headers={"Last-Modified": formatdate(deployed[0], usegmt=True)})

    bakery.flask.view_functions["notes"] = sitemap(learn=True)(note)

    def days(count: int) -> None:
        for _ in range(count):
            bakery.visit(*paths, *paths)
            bakery.pass_(DAY)

    days(4)
    template[0], deployed[0] = "<p>A new offer on each page", int(bakery.clock())
    days(4)
    assert bakery.told() == {}
    texts["/notes/rye"] = "quite another text, which somebody has written today"
    days(4)
    assert bakery.told() == {"/notes/rye": "changed"}


# The feed


def test_the_feed_has_validators_like_the_sitemap() -> None:
    bakery = Bakery()
    assert bakery.get("/changes.atom").status == 200  # empty, and valid
    bakery.items = {"rye": None}
    bakery.pass_(DAY)
    bakery.items["oat"] = NOW
    bakery.pass_(DAY)
    answer = bakery.get("/changes.atom")
    assert answer.header("content-type") == "application/atom+xml; charset=utf-8"
    assert answer.header("x-robots-tag") == "noindex"
    assert bakery.get("/changes.atom", if_none_match=answer.header("etag") or "").status == 304
    assert answer.header("last-modified") is None
    bakery.items = {"rye": None}
    now = formatdate(bakery.clock(), usegmt=True)
    bakery.pass_(3600)
    later = bakery.get("/changes.atom", if_modified_since=now, if_none_match=answer.header("etag") or "")
    assert (later.status, feedparser.parse(later.body).entries) == (200, [])
    [entry] = feedparser.parse(answer.body).entries
    assert (entry.link, entry.id) == (f"{BASE}/items/oat", f"{BASE}/items/oat")
    assert entry.updated == "2025-06-15T15:06:40Z"


def test_a_site_without_pages_has_no_feed() -> None:
    bakery = Bakery(exclude=("/*",))
    assert (bakery.get().status, bakery.get("/changes.atom").status) == (404, 404)


def test_the_feed_has_the_latest_hundred() -> None:
    bakery = Bakery()
    bakery.items = {"rye": None}
    bakery.pass_(DAY)
    bakery.items |= {f"n{number}": None for number in range(150)}
    bakery.pass_(DAY)
    assert len(bakery.told()) == 100


def test_a_feed_of_the_app_is_left_to_the_app() -> None:
    bakery = Bakery()
    bakery.flask.add_url_rule("/changes.atom", "own", lambda: "own")
    assert bakery.get("/changes.atom").text == "own"
    assert Bakery(robots="disallow").get("/changes.atom").status == 404


# What is gone


def gone(bakery: Bakery) -> list[str]:
    answer = bakery.get("/sitemap-gone.xml")
    return sorted(loc.removeprefix(BASE) for loc in locs(answer.body)) if answer.status == 200 else []


def test_pages_that_were_listed_and_are_gone_have_a_document_for_thirty_days() -> None:
    bakery = Bakery(gone=True)
    bakery.items = {"rye": None, "oat": None, "spelt": None, "bun": None, "private": None}
    bakery.visit("/", *(f"/items/{slug}" for slug in bakery.items), "/notes/a", "/notes/b", "/notes/never", "/notes/c")
    bakery.pass_(2 * DAY)
    assert gone(bakery) == []
    bakery.statuses = {"/items/rye": 404, "/items/oat": 410, "/items/spelt": 0, "/items/private": 403, "/notes/a": 404}
    del bakery.items["bun"]
    bakery.visit(*bakery.statuses)
    bakery.clock.pass_(61)
    bakery.visit(*bakery.statuses, "/notes/unknown")
    bakery.pass_(3 * DAY)
    expected = ["/items/oat", "/items/rye", "/items/spelt", "/notes/a"]
    assert gone(bakery) == expected
    index = entries(bakery.get().body)
    assert index[f"{BASE}/sitemap-gone.xml"] == {"lastmod": index[f"{BASE}/sitemap-gone.xml"]["lastmod"]}
    bakery.statuses = {"/items/spelt": 0, "/items/bun": 404}
    bakery.visit("/items/rye", "/items/bun", "/notes/a")  # the first is there again
    bakery.pass_(3600)
    assert gone(bakery) == ["/items/bun", "/items/oat", "/items/spelt"]
    assert bakery.app.stats()["listed"] == 7
    bakery.pass_(40 * DAY)
    assert gone(bakery) == []
    assert len(locs(bakery.get().body)) == 7  # one document again


def test_a_page_that_leaves_the_values_is_asked_whether_it_is_gone() -> None:
    bakery = Bakery(gone=True, verify=True)
    bakery.items = {"rye": None, "oat": None, "spelt": None}
    bakery.visit("/", "/items/spelt")
    bakery.pass_(2 * DAY)
    bakery.items = {"rye": None}
    bakery.statuses = {"/items/oat": 404}
    bakery.pass_(3600)
    until(lambda: (bakery.pass_(300), gone(bakery) == ["/items/oat"])[1])
    bakery.items = {"rye": None, "bun": None}  # a new one, which no visitor sees
    bakery.pass_(3600)
    bakery.items = {"rye": None}
    bakery.statuses["/items/bun"] = 404
    until(lambda: (bakery.pass_(300), gone(bakery) == ["/items/bun", "/items/oat"])[1])


def test_what_is_excluded_by_now_is_not_among_what_is_gone() -> None:
    options: dict[str, Any] = {"store": MemoryStore(), "clock": Clock(NOW), "gone": True}
    bakery = Bakery(**options)
    bakery.items = {"rye": None, "oat": None}
    bakery.visit("/", "/items/rye", "/notes/a")
    bakery.pass_(2 * DAY)
    bakery.statuses = {"/items/rye": 404, "/notes/a": 404}
    bakery.visit(*bakery.statuses)
    bakery.pass_(2 * DAY)
    assert gone(bakery) == ["/items/rye", "/notes/a"]
    later = Bakery(**options, exclude=("/items/rye", "/notes/*"))
    later.items = bakery.items
    later.visit("/")
    assert gone(later) == []


def test_without_the_option_the_path_is_the_apps() -> None:
    bakery = Bakery()
    bakery.flask.add_url_rule("/<path:page>", "cms", lambda page: f"of the CMS: {page}")
    assert bakery.get("/sitemap-gone.xml").text == "of the CMS: sitemap-gone.xml"
