"""A batch of captured responses becomes pages in the store; one that cannot be read costs no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from werkzeug.routing import BaseConverter

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.adapters.wsgi_request import WSGIRequest, request_of
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from sitemap_middleware.listing.provider_reader import Providers
from sitemap_middleware.models import Site
from sitemap_middleware.observation.parse_and_store import CLEANUP_INTERVAL_SECONDS, Ingester
from sitemap_middleware.observation.varying_content_prober import CHECKS_AT_FIRST_SIGHT, CHECKS_WHEN_CHANGED
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.store_clock import StoreClock

from ...support.sample_sites import Clock

SITE = Site("https", "example.com")
HTML = [("content-type", "text/html")]
PAGE = b"<!doctype html><title>Tea</title><main>Tea</main>"


class Failing(BaseConverter):
    """A converter of the app that fails for one path."""

    def to_python(self, value: str) -> str:
        if value == "fail":
            raise RuntimeError("the app's own")
        return value


class RecordingStore(MemoryStore):
    """Records which pages are asked for, and what is cleaned up."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[tuple[Any, ...]] = []
        self.looked_up: list[set[str]] = []

    def forget(self, *arguments: Any) -> int:
        self.forgotten.append(arguments)
        return super().forget(*arguments)

    def find_pages(self, site: Any, paths: Any) -> Any:
        self.looked_up.append(set(paths))
        return super().find_pages(site, paths)


class Saved:
    """An app with static, provided and learned pages, and the ingester of its responses."""

    def __init__(
        self, may_store: Callable[[Site], bool] = lambda _: True, *, probes: bool = False, **options: Any
    ) -> None:
        app = flask.Flask("shop", static_folder=None)
        app.url_map.converters["failing"] = Failing
        app.add_url_rule("/", "home", lambda: "Home")
        app.add_url_rule("/about", "about", lambda: "About")
        app.add_url_rule("/caf\xe9", "cafe", lambda: "Coffee")
        app.add_url_rule("/tags/<slug>", "tag", lambda slug: slug)
        app.add_url_rule("/posts/<failing:slug>", "post", sitemap(values=["a"])(lambda slug: slug))
        app.add_url_rule(f"/{'long' * 700}", "long", lambda: "Too long for a loc")
        self.clock, self.store = Clock(), RecordingStore()
        settings = {"learn": "/tags/*", "base_url": "https://example.com", "verify": probes, **options}
        self.app: Any = SitemapMiddleware(app, store=self.store, clock=self.clock, **settings)
        self.service = self.app.service
        self.providers = Providers(self.clock)
        self.ingester = Ingester(
            app_routes=self.service.app_routes,
            store=self.store,
            providers=self.providers,
            options=self.service.options,
            store_clock=StoreClock(self.store, self.clock),
            tracker=self.service.tracker,
            varying_content_prober=self.service.varying_content_prober,
            may_store=may_store,
        )

    def response(self, path: str = "/", status: int = 200, body: bytes | None = None, **more: Any) -> CapturedResponse:
        options = {"at": self.clock(), "headers": HTML, "host": "example.com", **more}
        return CapturedResponse(SITE, path, status=status, body=body, **options)

    def read(self, path: str) -> CapturedResponse:
        """A response whose HTML was read."""
        return self.response(path, body=f"<title>{path}</title><p>Of {path}".encode())

    def save(self, *responses: CapturedResponse) -> list[str]:
        """Save a batch, and return the paths that the store has then."""
        self.ingester.ingest(list(responses))
        return sorted(page.path for page in self.store.pages(SITE.store_key))


@pytest.fixture
def saved() -> Iterator[Saved]:
    saved = Saved()
    yield saved
    saved.service.close()


def test_pages_of_routes_are_stored_by_their_quoted_paths(saved: Saved) -> None:
    batch = [saved.read(path) for path in ("/", "/caf\xe9", "/tags/t\xe9", "/posts/a", "/nothing")]
    assert saved.save(*batch) == ["/", "/caf%C3%A9", "/posts/a", "/tags/t%C3%A9"]
    assert (saved.ingester.merged, saved.ingester.refused, saved.ingester.unwritable) == (4, 0, 0)
    pages = {page.path: page for page in saved.store.pages(SITE.store_key)}
    assert {path for path, page in pages.items() if page.learned} == {"/posts/a", "/tags/t%C3%A9"}, (
        "of unread values it is not known which pages they give"
    )
    assert {page.last_seen for page in pages.values()} == {int(saved.clock())}


