"""What a sitemap says never depends on who asks for it: the app's code for it runs in an empty context."""

from __future__ import annotations

import threading
from contextvars import ContextVar, copy_context
from datetime import date
from typing import Any

import pytest

from sitemap_middleware import sitemap

from ..support.documents import locs
from ..support.sample_sites import Page, SampleSite
from ..support.wire import DRIVERS, RequestSpec

visitor: ContextVar[str] = ContextVar("visitor", default="public")
of_thread = threading.local()


def rows() -> list[dict[str, str]]:
    return [{"slug": visitor.get()}]


def lazy_rows() -> Any:
    yield {"slug": visitor.get()}


async def awaited_rows() -> list[dict[str, str]]:
    return rows()


async def async_rows() -> Any:
    yield {"slug": visitor.get()}


def section() -> list[str]:
    return [f"/of/{visitor.get()}"]


async def async_section() -> Any:
    yield f"/of/{visitor.get()}"


def modified() -> date:
    is_public = visitor.get() == "public" and not hasattr(of_thread, "visitor")
    return date(2020, 1, 1) if is_public else date(2021, 1, 1)


def site(protocol: str, values: Any, **options: Any) -> SampleSite:
    pages = {"/posts/{slug}": Page(), "/": Page()}
    marks = {"/posts/{slug}": sitemap(values=values), "/": sitemap(lastmod=modified)}
    return SampleSite(protocol, pages, marks=marks, base_url="https://example.com", verify=True, **options)


def signed_in(protocol: str, app: Any) -> Any:
    """What the app's server does before the middleware sees a request: it says whose request it is."""

    def wsgi(environ: Any, start_response: Any) -> Any:
        context = copy_context()  # the test's own stays as it is
        context.run(visitor.set, "draft-of-alice")
        of_thread.visitor = "alice"
        try:
            return context.run(app, environ, start_response)
        finally:
            del of_thread.visitor

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        visitor.set("draft-of-alice")
        await app(scope, receive, send)

    return wsgi if protocol == "wsgi" else asgi


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("values", [rows, lazy_rows, awaited_rows, async_rows])
def test_values_and_dates_are_not_those_of_the_visitor_who_asks(protocol: str, values: Any) -> None:
    sample = site(protocol, values)
    for _ in range(3):  # the first is rendered by its request, later ones by a background job
        answer = DRIVERS[protocol](signed_in(protocol, sample.app), RequestSpec("/sitemap.xml"))
        assert answer.status == 200
        assert locs(answer.body) == ["https://example.com/", "https://example.com/posts/public"]
        assert b"2020-01-01" in answer.body
        assert b"2021-01-01" not in answer.body
        sample.app.flush()
        sample.clock.pass_(7200)


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("values", [section, async_section])
def test_sections_are_not_those_of_the_visitor_who_asks(protocol: str, values: Any) -> None:
    app = site(protocol, rows, sections={"all": values}).app
    DRIVERS[protocol](signed_in(protocol, app), RequestSpec("/sitemap.xml"))
    answer = DRIVERS[protocol](signed_in(protocol, app), RequestSpec("/sitemap-all.xml"))
    assert locs(answer.body) == ["https://example.com/of/public"]
