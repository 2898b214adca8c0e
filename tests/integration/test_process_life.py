"""Forks, signals and the end of a process: the middleware leaves them to the app and its server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SITES = {
    "wsgi": """
from flask import Flask, Response
from werkzeug.test import Client
from sitemap_middleware import SitemapMiddleware
app = Flask("site", static_folder=None)
app.add_url_rule("/", "home", lambda: Response(PAGE, content_type=TYPE))
site = SitemapMiddleware(app, base_url="http://localhost", store=STORE)

def get(path):
    return Client(site).get(path, headers={"Accept": "text/html"}).data
""",
    "asgi": """
import asyncio
import anyio.to_thread, anyio.from_thread, anyio._backends._asyncio  # imported by AnyIO's own first call of a thread
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware

async def home(request):
    return Response(PAGE, headers={"content-type": TYPE})

site = SitemapMiddleware(Starlette(routes=[Route("/", home)]), base_url="http://localhost", store=STORE)

def get(path):
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(b"host", b"localhost"), (b"accept", b"text/html")], "http_version": "1.1",
    }
    sent = []
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        sent.append(message.get("body", b""))
    asyncio.run(site(scope, receive, send))
    return b"".join(sent)
""",
}
"""An app of each protocol, wrapped; `get` requests a path."""

HTML = b"""<html><head><title>A</title><link rel=canonical href="/"><script type="application/ld+json">
{"dateModified": "2024-05-01"}</script></head><body><p>Seen 3 hours ago <time datetime="2024-01-01">then</time>"""


def run(
    protocol: str, script: str, folder: Path, store: str = "sqlite:///site.sqlite3", charset: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    """Run a script that has the site of `SITES`, in a folder."""
    settings = f"PAGE, TYPE, STORE = {HTML!r}, 'text/html; charset={charset}', {store!r}\n"
    return subprocess.run(
        [sys.executable, "-c", settings + SITES.get(protocol, "") + script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        timeout=100,
        check=False,
        capture_output=True,
        text=True,
    )


FORKS = """
import os, signal, time
get(WARM_UP)
for round in range(12):
    time.sleep(round / 250)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if b"<loc>http://localhost/</loc>" in get("/sitemap.xml") else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, (round, status)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "warm_up", "store"), [("wsgi", "/", "sqlite:///a.sqlite3"), ("asgi", "/sitemap.xml", "memory://")]
)
def test_child_that_is_forked_right_after_the_first_request_serves_the_sitemap(
    protocol: str, warm_up: str, store: str, tmp_path: Path
) -> None:
    ran = run(protocol, FORKS.replace("WARM_UP", repr(warm_up)), tmp_path, store)
    assert ran.returncode == 0, ran.stderr


IMPORTS = """
import os, sys, threading, time
found = []

def hook(event, arguments):
    if event == "import" and threading.current_thread() is not threading.main_thread():
        found.append((threading.current_thread().name, arguments[0]))

sys.addaudithook(hook)
for path in ("/", "/nothing", "/sitemap.xml", "/robots.txt"):
    get(path)
    time.sleep(0.1)
site.flush()
deadline = time.monotonic() + 10
while site.stats()["pending"] and STORE.startswith(("sqlite:", "memory:")) and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(2.5)  # the thread's own flush, and the requests that follow it
print(found)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "store", "charset"),
    [
        ("wsgi", "sqlite:///site.sqlite3", "shift_jis"),
        ("wsgi", "redis://localhost:1/0", "utf-16"),
        ("asgi", "postgresql://localhost:1/none", "no-such-charset"),
    ],
)
def test_no_thread_of_the_middleware_imports_a_module(protocol: str, store: str, charset: str, tmp_path: Path) -> None:
    """A child that is forked meanwhile would wait for that import without end."""
    ran = run(protocol, IMPORTS, tmp_path, store, charset)
    assert (ran.stdout.strip(), ran.returncode) == ("[]", 0), ran.stderr


HOOKS = """
import multiprocessing.util, signal, sys, types
sys.modules["uwsgi"] = uwsgi = types.ModuleType("uwsgi")

