"""A document that no longer exists is not served again, whatever fails afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitemap_middleware import StoreError, sitemap_handler
from sitemap_middleware.rendering import chunking, publisher
from sitemap_middleware.sitemap_limits_and_value_checks import MAX_BYTES_PER_DOCUMENT
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.sample_sites import Page, SampleSite
from ...support.wire import Answer

PATHS = ("/a", "/b", "/c")
DOCUMENTS = ("/sitemap.xml", "/sitemap-routes-1.xml", "/sitemap-routes-2.xml")
REMOVED = (Page(404), Page().with_headers(("X-Robots-Tag", "noindex")))


class Interrupted(MemoryStore):
    """A store that fails, or hangs, as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.hangs = threading.Event()

    def version(self, site: str) -> int:
        if self.fails:
            raise StoreError("it fails")
        if not self.goes_on.is_set():
            self.hangs.set()
            self.goes_on.wait(10)
        return super().version(site)


class Site(SampleSite):
    """A site whose store can be interrupted, with two URLs in a document at most."""

    def __init__(self, *paths: str) -> None:
        self.interrupted = Interrupted()
        pages = {path: Page() if path in paths else Page(404) for path in PATHS}
        super().__init__("wsgi", pages, store=self.interrupted)
        self.visit(*PATHS)

    def change(self, path: str, page: Page) -> None:
        self.clock.pass_(10)
        self.pages[path] = page
        self.visit(path)
        self.clock.pass_(10)

    def documents(self) -> dict[str, Answer]:
        return {path: self.request(path) for path in DOCUMENTS}

    def documents_while(self, trouble: str) -> dict[str, Answer]:
        self.clock.pass_(3 * 24 * 60 * 60)
        if trouble == "store fails":
            self.interrupted.fails = True
            try:
                return self.documents()
            finally:
                self.interrupted.fails = False
        self.interrupted.goes_on.clear()
        self.interrupted.hangs.clear()
        other = threading.Thread(target=self.request, args=("/sitemap.xml",))
        other.start()
        try:
            assert self.interrupted.hangs.wait(10)
            return self.documents()
        finally:
            self.interrupted.goes_on.set()
            other.join(10)


@pytest.fixture(autouse=True, scope="module")
def small_and_fast() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking.make_chunks, "__defaults__", (1, 512 * 1024))
        patch.setattr(chunking.group_chunks, "__defaults__", (2, MAX_BYTES_PER_DOCUMENT))
        patch.setattr(publisher, "WAIT_SECONDS", 0.01)
        patch.setattr(publisher, "FIRST_WAIT_SECONDS", 0.01)
        patch.setattr(sitemap_handler, "FLUSH_WAIT_SECONDS", 0.01)
        yield


TROUBLES = ("store fails", "another thread renders")


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("removed", REMOVED, ids=("404", "noindex"))
def test_sitemap_whose_last_page_was_removed_does_not_come_back(trouble: str, removed: Page) -> None:
    site = Site("/a")
    assert site.request("/sitemap.xml").status == 200
    site.change("/a", removed)
    assert site.request("/sitemap.xml").status == 404
    answer = site.documents_while(trouble)["/sitemap.xml"]
    assert answer.status == 503
    assert answer.header("retry-after")


@pytest.mark.parametrize("trouble", TROUBLES)
def test_parts_of_an_index_that_became_one_document_do_not_come_back(trouble: str) -> None:
    site = Site(*PATHS)
    assert {answer.status for answer in site.documents().values()} == {200}
    site.change("/c", Page(404))
    single = site.request("/sitemap.xml")  # no part is requested: the index alone tells that they are gone
    answers = site.documents_while(trouble)
    assert [answer.status for answer in answers.values()] == [200, 503, 503]
    assert answers["/sitemap.xml"].body == single.body


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(PATHS), st.sampled_from((Page(), *REMOVED))),
            st.sampled_from(TROUBLES),
        ),
        max_size=8,
    )
)
def test_trouble_never_serves_what_was_replaced_or_removed(steps: list[tuple[str, Page] | str]) -> None:
    site = Site("/a", "/b")
    known = site.documents()
    for step in steps:
        if isinstance(step, str):
            for path, answer in site.documents_while(step).items():
                assert (answer.status, answer.body) == (200, known[path].body) or known[path].status == 404
                assert answer.status == 503 or known[path].status == 200
        else:
            site.change(*step)
            known = site.documents()
