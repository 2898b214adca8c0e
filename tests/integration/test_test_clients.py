"""Under a test client, what a test has just changed shows in the next sitemap, regardless of `max_age`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import flask
import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from sitemap_middleware import SitemapMiddleware, sitemap

from ..support.documents import locs

Read = Callable[[], list[str]]


def flask_site(values: Any, **options: Any) -> Read:
    app = flask.Flask("shop")
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=values)(lambda slug: slug))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, store="memory://", **options)  # type: ignore[method-assign]
    return lambda: locs(app.test_client().get("/sitemap.xml").data)


def fastapi_site(values: Any, **options: Any) -> Read:
    app = FastAPI()

    @app.get("/posts/{slug}", response_class=HTMLResponse)
    @sitemap(values=values)
    async def post(slug: str) -> str:
        return slug

    app.add_middleware(SitemapMiddleware, store="memory://", base_url="http://localhost", **options)

    async def get() -> bytes:
        transport = httpx.ASGITransport(app, client=("testclient", 50000))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/sitemap.xml")).content

    return lambda: locs(asyncio.run(get()))


@pytest.mark.parametrize("site", [flask_site, fastapi_site])
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("max_age", [0, 300])
def test_a_row_that_a_test_adds_shows_in_the_next_sitemap(site: Any, verify: bool, max_age: int) -> None:
    rows = ["a"]

    def slugs() -> Iterator[dict[str, str]]:
        yield from ({"slug": row} for row in rows)

    read = site(slugs, verify=verify, max_age=max_age)
    assert read() == ["http://localhost/posts/a"]
    rows.append("b")
    assert read() == ["http://localhost/posts/a", "http://localhost/posts/b"]
    rows.remove("a")
    assert read() == ["http://localhost/posts/b"]
