"""Files that a WSGI server sends by itself: they are read if that leaves no trace, and left as they are."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gunicorn.http.wsgi import FileWrapper as GunicornWrapper
from waitress.buffers import ReadOnlyFileBasedBuffer

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.messages import MAX_HTML_BYTES

from ..support.recording import environ
from ..support.sample_sites import Clock, Page, SampleSite

NOINDEX = b"<!doctype html><meta name=robots content=noindex><p>Draft"
BASE = "https://x.example"
OPENED: dict[str, Callable[[Path], Any]] = {
    "buffered": lambda path: path.open("rb"),
    "unbuffered": lambda path: path.open("rb", buffering=0),
    "in memory": lambda path: io.BytesIO(path.read_bytes()),
    "of its own": lambda path: Own(path.read_bytes()),
    "pipe": lambda path: pipe(path.read_bytes()),
}
READ = ("buffered", "unbuffered", "in memory")


class Own(io.BytesIO):
    """A file of the app's own making, whose methods are its own."""

    def tell(self) -> int:
        raise AssertionError("it was asked for its place")


def pipe(content: bytes) -> Any:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return os.fdopen(reading, "rb")


class Wrapper:
    """A server's own, which asks nothing of the file yet."""

    def __init__(self, file: Any, _: int) -> None:
        self.filelike = file

    def close(self) -> None:
        self.filelike.close()


WRAPPERS: dict[str, Any] = {
    "gunicorn": GunicornWrapper,
    "waitress": ReadOnlyFileBasedBuffer,
    "uWSGI": lambda file, *_: file,
    "another": Wrapper,
}


@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_file_is_read_if_that_leaves_no_trace(
    wrapper: str, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if wrapper == "waitress" and kind in ("of its own", "pipe"):
        pytest.skip("waitress asks for the place of the file")
    path = tmp_path / "page.html"
    path.write_bytes(NOINDEX + b"." * (2 * MAX_HTML_BYTES if kind in READ else 0))
    given: list[Any] = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "text/html")])
        given.append(OPENED[kind](path))
        given.append(environ["wsgi.file_wrapper"](given[0], 8192))
        return given[1]

    options: dict[str, Any] = {"base_url": BASE, "store": "memory://", "verify": False, "robots": False}
    site = SitemapMiddleware(app, include="/", clock=Clock(), **options)
    host = {"HTTP_HOST": "x.example", "wsgi.url_scheme": "https", "wsgi.file_wrapper": WRAPPERS[wrapper]}
    body = site(environ() | host, lambda *_: None)
    assert body is given[1]
    assert given[0].read(len(NOINDEX)) == NOINDEX
    body.close()
    site.flush()
    unread = "it answered 200 with text/html; it was not read completely: it was sent as a file that could not be read"
    assert site.explain("/").reason == ("its robots meta tag says noindex" if kind in READ else unread)
    assert not caplog.records


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