def test_path_that_no_loc_can_have_is_counted(saved: Saved) -> None:
    assert saved.save(saved.response(f"/{'long' * 700}"), saved.response()) == ["/"]
    assert (saved.ingester.merged, saved.ingester.unwritable) == (1, 1)


def test_site_that_may_not_be_stored_is_left_out() -> None:
    saved = Saved(lambda _: False)
    assert saved.save(saved.response()) == []
    assert (saved.ingester.merged, saved.store.forgotten) == (0, [])


@pytest.mark.parametrize(("ahead", "counts"), [(CLOCK_SKEW_SECONDS, True), (CLOCK_SKEW_SECONDS + 1, False)])
def test_response_of_the_future_is_warned_of_and_left_out(
    saved: Saved, ahead: int, caplog: pytest.LogCaptureFixture, *, counts: bool
) -> None:
    late = saved.response(at=saved.clock() + ahead)
    assert saved.save(late, saved.response("/about")) == (["/", "/about"] if counts else ["/about"])
    messages = [message.partition(";")[0] for message in caplog.messages]
    assert messages == ([] if counts else [f"this machine's clock is {ahead} seconds ahead of the store's clock"])


def test_route_that_cannot_be_found_costs_no_other_page(saved: Saved, caplog: pytest.LogCaptureFixture) -> None:
    assert saved.save(saved.read("/posts/fail"), saved.read("/posts/a")) == ["/posts/a"]
    assert caplog.messages == ["a page's route could not be found; further faults like this are not logged"]


