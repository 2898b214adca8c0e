"""Responses that fail after their headers: a status of 200 is not a page if its body never ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..support.sample_sites import SiteOf
from ..support.wire import BOTH


class Site(SiteOf):
    """A site with a page that streams, and fails when it is told to."""

    answers = "good"

    def __init__(self, protocol: str) -> None:
        super().__init__(self._flask() if protocol == "wsgi" else self._starlette(), robots=False, max_age=0)

    def _parts(self) -> Iterator[bytes]:
        yield b"<!doctype html><p>It begins"
        if self.answers == "fails":
            raise RuntimeError("in the middle")
        yield b" and ends."

    def _flask(self) -> flask.Flask:
        app = flask.Flask("site", static_folder=None)

        def page() -> Any:
            return ("", 404) if self.answers == "gone" else flask.Response(self._parts(), mimetype="text/html")

        app.add_url_rule("/", "page", page)
        return app

    def _starlette(self) -> Starlette:
        def page(_: Request) -> Any:
            return HTMLResponse("", 404) if self.answers == "gone" else streamed

        async def streamed(scope: Scope, receive: Receive, send: Send) -> None:
            headers = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for part in self._parts():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        return Starlette(routes=[Route("/", page)])

    def answer(self, answers: str) -> None:
        self.answers = answers
        if answers == "fails":
            with pytest.raises(RuntimeError, match="in the middle"):
                self.request("/")
        else:
            self.request("/")
        self.app.flush()
        self.clock.pass_(5)


@BOTH
@pytest.mark.parametrize(
    ("visits", "listed"),
    [
        ("gone fails fails fails", False),
        ("good good good gone fails fails fails", False),
        ("good good good gone gone fails gone fails", False),
        ("good good good gone fails good", True),
        ("good good gone fails good fails", True),
    ],
)
def test_a_response_that_fails_after_its_headers_shows_no_page(protocol: str, visits: str, *, listed: bool) -> None:
    site = Site(protocol)
    for answers in visits.split():
        site.answer(answers)
    assert site.listed() == ["/"] * listed


@BOTH
def test_what_fails_from_the_first_visit_on_is_not_known(protocol: str) -> None:
    site = Site(protocol)
    for _ in range(3):
        site.answer("fails")
    assert site.app.explain("/").page is None
