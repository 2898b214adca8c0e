"""What the middleware adds to the start of a small Flask app: time to import and to wrap, memory, first requests.

The memory after a first page, and after a first sitemap, includes what is imported for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from statistics import median
from typing import Final

from .tables import Table

ROUNDS: Final = 9
SHORT = {"rounds": 2}
_CHILD: Final = """
import json, time
from pathlib import Path
import flask

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

app = flask.Flask("small")
app.add_url_rule("/", "home", lambda: "a page")
began, before = time.process_time(), resident()
from sitemap_middleware import SitemapMiddleware
imported = time.process_time()
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://example.com", store="memory://")
ready = time.process_time()
figures = [(imported - began) * 1e3, (ready - began) * 1e3, resident() - before]

def seconds(path):
    environ = dict(
        REQUEST_METHOD="GET", SCRIPT_NAME="", PATH_INFO=path, QUERY_STRING="", HTTP_HOST="example.com", SERVER_NAME="x",
        SERVER_PORT="80",
    )
    environ["wsgi.url_scheme"] = "https"
    began = time.thread_time()
    list(app.wsgi_app(environ, lambda status, headers, exc_info=None: None))
    return time.thread_time() - began

apps = [flask.Flask(f"app {number}") for number in range(200)]
before = resident()
sites = [SitemapMiddleware(app.wsgi_app, base_url="https://example.com", store="memory://") for app in apps]
each = (resident() - before) / len(apps) * 1024

before = resident()
page = seconds("/") * 1e3
app.wsgi_app.flush()
saved = figures[-1] + resident() - before
document = seconds("/sitemap.xml") * 1e3
served = figures[-1] + resident() - before
print(json.dumps([*figures, saved, served, each, page, document]))
"""
ROWS: Final = (
    "import, ms",
    "import and wrap, ms",
    "memory, MB",
    "memory after a page was saved, MB",
    "memory after a sitemap too, MB",
    "memory of each of 200 further apps, kB",
    "first page, ms",
    "first sitemap, ms",
)


def run(rounds: int = ROUNDS) -> Iterator[Table]:
    """Start a process for each round, and one before them that writes the bytecode, as an installation does."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        _, *figures = [_figures(environment) for _ in range(rounds + 1)]
    table = Table("What the middleware adds to the start of a Flask app", ["", "median", "least", "most"])
    for name, values in zip(ROWS, zip(*figures, strict=True), strict=True):
        table.add(name, median(values), min(values), max(values))
    yield table


def _figures(environment: dict[str, str]) -> list[float]:
    done = subprocess.run([sys.executable, "-c", _CHILD], env=environment, capture_output=True, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures
