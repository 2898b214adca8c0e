"""An app factory on servers, which is configured by nothing but the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..support import documents
from ..support.servers import ROOT, gunicorn, uvicorn

HOST = {"Host": "shop.example"}
PRODUCTION = {"SITEMAP_BASE_URL": "https://shop.example", "SITEMAP_STORE": "sqlite:///pages.sqlite3"}

FLASK = """
from flask import Flask
from sitemap_middleware.flask import Sitemap

extension = Sitemap(exclude="/private")

def create_app(name="shop"):
    app = Flask(name)
    for path in ("/a", "/b", "/private"):
        app.add_url_rule(path, path, lambda: "a page")
    extension.init_app(app)
    return app
"""

FASTAPI = """
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from sitemap_middleware import SitemapMiddleware

def create_app():
    app = FastAPI()
    for path in ("/a", "/b", "/private"):
        app.get(path, response_class=HTMLResponse)(lambda: "a page")
    app.add_middleware(SitemapMiddleware, exclude="/private")
    assert SitemapMiddleware.of(app).settings["exclude"].source == "argument"
    return app
"""


@pytest.fixture(params=["flask", "fastapi"])
def framework(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    framework: str = request.param
    (tmp_path / "shop.py").write_text(FLASK if framework == "flask" else FASTAPI, "utf-8")
    return framework


@pytest.mark.slow
def test_workers_of_a_factory_serve_one_sitemap(framework: str, tmp_path: Path) -> None:
    options = ("--workers", "2")
    started = (
        gunicorn("shop:create_app('shop')", tmp_path, *options, env=PRODUCTION, ready="/a")
        if framework == "flask"
        else uvicorn("shop:create_app", tmp_path, "--factory", *options, env=PRODUCTION, ready="/a")
    )
    with started as server:
        listed = {tuple(documents.locs(server.get("/sitemap.xml", HOST).body)) for _ in range(6)}
        robots = {server.get("/robots.txt", HOST).text for _ in range(6)}
    assert listed == {("https://shop.example/a", "https://shop.example/b")}
    assert robots == {"User-agent: *\nDisallow:\n\nSitemap: https://shop.example/sitemap.xml\n"}
    assert (tmp_path / "pages.sqlite3").exists()


@pytest.mark.slow
def test_an_invalid_variable_ends_the_start_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FLASK, "utf-8")
    command = [sys.executable, "-m", "gunicorn", "shop:create_app()", "--check-config"]
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "SITEMAP_MAX_AGE": "5 minutes"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "SITEMAP_MAX_AGE='5 minutes' is not a number of seconds; give 0 or more" in done.stderr
