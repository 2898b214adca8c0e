"""Files that a WSGI server sends by itself: their content is read, and they are left as they are."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults

import flask
import pytest
from gunicorn.http.wsgi import FileWrapper as GunicornWrapper
from waitress.buffers import ReadOnlyFileBasedBuffer

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.captured_response import MAX_HTML_BYTES

from ..support.documents import locs
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import RequestSpec, wsgi

NOINDEX = b"<!doctype html><meta name=robots content=noindex><p>Draft"
BASE = "https://x.example"
WRAPPERS: dict[str, Any] = {
    "wsgiref": FileWrapper,
    "gunicorn": GunicornWrapper,
    "waitress": ReadOnlyFileBasedBuffer,
    "uWSGI": lambda file, *_: file,
}
OPENED: dict[str, Callable[[Path], Any]] = {
    "buffered": lambda path: path.open("rb"),
    "unbuffered": lambda path: path.open("rb", buffering=0),
    "for writing too": lambda path: path.open("r+b"),
    "in memory": lambda path: io.BytesIO(path.read_bytes()),
}


def environ(wrapper: Any) -> dict[str, Any]:
    request_environ: dict[str, Any] = {"HTTP_HOST": "x.example", "PATH_INFO": "/", "wsgi.url_scheme": "https"}
    setup_testing_defaults(request_environ)
    return request_environ | {"wsgi.file_wrapper": wrapper, "SCRIPT_NAME": ""}


class Site:
    """A site whose home is a file."""

    def __init__(self, file: Callable[[], Any]) -> None:
        self.given: list[Any] = []

        def app(environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [("Content-Type", "text/html")])
            self.given.append(environ["wsgi.file_wrapper"](file(), 8192))
            return self.given[-1]

        options: dict[str, Any] = {"base_url": BASE, "store": "memory://", "verify": False, "robots": False}
        self.app = SitemapMiddleware(app, include="/", clock=Clock(), **options)

    def visit(self, wrapper: Any) -> Any:
        body = self.app(environ(wrapper), lambda *_: None)
        assert body is self.given[-1]
        self.app.flush()
        return body

    def listed(self) -> bool:
        answer = wsgi(self.app, RequestSpec("/sitemap.xml", host="x.example", scheme="https"))
        return answer.status == 200 and locs(answer.body) == [f"{BASE}/"]


@pytest.mark.parametrize("begins", [0, 3])
@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_file_that_says_noindex_is_not_listed_and_not_moved(
    wrapper: str, kind: str, begins: int, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"..." + NOINDEX)
    with OPENED[kind](path) as file:
        site = Site(lambda: file)
        file.seek(begins)
        site.visit(WRAPPERS[wrapper])
        assert (file.tell(), file.read()) == (begins, path.read_bytes()[begins:])
        assert not site.listed()
        assert site.app.explain("/").reason == "its robots meta tag says noindex"


def test_of_a_large_file_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(NOINDEX + b"." * 2 * MAX_HTML_BYTES)
    for kind in ("buffered", "in memory"):
        with OPENED[kind](path) as file:
            site = Site(lambda file=file: file)
            site.visit(FileWrapper)
            assert not site.listed()
            assert len(file.read()) == path.stat().st_size


class Own(io.BytesIO):
    """A file of the app's own making, whose methods are its own."""

    def tell(self) -> int:
        raise AssertionError("it was asked for its place")


def closed() -> Any:
    file = io.BytesIO(NOINDEX)
    file.close()
    return file


def pipe() -> Any:
    reading, writing = os.pipe()
    os.write(writing, NOINDEX)
    os.close(writing)
    return os.fdopen(reading, "rb")


@pytest.mark.parametrize("make", [lambda: Own(NOINDEX), closed, pipe, object], ids=["own", "closed", "pipe", "none"])
def test_what_cannot_be_read_without_a_trace_is_left_to_the_server(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    file = make()

    class Wrapper:
        """A server's own, which asks nothing of the file yet."""

        def __init__(self, file: Any, _: int) -> None:
            self.filelike = file

    site = Site(lambda: file)
    site.visit(Wrapper)
    assert site.listed()
    assert not caplog.records
    if make is pipe:
        assert file.read() == NOINDEX
        file.close()


def test_what_flask_sends_from_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(NOINDEX)
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/page", "page", lambda: flask.send_from_directory(tmp_path, "page.html"))
    app.add_url_rule("/", "home", lambda: "Home")
    options: dict[str, Any] = {"base_url": BASE, "store": "memory://", "verify": False, "robots": False}
    site = SitemapMiddleware(app, clock=Clock(), **options)
    body = site(environ(GunicornWrapper) | {"PATH_INFO": "/page"}, lambda *_: None)
    assert type(body) is GunicornWrapper
    assert body.filelike.read() == NOINDEX
    body.close()
    site.flush()
    answer = wsgi(site, RequestSpec("/sitemap.xml", host="x.example", scheme="https"))
    assert locs(answer.body) == [f"{BASE}/"]


@pytest.mark.parametrize(
    "header", ["X-Accel-Redirect", "X-Sendfile", "X-LIGHTTPD-send-file", "X-LiteSpeed-Location", "X-Reproxy-URL"]
)
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_files_that_the_server_in_front_sends_are_not_taken_for_equal_empty_pages(protocol: str, header: str) -> None:
    page = Page(body=b"").with_headers((header, "/internal/page.html"))
    sample = SampleSite(protocol, {"/docs/{slug}": page, "/about": page}, learn="/docs/{slug}", base_url=BASE)
    paths = ["/about", *(f"/docs/{number}" for number in range(5))]
    sample.visit(*paths)
    assert sample.locs() == [f"{BASE}{path}" for path in paths]
    reason = "it answered 200 with text/html; it was not read completely: it was sent as a file that could not be read"
    assert sample.app.explain("/docs/1").reason == reason
    sample.clock.pass_(86_400)
    sample.pages["/docs/{slug}"].body = b"<p>Never sent."
    for _ in range(3):
        sample.clock.pass_(86_400)
        sample.visit(*paths)
    assert not any("lastmod" in entry for entry in sample.entries().values())
