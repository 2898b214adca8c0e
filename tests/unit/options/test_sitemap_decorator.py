"""`@sitemap`: where it may stand, what it says, how two of them agree, and what it refuses."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import flask
import pytest
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.routing import Route

from sitemap_middleware import OptionError, SitemapError, SitemapMiddleware, sitemap

from ...support.documents import entries
from ...support.sample_sites import Clock
from ...support.wire import DRIVERS, RequestSpec

NOW = 1_750_000_000
"""2025-06-15T15:06:40Z."""
TODAY = datetime.fromtimestamp(NOW, UTC)
NAIVE = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)


def fields_by_path(app: Any, protocol: str | None = None, **options: Any) -> dict[str, dict[str, str]]:
    """The fields of each entry in an app's sitemap, by path."""
    protocol = protocol or ("wsgi" if isinstance(app, flask.Flask) else "asgi")
    site = SitemapMiddleware(app, store="memory://", clock=Clock(NOW), **({"verify": False} | options))
    answer = DRIVERS[protocol](site, RequestSpec("/sitemap.xml"))
    listed = entries(answer.body) if answer.status == 200 else {}
    return {loc.removeprefix("http://testserver"): entry for loc, entry in listed.items()}


def page(*_: Any, **__: Any) -> str:
    return "a page"


def flask_app(view: Any = None, path: str = "/x") -> flask.Flask:
    app = flask.Flask("site", static_folder=None)
    if view is not None:
        app.add_url_rule(path, "view", view)
    return app


def a_view() -> Any:
    """A new view each time, for a mark stays on what it was put on."""

    def view(_: Any = None) -> HTMLResponse:  # which FastAPI takes for a parameter that may be left out
        return HTMLResponse("a page")

    return view


# Where it may stand


def test_above_and_below_the_route_decorator_of_flask() -> None:
    app = flask_app()

    @sitemap(priority=0.1)
    @app.route("/above")
    def above() -> str:
        return "a page"

    @app.route("/below")
    @sitemap(priority=0.2)
    def below() -> str:
        return "a page"

    assert fields_by_path(app) == {"/above": {"priority": "0.1"}, "/below": {"priority": "0.2"}}


@sitemap(priority=0.5)
class Endpoint(HTTPEndpoint):
    async def get(self, _: Any) -> HTMLResponse:
        return HTMLResponse("a page")


class EndpointByMethod(Endpoint):
    @sitemap(priority=0.6)
    async def get(self, _: Any) -> HTMLResponse:
        return HTMLResponse("a page")


@pytest.mark.parametrize(("endpoint", "expected"), [(Endpoint, "0.5"), (EndpointByMethod, "0.6")])
def test_on_endpoint_classes_of_starlette(endpoint: Any, expected: str) -> None:
    assert fields_by_path(Starlette(routes=[Route("/x", endpoint)])) == {"/x": {"priority": expected}}


# Blueprints, routers, apps: the nearer one goes first


def test_stacked_marks_are_one_and_the_outer_goes_first() -> None:
    view = sitemap(priority=0.1)(sitemap(priority=0.2, changefreq="daily")(sitemap(lastmod=date(2024, 1, 2))(a_view())))
    assert fields_by_path(flask_app(view)) == {
        "/x": {"priority": "0.1", "changefreq": "daily", "lastmod": "2024-01-02"}
    }


# What it says


@pytest.mark.parametrize(
    ("lastmod", "expected"),
    [
        (date(2024, 1, 2), "2024-01-02"),
        (NAIVE, "2024-01-02T03:04:05Z"),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05Z"),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=30))), "2024-01-01T21:34:05Z"),
        (datetime(2024, 1, 1, 23, tzinfo=timezone(timedelta(hours=-8))), "2024-01-02T07:00:00Z"),
        (lambda: date(2024, 1, 2), "2024-01-02"),
        (TODAY + timedelta(minutes=5), "2025-06-15T15:06:40Z"),  # clocks differ a little
        (lambda: None, None),
        (TODAY + timedelta(minutes=6), None),
        (None, None),
    ],
)
def test_lastmod_is_written_in_utc_and_no_later_than_now(lastmod: Any, expected: str | None) -> None:
    listed = fields_by_path(flask_app(sitemap(lastmod=lastmod)(a_view())))
    assert listed == {"/x": {"lastmod": expected} if expected else {}}


@pytest.mark.parametrize("raised", [RuntimeError("no database"), ValueError])
def test_a_lastmod_that_fails_costs_a_warning_and_not_the_page(raised: Any, caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> date:
        raise raised

    app = flask_app(sitemap(lastmod=failing, priority=0.3)(a_view()))
    site = SitemapMiddleware(app, store="memory://", clock=(clock := Clock(NOW)), verify=False)
    for _ in range(3):
        answer = DRIVERS["wsgi"](site, RequestSpec("/sitemap.xml"))
        assert entries(answer.body) == {"http://testserver/x": {"priority": "0.3"}}
        clock.pass_(1000)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "of view (/x), its lastmod function failed: " in caplog.text


def test_a_lastmod_callable_is_asked_again() -> None:
    days = iter(range(1, 32))
    app = flask_app(sitemap(lastmod=lambda: date(2024, 1, next(days)))(a_view()))
    site = SitemapMiddleware(app, store="memory://", clock=(clock := Clock(NOW)), max_age=60, verify=False)
    listed = []
    for _ in range(3):
        listed += entries(DRIVERS["wsgi"](site, RequestSpec("/sitemap.xml")).body).values()
        clock.pass_(61)
    assert listed == [{"lastmod": f"2024-01-0{day}"} for day in (1, 2, 3)]


# What it refuses


class Nowhere(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(hours=23)


async def coming() -> date:
    return date(2024, 1, 2)


NUMBER = r"not valid; give a number from 0\.0 to 1\.0"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"priority": 1.5}, rf"priority=1\.5 is {NUMBER}"),
        ({"priority": "high"}, rf"priority='high' is {NUMBER}"),
        ({"priority": True}, rf"priority=True is {NUMBER}"),
        ({"priority": Decimal("sNaN")}, NUMBER),
        ({"priority": 10**400}, NUMBER),
        ({"changefreq": "sometimes"}, r"changefreq='sometimes' is not valid; give one of always, .*, never"),
        (
            {"lastmod": "2nd January"},
            r"lastmod='2nd January' is not a date; write it as .* give a datetime\.date, a datetime\.datetime, or",
        ),
        ({"lastmod": coming}, r"lastmod=coming is async; give a callable that needs no await"),
        ({"lastmod": datetime.min.replace(tzinfo=Nowhere())}, r"outside the calendar in UTC"),
        ({"exclude": 1}, r"exclude=1 is neither"),
        ({"exlude": True}, r"there is no option 'exlude'; did you mean exclude\?"),
        ({"xyz": 1}, r"there is no option 'xyz'; the options are priority, changefreq, lastmod, exclude"),
    ],
)
def test_invalid_value_is_refused_at_the_decorator(wrong: Any, message: str) -> None:
    def pricing() -> str:
        return "a page"

    with pytest.raises(SitemapError, match=message) as caught:
        sitemap(**wrong)(pricing)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).startswith("@sitemap on test_invalid_value_is_refused_at_the_decorator")
    assert ".pricing (" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


def test_it_needs_its_parentheses() -> None:
    with pytest.raises(OptionError, match=r"on page \(.*needs its parentheses; write it as @sitemap\(priority=0.8\)"):
        sitemap(page)
    with pytest.raises(OptionError, match="needs its parentheses"):
        sitemap(page, unheard_of=True)
