"""Two machines and one store: each answers on while a partition parts one of them from it, and both agree once it heals.

A machine is a network namespace with a server of its own, and a cable that is its only
way to the store; or an address of the loopback network, and a proxy, where a system
allows no more, or who knocks is to be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware.stores.breaker import MAX_BACKOFF_SECONDS

from ..apps.machine_site import STATIC, body
from ..support import documents
from ..support.engines import PostgreSQL, Redis
from ..support.machines import Machine, refused, swallowed
from ..support.servers import Server, free_port, serving
from ..support.waiting import until

pytestmark = pytest.mark.uncovered

BASE = "https://example.com"
HOST = {"Host": "example.com"}


def serving_on(machine: Machine, engine: PostgreSQL | Redis, folder: Path) -> AbstractContextManager[Server]:
    folder.mkdir()
    (folder / "clock").write_text("0")
    port = free_port()
    env = {
        "SITEMAP_STORE": engine.url.replace(f"127.0.0.1:{engine.proxy.port}", machine.store),
        "SITEMAP_BASE_URL": BASE,
        "SITE_CLOCK": str(folder / "clock"),
        "SITE_GONE": str(folder.parent / "gone"),
    }
    uvicorn = ["uvicorn", "tests.apps.machine_site:app", "--host", machine.address, "--port", str(port)]
    command = [*machine.entry, *uvicorn, "--log-level", "warning"]
    return serving(command, folder, port, env=env, ready="/?ready", host=machine.address)


def visit(server: Server, *paths: str, status: int = 200) -> None:
    for path in paths:
        answer = server.get(path, HOST)
        assert (answer.status, answer.text) == (status, body(path))


def listed(server: Server) -> list[str]:
    """The paths in its sitemap, which must always be served."""
    answer = server.get("/sitemap.xml", HOST)
    assert answer.status == 200
    return sorted(loc.removeprefix(BASE) for loc in documents.locs(answer.body))


def agree(first: Server, second: Server) -> bool:
    """Whether both serve the same, to the byte."""
    answers = [server.get("/sitemap.xml", HOST) for server in (first, second)]
    known = {(answer.status, answer.body, answer.header("etag"), answer.header("last-modified")) for answer in answers}
    return len(known) == 1


@pytest.mark.parametrize(
    ("of", "machine"),
    [
        pytest.param(PostgreSQL, swallowed, id="PostgreSQL, swallowed"),
        pytest.param(PostgreSQL, refused, id="PostgreSQL, refused", marks=pytest.mark.long),
        pytest.param(Redis, refused, id="Redis, refused"),
        pytest.param(Redis, swallowed, id="Redis, swallowed", marks=pytest.mark.long),
    ],
)
def test_partitioned_machines_keep_serving_and_converge_afterwards(
    of: type[PostgreSQL | Redis],
    machine: Callable[[int, Path], Machine],
    start_engine: Callable[[type[Any]], Any],
    tmp_path: Path,
) -> None:
    engine = start_engine(of)
    engine.patience = 1
    (tmp_path / "gone").touch()
    with ExitStack() as stack:
        here, there = (stack.enter_context(closing(machine(number, engine.proxy.target))) for number in range(2))
        near = stack.enter_context(serving_on(here, engine, tmp_path / "near"))
        far = stack.enter_context(serving_on(there, engine, tmp_path / "far"))
        visit(near, *STATIC, "/posts/first")
        visit(far, *STATIC, "/posts/second")
        both = sorted([*STATIC, "/posts/first", "/posts/second"])
        until(lambda: listed(near) == both and listed(far) == both and agree(near, far))
        there.part()
        (tmp_path / "gone").write_text("/terms")
        for _ in range(2):
            visit(near, "/terms", status=404)
            visit(near, "/", "/posts/near")
            visit(far, "/", "/about", "/posts/far")
            assert listed(far) == both, "it knows of neither"
        until(lambda: listed(near) == ["/", "/about", "/posts/first", "/posts/near", "/posts/second"])
        there.repair()
        (tmp_path / "far" / "clock").write_text(str(MAX_BACKOFF_SECONDS))
        after = sorted(["/", "/about", *(f"/posts/{slug}" for slug in ("first", "second", "near", "far"))])
        until(lambda: listed(near) == after and listed(far) == after and agree(near, far))
        log = far.log.read_text()
        assert log.count("store unavailable since ") == 1
        assert log.count("store available again after ") == 1
        assert near.log.read_text() == ""
