"""The examples: each a small site that runs as it stands, by a real server, and has the sitemap it promises."""

import importlib.util
import shutil
import socket
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

import pytest
from lxml import html

from .support.documents import entries
from .support.servers import ROOT, Server, free_port, serving

EXAMPLES = ROOT / "examples"
SITEMAPS = {
    "flask_site": {
        "/": {"changefreq": "weekly", "priority": "1.0"},
        "/bread": {"lastmod": "2025-05-02T04:30:00Z"},
        "/bread/baguette": {},
        "/bread/rye": {},
        "/bread/spelt": {},
    },
    "starlette_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/log": {"lastmod": "2025-03-09T06:12:00Z"},
        "/log/calm": {},
        "/log/fog": {},
        "/log/gale": {},
    },
    "fastapi_site": {
        "/": {"changefreq": "monthly", "priority": "1.0"},
        "/plants": {"lastmod": "2025-04-12T09:00:00Z"},
    },
}
UNLISTED = {
    "flask_site": {"/rota": 200, "/bread/stone": 404},
    "starlette_site": {"/rota": 200, "/log/mutiny": 404},
    "fastapi_site": {"/plants/overdue": 200, "/api/plants": 200, "/docs": 200},
}
EACH = pytest.mark.parametrize("site", sorted(SITEMAPS))


def running(site: str, folder: Path, port: int) -> AbstractContextManager[Server]:
    """The example's own server, with the example alone in a folder, so that what it writes can be seen there."""
    shutil.copy(EXAMPLES / f"{site}.py", folder)
    if site == "flask_site":
        return serving(["gunicorn", "flask_site:app", "--bind", f"127.0.0.1:{port}"], folder, port)
    return serving(["uvicorn", f"{site}:app", "--port", str(port), "--log-level", "warning"], folder, port)


def sitemap(server: Server) -> dict[str, dict[str, str]]:
    base = f"http://127.0.0.1:{server.port}"
    return {loc.removeprefix(base): said for loc, said in entries(server.get("/sitemap.xml").body).items()}


def walk(server: Server) -> set[str]:
    """Every page that a reader reaches from the home page by links, each of which must lead to one."""
    found, waiting = set(), ["/"]
    while waiting:
        path = waiting.pop()
        answer = server.get(path)
        assert answer.status == 200, path
        found.add(path)
        if path != "/sitemap.xml":
            waiting += [link for link in html.fromstring(answer.text).xpath("//a/@href") if link not in found]
    return found


@EACH
def test_its_sitemap_holds_what_the_routes_prove_and_then_what_visits_show(site: str, tmp_path: Path) -> None:
    unseen = {path: said for path, said in SITEMAPS[site].items() if path.count("/") == 1}
    with running(site, tmp_path, free_port()) as server:
        assert sitemap(server) == unseen
        reached = walk(server)
        assert {path: server.get(path).status for path in UNLISTED[site]} == UNLISTED[site]
        assert sitemap(server) == SITEMAPS[site]
        assert reached == {*SITEMAPS[site], "/sitemap.xml"}


@EACH
def test_what_its_sitemap_learned_outlives_it_in_the_default_store(site: str, tmp_path: Path) -> None:
    port = free_port()
    with running(site, tmp_path, port) as server:
        for path in SITEMAPS[site]:
            server.get(path)
        server.stop()
    store = tmp_path / ("instance/sitemap.sqlite3" if site == "flask_site" else "sitemap.sqlite3")
    assert store.exists()
    with running(site, tmp_path, port) as server:
        assert sitemap(server) == SITEMAPS[site]


@EACH
def test_it_is_short_enough_to_be_read_at_a_glance(site: str) -> None:
    assert len((EXAMPLES / f"{site}.py").read_text("utf-8").splitlines()) < 40


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


def test_the_command_takes_the_port_it_was_given(starter: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    assert starter.usable_port(port) == port
    assert not capsys.readouterr().out


@pytest.mark.parametrize("wanted", ["taken", 65_536, -1])
def test_the_command_takes_a_free_port_where_it_must_and_says_so(
    starter: ModuleType, capsys: pytest.CaptureFixture[str], wanted: int | str
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        if wanted == "taken":
            wanted = other.getsockname()[1]
        found = starter.usable_port(wanted)
        assert found not in (wanted, 0)
        assert f"Port {wanted} cannot be had" in capsys.readouterr().out


def test_the_command_makes_its_environment_again_when_what_it_is_made_from_changes(starter: ModuleType) -> None:
    made = {starter.fingerprint(b"a", "3.11"), starter.fingerprint(b"b", "3.11"), starter.fingerprint(b"a", "3.12")}
    assert len(made) == 3
    assert starter.fingerprint(b"a", "3.11") in made


def test_the_command_refuses_a_site_that_it_has_not(starter: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        starter.main(["django"])
    assert "invalid choice: 'django'" in capsys.readouterr().err
