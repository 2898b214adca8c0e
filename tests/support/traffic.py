"""Random traffic of one site for many workers, generated from a seed so that each process can generate it itself."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from random import Random
from typing import Any

import flask

from sitemap_middleware import SitemapMiddleware, StoreError
from sitemap_middleware.evidence.observation_merge import REFRESH_SECONDS
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import MergeResult, PageLimits
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLIMITED, Store
from sitemap_middleware.stores.postgres import store as _postgres  # noqa: F401 (preloaded for forked processes)
from sitemap_middleware.stores.redis import store as _redis  # noqa: F401
from sitemap_middleware.value_history import VOLATILE

from .sample_sites import Clock
from .wire import RequestSpec, wsgi
from .worker_pool import Batch, Report

WORKERS = 8
BATCHES = 4
BEGAN = 1_750_000_000 // REFRESH_SECONDS * REFRESH_SECONDS
HOURS = 12
"""How long the traffic lasts: less than a day, after which removed pages expire."""

ROUTES = ["/", "/a", "/b/"]
KNOWN = [*ROUTES, *(f"/posts/{number}" for number in range(4))]
"""Pages that answered well before all other traffic."""
NEW = [f"/posts/new-{number}" for number in range(8)]
POSTS = "/posts/<slug>"


def site_of(seed: int) -> str:
    return f"https://site-{seed}.example"


def limits_of(kind: str, seed: int) -> PageLimits:
    """Return limits: for every second seed small ones, unless the result must not depend on the order."""
    return PageLimits(site=9, route=6) if kind == "any" and seed % 2 else UNLIMITED


# Observations


def any_observation(random: Random) -> Observation:
    """Return any possible observation at any second of some hours, with more contents than a history keeps."""
    learned = random.random() < 0.6
    path = random.choice([*KNOWN, *NEW, "/posts/new-1/", "/posts/2/"] if learned else KNOWN)
    return Observation(
        path=path,
        route=path if path in ROUTES else random.choice([POSTS, POSTS, "/posts/<id>"]),
        at=BEGAN + random.randrange(HOURS * REFRESH_SECONDS),
        status=random.choice([200, 200, 200, 200, 200, 301, 403, 404, 410, 400]),
        media_type=random.choice(["text/html", "text/html", "text/html", "application/json", ""]),
        noindex=random.random() < 0.1,
        private=random.random() < 0.1,
        obstacle=random.choice(["", "", "", "asks to be downloaded"]),
        expires_at=random.choice([None, None, None, BEGAN, 10**10]),
        canonical=random.choice([None, None, None, f"{path}é"]),
        last_modified=random.choice([None, *range(10**9, 10**9 + 12)]),
        html=random.choice([None, any_html_facts(random)]),
        learned=learned,
        may_be_provided=random.random() < 0.1,
        is_probe=random.random() < 0.1,
        denies_access=random.random() < 0.1,
    )


def any_html_facts(random: Random) -> HtmlFacts:
    """Return any facts that HTML can state."""
    if random.random() < 0.1:
        return HtmlFacts(None, unread_reason=random.choice(["is compressed", "is cut"]), has_head=False)
    return HtmlFacts(
        random.choice([None, VOLATILE, *range(12)]),
        random.random() < 0.1,
        instant_refresh=random.choice([None, None, None, "/elsewhere"]),
        expires_at=random.choice([None, None, None, BEGAN, 10**10]),
        unread_reason=random.choice(["", "", "", "is large"]),
    )


def order_independent(random: Random) -> Observation:
    """Return an observation whose merge gives the same page, bit by bit, in any order.

    Times are whole hours, because a page seen again within one is not written. There are
    no more values than a history keeps. New pages answer well, because other answers
    start no page. All are responses to probes, because answers that may depend on the
    visitor are not written each time.
    """
    path = random.choice([*KNOWN, *NEW])
    new = path in NEW
    at = BEGAN + random.randrange(1, HOURS) * REFRESH_SECONDS
    status = 200 if new else random.choice([200, 200, 200, 200, 301, 404, 410, 400])
    return Observation(
        path=path,
        route=path if path in ROUTES else POSTS,
        at=at,
        status=status,
        media_type=random.choice(["text/html", "text/html", "text/html", "application/json"]),
        noindex=not new and random.random() < 0.1,
        private=not new and random.random() < 0.1,
        canonical=None if new else random.choice([None, None, None, "https://example.com/é"]),
        last_modified=None if status == 400 else random.choice([None, *range(10**9, 10**9 + 8)]),
        html=random.choice([None, HtmlFacts(random.choice([VOLATILE, *range(7)]), not new and random.random() < 0.1)]),
        learned=path not in ROUTES,
        is_probe=True,
    )


KINDS = {"any": any_observation, "order-independent": order_independent}


def good_observation(path: str) -> Observation:
    route = path if path in ROUTES else POSTS
    return Observation(path, route, BEGAN, 200, "text/html", learned=path not in ROUTES)


def marker_observation(batch: Batch) -> Observation:
    """Return the marker page of a batch. It is stored if the batch is; its slot shows the order of the batches."""
    path = marker_path(batch)
    return Observation(path, path, BEGAN, 200, "text/html")


def marker_path(batch: Batch) -> str:
    return "/marks/{}/{}/{}".format(*batch)


FIRST: Batch = (-1, 0, 0)
"""The batch before all others."""


def observations(kind: str, seed: int) -> dict[tuple[int, int], list[Observation]]:
    """Return the content of each worker's batches: roughly in the order of time, some of it in several batches."""
    random = Random(f"{kind} {seed}")
    disorder = random.choice([0, REFRESH_SECONDS, HOURS * REFRESH_SECONDS])
    seen = [KINDS[kind](random) for _ in range(WORKERS * BATCHES * 6)]
    seen.sort(key=lambda observation: observation.at + random.uniform(0, disorder))
    batches: dict[tuple[int, int], list[Observation]] = {
        (worker, batch): [] for worker in range(WORKERS) for batch in range(BATCHES)
    }
    for number, observation in enumerate(seen):
        batch = number * BATCHES // len(seen)
        for _ in range(random.choice([1, 1, 1, 2])):
            batches[random.randrange(WORKERS), batch].append(observation)
            batch = random.randrange(BATCHES)
    return batches


