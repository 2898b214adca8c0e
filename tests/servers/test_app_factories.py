"""An app factory on servers, which is configured by nothing but the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..support import documents
from ..support.servers import ROOT, Server, gunicorn, uvicorn

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


def serve(framework: str, folder: Path, **env: str) -> list[str | int]:
    """What a server with two workers says of the site, by each of several requests: locs or a status, and robots.txt."""
    more = {"env": PRODUCTION | env, "ready": "/a"}
    started = (
        gunicorn("shop:create_app('shop')", folder, "--workers", "2", **more)
        if framework == "flask"
        else uvicorn("shop:create_app", folder, "--factory", "--workers", "2", **more)
    )
    with started as server:
        return sorted({str(sitemap(server)) for _ in range(6)}) + sorted({robots(server) for _ in range(6)})


def sitemap(server: Server) -> list[str] | int:
    answer = server.get("/sitemap.xml", HOST)
    return documents.locs(answer.body) if answer.status == 200 else answer.status


def robots(server: Server) -> str:
    answer = server.get("/robots.txt", HOST)
    return answer.text if answer.status == 200 else str(answer.status)


@pytest.mark.slow
def test_workers_of_a_factory_serve_one_sitemap(framework: str, tmp_path: Path) -> None:
    assert serve(framework, tmp_path) == [
        str(["https://shop.example/a", "https://shop.example/b"]),
        "User-agent: *\nDisallow:\n\nSitemap: https://shop.example/sitemap.xml\n",
    ]
    assert (tmp_path / "pages.sqlite3").exists()


@pytest.mark.slow
def test_staging_disallows_everything(framework: str, tmp_path: Path) -> None:
    assert serve(framework, tmp_path, SITEMAP_ROBOTS="disallow") == ["404", "User-agent: *\nDisallow: /\n"]


@pytest.mark.slow
def test_a_server_with_the_middleware_turned_off_writes_nothing(framework: str, tmp_path: Path) -> None:
    assert serve(framework, tmp_path, SITEMAP_ENABLED="no") == ["404", "404"]
    assert not (tmp_path / "pages.sqlite3").exists()


@pytest.mark.slow
def test_an_invalid_variable_ends_the_start_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FLASK, "utf-8")
    command = [sys.executable, "-m", "gunicorn", "shop:create_app()", "--check-config"]
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "SITEMAP_MAX_AGE": "5 minutes"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "SITEMAP_MAX_AGE='5 minutes' is not a number of seconds; give 0 or more" in done.stderr
