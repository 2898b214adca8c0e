"""Body reading: which responses have their body read, and how explain describes it."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.cli.results import observation_lines
from sitemap_middleware.evidence.page_verdict import Explanation

from ..support.documents import locs
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import DRIVERS, RequestSpec

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("content-type", "text/html")]
JSON = [("content-type", "application/json")]
UNREAD = {
    "JSON 401": Page(401, JSON, b'{"detail":"no"}'),
    "JSON 410": Page(410, JSON, b'{"detail":"gone"}'),
    "JSON 200": Page(200, JSON, b'{"a":1}'),
    "empty 307": Page(307, [("location", "/login")], b""),
    "HTML 302": Page(302, [*HTML, ("location", "/login")], b"<p>moved"),
    "HTML 404": Page(404, HTML, b"<title>Not Found</title><p>gone"),
}


def seen(explanation: Explanation) -> str:
    return "\n".join(observation_lines(explanation))


@BOTH
@pytest.mark.parametrize("answer", UNREAD.values(), ids=UNREAD.keys())
def test_what_is_no_html_page_is_not_said_to_be_read_when_we_ask(protocol: str, answer: Page) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/page": answer}, verify=True)
    sample.locs()
    explanation = sample.app.explain("/page")
    assert explanation.page is not None, "we have asked for it"
    assert not explanation.page.read_at
    assert not explanation.page.content_history
    assert "HTML read" not in seen(explanation)
    assert "content unchanged" not in seen(explanation)


@BOTH
@pytest.mark.parametrize("answer", UNREAD.values(), ids=UNREAD.keys())
def test_content_is_not_called_unchanged_after_the_page_answers_otherwise(protocol: str, answer: Page) -> None:
    sample = SampleSite(protocol, {"/": Page()}, verify=False)
    sample.visit("/")
    assert "content unchanged" in seen(sample.app.explain("/"))
    for _ in range(2):
        sample.clock.pass_(7200)
        sample.pages["/"] = answer
        sample.visit("/")
    explanation = sample.app.explain("/")
    assert explanation.page is not None
    assert not explanation.listed
    assert len(explanation.page.content_history) == 1
    assert "HTML read" not in seen(explanation)
    assert "content unchanged" not in seen(explanation)


NOINDEX = b'<meta name="robots" content="noindex"><h1>Sign in</h1>'
HTML_HEADERS = [("Content-Type", "text/html; charset=utf-8")]
ACTIONS = ("/-/login", "/account/add", "/delete")
"""Paths that the middleware does not request by itself."""


def streamed_site(protocol: str, **options: Any) -> Any:
    """A site whose pages are streamed in two parts, so that a visitor may leave between them."""
    pages = {"/": b"<h1>Bread</h1>", "/offer": NOINDEX, **dict.fromkeys(ACTIONS, NOINDEX), "/mail/send": b"<h1>Hi</h1>"}
    if protocol == "wsgi":
        app: Any = flask.Flask("bakery", static_folder=None)
        for path, html in pages.items():

            def view(html: bytes = html) -> flask.Response:
                return flask.Response(iter([b"<!doctype html>", html]), headers=HTML_HEADERS)

            app.add_url_rule(path, path, view)
        app.add_url_rule("/send/list", "list", lambda: flask.Response(iter([b"%PDF", b"-1.7"]), mimetype=PDF))
    else:

        def endpoint(parts: list[bytes], media_type: str) -> Any:
            async def respond(_: Any) -> StreamingResponse:
                return StreamingResponse(iter(parts), media_type=media_type)

            return respond

        routes = [Route(path, endpoint([b"<!doctype html>", html], "text/html")) for path, html in pages.items()]
        app = Starlette(routes=[*routes, Route("/send/list", endpoint([b"%PDF", b"-1.7"], PDF))])
    options.setdefault("clock", Clock())
    return SitemapMiddleware(app, base_url="http://localhost", robots=False, store="memory://", **options)


PDF = "application/pdf"


def leave_early(protocol: str, site: Any, *paths: str) -> None:
    for path in paths:
        DRIVERS[protocol](site, RequestSpec(path, host="localhost", leaves=True))
    site.flush()


def listed(protocol: str, site: Any) -> list[str]:
    answer = DRIVERS[protocol](site, RequestSpec("/sitemap.xml", host="localhost"))
    return [loc.removeprefix("http://localhost") for loc in locs(answer.body)] if answer.status == 200 else []


@BOTH
def test_page_whose_html_no_visitor_has_read_is_requested_before_it_is_listed(protocol: str) -> None:
    """Its HTML may say noindex. Nothing but its status would be known."""
    site = streamed_site(protocol, verify=True)
    leave_early(protocol, site, "/", "/offer", *ACTIONS, "/mail/send")
    assert listed(protocol, site) == ["/"]
    assert site.explain("/offer").reason == "its robots meta tag says noindex"
    for path in (*ACTIONS, "/mail/send"):
        assert not site.explain(path).listed, path


@BOTH
def test_page_with_the_name_of_an_action_is_listed_once_a_visitor_has_read_it(protocol: str) -> None:
    site = streamed_site(protocol, verify=True)
    leave_early(protocol, site, "/mail/send", *ACTIONS)
    assert "/mail/send" not in listed(protocol, site)
    site.service.clock.pass_(10)
    for path in ("/mail/send", *ACTIONS):
        DRIVERS[protocol](site, RequestSpec(path, host="localhost"))
    site.flush()
    assert "/mail/send" in listed(protocol, site)
    assert not {*ACTIONS} & {*listed(protocol, site)}


@BOTH
def test_page_whose_html_no_visitor_has_read_is_not_listed_without_verify(protocol: str) -> None:
    site = streamed_site(protocol, verify=False, list_unseen=False, include=["/mail/send"])
    leave_early(protocol, site, "/", "/offer", *ACTIONS, "/mail/send", "/send/list")
    assert listed(protocol, site) == ["/mail/send", "/send/list"]
    assert site.explain("/send/list").reason == "it answered 200 with application/pdf"