def merge_batches(report: Report, url: str, kind: str, seed: int, worker: int, first: int, times: int) -> None:
    """Merge a worker's batches from `first` on. `times` says how often that one was tried before."""
    batches, site, limits = observations(kind, seed), site_of(seed), limits_of(kind, seed)
    with closing(open_store(url, "store")) as store:
        store.version(site)  # connect now: a kill shall hit a merge, not the connection
        for number in range(first, BATCHES):
            batch = (worker, number, times)
            _merge_and_report(
                store, report, batch, site, [*batches[batch[:2]], marker_observation(batch)], limits, None
            )
            times = 0


def _merge_and_report(
    store: Store, report: Report, batch: Batch, site: str, seen: list[Observation], limits: PageLimits, more: object
) -> MergeResult:
    """Merge, repeat after a store error, and report each step."""
    report(("started", batch, more))
    for _ in range(9):
        try:
            merged = store.merge(site, seen, limits)
        except StoreError:
            report(("failed", batch))
        else:
            report(("done", batch))
            return merged
    raise TimeoutError


def write_endlessly(report: Report, url: str, site: str) -> None:
    """Merge batches until the process is killed."""
    store = open_store(url, "store")
    for number in count():
        _merge_and_report(store, report, (0, number, 0), site, batch_content(number), UNLIMITED, None)


