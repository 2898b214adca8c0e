"""A provider's stored pages are complete, of one generation, shared by all workers, and survive failures."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.exceptions import StoreError, ValuesError
from sitemap_middleware.fork_safety import WorkerId
from sitemap_middleware.listing.path_set import PathSet
from sitemap_middleware.models import SitemapUrl, UrlColumns
from sitemap_middleware.rendering import chunking, provider_section, provider_section_scheduler
from sitemap_middleware.rendering.chunked_document import RenderKey
from sitemap_middleware.rendering.provider_section import AlreadyRunning, ProcessEnding, ProviderSection
from sitemap_middleware.rendering.site_documents import assemble
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_URLS_PER_DOCUMENT
from sitemap_middleware.stores.base import Store
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.documents import entries, locs
from ...support.sample_sites import Clock
from ...support.waiting import join_threads
from ...support.wire import Answer, RequestSpec, wsgi

LOCAL = "http://testserver"


class Site:
    """A Flask app with one provider of numbered pages, as one worker of several that have one store."""

    def __init__(self, store: Any, clock: Clock, numbers: Any, **options: Any) -> None:
        app = flask.Flask("site", static_folder=None)

        def posts() -> Iterator[dict[str, int]]:
            for number in numbers() if callable(numbers) else numbers:
                yield {"number": number}

        @app.route("/posts/<int:number>")
        @sitemap(values=posts)
        def post(number: int) -> str:
            return f"Post {number}."

        self.app = SitemapMiddleware(app, store=store, clock=clock, **options)

    def request(self, path: str = "/sitemap.xml", *headers: tuple[str, str]) -> Answer:
        return wsgi(self.app, RequestSpec(path, headers=list(headers)))

    def first(self) -> Answer:
        """Return the sitemap once it is generated: on a slow machine this outlasts the wait of one request."""
        for _ in range(20):
            answer = self.request()
            if answer.status != 503:
                break
        return answer

    def numbers(self, path: str = "/sitemap.xml") -> list[int]:
        """The pages listed, in the order of the documents."""
        body = self.request(path).body
        found_locs = list(entries(body))
        if b"<sitemapindex" in body:
            return [number for loc in found_locs for number in self.numbers(loc.removeprefix(LOCAL))]
        return [int(loc.rpartition("/")[2]) for loc in found_locs]


@pytest.mark.uncovered
@pytest.mark.parametrize("count", [MAX_URLS_PER_DOCUMENT, 2 * MAX_URLS_PER_DOCUMENT + 1])
def test_every_page_is_in_one_document_or_in_those_of_an_index(count: int) -> None:
    site = Site(MemoryStore(), Clock(), range(count))
    index = locs(site.first().body)
    if count <= MAX_URLS_PER_DOCUMENT:
        assert len(index) == count
    else:
        documents = -(-count // MAX_URLS_PER_DOCUMENT)
        assert index == [f"{LOCAL}/sitemap-post-{number}.xml" for number in range(1, documents + 1)]
        assert site.request(f"/sitemap-post-{documents + 1}.xml").status == 404
    assert site.numbers() == list(range(count))


# Stored pages


ORIGIN = RenderKey(1, b"context.", b"signals.")
SECTION = "values/post"


class Worker:
    """One worker's section of a provider's pages."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.section = ProviderSection(store, LOCAL, "post", WorkerId(), clock)
        self.leaving = False

    def make(self, entries: Iterable[SitemapUrl], origin: RenderKey = ORIGIN, max_age: int = 10) -> None:
        self.section.render((UrlColumns.of([entry]) for entry in entries), origin, max_age, lambda: self.leaving)

    def listed(self) -> list[list[str]] | None:
        """The locs of each stored document; None if nothing is rendered."""
        self.section.refresh()
        if self.section.rendered is None:
            return None
        documents = self.section.documents()
        return [locs(b"".join(assemble([document], self.store, LOCAL).plain())) for document in documents]


def posts(*numbers: int) -> list[SitemapUrl]:
    return [SitemapUrl(f"{LOCAL}/posts/{number}") for number in numbers]


def expected_locs(*numbers: int) -> list[list[str]]:
    return [[entry.loc for entry in posts(*numbers)]]


