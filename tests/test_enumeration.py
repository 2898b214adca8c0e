"""What is kept of a provider's pages: whole, of one making, whatever fails, and shared by all workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.document import MAX_URLS
from sitemap_middleware.stores.memory import MemoryStore

from .support.documents import entries, locs
from .support.twins import Clock
from .support.wire import Answer, Ask, wsgi

LOCAL = "http://testserver"


class Site:
    """A Flask app with one provider of numbered pages, as one worker of several that have one store."""

    def __init__(self, store: Any, clock: Clock, numbers: Any, **options: Any) -> None:
        app = flask.Flask("site", static_folder=None)

        def posts() -> Iterator[dict[str, int]]:
            for number in numbers() if callable(numbers) else numbers:
                yield {"number": number}

        @app.route("/posts/<int:number>")
        @sitemap(values=posts)
        def post(number: int) -> str:
            return f"Post {number}."

        self.app = SitemapMiddleware(app, store=store, clock=clock, **options)

    def ask(self, path: str = "/sitemap.xml", *headers: tuple[str, str]) -> Answer:
        return wsgi(self.app, Ask(path, headers=list(headers)))

    def numbers(self, path: str = "/sitemap.xml") -> list[int]:
        """The pages listed, in the order of the documents."""
        body = self.ask(path).body
        found = list(entries(body))
        if b"<sitemapindex" in body:
            return [number for loc in found for number in self.numbers(loc.removeprefix(LOCAL))]
        return [int(loc.rpartition("/")[2]) for loc in found]


@pytest.mark.parametrize("count", [MAX_URLS - 1, MAX_URLS, MAX_URLS + 1, 2 * MAX_URLS + 1])
def test_every_page_is_in_one_document_or_in_those_of_an_index(count: int) -> None:
    site = Site(MemoryStore(), Clock(), range(count))
    index = locs(site.ask().body)
    if count <= MAX_URLS:
        assert len(index) == count
    else:
        documents = -(-count // MAX_URLS)
        assert index == [f"{LOCAL}/sitemap-post-{number}.xml" for number in range(1, documents + 1)]
        assert site.ask(f"/sitemap-post-{documents + 1}.xml").status == 404
    assert site.numbers() == list(range(count))