def state():
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)]
    return handlers, dict(multiprocessing.util._finalizer_registry), vars(uwsgi).keys(), sys.excepthook, sys.gettrace()

before = state()
SitemapMiddleware(site.app if hasattr(site, "app") else app, store="memory://")
assert state() == before
get("/")
get("/sitemap.xml")
site.flush()
assert state() == before
site.close()
assert state() == before
"""


@pytest.mark.parametrize("protocol", SITES)
def test_nothing_of_the_process_is_changed(protocol: str, tmp_path: Path) -> None:
    ran = run(protocol, HOOKS, tmp_path)
    assert ran.returncode == 0, ran.stderr


LOST = """
import time
from sitemap_middleware import StoreError
from sitemap_middleware.stores.sqlite import SQLiteStore

def fail(*arguments, **named):
    if SECONDS:
        time.sleep(SECONDS)
    raise StoreError("the disk is full")

SQLiteStore.write = fail
get("/")
END
"""
SHUT_DOWN = """
messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
async def receive():
    return next(messages)
async def send(message):
    pass
asyncio.run(site({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "end", "seconds"),
    [("wsgi", "", 0), ("wsgi", "site.close()", 0), ("asgi", SHUT_DOWN, 0), ("wsgi", "", 30)],
    ids=["exit", "close", "lifespan", "a store that hangs"],
)
def test_what_was_not_saved_at_the_end_is_logged_once(
    protocol: str, end: str, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITEMAP_VERIFY", "0")  # a visit is to be saved at once
    ran = run(protocol, LOST.replace("END", end).replace("SECONDS", str(seconds)), tmp_path)
    lines = [line for line in ran.stderr.splitlines() if "were not saved" in line]
    assert len(lines) == 1, ran.stderr
    assert lines[0].split()[0].isdigit()
    assert lines[0].startswith("0 ") is False


@pytest.mark.parametrize("protocol", SITES)
def test_nothing_is_logged_at_an_end_that_saved_all(protocol: str, tmp_path: Path) -> None:
    ran = run(protocol, "get('/')\n", tmp_path)
    assert "were not saved" not in ran.stderr
    kept = run(protocol, "print(b'<loc>' in get('/sitemap.xml'), site.explain('/').listed)", tmp_path)
    assert (kept.stdout, kept.returncode) == ("True True\n", 0), kept.stderr


@pytest.mark.parametrize("end", ["", "del site"])
def test_a_middleware_that_is_never_closed_leaves_nothing_open_at_exit(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDEVMODE", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error,ignore::PendingDeprecationWarning")
    ran = run("asgi", f"get('/')\nget('/sitemap.xml')\n{end}", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


GREENLETS = """
from gevent import monkey; monkey.patch_all()
import gevent
from flask import Flask
from werkzeug.test import Client
from sitemap_middleware import SitemapMiddleware

app = Flask("site", static_folder=None)
app.add_url_rule("/<int:number>", "page", lambda number: f"<!doctype html><title>{number}</title><p>{number}")
site = SitemapMiddleware(app, base_url="http://localhost", store=STORE, learn="/<int:number>", verify=False)
for number in range(300):
    Client(site).get(f"/{number}", headers={"Accept": "text/html"}).data
turns = []

def visit():
    while True:
        turns.append(1)
        gevent.sleep(0)

gevent.spawn(visit)
site.flush()
print(len(turns) >= 50, site.stats()["merged"])
"""


def test_greenlets_take_turns_while_pages_are_saved(tmp_path: Path) -> None:
    """All greenlets of a worker share one thread: what does not pause stops every page."""
    pytest.importorskip("gevent")
    ran = run("gevent", GREENLETS, tmp_path, "memory://")
    assert ran.stdout == "True 300\n", ran.stderr
