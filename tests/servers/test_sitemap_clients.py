"""Clients that others wrote read our sitemaps through HTTP: every URL once, with its date, compressed or not."""

from __future__ import annotations

import datetime as dt
import gzip
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.requests_client import RequestsWebClient

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import Site
from sitemap_middleware.observe.ingest import save_observations
from sitemap_middleware.stores.base import PART_PAGES
from sitemap_middleware.stores.sqlite import SQLiteStore

from ..apps.dated_site import DAY, PAGES
from ..support import documents, servers
from ..support.waiting import until

pytestmark = pytest.mark.slow

Launch = Callable[..., AbstractContextManager[servers.Server]]
Read = dict[str, dt.datetime | None]

MANY = 50_002
"""Pages of the vast site: two more than one document holds."""

ENCODINGS = pytest.mark.parametrize("encoding", ["gzip", "identity"])


class Client(RequestsWebClient):
    """The client's own, with the encoding to ask for, and a note of those that documents came in."""

    def __init__(self, encoding: str) -> None:
        session = requests.Session()
        session.trust_env = False  # no proxies for what is on this machine
        session.headers["Accept-Encoding"] = encoding
        session.hooks["response"].append(self.note)
        super().__init__(session=session)
        self.encodings: set[str] = set()

    def note(self, response: requests.Response, *_: object, **__: object) -> None:
        if response.ok and "xml" in response.headers["Content-Type"]:
            self.encodings.add(response.headers.get("Content-Encoding", "identity"))


def read_by_ultimate_sitemap_parser(base: str, encoding: str) -> Read:
    """Every page that the client finds from the home page alone, with its date; none may be found twice."""
    client = Client(encoding)
    pages = list(sitemap_tree_for_homepage(f"{base}/", web_client=client).all_pages())
    assert client.encodings == {encoding}
    assert len({page.url for page in pages}) == len(pages)
    return {page.url: page.last_modified for page in pages}


def read_by_lxml(base: str, port: int, encoding: str) -> Read:
    """The same read without a client's help; the schemas have accepted every document."""

    def fetched(path: str) -> bytes:
        answer = servers.get(port, path, {"Accept-Encoding": encoding})
        assert answer.header("content-encoding") == (None if encoding == "identity" else encoding)
        return gzip.decompress(answer.body) if encoding == "gzip" else answer.body

    parts = [fetched("/sitemap.xml")]
    if documents.parsed(parts[0]).tag == f"{documents.NS}sitemapindex":
        index = documents.entries(parts[0])
        parts = [fetched(loc.removeprefix(base)) for loc in index]
        for index_entry, part in zip(index.values(), parts, strict=True):
            assert index_entry.get("lastmod", "") == max(
                entry.get("lastmod", "") for entry in documents.entries(part).values()
            )
    listed = [entry for part in parts for entry in documents.entries(part).items()]
    assert len(listed) == sum(len(documents.locs(part)) for part in parts)
    return {loc: documents.lastmod(entry["lastmod"]) if "lastmod" in entry else None for loc, entry in listed}


def moment(seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


@ENCODINGS
@pytest.mark.parametrize(("launch", "app"), [(servers.gunicorn, "flask_app"), (servers.uvicorn, "starlette_app")])
def test_a_client_reads_every_page_once_with_its_date(launch: Launch, app: str, encoding: str, tmp_path: Path) -> None:
    with launch(f"tests.apps.dated_site:{app}", tmp_path, env={"SITEMAP_STORE": "memory://"}) as server:
        for path in PAGES:
            assert server.get(quote(path)).status == 200
        base = f"http://127.0.0.1:{server.port}"
        expected = {base + quote(path, safe="/&'"): moment(seconds) for path, seconds in PAGES.items()}
        assert read_by_lxml(base, server.port, encoding) == expected
        assert read_by_ultimate_sitemap_parser(base, encoding) == expected


def test_a_client_reads_every_page_of_an_index_once_with_its_date(tmp_path: Path) -> None:
    port = servers.free_port()
    site = Site("http", f"127.0.0.1:{port}", loopback=True)
    store = SQLiteStore(tmp_path / "vast.sqlite3")
    now = int(time.time())
    # Every second page bears a date, each another, before the last month: a later one would count once it was seen to stay.
    dates = {number: now - 33 * DAY - 97 - number * 900 if number % 2 else None for number in range(MANY)}
    save_observations(
        store,
        site.store_key,
        [
            Observation(
                f"/pages/{number}", "/pages/{number}", now, 200, "text/html", last_modified=last_modified, learned=True
            )
            for number, last_modified in dates.items()
        ],
    )
    store.close()
    command = ["uvicorn", "tests.apps.vast_site:app", "--port", str(port), "--log-level", "warning"]
    env = {"SITEMAP_STORE": f"sqlite:///{tmp_path}/vast.sqlite3"}
    with servers.serving(command, tmp_path, port, env=env) as server:
        parts = [f"{documents.NS}sitemap"] * -(-MANY // PART_PAGES)
        # The first answer may name only the parts that were rendered while it waited.
        until(lambda: [element.tag for element in documents.parsed(server.get("/sitemap.xml").body)] == parts)
        expected = {
            f"{site.base_url}/pages/{number}": None if last_modified is None else moment(last_modified)
            for number, last_modified in dates.items()
        }
        for encoding in ("gzip", "identity"):
            assert read_by_lxml(site.base_url, port, encoding) == expected
            assert read_by_ultimate_sitemap_parser(site.base_url, encoding) == expected