def batch_content(number: int) -> list[Observation]:
    """Return a batch of new pages and later observations of those of the batch before."""
    at = BEGAN + number * REFRESH_SECONDS
    new = [good_observation(f"/posts/{number}/{page}") for page in range(30)]
    known = [good_observation(f"/posts/{number - 1}/{page}")._replace(at=at) for page in range(30)] if number else []
    return [*new, *known, good_observation("/")._replace(at=at), marker_observation((0, number, 0))]


# Visits


def app_of(seed: int, clock: Clock) -> flask.Flask:
    """Return a site whose pages answer well at first, then differently each hour, one of them also per worker."""

    def page(**_: Any) -> flask.Response:
        path, hour = flask.request.path, int(clock() - BEGAN) // REFRESH_SECONDS
        random = Random(f"{seed} {path} {hour} {flask.request.headers['X-Worker'] if path == '/b/' else ''}")
        sound = hour == 0 or path in NEW or path.startswith("/marks/")
        response = flask.Response(f"<!doctype html><title>A page</title><p>{path}<p>{random.randrange(6)}")
        if not sound:
            response.status_code = random.choice([200, 200, 200, 200, 410, 404, 410])
        if random.random() < 0.5:
            response.last_modified = BEGAN - 10**6 - random.randrange(6)  # type: ignore[assignment]
        if not sound and random.random() < 0.1:
            response.headers[random.choice(["X-Robots-Tag", "Cache-Control"])] = "noindex, private"
        return response

    app = flask.Flask("traffic", static_folder=None)
    for number, path in enumerate([*ROUTES, POSTS, MARKS]):
        app.add_url_rule(path, f"page{number}", page)
    return app


MARKS = "/marks/<worker>/<number>/<times>"


def wrapped(seed: int, store: object, clock: Clock) -> SitemapMiddleware:
    """Return the wrapped site. Its buffer is merged only by `flush()`."""
    site = SitemapMiddleware(
        app_of(seed, clock), store=store, base_url=site_of(seed), learn=[POSTS, MARKS], clock=clock
    )
    site.service.tracker.buffer.interval = 3600
    return site


class ReportingStore:
    """A store that reports the content of each merge and that it is done."""

    def __init__(self, store: Store, report: Report) -> None:
        self._store = store
        self._report = report
        self.batch: Batch = FIRST

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def merge(self, site: str, seen: list[Observation], limits: PageLimits = UNLIMITED) -> MergeResult:
        assert any(observation.path == marker_path(self.batch) for observation in seen)
        return _merge_and_report(self._store, self._report, self.batch, site, seen, limits, list(seen))


def visit_in_batches(report: Report, url: str, seed: int, worker: int, first: int, times: int) -> None:
    """Visit pages in batches of one hour each, in random order, and flush after each batch."""
    clock, store = Clock(BEGAN), ReportingStore(open_store(url, "store"), report)
    store.version(site_of(seed))
    with closing(wrapped(seed, store, clock)) as site:
        for number in range(first, BATCHES):
            store.batch = (worker, number, times)
            random = Random(f"visits {seed} {worker} {number}")
            clock.now = float(BEGAN + REFRESH_SECONDS * random.randrange(1, HOURS))
            visit(site, [marker_path(store.batch), *random.choices([*KNOWN, *NEW], k=8)], worker)
            clock.now = float(BEGAN + REFRESH_SECONDS * HOURS)  # the batch is merged late, by a correct clock
            site.flush()
            times = 0


def visit(site: Any, paths: list[str], worker: int) -> None:
    for path in paths:
        wsgi(site, RequestSpec(path, headers=[("X-Worker", str(worker))], scheme="https"), validate=False)


def first_batch(seed: int, store: Store) -> list[Observation]:
    """Visit all known pages before all other traffic; return the observations."""
    messages: list[Any] = []
    site = wrapped(seed, ReportingStore(store, messages.append), Clock(BEGAN))
    visit(site, [marker_path(FIRST), *KNOWN], FIRST[0])
    site.flush()
    return messages[0][2]
