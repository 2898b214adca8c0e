"""Many threads at once, with the GIL and, where Python was built without one (PEP 703), in parallel."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flask
import pytest

from sitemap_middleware import SitemapMiddleware

from ..support import documents
from ..support.waiting import until
from ..support.wire import RequestSpec, wsgi

THREADS = 32
ASKED = 40
IN_TURN = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread runs at a time."""


@pytest.mark.parametrize("store", ["sqlite:///{}/busy.sqlite3", "memory://"])
def test_concurrent_requests_get_their_pages_and_one_sitemap(store: str, tmp_path: Path) -> None:
    app = flask.Flask("busy", static_folder=None)
    app.add_url_rule("/posts/<int:number>", "post", lambda number: f"<!doctype html><title>{number}</title><p>{number}")
    site = SitemapMiddleware(
        app.wsgi_app,
        store=store.format(tmp_path),
        base_url="http://testserver",
        learn="/posts/<int:number>",
        verify=False,  # so that nothing else requests the pages, however long this takes
    )
    for number in range(100):  # a learned page counts once its first body was sent to its end
        wsgi(site, RequestSpec(f"/posts/{number}"))
    together = threading.Barrier(THREADS)

    def hammer(thread: int) -> None:
        together.wait(30)
        for step in range(ASKED):
            number = (thread * 7 + step) % 100
            answer = wsgi(site, RequestSpec(f"/posts/{number}"), validate=False)
            assert (answer.status, answer.text) == (200, f"<!doctype html><title>{number}</title><p>{number}")
            if step % 10 == 9:
                until(lambda: wsgi(site, RequestSpec("/sitemap.xml"), validate=False).status == 200)
                assert site.explain(f"/posts/{number}").path == f"/posts/{number}"

    with ThreadPoolExecutor(THREADS) as crowd:
        list(crowd.map(hammer, range(THREADS)))

    # A request that would wait for a second gets the last good document: on a busy machine, not yet with all pages.
    until(lambda: len(documents.locs(wsgi(site, RequestSpec("/sitemap.xml")).body)) == 100)
    answers = {wsgi(site, RequestSpec("/sitemap.xml")).body for _ in range(3)}
    assert len(answers) == 1
    assert len(documents.locs(answers.pop())) == 100
    stats = site.stats()
    assert stats["dropped"] == 0
    # Nothing waits for a count: in parallel two may count as one.
    asked = 100 + THREADS * ASKED
    assert stats["seen"] == asked or (not IN_TURN and stats["seen"] > 0.98 * asked)
    site.close()
