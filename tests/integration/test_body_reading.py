"""Body reading: which responses have their body read, and how explain describes it."""

from __future__ import annotations

from typing import Any

import flask
import pytest
from werkzeug.test import create_environ

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.cli.results_as_text import observation_lines
from sitemap_middleware.explanation import Explanation

from ..support.documents import locs
from ..support.sample_sites import Page, SampleSite

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


def flask_site(**options: Any) -> flask.Flask:
    app = flask.Flask("bakery")
    app.add_url_rule("/", "home", lambda: "<h1>Our bread</h1>")
    app.add_url_rule("/offer", "offer", lambda: '<meta name="robots" content="noindex"><h1>Offer</h1>')
    app.add_url_rule("/delete", "delete", lambda: "<h1>Deleted</h1>")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="http://localhost", robots=False, **options)
    return app


def leave_after_the_headers(app: flask.Flask, path: str) -> None:
    """Request a page as a server does whose client has gone: the body is closed, and not read."""
    environ = create_environ(path, headers={"User-Agent": "curl/8.5", "Accept": "*/*"})
    body = app.wsgi_app(environ, lambda *_: lambda _data: None)
    body.close()


def test_page_whose_body_no_visitor_has_read_is_requested_before_it_is_listed() -> None:
    """Its HTML may say noindex. Nothing but its status would be known."""
    app = flask_site(verify=True)
    for path in ("/", "/offer", "/delete"):
        leave_after_the_headers(app, path)
    app.wsgi_app.flush()
    page = app.wsgi_app.explain("/offer").page
    assert page is not None
    assert (page.status, page.read_at) == (200, 0)
    assert locs(app.test_client().get("/sitemap.xml").data) == ["http://localhost/", "http://localhost/delete"]
    assert app.wsgi_app.explain("/offer").reason == "its robots meta tag says noindex"
    deleted = app.wsgi_app.explain("/delete").page
    assert deleted is not None
    assert not deleted.read_at, "its name is that of an action, so nothing but a visitor requests it"


def test_page_whose_body_no_visitor_has_read_is_listed_without_verify() -> None:
    app = flask_site(verify=False)
    leave_after_the_headers(app, "/offer")
    app.wsgi_app.flush()
    assert "http://localhost/offer" in locs(app.test_client().get("/sitemap.xml").data)
