"""IndexNow, with an engine and a site that are real servers: each change is told, and nothing twice, too soon or wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import OptionError
from sitemap_middleware.cli.main import commands_for
from sitemap_middleware.indexnow.queue import RECORD_NAME, Notice, Queue
from sitemap_middleware.models import BaseURL
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.bakery import DAY, Bakery
from ...support.command_line import cli_runner
from ...support.indexnow import Engine, Told, nothing, running, site_server, told
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.stores import FrailStore
from ...support.waiting import until

RULES = pytest.mark.parametrize("text", ["true", "0123abcd-KEY"])


def test_each_change_is_told_once() -> None:
    with told() as site:
        site.items["spelt"] = None
        site.items["rye"] = int(site.clock())
        site.visit("/notes/new")
        site.step(times=5)
        site.statuses["/items/oat"] = 404
        site.visit("/items/oat")
        site.step(times=3)
        assert site.engine.paths() == {"/items/spelt": 1, "/items/rye": 1, "/notes/new": 1, "/items/oat": 1}
        site.step(DAY, times=40)
        assert sum(site.engine.paths().values()) == 4
        stats = site.app.stats()
        assert (stats["indexnow_sent"], stats["indexnow_pending"], site.state) == (4, 0, 3)
        site.engine.check()


def test_edits_in_a_row_are_told_together() -> None:
    with told() as site:
        for _ in range(4):
            site.items["rye"] = int(site.clock())
            site.step()
        site.step(times=4)
        assert site.engine.paths() == {"/items/rye": 1}


def test_changed_tells_soon_but_not_twice_in_ten_minutes() -> None:
    with told(verify=True) as site:
        for _ in range(100):  # as an import does
            site.app.changed("/items/rye")
        site.step(60)
        site.app.changed("/items/rye")
        site.step(60, times=5)
        assert site.engine.paths() == {"/items/rye": 1}
        site.step(60, times=6)
        assert site.engine.paths() == {"/items/rye": 2}
        site.step(60, times=60)
        assert site.engine.paths() == {"/items/rye": 2}
        site.engine.check()
        with pytest.raises(OptionError, match="give the path of a page"):
            site.app.changed("items/rye")


def test_a_proxy_may_refuse_head() -> None:
    with told(verify=True) as site:

        def proxy(environ: Any, start_response: Any) -> Any:
            if environ["REQUEST_METHOD"] != "HEAD":
                return site.app(environ, start_response)
            start_response("405 Method Not Allowed", [])
            return []

        site.server.set_app(proxy)
        site.items["new"] = None
        site.app.changed("/items/new")
        site.step(60, times=2)
        assert site.engine.paths() == {"/items/new": 1}


@pytest.mark.parametrize("item", ["rye", "new"])
def test_an_edit_that_is_named_is_told_once(item: str) -> None:
    with told(verify=True) as site:
        for _ in range(2):  # it is told again when it is edited again
            site.items[item] = int(site.clock())
            site.app.changed(f"/items/{item}")
            site.step(60)
            site.step(300, times=20)
        assert site.engine.paths() == {f"/items/{item}": 2}


def test_changed_tells_of_no_page_that_may_not_be_listed() -> None:
    with told(exclude=("/items/secret",)) as site:
        site.statuses["/notes/private"] = 403
        for path in ("/items/secret", "/nowhere/at/all", "/sitemap.xml", "/items/\udcff", "/items/rye?token=1"):
            site.app.changed(path)
        site.step(times=3)
        assert site.engine.requests == []


@pytest.mark.parametrize("status", [200, 401, 403, 404, 302, 500, 0])
@pytest.mark.parametrize("note", ["old", "draft"])
def test_changed_tells_of_a_page_only_by_what_it_answers_since(note: str, status: int) -> None:
    with told(verify=True) as site:
        site.statuses[f"/notes/{note}"] = status
        requested = list[str]()
        site.flask.before_request_funcs[None].append(lambda: requested.append(flask.request.path))
        site.app.changed(f"/notes/{note}")
        until(lambda: (site.step(), f"/notes/{note}" in requested)[1])
        site.step(times=3)
        is_gone = note == "old" and status in (404, 0)
        assert site.engine.paths() == ({f"/notes/{note}": 1} if status == 200 or is_gone else {})
        if status == 500:  # it is requested again now and then
            site.statuses.clear()
            site.step(times=30)
            assert site.engine.paths() == {f"/notes/{note}": 1}


def test_where_the_app_is_not_asked_changed_waits_for_a_visitor_and_at_last_for_nothing() -> None:
    with told() as site:
        for _ in range(2):
            site.app.changed("/notes/old")
            site.step(3600, times=5)
            assert site.engine.requests == []
            site.step(DAY)
        site.app.changed("/notes/old")
        site.step(60)
        site.visit("/notes/old")
        site.step(times=2)
        assert site.engine.paths() == {"/notes/old": 1}


@pytest.mark.parametrize("path", ["/notes/old", "/items/rye"])
def test_changed_tells_of_a_page_only_by_a_later_robots_txt(path: str) -> None:
    with told(verify=True, max_age=3600) as site:
        robots = "User-agent: *\nDisallow: /items/\nDisallow: /notes/", 200, {"Content-Type": "text/plain"}
        site.flask.before_request_funcs[None].append(lambda: robots if flask.request.path == "/robots.txt" else None)
        site.clock.pass_(1)
        site.app.changed(path)
        site.step(60, times=30)
        assert site.engine.requests == []


@pytest.mark.parametrize("ignores_queries", [True, False])
def test_a_cache_in_front_keeps_no_change_back_and_tells_nothing_wrong(*, ignores_queries: bool) -> None:
    with told(verify=True) as site:
        cached = dict[str, tuple[Any, ...]]()

        def cache(environ: dict[str, Any], start: Any) -> Any:
            path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
            key = path if ignores_queries else f"{path}?{query}"
            if path != "/sitemap.xml":
                return site.app(environ, start)
            if key not in cached:
                body = b"".join(site.app(environ, lambda *head, **_: cached.update({key: head})))
                cached[key] = (*cached[key][:2], body)
            start(*cached[key][:2])
            return [cached[key][2]]

        site.server.set_app(cache)
        site.step(times=2)
        site.statuses["/notes/old"] = 403
        site.app.changed("/notes/old")
        site.app.changed("/items/rye")
        site.items["spelt"] = None
        site.step(times=3)
        assert site.engine.paths() == ({} if ignores_queries else {"/items/spelt": 1, "/items/rye": 1})


@pytest.mark.parametrize("way", ["excluded", "robots", "login"])
def test_what_waits_is_not_told_if_it_may_not_be_listed_any_more(way: str) -> None:
    store = MemoryStore()
    with told(store=store) as site:
        site.engine.script = [(429, "", {})]
        site.items["spelt"] = None
        site.app.changed("/items/rye")
        site.clock.pass_(60)
        site.visit("/items/rye")
        site.step()
        assert site.app.stats()["indexnow_pending"] == 2
        later = site.worker(store=store, exclude=("/items/*",) if way == "excluded" else ())
        later.items = site.items
        if way == "robots":
            text = "User-agent: *\nDisallow: /items/"
            later.flask.add_url_rule("/robots.txt", "robots", lambda: flask.Response(text, mimetype="text/plain"))
        if way == "login":
            later.statuses = {"/items/rye": 401, "/items/spelt": 401}
            later.visit("/items/rye", "/items/spelt")
        site.server.set_app(later.app)
        later.step(DAY / 4, times=8)
        assert site.engine.received == {}


def test_what_one_process_names_is_told_by_another_one() -> None:
    store = MemoryStore()
    with told(store=store, verify=True) as site:
        store.lease(BaseURL(site.base), "indexnow", "a worker that sends", 60)
        site.worker(store=store).app.changed("/items/rye")  # it may be killed from here on
        site.app.flush()
        assert site.engine.paths() == {}
        store.lease(BaseURL(site.base), "indexnow", "a worker that sends", 0)
        site.step()
        assert site.engine.paths() == {"/items/rye": 1}


# The key


@RULES
def test_nothing_is_told_before_the_key_is_public(text: str, caplog: pytest.LogCaptureFixture) -> None:
    indexnow = True if text == "true" else text
    with told(indexnow=indexnow) as site:
        pass
    clock = Clock()
    with ExitStack() as stack:
        engine, other = Engine(clock), site_server(nothing)
        base, endpoint = stack.enter_context(running(other)), stack.enter_context(running(engine.server))
        site = Told(base_url=base, indexnow=indexnow, indexnow_endpoint=endpoint, feed=None, clock=clock)
        site.items = {"rye": None}
        site.pass_(8 * DAY)
        site.items["oat"] = None
        site.pass_(DAY)
        assert engine.requests == []
        assert site.state == 1
        assert f"IndexNow waits: {base}/" in caplog.text
        assert "does not return the key, but status 404; have this URL reach the app" in caplog.text
        other.set_app(site.app)
        site.step(6 * 3600, times=4)
        assert engine.paths() == {"/items/oat": 1}
        engine.check()


def test_a_key_that_only_some_servers_have_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with told() as site:
        site.app.service.indexnow.store.save(BaseURL(site.base), {"indexnow": None})  # it begins anew
        answers = [site.app] * 2 + [nothing]  # a deployment rolls on
        site.server.set_app(lambda environ, start: answers.append(answers.pop(0)) or answers[-1](environ, start))
        site.step(times=20)
        site.items["spelt"] = None
        site.step(times=20)
        assert (site.engine.requests, site.state) == ([], 1)
        site.server.set_app(site.app)
        site.step(6 * 3600, times=4)
        assert site.engine.paths() == {"/items/spelt": 1}


def test_another_key_than_the_one_that_is_served_is_not_used() -> None:
    store = MemoryStore()
    with told(indexnow="0123abcd-KEY", store=store) as site:
        later = site.worker(store=store)  # with a key that it makes itself
        site.server.set_app(later.app)
        later.items = {"rye": None, "oat": None, "spelt": None}
        later.step(times=5)
        assert not site.engine.requests  # a server may set a root path, which only a request shows
        later.visit("/")
        later.step(times=5)
        assert site.engine.paths() == {"/items/spelt": 1}
        site.engine.check()


def test_a_403_of_a_proxy_does_not_burn_the_key() -> None:
    with told(indexnow="0123abcd-KEY") as site:
        site.engine.script = [(403, "<html>blocked by policy", {})]
        site.items["spelt"] = None
        site.step(3600, times=3)
        assert site.engine.paths() == {"/items/spelt": 1}


def test_what_may_be_a_key_file_costs_nothing_and_is_the_apps_if_the_store_fails() -> None:
    store = FrailStore()
    site = Bakery(indexnow=True, store=store)
    site.flask.add_url_rule("/<paste>.txt", "pastes", lambda paste: f"the app's {paste}")
    store.down = True
    assert site.get(f"/{'0' * 32}.txt").text == f"the app's {'0' * 32}"
    store.down, store.hangs = False, "any"  # nothing asks it again at once
    for number in range(100):
        assert site.get(f"/{number:032}.txt").text == f"the app's {number:032}"
    store.answers.set()


def test_a_worker_that_lost_its_turn_saves_nothing() -> None:
    store = MemoryStore()
    with told(store=store) as site:
        base, take = BaseURL(site.base), site.engine.take

        def answer(message: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
            site.app.service.indexnow.store.take(base, "indexnow", 0)
            assert store.lease(base, "indexnow", "another worker", 60)
            store.save(base, {"indexnow": b"what it saved"})
            return take(message)

        site.engine.take = answer  # type: ignore[method-assign]
        site.items["spelt"] = None
        site.step()
        assert store.load(base, ["indexnow"]) == {"indexnow": b"what it saved"}


def test_the_key_file_is_served_where_the_app_answers_404() -> None:
    with told(indexnow="0123abcd-KEY") as site:
        answer = site.get("/0123abcd-KEY.txt")
        assert (answer.status, answer.body) == (200, b"0123abcd-KEY")
        assert answer.header("x-robots-tag") == "noindex"
        assert site.get("/0123abcd-key.txt").status == 404
        assert site.get("/sub/0123abcd-KEY.txt").status == 404
    with told() as site:
        assert site.get(f"/{'0' * 32}.txt").status == 404
        assert site.get("/security.txt").status == 404


def test_the_key_file_is_served_on_asgi() -> None:
    site = SampleSite("asgi", {"/": Page()}, base_url="https://example.com", indexnow="0123abcd-KEY")
    assert site.request("/0123abcd-KEY.txt").text == "0123abcd-KEY"
    assert site.request("/0123abcd-KEX.txt").status == 404


@pytest.mark.parametrize(
    "record", [b"{", b"[]", b'["k", 0, "good", 0, 0, 0, {"u": ["x"]}]', b'["k", 0, "bad", 0, 0, 0, {}]']
)
def test_a_damaged_record_begins_anew(record: bytes) -> None:
    store = MemoryStore()
    with told(store=store) as site:
        store.save(site.app.service.site_resolver.default_site().base_url, {"indexnow": record})
        site.step()
        site.items["spelt"] = None
        site.step(times=2)
        assert site.engine.paths() == {"/items/spelt": 1}


def test_a_route_of_the_app_for_the_key_file_wins() -> None:
    site = Bakery(indexnow="0123abcd-KEY")
    site.flask.add_url_rule("/0123abcd-KEY.txt", "key", lambda: "0123abcd-KEY by the app")
    assert site.get("/0123abcd-KEY.txt").text == "0123abcd-KEY by the app"


@pytest.mark.parametrize("base", ["http://bakery.invalid", "http://127.0.0.1:9"])
def test_the_command_status_tells_the_state(base: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite3"
    site = Bakery(
        base_url=base,
        indexnow=True,
        indexnow_endpoint="http://127.0.0.1:9",
        store=f"sqlite:///{file}",
    )
    assert site.app.stats()["indexnow_state"] == 1
    site.visit("/")
    printed = cli_runner().invoke(commands_for(site.app), ["status"]).stdout
    assert f"site {base}\n" in printed
    assert "  IndexNow: unverified; URLs that wait: 0" in printed
    status = json.loads(cli_runner().invoke(commands_for(site.app), ["status", "--json"]).stdout)
    assert status["sites"][0]["indexnow"] == {"state": "unverified", "pending": 0}
    queue = Queue("key", (0, "~"), "good", notices={f"{base}/": Notice(1)})
    site.app.service.store.save(BaseURL(base), {RECORD_NAME: queue.encoded()})
    printed = cli_runner().invoke(commands_for(site.app), ["status"]).stdout
    assert "  IndexNow: good; URLs that wait: 1 (each is sent every ten minutes at most)" in printed


# What the engine answers


@pytest.mark.parametrize("status", [202, 403, 429, 500, 503, 302, 0])
def test_what_is_not_received_is_told_again(status: int, caplog: pytest.LogCaptureFixture) -> None:
    text = '{"code": "SiteVerificationNotCompleted"}' if status == 403 else ""
    with told() as site:
        site.engine.script = [(status, text, {})] * 3
        site.items["spelt"] = None
        site.step(60, times=15)
        assert site.engine.paths() == {}
        assert 1 <= len(site.engine.requests) <= 2
        assert site.state == {202: 2, 403: 2, 429: 4}.get(status, 2)
        assert site.app.stats()["indexnow_pending"] == 1
        site.step(3600, times=8)
        assert site.engine.paths() == {"/items/spelt": 1}
        assert site.state == 3
        site.engine.check()


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_obeyed(form: str, caplog: pytest.LogCaptureFixture) -> None:
    with told() as site:
        from email.utils import formatdate

        after = "7200" if form == "seconds" else formatdate(site.clock() + 300 + 7200, usegmt=True)
        site.engine.script = [(429, "Too many", {"Retry-After": after})]
        site.items["spelt"] = None
        site.step()
        assert "IndexNow takes no more notices for now, and gets them later: status 429, 'Too many'" in caplog.text
        site.step(600, times=11)
        assert site.engine.requests == [1]
        site.step(600, times=2)
        assert site.engine.paths() == {"/items/spelt": 1}


@pytest.mark.parametrize("bad", [1, 2])
def test_urls_that_are_refused_do_not_hold_up_others(bad: int, caplog: pytest.LogCaptureFixture) -> None:
    with told() as site:
        names = [f"n{number:02}" for number in range(40)]
        site.items |= dict.fromkeys(names)
        site.engine.bad = {f"{site.base}/items/{name}" for name in names[5 : 5 + bad]}
        site.step(times=30)
        assert site.engine.paths() == {
            f"/items/{name}": 1 for name in names if f"{site.base}/items/{name}" not in site.engine.bad
        }
        assert "IndexNow does not take http" in caplog.text
        assert site.app.stats()["indexnow_pending"] == 0
        assert max(len(times) for times in site.engine.tried.values()) <= 7
        site.engine.check()


def test_an_engine_that_refuses_everything_gets_few_requests_and_new_notices_first() -> None:
    with told() as site:
        site.items |= dict.fromkeys(f"n{number:03}" for number in range(400))
        site.engine.bad = {f"{site.base}/items/{name}" for name in site.items}
        most = 0
        for _ in range(20):
            site.step()
            most = max(most, len(site.engine.requests))
            site.engine.requests.clear()
        assert 20 <= most <= 2 * 20  # a step has two looks
        site.items["spelt"] = None
        site.step(times=3)
        assert site.engine.paths() == {"/items/spelt": 1}
        assert site.app.stats()["indexnow_pending"] > 0


def test_a_burnt_key_stops_until_another_is_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with told(indexnow="0123abcd-KEY", store=f"sqlite:///{tmp_path}/kept.sqlite3") as site:
        site.engine.script = [(403, '{"code": "UserForbiddedToAccessSite"}', {})]
        site.items["spelt"] = None
        site.step(3600, times=48)
        assert site.engine.requests == [1]
        assert site.state == 5
        assert (
            'IndexNow refuses the key for ever, so nothing is sent: give a new one, such as indexnow="' in caplog.text
        )
        again = site.worker(indexnow="another-key", store=f"sqlite:///{tmp_path}/kept.sqlite3")
        site.server.set_app(again.app)
        again.items = site.items
        again.visit("/")
        again.step(times=5)
        assert site.engine.paths() == {"/items/spelt": 1}


# When it is off


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"base_url": None}, "it needs base_url"),
        ({"base_url": "http://localhost"}, "the site is on this machine; indexnow_endpoint names an engine"),
        (
            {"base_url": "https://example.com"},
            "the app is in debug mode or under test; indexnow_endpoint names an engine",
        ),
    ],
)
def test_it_is_off_where_it_would_be_wrong(
    options: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = Bakery(**{"indexnow": True, **options})
    site.app.changed("/items/rye")
    site.app.flush()
    assert f"IndexNow is off: {reason}" in caplog.text
    assert site.app.stats()["indexnow_state"] == 0


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            "robots = 'User-agent: *\\nDisallow: /'",
            "robots.txt, or the option robots, keeps crawlers from the home page",
        ),
        ("store = 'memory://'", "the store is memory, so each worker would have a key of its own: name a store"),
    ],
)
def test_it_is_off_in_a_process_that_does_not_serve_the_public(lines: str, reason: str) -> None:
    script = f"""if True:
        import logging, flask
        from sitemap_middleware import SitemapMiddleware
        logging.basicConfig()
        app, robots, store = flask.Flask("bakery"), "", "sqlite:///kept.sqlite3"
        app.add_url_rule("/", "home", lambda: "<!doctype html><main>Home")
        app.add_url_rule("/robots.txt", "robots", lambda: flask.Response(robots, mimetype="text/plain"))
        {lines}
        app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.invalid", store=store, indexnow=True)
        app.test_client().get("/sitemap.xml", base_url="https://bakery.invalid")
        app.wsgi_app.flush()
        print(app.wsgi_app.stats()["indexnow_state"])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"IndexNow is off: {reason}" in done.stderr
    assert done.stdout == "0\n"


def test_an_engine_that_is_down_for_a_week_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    with told() as site:
        site.engine.script = [(503, "", {})] * 60
        for day in range(7):
            site.items[f"day{day}"] = None
            site.step(DAY / 8, times=8)
        assert len(site.engine.requests) < 60
        site.engine.script = []
        site.step(DAY / 4, times=2)
        assert site.engine.paths() == {f"/items/day{day}": 1 for day in range(7)}
        site.engine.check()