def failing(*numbers: int) -> Iterator[SitemapUrl]:
    yield from posts(*numbers)
    raise ValuesError("the database is down")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two entries, saved one by one."""
    monkeypatch.setattr(chunking.make_chunks, "__defaults__", (2, 512 * 1024))
    monkeypatch.setattr(provider_section, "_SAVE_BATCH_BYTES", 1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workers(clock: Clock) -> tuple[Worker, Worker]:
    store = MemoryStore()
    return Worker(store, clock), Worker(store, clock)


Two = tuple[Worker, Worker]


@pytest.mark.usefixtures("small")
def test_what_one_worker_makes_the_others_have(workers: Two) -> None:
    first, second = workers
    assert second.listed() is None
    first.make(posts(3, 1, 2, 9, 8))
    assert first.listed() == second.listed() == expected_locs(3, 1, 2, 9, 8)


@pytest.mark.usefixtures("small")
def test_failure_half_way_keeps_the_previous_pages(workers: Two, clock: Clock) -> None:
    first, second = workers
    first.make(posts(1, 2, 3))
    for _ in range(3):
        clock.pass_(10)
        with pytest.raises(ValuesError):
            first.make(failing(4, 5, 6, 7, 8))
        assert first.listed() == second.listed() == expected_locs(1, 2, 3)
    first.leaving = True
    with pytest.raises(ProcessEnding):
        first.make(posts(4, 5))
    assert second.listed() == expected_locs(1, 2, 3)
    second.make(posts(4, 5))
    assert first.listed() == expected_locs(4, 5)


@pytest.mark.usefixtures("small")
def test_a_worker_that_has_not_looked_for_long_leaves_it_too(workers: Two, clock: Clock) -> None:
    first, second = workers
    first.make(posts(1, 2, 3))
    assert second.listed() == expected_locs(1, 2, 3)
    clock.pass_(10)
    first.make(posts(4, 5, 6))
    clock.pass_(10)
    with pytest.raises(ValuesError):
        second.make(failing(7, 8, 9))
    assert first.listed() == second.listed() == expected_locs(4, 5, 6)


def test_what_another_worker_has_just_made_is_not_made_again(workers: Two) -> None:
    first, second = workers
    second.listed()
    first.make(posts(1))
    second.make(failing())
    assert second.section.rendered == first.section.rendered


def test_while_one_worker_makes_it_the_others_do_not(workers: Two, clock: Clock) -> None:
    first, second = workers

    def slow() -> Iterator[SitemapUrl]:
        for number in range(100):
            clock.pass_(9)
            with pytest.raises(AlreadyRunning):
                second.make(failing())
            yield from posts(number)

    first.make(slow())
    assert second.listed() == expected_locs(*range(100))


def test_work_of_a_dead_worker_is_finished_after_its_lease(workers: Two, clock: Clock) -> None:
    first, second = workers

    def death() -> Iterator[SitemapUrl]:
        yield from posts(1)
        raise KeyboardInterrupt

    first.store.lease(LOCAL, SECTION, "one that died", int(clock()), provider_section.LEASE_SECONDS)
    clock.pass_(provider_section.LEASE_SECONDS - 1)
    with pytest.raises(AlreadyRunning):
        second.make(posts(2))
    clock.pass_(1)
    with pytest.raises(KeyboardInterrupt):
        second.make(death())
    first.make(posts(2))
    assert second.listed() == expected_locs(2)


@pytest.mark.usefixtures("small")
def test_stalled_worker_yields_to_the_one_that_took_over(workers: Two, clock: Clock) -> None:
    first, second = workers
    first.make(posts(1, 2, 3))
    clock.pass_(10)

    def overtaken(when: int) -> Iterator[SitemapUrl]:
        for number in range(4, 9):
            if number == when:
                clock.pass_(provider_section.LEASE_SECONDS)
                second.make(posts(20 + when, 21, 22))
            yield from posts(number)

    for when in (4, 6, 8):
        clock.pass_(10)
        with pytest.raises(AlreadyRunning):
            first.make(overtaken(when))
        assert first.listed() == second.listed() == expected_locs(20 + when, 21, 22)


def test_a_worker_that_stood_still_at_the_very_end_leaves_it_too(workers: Two, clock: Clock) -> None:
    first, second = workers

    def overtaken() -> Iterator[SitemapUrl]:
        yield from posts(1)
        clock.pass_(provider_section.LEASE_SECONDS)
        second.make(posts(2))

    with pytest.raises(AlreadyRunning):
        first.make(overtaken())
    assert first.listed() == expected_locs(2)


@pytest.mark.usefixtures("small")
def test_fewer_pages_leave_nothing_of_the_many_there_were(workers: Two, clock: Clock) -> None:
    first, _ = workers
    for numbers in (range(20), range(20), range(3), range(3)):
        clock.pass_(10)
        first.make(posts(*numbers))
    names = [f"{SECTION}/{place}/{number}" for place in (0, 1) for number in range(10)]
    assert sorted(first.store.load(LOCAL, names)) == [
        f"{SECTION}/{place}/{number}" for place in (0, 1) for number in (0, 1)
    ]


def test_a_provider_of_nothing_has_no_documents(workers: Two) -> None:
    first, second = workers
    assert first.section.documents() == []
    first.make([])
    assert second.listed() == []
    assert not second.section.is_due(ORIGIN, 10)


def test_pages_are_kept_for_max_age_and_ten_times_their_duration(workers: Two, clock: Clock) -> None:
    first, second = workers

    def slow() -> Iterator[SitemapUrl]:
        clock.pass_(7)
        yield from posts(1)

    first.make(slow())
    second.listed()
    other = ORIGIN._replace(version=2)
    for passed, due, due_for_another in (
        (0, False, False),
        (69, False, False),
        (1, False, True),
        (29, False, True),
        (1, True, True),
    ):
        clock.pass_(passed)
        assert [worker.section.is_due(ORIGIN, 100) for worker in workers] == [due, due]
        assert [worker.section.is_due(other, 100) for worker in workers] == [due_for_another, due_for_another]
    assert not first.section.is_due(ORIGIN, 101)
    first.make(slow())
    assert [first.section.is_due(ORIGIN, 0), clock.pass_(70), first.section.is_due(ORIGIN, 0)] == [False, None, True]


def test_a_clock_that_was_set_back_makes_them_due(workers: Two, clock: Clock) -> None:
    first, _ = workers
    first.make(posts(1))
    clock.pass_(-1)
    assert first.section.is_due(ORIGIN, 10)


@pytest.mark.parametrize("damage", [None, b"", b"x" * 60])
@pytest.mark.parametrize("name", [SECTION, f"{SECTION}/0"])
def test_lost_or_damaged_records_count_as_never_generated(workers: Two, name: str, damage: bytes | None) -> None:
    first, second = workers
    first.make(posts(1, 2))
    first.store.save(LOCAL, {name: damage})
    assert second.listed() is None
    second.make(posts(1, 2))
    assert first.listed() == second.listed() == expected_locs(1, 2)


def test_flipped_bit_in_a_record_is_never_taken_for_another_fact(workers: Two, clock: Clock) -> None:
    first, second = workers
    first.make(posts(1, 2))
    for name in (SECTION, f"{SECTION}/0"):
        record = first.store.load(LOCAL, [name])[name]
        for at in range(len(record)):
            first.store.save(LOCAL, {name: record[:at] + bytes([record[at] ^ 1]) + record[at + 1 :]})
            assert Worker(first.store, clock).listed() is None
        first.store.save(LOCAL, {name: record})
    assert second.listed() == expected_locs(1, 2)


def test_what_was_lost_of_them_is_taken_for_lost_by_all(workers: Two, clock: Clock) -> None:
    first, second = workers
    first.make(posts(1))
    second.listed()
    clock.pass_(10)
    first.make(posts(2))
    second.section.reload_or_discard()
    assert second.listed() == expected_locs(2), "it only had not looked"
    second.section.reload_or_discard()
    assert first.listed() is None


def test_store_failure_at_lease_release_changes_nothing(workers: Two, clock: Clock) -> None:
    first, second = workers

    class Failing(MemoryStore):
        def lease(self, site: str, name: str, owner: str, now: int, seconds: int) -> bool:
            if not seconds:
                raise StoreError("it is down")
            return second.store.lease(site, name, owner, now, seconds)

        def load(self, site: str, names: Any) -> dict[str, bytes]:
            return second.store.load(site, names)

        def save(self, site: str, values: Any) -> None:
            second.store.save(site, values)

    Worker(Failing(), clock).make(posts(1))
    assert second.listed() == expected_locs(1)
    clock.pass_(10)
    with pytest.raises(AlreadyRunning):
        first.make(posts(2))


# Several providers, and what becomes of one of them


class Pair:
    """A Flask app with two scripted providers."""

    def __init__(self, **options: Any) -> None:
        app = flask.Flask("site", static_folder=None)
        self.given: dict[str, Any] = {"news": posts_of("a"), "posts": posts_of("a")}
        self.asked: list[str] = []
        self.release = threading.Event()
        for name in self.given:
            app.add_url_rule(
                f"/{name}/<slug>", name, sitemap(values=functools.partial(self.asks, name))(lambda slug: slug)
            )
        self.clock = Clock()
        self.app = SitemapMiddleware(
            app, store=options.pop("store", "memory://"), clock=self.clock, max_age=10, **options
        )

    def asks(self, name: str) -> Iterator[Any]:
        self.asked.append(name)
        yield from self.given[name]()

    def request(self) -> Answer:
        return wsgi(self.app, RequestSpec("/sitemap.xml"))

    def listed(self) -> list[str]:
        return [loc.removeprefix(LOCAL) for loc in locs(self.request().body)]


def posts_of(*slugs: str) -> Callable[[], Iterator[Any]]:
    return lambda: iter([{"slug": slug} for slug in slugs])


def down() -> Iterator[Any]:
    raise RuntimeError("the database is down")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for what is being made."""
    monkeypatch.setattr(provider_section_scheduler, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(provider_section_scheduler, "FIRST_WAIT_SECONDS", 0.0)


def settled() -> None:
    """Wait until nothing is made behind requests any more."""
    join_threads("sitemap-background", 30)


def test_failing_provider_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Pair()
    site.given["news"] = down
    assert site.request().status == 503
    site.given |= {"news": posts_of("a"), "posts": down}
    assert site.listed() == ["/news/a", "/posts/a"], "what was made stays"
    site.clock.pass_(10)
    site.given |= {"news": down, "posts": posts_of("b")}
    assert site.listed() == ["/news/a", "/posts/b"]
    assert site.asked == ["news", "posts", "news", "news", "posts"]
    assert len(caplog.records) == 3


@pytest.mark.usefixtures("hasty")
def test_provider_that_fails_after_its_request_left_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    site = Pair()
    release = threading.Event()

    def late() -> Iterator[Any]:
        release.wait(30)
        raise RuntimeError("the database is down")

    site.request()
    settled()
    assert site.listed() == ["/news/a", "/posts/a"]
    site.given["posts"] = late
    site.clock.pass_(10)
    assert site.listed() == ["/news/a", "/posts/a"]
    assert not caplog.records
    release.set()
    settled()
    assert "the database is down" in caplog.text
    site.given["posts"] = posts_of("b")
    site.listed()
    settled()
    assert site.listed() == ["/news/a", "/posts/b"]
    assert caplog.records[-1].getMessage() == "the sitemap's values can be read again"


@pytest.mark.usefixtures("hasty")
def test_lost_pages_are_served_as_before_while_regenerated() -> None:
    store = MemoryStore()
    site = Pair(store=store)
    site.request()
    settled()
    before = site.request()
    began, release = threading.Event(), threading.Event()

    def late() -> Iterator[Any]:
        began.set()
        release.wait(30)
        yield {"slug": "b"}

    site.given["posts"] = late
    site.clock.pass_(10)
    store.save(LOCAL, {"values/posts": None})
    again = site.request()
    assert (again.status, again.body) == (200, before.body)
    assert began.wait(30)
    assert wsgi(Pair(store=store).app, RequestSpec("/sitemap.xml")).status == 503
    release.set()
    settled()
    assert site.listed() == ["/news/a", "/posts/b"]


def test_internal_error_keeps_the_previous_pages(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = Pair()
    before = site.request()
    with monkeypatch.context() as broken:
        broken.setattr(PathSet, "add", lambda *_: 1 / 0)
        site.clock.pass_(10)
        again = site.request()
    assert (again.status, again.body) == (200, before.body)
    assert "ZeroDivisionError" in caplog.text
    assert site.listed() == ["/news/a", "/posts/a"]


def test_provider_is_released_if_the_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def many() -> Iterator[Any]:
        try:
            for number in range(10_000):
                yield {"slug": str(number)}
        finally:
            ended.set()

    store = MemoryStore()
    site = Pair(store=store)
    site.given["news"] = many

    save = store.save

    def full(base: str, values: Any) -> None:
        if any(name.startswith("values/") for name in values):
            raise StoreError("the disk is full")
        save(base, values)

    monkeypatch.setattr(provider_section, "_SAVE_BATCH_BYTES", 1)
    monkeypatch.setattr(store, "save", full)
    assert site.request().status == 503
    assert ended.wait(10)
