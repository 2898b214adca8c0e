"""Random traffic of one site, for a crowd of workers: all of it made of a seed, so that each process makes it for itself."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from random import Random
from typing import Any

import flask

from sitemap_middleware import SitemapMiddleware, StoreError
from sitemap_middleware.evidence.merge import REFRESH_SECONDS
from sitemap_middleware.history import VOLATILE
from sitemap_middleware.models import MergeResult, PageLimits
from sitemap_middleware.observations import HtmlFacts, Observation
from sitemap_middleware.stores import open_store
from sitemap_middleware.stores.base import UNLIMITED, Store
from sitemap_middleware.stores.postgres import store as _postgres  # noqa: F401 (so that no process has to load it)
from sitemap_middleware.stores.redis import store as _redis  # noqa: F401

from .crowd import Batch, Tell
from .twins import Clock
from .wire import Ask, wsgi

WORKERS = 8
BATCHES = 4
BEGAN = 1_750_000_000 // REFRESH_SECONDS * REFRESH_SECONDS
HOURS = 12
"""That traffic goes on for: less than the day after which pages that are gone are forgotten."""

ROUTES = ["/", "/a", "/b/"]
KNOWN = [*ROUTES, *(f"/posts/{number}" for number in range(4))]
"""Pages that were good before anything else was seen."""
NEW = [f"/posts/new-{number}" for number in range(8)]
POSTS = "/posts/<slug>"


def site_of(seed: int) -> str:
    return f"https://site-{seed}.example"


def caps_of(kind: str, seed: int) -> PageLimits:
    """Of every second seed, caps that leave room for some of the pages, unless these depend on the order."""
    return PageLimits(site=9, route=6) if kind == "anything" and seed % 2 else UNLIMITED


# Observations


def anything(random: Random) -> Observation:
    """Whatever may be seen, in any second of some hours; of contents, more than a history keeps."""
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
        expires=random.choice([None, None, None, BEGAN, 10**10]),
        canonical=random.choice([None, None, None, f"{path}é"]),
        modified=random.choice([None, *range(10**9, 10**9 + 12)]),
        html=random.choice([None, a_reading(random)]),
        learned=learned,
        enumerable=random.random() < 0.1,
        probed=random.random() < 0.1,
        forbids=random.random() < 0.1,
        visitor=random.randrange(3),
    )


def a_reading(random: Random) -> HtmlFacts:
    """What HTML may say, in every respect."""
    if random.random() < 0.1:
        return HtmlFacts(None, unread_reason=random.choice(["is compressed", "is cut"]), has_head=False)
    return HtmlFacts(
        random.choice([None, VOLATILE, *range(12)]),
        random.random() < 0.1,
        obstacle=random.choice(["", "", "", "leads elsewhere at once"]),
        expires=random.choice([None, None, None, BEGAN, 10**10]),
        unread_reason=random.choice(["", "", "", "is large"]),
    )


def orderless(random: Random) -> Observation:
    """What comes to the same in whatever order it is folded, to the last bit.

    On whole hours, since a page that is seen on within one is not written down
    again. Of no more values than a history keeps. And new pages are good: by
    anything else none is begun. All of it are answers to our own requests: what may
    depend on a visitor is not written down each time.
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
        modified=None if status == 400 else random.choice([None, *range(10**9, 10**9 + 8)]),
        html=random.choice([None, HtmlFacts(random.choice([VOLATILE, *range(7)]), not new and random.random() < 0.1)]),
        learned=path not in ROUTES,
        probed=True,
    )


KINDS = {"anything": anything, "orderless": orderless}


def good(path: str) -> Observation:
    route = path if path in ROUTES else POSTS
    return Observation(path, route, BEGAN, 200, "text/html", learned=path not in ROUTES)


def marked(batch: Batch) -> Observation:
    """A page of its own for each fold: whether it is kept tells whether the fold is, and its place, after which others."""
    path = mark(batch)
    return Observation(path, path, BEGAN, 200, "text/html")


def mark(batch: Batch) -> str:
    return "/marks/{}/{}/{}".format(*batch)


FIRST: Batch = (-1, 0, 0)
"""The fold before all others."""


