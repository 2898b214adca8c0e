"""The middleware as a WSGI application: what it answers itself, and what it leaves to the app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware

from ...support.recording import environ
from ...support.sample_sites import Clock

HTML = [("Content-Type", "text/html")]


def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", HTML)
    return [b"A page."]


def wrapped(inner: Any, **options: Any) -> Any:
    return SitemapMiddleware(inner, store="memory://", include="/", clock=Clock(), **options)


class Unhashable(str):
    """A path that no dict can look up."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment] # as of any class that compares by value


class Inscrutable(type):
    """The type of bodies that cannot be looked at."""

    def __getattribute__(cls, name: str) -> Any:
        if name == "__iter__":
            raise RuntimeError("do not look")
        return super().__getattribute__(name)


class Body(metaclass=Inscrutable):
    """A body that nobody but the server may touch."""


FAULTS: dict[str, tuple[dict[str, Any], Callable[..., Any], str]] = {
    "request": ({"PATH_INFO": Unhashable("/")}, app, "a request could not be looked at"),
    "body": ({}, lambda _, start_response: start_response("200 OK", HTML) and Body(), "a body could not be sampled"),
}


@pytest.mark.parametrize(("items", "inner", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_logged_with_its_error_and_the_apps_body_returned(
    items: dict[str, Any], inner: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    statuses: list[str] = []

    def start_response(status: str, headers: Any) -> Any:
        statuses.append(status)
        return print

    body = wrapped(inner)({**environ(), **items}, start_response)
    assert (type(body), statuses) == (Body if inner is not app else list, ["200 OK"])
    (record,) = caplog.records
    assert record.getMessage() == f"{message}; further faults like this are not logged"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], Exception)


def test_status_lines_have_the_phrases_of_http() -> None:
    started: list[Any] = []
    site = wrapped(app, verify=False, base_url="https://example.com")
    for headers in ({}, {"HTTP_IF_NONE_MATCH": "*"}):
        body = site(
            environ(path="/sitemap.xml", HTTP_HOST="example.com", **headers), lambda *given: started.append(given)
        )
        assert bool(b"".join(body)) is not bool(headers)
    assert [status for status, _ in started] == ["200 OK", "304 Not Modified"]
    assert all(type(headers) is list for _, headers in started), "PEP 3333 requires a list"


def test_observed_page_is_found_by_the_key_of_its_request() -> None:
    site = wrapped(app)
    for _ in range(3):
        list(site(environ(), lambda *_: print))
    assert len(site.service.tracker.tracked_pages) == 1
    assert site.stats()["seen"] == 3
