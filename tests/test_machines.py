"""Two machines and one store: each answers on while a partition parts one of them from it, and both agree once it heals.

A machine is an address of the loopback network with a server of its own, and a
proxy that is its only way to the store.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware.stores.guard import LONGEST

from .apps.machine_site import STATIC, body
from .support import documents
from .support.engines import PostgreSQL, Redis, until
from .support.proxy import Proxy
from .support.servers import Server, free_port, serving

BASE = "https://example.com"
HOST = {"Host": "example.com"}


def addresses() -> list[str]:
    """Of two machines; one address has to do where a system lends the loopback network no more."""
    found = []
    for host in ("127.0.0.2", "127.0.0.3"):
        with suppress(OSError), socket.socket() as probe:
            probe.bind((host, 0))
            found.append(host)
    return found if len(found) == 2 else ["127.0.0.1"] * 2


def machine(host: str, store: str, folder: Path) -> AbstractContextManager[Server]:
    folder.mkdir()
    (folder / "clock").write_text("0")
    port = free_port()
    env = {"SITEMAP_STORE": store, "SITEMAP_BASE_URL": BASE, "SITE_CLOCK": str(folder / "clock")}
    command = ["uvicorn", "tests.apps.machine_site:app", "--host", host, "--port", str(port), "--log-level", "warning"]
    env["SITE_GONE"] = str(folder.parent / "gone")
    return serving(command, folder, port, env=env, ready="/?ready", host=host)


def visit(server: Server, *paths: str, status: int = 200) -> None:
    for path in paths:
        answer = server.get(path, HOST)
        assert (answer.status, answer.text) == (status, body(path))


def listed(server: Server) -> list[str]:
    """The paths in its sitemap, which is there whatever happens."""
    answer = server.get("/sitemap.xml", HOST)
    assert answer.status == 200
    return sorted(loc.removeprefix(BASE) for loc in documents.locs(answer.body))


def agree(one: Server, other: Server) -> bool:
    """Whether both serve the same, to the byte."""
    answers = [server.get("/sitemap.xml", HOST) for server in (one, other)]
    known = {(answer.status, answer.body, answer.header("etag"), answer.header("last-modified")) for answer in answers}
    return len(known) == 1


@pytest.mark.parametrize(
    ("of", "parts"),
    [
        pytest.param(PostgreSQL, Proxy.cut, id="PostgreSQL, refused"),
        pytest.param(PostgreSQL, Proxy.hang, id="PostgreSQL, swallowed", marks=pytest.mark.long),
        pytest.param(Redis, Proxy.cut, id="Redis, refused", marks=pytest.mark.long),
        pytest.param(Redis, Proxy.hang, id="Redis, swallowed"),
    ],
)
def test_machines_answer_on_while_they_are_parted_and_serve_the_same_once_they_are_not(
    of: type[PostgreSQL | Redis],
    parts: Callable[[Proxy], None],
    made: Callable[[type[Any]], Any],
    tmp_path: Path,
) -> None:
    engine = made(of)
    engine.patience = 1
    link = Proxy(engine.proxy.target)
    (tmp_path / "gone").touch()
    near_host, far_host = addresses()
    with (
        machine(near_host, engine.url, tmp_path / "near") as near,
        machine(far_host, engine.url.replace(f":{engine.proxy.port}/", f":{link.port}/"), tmp_path / "far") as far,
    ):
        visit(near, *STATIC, "/posts/first")
        visit(far, *STATIC, "/posts/second")
        both = sorted([*STATIC, "/posts/first", "/posts/second"])
        until(lambda: listed(near) == both and listed(far) == both and agree(near, far))
        parts(link)
        (tmp_path / "gone").write_text("/terms")
        for _ in range(2):
            visit(near, "/terms", status=404)
            visit(near, "/", "/posts/near")
            visit(far, "/", "/about", "/posts/far")
            assert listed(far) == both, "it knows of neither"
        until(lambda: listed(near) == ["/", "/about", "/posts/first", "/posts/near", "/posts/second"])
        link.mend()
        (tmp_path / "far" / "clock").write_text(str(LONGEST))
        after = sorted(["/", "/about", *(f"/posts/{slug}" for slug in ("first", "second", "near", "far"))])
        until(lambda: listed(near) == after and listed(far) == after and agree(near, far))
        told = far.log.read_text()
        assert told.count("the sitemap's store fails, since ") == 1
        assert told.count("the sitemap's store works again, after ") == 1
        assert near.log.read_text() == ""
    link.close()