class Unreadable(list[Any]):
    """Headers that fail when they are read."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("cannot be read")


def test_response_that_cannot_be_parsed_costs_no_other(saved: Saved, caplog: pytest.LogCaptureFixture) -> None:
    assert saved.save(saved.response("/about", headers=Unreadable()), saved.response()) == ["/"]
    assert caplog.messages == ["a response could not be read; further faults like this are not logged"]
    assert saved.ingester.merged == 1


def test_html_that_cannot_be_read_is_warned_of_once(saved: Saved, caplog: pytest.LogCaptureFixture) -> None:
    headers = [*HTML, ("content-encoding", "odd")]
    saved.save(*(saved.response(path, body=b"\0", headers=headers) for path in ("/about", "/")))
    (message,) = caplog.messages
    assert message.startswith("the HTML of https://example.com/about cannot be read (it ")
    assert message.endswith(
        "), so its robots meta tag and its changes are missed: install a decoder,"
        " or add SitemapMiddleware inside the middleware that compresses"
    )


def test_sent_file_is_read_and_its_content_not_kept(
    saved: Saved, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"<!doctype html><meta name=robots content=noindex><p>Draft")
    files = [saved.response("/"), saved.response("/about")]
    files[0].file_path, files[1].file_path = str(path), str(tmp_path / "nothing")
    saved.save(*files)
    pages = {page.path: page for page in saved.store.pages(SITE.store_key)}
    assert pages["/"].html_noindex
    assert not pages["/about"].html_noindex
    assert [response.body for response in files] == [None, None]
    assert not caplog.messages, "explain names a file that cannot be read"


def test_digest_of_a_sample_is_reported_to_its_schedule(saved: Saved) -> None:
    sampler = saved.service.tracker.sampler
    sample = saved.response(body=PAGE)
    schedule = sampler.schedule(sample)
    saved.save(saved.response())
    assert schedule.digest is None, "no body was read"
    saved.save(sample)
    digest = schedule.digest
    assert digest is not None
    interval = schedule.interval
    saved.save(saved.response(body=PAGE))
    assert (schedule.digest, schedule.interval) == (digest, 2 * interval)
    saved.save(saved.response(status=404, body=PAGE))
    assert (schedule.digest, schedule.interval) == (None, interval)


def test_pages_beyond_the_limits_are_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    saved = Saved(max_pages_per_route=1, max_pages=9)
    for number in range(3):
        saved.save(saved.response(f"/tags/{number}", body=PAGE))
    assert saved.ingester.refused == 2
    assert caplog.messages == [
        (
            "new pages are not stored: a route has max_pages_per_route=1 pages, or the site has max_pages=9;"
            " raise these options of SitemapMiddleware if the pages belong to the site, else exclude them"
        )
    ]


def test_outdated_pages_are_deleted_once_an_hour() -> None:
    saved = Saved(max_age_days=30)
    deletions = []
    for seconds in (0, CLEANUP_INTERVAL_SECONDS - 1, 1, CLEANUP_INTERVAL_SECONDS):
        saved.clock.pass_(seconds)
        before = len(saved.store.forgotten)
        saved.save(saved.response())
        deletions.append(len(saved.store.forgotten) - before)
    assert deletions == [1, 0, 1, 1]
    now = 1_750_000_000
    assert saved.store.forgotten[0] == (SITE.store_key, now - 30 * SECONDS_PER_DAY, now - SECONDS_PER_DAY)


def foreign(saved: Saved, path: str = "/", status: int = 200, **more: Any) -> CapturedResponse:
    return saved.response(path, status, host="other.example", is_foreign_host=True, **more)


def test_foreign_host_counts_while_the_own_is_not_requested(saved: Saved) -> None:
    assert saved.save(foreign(saved, "/about")) == ["/about"]


def test_foreign_host_that_contradicts_the_own_is_ignored_and_counted(saved: Saved) -> None:
    saved.save(saved.response(), saved.response("/about"))
    saved.save(foreign(saved, status=404))
    assert [page.status for page in saved.store.pages(SITE.store_key)] == [200, 200]
    assert sum(saved.service.tracker.ignored.counts.values()) == 1


def test_foreign_responses_are_compared_with_those_before_them(saved: Saved) -> None:
    """The batch has the later response first."""
    now = saved.clock()
    later = foreign(saved, status=404, at=now + 2)
    saved.save(later, saved.response(at=now + 1))
    (page,) = saved.store.pages(SITE.store_key)
    assert page.status == 200


def test_headers_of_an_unknown_page_do_not_count_if_its_body_does_not(saved: Saved) -> None:
    saved.save(saved.response())
    saved.clock.pass_(1)
    sample = foreign(saved, "/about", body=PAGE)
    assert saved.save(foreign(saved, "/about"), sample, foreign(saved, "/about", status=404)) == ["/"]


def test_probe_of_a_refused_host_counts_if_its_answer_is_good(saved: Saved) -> None:
    saved.save(saved.response())
    bad = foreign(saved, "/about", status=404, is_probe=True)
    assert saved.save(bad) == ["/"]
    assert sum(saved.service.tracker.ignored.counts.values()) == 0, "nobody but us has asked"
    assert saved.save(foreign(saved, "/about", is_probe=True)) == ["/", "/about"]


def claiming(saved: Saved, path: str = "/", status: int = 200) -> CapturedResponse:
    response = saved.response(path, status)
    response.routing_headers = (("x-original-url", "/other"),)
    return response


def test_unusual_headers_prove_no_absence_of_a_known_page(saved: Saved) -> None:
    saved.save(saved.response(), saved.response("/about"))
    saved.clock.pass_(1)
    saved.save(claiming(saved, status=404))
    (home,) = [page for page in saved.store.pages(SITE.store_key) if page.path == "/"]
    assert home.status == 200
    assert home.unconfirmed_answers, "another such answer may confirm it"


def test_unusual_headers_prove_nothing_of_an_unknown_page(saved: Saved) -> None:
    saved.save(saved.response())
    assert saved.save(claiming(saved, "/about", 404)) == ["/"]


def test_store_is_asked_only_for_pages_in_doubt(saved: Saved) -> None:
    saved.save(saved.response(), saved.response("/about"))
    assert saved.store.looked_up == []
    saved.save(claiming(saved, status=404))
    assert saved.store.looked_up == [{"/"}]


def test_responses_of_several_sites_go_to_their_own_pages(saved: Saved) -> None:
    other = Site("https", "other.example")
    saved.save(saved.response(), CapturedResponse(other, "/about", at=saved.clock(), status=200, headers=HTML))
    pages = [[page.path for page in saved.store.pages(site.store_key)] for site in (SITE, other)]
    assert pages == [["/"], ["/about"]]


def test_unknown_page_without_a_good_answer_is_stored_only_if_values_may_name_it(saved: Saved) -> None:
    assert saved.save(saved.response("/tags/never", 404), saved.response("/posts/never", 404)) == ["/posts/never"]


@pytest.mark.parametrize(
    ("is_foreign", "claims", "stored"), [(True, False, ["/about"]), (True, True, []), (False, True, [])]
)
def test_first_answer_of_a_site_counts_unless_it_may_be_another_pages(
    saved: Saved, stored: list[str], *, is_foreign: bool, claims: bool
) -> None:
    """Else a site would stay unknown that answers foreign hosts only, and badly."""
    response = foreign(saved, "/about", 404) if is_foreign else saved.response("/about", 404)
    if claims:
        response.routing_headers = (("x-original-url", "/other"),)
    assert saved.save(response) == stored


@pytest.mark.parametrize("probes", [True, False])
def test_body_of_an_unknown_page_takes_back_what_its_headers_said(*, probes: bool) -> None:
    """The prober requests static pages, and its answers are to the site's own Host."""
    saved = Saved(probes=probes)
    noindex = b"<!doctype html><meta name=robots content=noindex>"
    assert saved.save(foreign(saved, "/about"), foreign(saved, "/about", body=noindex)) == (
        [] if probes else ["/about"]
    )
    assert saved.save(foreign(saved, "/caf\xe9", 404)) == ([] if probes else ["/about", "/caf%C3%A9"])


