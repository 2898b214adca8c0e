"""The examples: each a small site that runs as it stands, by a real server, and has the sitemap it promises."""

import importlib.util
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from lxml import html

from ..support.documents import entries
from ..support.servers import ROOT, Server, free_port, serving

EXAMPLES = ROOT / "examples"
SITEMAPS = {
    "flask_site": {
        "/": {"changefreq": "weekly", "priority": "1.0"},
        "/bread": {"lastmod": "2025-05-02T04:30:00Z"},
        "/bread/baguette": {"lastmod": "2025-05-01"},
        "/bread/rye": {"lastmod": "2025-05-01"},
        "/bread/spelt": {"lastmod": "2025-05-01"},
        "/notes": {},
    },
    "starlette_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/lamps": {"lastmod": "2025-03-09T06:12:00Z"},
        "/lamps/first": {"lastmod": "2025-03-01"},
        "/lamps/second": {"lastmod": "2025-03-01"},
        "/lamps/third": {"lastmod": "2025-03-01"},
        "/log": {},
    },
    "fastapi_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/plants": {"lastmod": "2025-04-12T09:00:00Z"},
        "/plants/cactus": {"lastmod": "2025-04-01"},
        "/plants/fern": {"lastmod": "2025-04-01"},
        "/plants/mint": {"lastmod": "2025-04-01"},
        "/tips": {},
    },
    "litestar_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/hives": {},
        "/honey": {"lastmod": "2025-07-07T08:15:00Z"},
        "/honey/acacia": {"lastmod": "2025-07-01"},
        "/honey/heather": {"lastmod": "2025-07-01"},
        "/honey/lime": {"lastmod": "2025-07-01"},
    },
    "quart_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/menus": {},
        "/stops": {"lastmod": "2025-12-14T03:00:00Z"},
        "/stops/harbour": {"lastmod": "2025-12-14"},
        "/stops/lake": {"lastmod": "2025-12-14"},
        "/stops/pass": {"lastmod": "2025-12-14"},
    },
    "falcon_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/birds": {"lastmod": "2025-04-01T05:20:00Z"},
        "/birds/gyr": {"lastmod": "2025-04-01"},
        "/birds/merlin": {"lastmod": "2025-04-01"},
        "/birds/saker": {"lastmod": "2025-04-01"},
        "/diary": {},
    },
    "django_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/films": {"lastmod": "2025-10-03T18:00:00Z"},
        "/films/dawn": {"lastmod": "2025-10-01"},
        "/films/harbour": {"lastmod": "2025-10-01"},
        "/films/letters": {"lastmod": "2025-10-01"},
        "/reviews": {},
    },
    "bottle_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/ciders": {"lastmod": "2025-11-08T10:00:00Z"},
        "/ciders/dry": {"lastmod": "2025-11-01"},
        "/ciders/ice": {"lastmod": "2025-11-01"},
        "/ciders/sweet": {"lastmod": "2025-11-01"},
        "/letters": {},
    },
    "pyramid_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/digs": {},
        "/rooms": {"lastmod": "2025-06-11T07:45:00Z"},
        "/rooms/bronze": {"lastmod": "2025-06-01"},
        "/rooms/glass": {"lastmod": "2025-06-01"},
        "/rooms/papyrus": {"lastmod": "2025-06-01"},
    },
}
"""As it is at first."""

LEARNED: dict[str, dict[str, dict[str, str]]] = {
    "flask_site": {"/notes/flour": {}, "/notes/oven": {}},
    "starlette_site": {"/log/calm": {}, "/log/fog": {}, "/log/gale": {}},
    "fastapi_site": {"/tips/light": {}, "/tips/water": {}},
    "litestar_site": {"/hives/north": {}, "/hives/orchard": {}},
    "quart_site": {"/menus/breakfast": {}, "/menus/supper": {}},
    "falcon_site": {"/diary/autumn": {}, "/diary/spring": {}},
    "django_site": {"/reviews/piano": {}, "/reviews/seats": {}},
    "bottle_site": {"/letters/frost": {}, "/letters/press": {}},
    "pyramid_site": {"/digs/harbour": {}, "/digs/well": {}},
}
"""What visits add."""

UNLISTED = {
    "flask_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/prices": 200, "/notes/stone": 404},
    "starlette_site": {"/draft": 200, "/login": 200, "/admin": 307, "/api/tides": 200, "/log/mutiny": 404},
    "fastapi_site": {"/draft": 200, "/login": 200, "/admin": 307, "/api/plants": 200, "/docs": 200, "/tips/none": 404},
    "litestar_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/weights": 200, "/hives/none": 404},
    "quart_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/delays": 200, "/menus/none": 404},
    "falcon_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/weights": 200, "/diary/none": 404},
    "django_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/seats": 200, "/reviews/none": 404},
    "bottle_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/stock": 200, "/letters/none": 404},
    "pyramid_site": {"/draft": 200, "/login": 200, "/admin": 302, "/api/hours": 200, "/digs/none": 404},
}
EACH = pytest.mark.parametrize("site", sorted(SITEMAPS))


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
    everything = dict(sorted((SITEMAPS[site] | LEARNED[site]).items()))
    with running(site, tmp_path, free_port()) as server:
        assert until(server, SITEMAPS[site]) == SITEMAPS[site]
        answer = server.get("/login", method="POST")
        cookie = {"Cookie": (answer.header("set-cookie") or "").partition(";")[0]}
        assert (answer.status, urlsplit(answer.header("location")).path) in ((302, "/admin"), (303, "/admin"))
        for path in ("/admin", *LEARNED[site]):
            assert server.get(path, cookie).status == 200
        assert sitemap(server) == SITEMAPS[site]
        reached = walk(server)
        assert {path: server.get(path).status for path in UNLISTED[site]} == UNLISTED[site]
        assert dict(sorted(until(server, everything).items())) == everything
        linked = {path: status for path, status in UNLISTED[site].items() if status != 404 and path != "/docs"}
        assert reached == {**dict.fromkeys([*everything, "/sitemap.xml", "/robots.txt"], 200), **linked}


@pytest.mark.parametrize("site", ["flask_site", "starlette_site"])
def test_what_its_sitemap_learned_outlives_it_in_the_default_store(site: str, tmp_path: Path) -> None:
    port, everything = free_port(), SITEMAPS[site] | LEARNED[site]
    with running(site, tmp_path, port) as server:
        for path in everything:
            server.get(path)
        server.stop()
    assert (tmp_path / "sitemap.sqlite3").exists()
    assert not (tmp_path / "instance").exists()
    with running(site, tmp_path, port) as server:
        assert until(server, everything) == everything


def test_the_first_site_leads_from_its_home_page_to_the_report(starter: ModuleType, tmp_path: Path) -> None:
    port = free_port()
    with serving([*starter.SERVERS["flask"][1:], "--port", str(port)], tmp_path, port) as server:
        assert until(server, SITEMAPS["flask_site"]) == SITEMAPS["flask_site"]
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
