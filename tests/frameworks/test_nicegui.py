"""NiceGUI: its pages are routes of FastAPI that declare nothing."""

from __future__ import annotations

import subprocess
import sys

SITE = """
import warnings
warnings.simplefilter("ignore")
from fastapi import FastAPI
from nicegui import app as nicegui_app, ui
from sitemap_middleware import SitemapMiddleware, sitemap
from tests.support.documents import entries
from tests.support.wire import DRIVERS, RequestSpec

@ui.page("/")
@sitemap(priority=0.9)
def home():
    ui.label("Home")

@ui.page("/about")
def about():
    ui.label("About us")

@ui.page("/search")
def search(q: str):
    ui.label(q)

@ui.page("/people/{name}")
@sitemap(learn=True)
def person(name: str):
    ui.label(name)

app = FastAPI()

@app.get("/data")
def data():
    return {}

ui.run_with(app)
wrapped = SitemapMiddleware(app, base_url="http://testserver", store="memory://")
ask = lambda path: DRIVERS["asgi"](wrapped, RequestSpec(path))
print(sorted(entries(ask("/sitemap.xml").body).items()))
assert ask("/people/ann").status == 200
wrapped.flush()
print(sorted(entries(ask("/sitemap.xml").body)))
print(wrapped.explain("/search").reason)
print(wrapped.explain("/data").reason)
"""


def test_pages_of_nicegui_are_listed_at_once_and_learned() -> None:
    """In a process of its own: NiceGUI has one app for each process."""
    result = subprocess.run([sys.executable, "-c", SITE], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    base = "http://testserver"
    assert [line for line in result.stdout.splitlines() if " not found" not in line] == [
        f"[('{base}/', {{'priority': '0.9'}}), ('{base}/about', {{}})]",
        f"['{base}/', '{base}/about', '{base}/people/ann']",
        "it answered 422",
        "it declares a response of application/json, and no visit has shown yet that it is a page",
    ]