class Noting(WSGIRequest):
    """A request whose background jobs do not run."""

    __slots__ = ()

    def run_in_background(self, job: Any) -> None:
        assert callable(job)


def test_pages_that_are_new_or_changed_are_checked_by_the_prober() -> None:
    saved = Saved(probes=True)
    prober = saved.service.varying_content_prober
    assert prober is not None
    saved.save(saved.response())
    assert not prober._pending, "there is no request to run behind"
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.url_scheme": "https", "HTTP_HOST": "example.com"}
    request = request_of(environ, saved.app)
    request.__class__ = Noting
    prober.remember_request(SITE, request)

    def checks() -> list[tuple[str, int]]:
        pending = [(check.path, check.requests_left) for check in prober._pending]
        prober._pending.clear()
        prober._pending_keys.clear()
        return pending

    saved.save(saved.response("/caf\xe9", body=PAGE))
    assert checks() == [("/caf\xe9", CHECKS_AT_FIRST_SIGHT)]
    saved.clock.pass_(3600)
    saved.save(saved.response("/caf\xe9", body=PAGE.replace(b"Tea", b"Milk")))
    assert checks() == [("/caf\xe9", CHECKS_WHEN_CHANGED)]
    saved.clock.pass_(3600)
    saved.save(saved.response("/caf\xe9", 403))
    assert checks() == [("/caf\xe9", 1)]


# A sampled response arrives twice


def test_headers_of_a_sampled_response_are_merged_with_its_sample(saved: Saved, tmp_path: Path) -> None:
    headers, sent = [*HTML], [*HTML]
    file = saved.response("/about", headers=sent)
    path = tmp_path / "page.html"
    path.write_bytes(PAGE)
    file.file_path = str(path)
    batch = [saved.response(headers=headers), saved.response("/about", headers=sent)]
    assert saved.save(*batch, saved.response(headers=headers, body=PAGE), file) == ["/", "/about"]
    assert saved.ingester.merged == 2
    assert all(page.content_history for page in saved.store.pages(SITE.store_key))


@pytest.mark.parametrize("change", ["later", "other headers", "claimed URL", "foreign host", "other page"])
def test_headers_of_another_response_are_merged_too(saved: Saved, change: str) -> None:
    headers = [*HTML]
    head, sample = saved.response(headers=headers), saved.response(headers=headers, body=PAGE)
    if change == "later":
        head.at += 5
    elif change == "other headers":
        head.headers = [*HTML]
    elif change == "other page":
        head = saved.response("/about", headers=headers)
    elif change == "foreign host":
        head.is_foreign_host = sample.is_foreign_host = True
    else:
        head.routing_headers = sample.routing_headers = ((b"x-forwarded-proto", b"https"),)
    saved.save(head, sample)
    assert saved.ingester.merged == 2
    assert max(page.last_seen for page in saved.store.pages(SITE.store_key)) == int(head.at)