def observations(kind: str, seed: int) -> dict[tuple[int, int], list[Observation]]:
    """What each worker folds in each of its batches: more or less in the order of time, and some of it in several."""
    random = Random(f"{kind} {seed}")
    disorder = random.choice([0, REFRESH_SECONDS, HOURS * REFRESH_SECONDS])
    seen = [KINDS[kind](random) for _ in range(WORKERS * BATCHES * 6)]
    seen.sort(key=lambda one: one.at + random.uniform(0, disorder))
    batches: dict[tuple[int, int], list[Observation]] = {
        (worker, batch): [] for worker in range(WORKERS) for batch in range(BATCHES)
    }
    for number, one in enumerate(seen):
        batch = number * BATCHES // len(seen)
        for _ in range(random.choice([1, 1, 1, 2])):
            batches[random.randrange(WORKERS), batch].append(one)
            batch = random.randrange(BATCHES)
    return batches


def folding(tell: Tell, url: str, kind: str, seed: int, worker: int, first: int, times: int) -> None:
    """Fold a worker's batches, from the first given on; that one for the how manieth time."""
    batches, site, caps = observations(kind, seed), site_of(seed), caps_of(kind, seed)
    with closing(open_store(url, "store")) as store:
        store.version(site)  # so that it is in a fold, and not as it connects, that it is killed
        for number in range(first, BATCHES):
            batch = (worker, number, times)
            _told(store, tell, batch, site, [*batches[batch[:2]], marked(batch)], caps, None)
            times = 0


def _told(
    store: Store, tell: Tell, batch: Batch, site: str, seen: list[Observation], caps: PageLimits, more: object
) -> MergeResult:
    """Fold, as often as it takes, and tell of it."""
    tell(("begins", batch, more))
    for _ in range(9):
        try:
            folded = store.merge(site, seen, caps)
        except StoreError:
            tell(("failed", batch))
        else:
            tell(("done", batch))
            return folded
    raise TimeoutError


def writing(tell: Tell, url: str, site: str) -> None:
    """Fold without end."""
    store = open_store(url, "store")
    for number in count():
        _told(store, tell, (0, number, 0), site, written(number), UNLIMITED, None)


def written(number: int) -> list[Observation]:
    """What is folded then: pages that are new, and news of those that the fold before brought."""
    at = BEGAN + number * REFRESH_SECONDS
    new = [good(f"/posts/{number}/{page}") for page in range(30)]
    known = [good(f"/posts/{number - 1}/{page}")._replace(at=at) for page in range(30)] if number else []
    return [*new, *known, good("/")._replace(at=at), marked((0, number, 0))]


# Visits


def app_of(seed: int, clock: Clock) -> flask.Flask:
    """A site whose pages are good at first, and then something else each hour, to some workers something else again."""

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
    """The site, with its sitemap; its recorder folds when it is told to."""
    site = SitemapMiddleware(
        app_of(seed, clock), store=store, base_url=site_of(seed), learn=[POSTS, MARKS], clock=clock
    )
    site.service.tracker.buffer._interval = 3600
    return site


class Telling:
    """A store that tells of each fold: what is to be folded, and that it is."""

    def __init__(self, store: Store, tell: Tell) -> None:
        self._store = store
        self._tell = tell
        self.batch: Batch = FIRST

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def fold(self, site: str, seen: list[Observation], caps: PageLimits = UNLIMITED) -> MergeResult:
        assert any(one.path == mark(self.batch) for one in seen)
        return _told(self._store, self._tell, self.batch, site, seen, caps, list(seen))


def visiting(tell: Tell, url: str, seed: int, worker: int, first: int, times: int) -> None:
    """Visit pages as crawlers do, a batch an hour and not in order, and have the recorder fold them."""
    clock, store = Clock(BEGAN), Telling(open_store(url, "store"), tell)
    store.version(site_of(seed))
    with closing(wrapped(seed, store, clock)) as site:
        for number in range(first, BATCHES):
            store.batch = (worker, number, times)
            random = Random(f"visits {seed} {worker} {number}")
            clock.now = float(BEGAN + REFRESH_SECONDS * random.randrange(1, HOURS))
            visit(site, [mark(store.batch), *random.choices([*KNOWN, *NEW], k=8)], worker)
            clock.now = float(BEGAN + REFRESH_SECONDS * HOURS)  # what was seen comes late, but by a clock that is right
            site.flush()
            times = 0


def visit(site: Any, paths: list[str], worker: int) -> None:
    for path in paths:
        wsgi(site, Ask(path, headers=[("X-Worker", str(worker))], scheme="https"), validate=False)


def begun(seed: int, store: Store) -> list[Observation]:
    """Have all known pages be seen good, before anything else; what that was folded as."""
    told: list[Any] = []
    site = wrapped(seed, Telling(store, told.append), Clock(BEGAN))
    visit(site, [mark(FIRST), *KNOWN], FIRST[0])
    site.flush()
    return told[0][2]
