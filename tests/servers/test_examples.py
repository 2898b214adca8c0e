"""The examples: each a small site that runs as it stands, by a real server, and has the sitemap it promises."""

import importlib.util
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from lxml import html

from ..support.documents import entries
from ..support.servers import ROOT, Server, free_port, serving

EXAMPLES = ROOT / "examples"


class Example(NamedTuple):
    often: str
    """The `changefreq` of the home page."""
    top: str
    """A page that is dated by what is below it."""
    edited: str
    day: str
    names: str
    """The pages below it, of this day."""
    journal: str
    """A page without a date."""
    learned: str
    """The pages below that, which visits add."""
    redirect: int
    data: str
    missing: str

    @property
    def at_first(self) -> dict[str, dict[str, str]]:
        return {
            "/": {"changefreq": self.often, "priority": "1.0"},
            self.top: {"lastmod": self.edited},
            **{f"{self.top}/{name}": {"lastmod": self.day} for name in self.names.split()},
            self.journal: {},
        }

    @property
    def later(self) -> dict[str, dict[str, str]]:
        return self.at_first | {f"{self.journal}/{name}": {} for name in self.learned.split()}

    @property
    def unlisted(self) -> dict[str, int]:
        docs = {"/docs": 200} if self.top == "/plants" else {}  # of FastAPI
        pages = {"/draft": 200, "/login": 200, "/admin": self.redirect, f"/api/{self.data}": 200}
        return {**pages, f"{self.journal}/{self.missing}": 404, **docs}


SITES = {
    "flask_site": Example("weekly", "/bread", "2025-05-02T04:30:00Z", "2025-05-01",
        "baguette rye spelt", "/notes", "flour oven", 302, "prices", "stone"),
    "starlette_site": Example("monthly", "/lamps", "2025-03-09T06:12:00Z", "2025-03-01",
        "first second third", "/log", "calm fog gale", 307, "tides", "mutiny"),
    "fastapi_site": Example("monthly", "/plants", "2025-04-12T09:00:00Z", "2025-04-01",
        "cactus fern mint", "/tips", "light water", 307, "plants", "none"),
    "litestar_site": Example("monthly", "/honey", "2025-07-07T08:15:00Z", "2025-07-01",
        "acacia heather lime", "/hives", "north orchard", 302, "weights", "none"),
    "quart_site": Example("monthly", "/stops", "2025-12-14T03:00:00Z", "2025-12-14",
        "harbour lake pass", "/menus", "breakfast supper", 302, "delays", "none"),
    "falcon_site": Example("monthly", "/birds", "2025-04-01T05:20:00Z", "2025-04-01",
        "gyr merlin saker", "/diary", "autumn spring", 302, "weights", "none"),
    "django_site": Example("monthly", "/films", "2025-10-03T18:00:00Z", "2025-10-01",
        "dawn harbour letters", "/reviews", "piano seats", 302, "seats", "none"),
    "bottle_site": Example("monthly", "/ciders", "2025-11-08T10:00:00Z", "2025-11-01",
        "dry ice sweet", "/letters", "frost press", 302, "stock", "none"),
    "pyramid_site": Example("monthly", "/rooms", "2025-06-11T07:45:00Z", "2025-06-01",
        "bronze glass papyrus", "/digs", "harbour well", 302, "hours", "none"),
}  # fmt: skip
EACH = pytest.mark.parametrize("site", sorted(SITES))


def running(site: str, folder: Path, port: int) -> AbstractContextManager[Server]:
    """The example's own server, with the example alone in a folder, so that what it writes can be seen there."""
    for file in (f"{site}.py", "theme.py", "wsgi_server.py"):
        shutil.copy(EXAMPLES / file, folder)
    if site == "flask_site":
        return serving(["gunicorn", "flask_site:app", "--bind", f"127.0.0.1:{port}"], folder, port)
    if site in ("bottle_site", "pyramid_site"):
        return serving(["wsgi_server", f"{site}:app", "--port", str(port)], folder, port)
    return serving(["uvicorn", f"{site}:app", "--port", str(port), "--log-level", "warning"], folder, port)


