"""Clients that others wrote read our sitemaps through HTTP: every URL once, with its date, compressed or not.

The sites of very many pages are served in little memory.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from scrapy.utils.sitemap import Sitemap
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.requests_client import RequestsWebClient

from sitemap_middleware.cli.main import command
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.models import PageLimits, Site
from sitemap_middleware.observe.ingest import save_observations
from sitemap_middleware.stores.base import PART_PAGES
from sitemap_middleware.stores.sqlite import SQLiteStore

from ..apps import described_site
from ..apps.dated_site import DAY, PAGES
from ..support import documents, servers
from ..support.command_line import cli_runner
from ..support.waiting import until

pytestmark = pytest.mark.slow

Launch = Callable[..., AbstractContextManager[servers.Server]]
Read = dict[str, dt.datetime | None]


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


@pytest.mark.parametrize(
    ("launch", "app", "encoding"),
    [(servers.gunicorn, "flask_app", "gzip"), (servers.uvicorn, "starlette_app", "identity")],
)
def test_a_client_reads_every_page_once_with_its_date(launch: Launch, app: str, encoding: str, tmp_path: Path) -> None:
    with launch(f"tests.apps.dated_site:{app}", tmp_path, env={"SITEMAP_STORE": "memory://"}) as server:
        for path in PAGES:
            assert server.get(quote(path)).status == 200
        base = f"http://127.0.0.1:{server.port}"
        expected = {base + quote(path, safe="/&'"): moment(seconds) for path, seconds in PAGES.items()}
        assert read_by_lxml(base, server.port, encoding) == expected
        assert read_by_ultimate_sitemap_parser(base, encoding) == expected


def as_read(value: object) -> object:
    """A fact of a video as the text of its element, without attributes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value[-1] if isinstance(value, (list, tuple)) else str(value)


def test_clients_read_back_all_that_entries_say(tmp_path: Path) -> None:
    env = {"SITEMAP_STORE": "memory://", "NOW": str(int(described_site.NOW.timestamp()))}
    with servers.gunicorn("tests.apps.described_site:flask_app", tmp_path, env=env) as server:
        base = f"http://127.0.0.1:{server.port}"
        index = documents.locs(server.get("/sitemap.xml").body)
        assert len(index) == 4
        until(lambda: b"hreflang" in server.get("/sitemap-languages.xml").body)  # written behind the request
        parser = {
            page.url: page for page in sitemap_tree_for_homepage(f"{base}/", web_client=Client("gzip")).all_pages()
        }
        bodies = {
            loc.removeprefix(base): server.get(loc.removeprefix(base)).body for loc in [f"{base}/sitemap.xml", *index]
        }
    scrapy = {entry["loc"]: entry for path in [*bodies][1:] for entry in Sitemap(bodies[path])}

    def absolute(path: str) -> str:
        return base + quote(path, safe="/?=&")

    versions = {code: f"{base}/{code}/about" for code in described_site.LANGUAGES}
    alternates = [*versions.items(), ("x-default", versions["en"])]
    for loc in versions.values():
        assert {*parser[loc].alternates} == {*alternates}
        assert sorted(scrapy[loc]["alternate"]) == sorted(url for _, url in alternates)
    assert parser.keys() == scrapy.keys() == {*map(absolute, described_site.MODIFIED), *versions.values()}
    for path, modified in described_site.MODIFIED.items():
        page, entry = parser[absolute(path)], scrapy[absolute(path)]
        assert page.last_modified == documents.lastmod(entry["lastmod"]) == modified
        assert page.change_frequency.value == entry["changefreq"] == "weekly"
        assert float(page.priority) == float(entry["priority"]) == 0.8
    for path, images in described_site.IMAGES.items():
        assert [image.loc for image in parser[absolute(path)].images] == [absolute(image) for image in images]
    [film] = [documents.parsed(body) for body in bodies.values() if b"<video:" in body]  # neither client reads videos
    [video] = described_site.VIDEOS.values()
    assert {
        element.tag.partition("}")[2]: element.text
        for element in next(film.iter("{http://www.google.com/schemas/sitemap-video/1.1}video"))
    } == {
        name.removesuffix("s"): absolute(str(value)) if name.endswith("_loc") else as_read(value)
        for name, value in video.items()
    }
    for path, news in described_site.NEWS.items():
        story = parser[absolute(path)].news_story
        read = (story.publication_name, story.publication_language, story.publish_date, story.title)
        assert read == (*news.values(),)

    for path, body in bodies.items():
        (tmp_path / "published" / path[1:]).parent.mkdir(exist_ok=True)
        (tmp_path / "published" / path[1:]).write_bytes(body)
    checked = cli_runner().invoke(command, ["check", str(tmp_path / "published"), "--base-url", base, "--json"])
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.output) == []


