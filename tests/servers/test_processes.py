"""Where the store is, apps without a server, forks."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ..apps import served_site
from ..support import documents, servers
from ..support.waiting import until
from ..support.wire import Answer
from .test_servers import HOST, UNSEEN, Launch, listed, stored_paths


def stored(folder: Path) -> dict[str, Any]:
    """What starts a server with its store in a folder, and nothing in it yet."""
    return {"env": {"SITEMAP_STORE": f"sqlite:///{folder}/shared.sqlite3"}, "ready": UNSEEN}


OWN_FLASK = """
import flask
from sitemap_middleware import SitemapMiddleware

app = flask.Flask(__name__{more})
app.add_url_rule("/", "home", lambda: "<!doctype html><title>home</title>")
app.wsgi_app = SitemapMiddleware(app.wsgi_app)
"""

OWN_STARLETTE = """
import os
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware

{more}
app = Starlette(routes=[Route("/", lambda request: HTMLResponse("<!doctype html><title>home</title>"))])
app.add_middleware(SitemapMiddleware)
"""


def own(app: str, more: str, folder: Path) -> str:
    """Write an app to a module in a folder, as a user has it; return its name for a server."""
    Path(folder, "own_app.py").write_text(app.format(more=more), "utf-8")
    return "own_app:app"


@pytest.mark.parametrize(
    ("launch", "app", "file"),
    [
        pytest.param(servers.gunicorn, OWN_FLASK, "instance/sitemap.sqlite3", id="Flask's instance folder"),
        pytest.param(servers.gunicorn, OWN_FLASK, "sitemap.sqlite3", id="Flask without an instance folder"),
        pytest.param(servers.uvicorn, OWN_STARLETTE, "sitemap.sqlite3", id="the working directory"),
    ],
)
def test_default_store_file_appears_at_first_use(launch: Launch, app: str, file: str, tmp_path: Path) -> None:
    Path(tmp_path, file).parent.mkdir(exist_ok=True)
    with launch(own(app, "", tmp_path), tmp_path, ready=UNSEEN) as server:
        assert not Path(tmp_path, file).exists()
        assert server.get("/").status == 200
        until(Path(tmp_path, file).exists)
        assert server.get("/sitemap.xml").status == 200
    assert "memory" not in server.log.read_text()


@pytest.mark.parametrize(
    ("launch", "app", "more"),
    [
        pytest.param(servers.gunicorn, OWN_FLASK, ", instance_path='/proc'", id="Flask's instance folder"),
        pytest.param(servers.uvicorn, OWN_STARLETTE, "os.chdir('/proc')", id="the working directory"),
    ],
)
def test_unwritable_folder_falls_back_to_memory_with_one_warning(
    launch: Launch, app: str, more: str, tmp_path: Path
) -> None:
    with launch(own(app, more, tmp_path), tmp_path, ready=UNSEEN) as server:
        for _ in range(3):
            assert server.get("/").status == 200
            assert documents.locs(server.get("/sitemap.xml").body) == [f"http://127.0.0.1:{server.port}/"]
    log = server.log.read_text()
    assert log.count("sitemap store: memory, because") == 1
    assert "Traceback" not in log


# Processes that end after a request or a few


SERVERLESS = """
import os, signal
from mangum import Mangum
from sitemap_middleware import SitemapMiddleware
from tests.apps.served_fastapi import create_app
from tests.apps.served_site import VISITED

site = SitemapMiddleware(create_app(), base_url="http://localhost", learn="/posts/{{slug}}", verify={verify})
handler = Mangum(site, lifespan="off")

def call(path):
    event = {{
        "version": "2.0", "rawPath": path, "rawQueryString": "", "headers": {{"host": "localhost", "accept": "*/*", "x-forwarded-proto": "http"}},
        "requestContext": {{"http": {{"method": "GET", "path": path, "sourceIp": "127.0.0.1"}}, "domainName": "localhost"}},
        "isBase64Encoded": False,
    }}
    return handler(event, None)

for path in VISITED:
    assert call(path)["statusCode"] == 200
print(call("/sitemap.xml")["body"])
{end}
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param("", 0, id="the process ends"),
        pytest.param("call('/posts/last'); site.flush(); os.kill(os.getpid(), signal.SIGKILL)", -9, id="flush"),
    ],
)
def test_app_called_without_a_server_keeps_its_observations(end: str, status: int, tmp_path: Path) -> None:
    """Serverless: an adapter calls the app, with a new event loop for each call and no lifespan."""
    done = short_lived(SERVERLESS.format(end=end, verify=not end), tmp_path, {})
    assert (done.returncode, done.stderr) == (status, b"")
    if not end:
        assert listed(Answer(200, body=done.stdout)) == served_site.PAGES
    assert stored_paths(tmp_path) >= {*served_site.VISITED, *(["/posts/last"] if end else [])}


def short_lived(script: str, folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    own = {"SITEMAP_STORE": f"sqlite:///{folder}/shared.sqlite3", "PYTHONPATH": str(servers.ROOT)}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **own, **environ},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


# Forks


WARMED_UP = """
from werkzeug.test import Client
from tests.apps.dated_site import flask_app as app
assert Client(app).get({path!r}, headers={{"Accept": "text/html"}}, base_url="http://localhost").status_code == 200
"""


@pytest.mark.parametrize("path", ["/", "/sitemap.xml"])
def test_workers_forked_after_a_warm_up_request_serve_the_sitemap(path: str, tmp_path: Path) -> None:
    (tmp_path / "warmed_up.py").write_text(WARMED_UP.format(path=path))
    options = ("--preload", "--workers", "4", "--pythonpath", str(tmp_path))
    with servers.gunicorn("warmed_up:app", tmp_path, *options, **stored(tmp_path)) as server:

        def all_serve_it() -> bool:  # 404 for a moment, while another worker requests the first pages
            with ThreadPoolExecutor(8) as crowd:
                return {*crowd.map(lambda _: server.get("/sitemap.xml", HOST).status, range(16))} == {200}

        until(all_serve_it)