def sitemap(server: Server) -> dict[str, dict[str, str]]:
    base = f"http://127.0.0.1:{server.port}"
    return {loc.removeprefix(base): entry for loc, entry in entries(server.get("/sitemap.xml").body).items()}


def walk(server: Server) -> dict[str, int]:
    """Every path that a reader reaches from the home page by links, and its status."""
    statuses: dict[str, int] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        answer = server.get(path)
        statuses[path] = answer.status
        if answer.body and "text/html" in (answer.header("content-type") or ""):
            waiting += [link for link in html.fromstring(answer.text).xpath("//a/@href") if link not in statuses]
    return statuses


def until(server: Server, wanted: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The sitemap once it is as wanted, or as it is after a while: pages are requested behind the first answer."""
    end = time.monotonic() + 20
    while (listed := sitemap(server)) != wanted and time.monotonic() < end:
        time.sleep(0.2)
    return listed


@EACH
def test_first_sitemap_lists_public_pages_and_anonymous_visits_add_more(site: str, tmp_path: Path) -> None:
    example = SITES[site]
    everything = dict(sorted(example.later.items()))
    with running(site, tmp_path, free_port()) as server:
        assert until(server, example.at_first) == example.at_first
        answer = server.get("/login", method="POST")
        cookie = {"Cookie": (answer.header("set-cookie") or "").partition(";")[0]}
        assert (answer.status, urlsplit(answer.header("location")).path) in ((302, "/admin"), (303, "/admin"))
        for path in ("/admin", *(everything.keys() - example.at_first.keys())):
            assert server.get(path, cookie).status == 200
        assert sitemap(server) == example.at_first
        reached = walk(server)
        assert {path: server.get(path).status for path in example.unlisted} == example.unlisted
        assert dict(sorted(until(server, everything).items())) == everything
        linked = {path: status for path, status in example.unlisted.items() if status != 404 and path != "/docs"}
        assert reached == {**dict.fromkeys([*everything, "/sitemap.xml", "/robots.txt"], 200), **linked}


def test_the_first_site_leads_from_its_home_page_to_the_report(starter: ModuleType, tmp_path: Path) -> None:
    port = free_port()
    with serving([*starter.SERVERS["flask"][1:], "--port", str(port)], tmp_path, port) as server:
        assert until(server, SITES["flask_site"].at_first) == SITES["flask_site"].at_first
        (link,) = html.fromstring(server.get("/").text).xpath("//main//a[contains(., 'sitemap')]/@href")
        report = server.get(f"{link}/pages")
        assert report.status == 200
        assert all(path in report.text for path in ("/bread/spelt", "/draft", "it answered 302"))
        assert link not in sitemap(server)


def test_the_tour_shows_a_date_a_page_that_drops_out_and_why(tmp_path: Path) -> None:
    toured = subprocess.run(
        [sys.executable, EXAMPLES / "tour.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = toured.stdout.splitlines()
    bread = "<url><loc>https://bakery.example/bread</loc>"
    assert [line[:2].strip() for line in lines if line[2:].startswith(bread)] == ["+", "-", "+", "-", "+", "-"]
    assert any(line.startswith(f"+ {bread}<lastmod>2026-01-") for line in lines)
    assert "/bread is not listed: its X-Robots-Tag says noindex" in lines
    assert "/admin is not listed: it answered 403" in lines
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def starter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_main", EXAMPLES / "__main__.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_knows_every_example(starter: ModuleType) -> None:
    assert {f"{name}_site" for name in starter.SERVERS} == {file.stem for file in EXAMPLES.glob("*_site.py")}


def test_the_command_refuses_a_site_that_it_has_not(starter: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        starter.main(["rails"])
    assert "invalid choice: 'rails'" in capsys.readouterr().err