# Large sites

MAX_KB_OVER_IDLE = 24 * 1024
"""kB above what the server has when idle: by far less than the pages would take."""


def create_database(file: Path, count: int) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, slug TEXT)")
        posts = ((number, f"a-post-with-a-readable-name-{number:08}") for number in range(count))
        connection.executemany("INSERT INTO post VALUES (?, ?)", posts)


def until_made(server: servers.Server) -> float:
    """Ask for the sitemap until it is there; the seconds that took."""
    began = time.monotonic()
    while (answer := server.get("/sitemap.xml")).status == 503:
        assert answer.header("retry-after") == "60"
        assert time.monotonic() < began + 3000
        time.sleep(0.2)
    assert answer.status == 200, answer.text
    return time.monotonic() - began


COUNTS = [10_500, pytest.param(5_000_000, marks=pytest.mark.long)]
SERVED = [("flask_app", ["gunicorn", "--threads", "4", "--bind"]), ("starlette_app", ["uvicorn", "--port"])]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak memory from Linux's /proc")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("name", "command"), SERVED, ids=["flask", "starlette"])
def test_values_of_any_number_are_listed_once_in_little_memory(
    name: str, command: list[str], count: int, tmp_path: Path
) -> None:
    port = servers.free_port()
    env = {"POSTS": str(tmp_path / "posts.sqlite3"), "SITEMAP_STORE": f"sqlite:///{tmp_path}/kept.sqlite3"}
    create_database(tmp_path / "posts.sqlite3", count)
    where = f"127.0.0.1:{port}" if command[0] == "gunicorn" else str(port)
    command = [command[0], f"tests.apps.values_site:{name}", *command[1:], where, "--log-level", "warning"]
    with servers.serving(command, tmp_path, port, env=env, ready="/used") as server:
        idle = json.loads(server.get("/begin").body)
        seconds = until_made(server)
        used = json.loads(server.get("/used").body)
        print(f"\n{name}: {count} in {seconds:.1f} s, {used['kB'] - idle['kB']:.0f} kB over idle; {used}")
        base = f"http://127.0.0.1:{port}"
        listed = read_by_lxml(base, port, "gzip")
        expected = [f"{base}/posts/a-post-with-a-readable-name-{number:08}" for number in range(count)]
        assert list(listed) == expected, "in the provider's order"
        assert documents.parsed(server.get("/sitemap.xml").body).tag == f"{documents.NS}sitemapindex"
        assert json.loads(server.get("/used").body)["kB"] - idle["kB"] < MAX_KB_OVER_IDLE
        assert used["p999"] < 500, "milliseconds: of a loop that does not stand still"


@pytest.mark.parametrize("count", [10_002, pytest.param(2_500_000, marks=pytest.mark.long)])
def test_learned_pages_of_any_number_are_all_listed_once_with_their_dates(count: int, tmp_path: Path) -> None:
    port = servers.free_port()
    site = Site("http", f"127.0.0.1:{port}", loopback=True)
    now = int(time.time()) - 2 * 60 * 60  # of a large site, what was seen in the last hour or two is not dated yet
    # Every second page bears a date, each another, before the last month: a later one would count once it was seen to stay.
    dates = {number: now - 33 * DAY - 97 - number * 90 if number % 2 else None for number in range(count)}
    with contextlib.closing(SQLiteStore(tmp_path / "vast.sqlite3")) as store:
        for start in range(0, count, 50_000):
            seen = partial(
                Observation, route="/pages/{number}", at=now, status=200, media_type="text/html", is_read=True
            )
            observations = [
                seen(f"/pages/{number}", last_modified=dates[number], learned=True)
                for number in range(start, min(start + 50_000, count))
            ]
            save_observations(store, site.store_key, observations, PageLimits(count, count))
    command = ["uvicorn", "tests.apps.vast_site:app", "--port", str(port), "--log-level", "warning"]
    env = {"SITEMAP_STORE": f"sqlite:///{tmp_path}/vast.sqlite3"}
    with servers.serving(command, tmp_path, port, env=env) as server:
        parts = [f"{site.base_url}/sitemap-pages-{number}.xml" for number in range(1, -(-count // PART_PAGES) + 1)]
        # The first answer may name only the parts that were rendered while it waited.
        until(lambda: documents.locs(server.get("/sitemap.xml").body) == parts)
        expected = {
            f"{site.base_url}/pages/{number}": None if last_modified is None else moment(last_modified)
            for number, last_modified in dates.items()
        }
        for encoding in ("gzip", "identity"):
            assert read_by_lxml(site.base_url, port, encoding) == expected
        assert read_by_ultimate_sitemap_parser(site.base_url, "gzip") == expected
