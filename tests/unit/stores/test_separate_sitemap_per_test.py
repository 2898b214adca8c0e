"""Test runs of a user's app: they write no file, and what one test sees does not influence the next."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
import pytest

from sitemap_middleware import SitemapMiddleware

from ...support.documents import locs
from ...support.servers import ROOT
from ...support.wire import RequestSpec, wsgi

FLASK = """
from flask import Flask, abort
from sitemap_middleware import SitemapMiddleware

app = Flask(__name__)
shut = []

@app.route("/")
def home():
    return "<h1>Home</h1>"

@app.route("/menu")
def menu():
    return abort(404) if shut else "<h1>Menu</h1>"

app.wsgi_app = SitemapMiddleware(app.wsgi_app)
get = app.test_client().get
"""
DJANGO = """
import django
from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from django.urls import path

shut = []
settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["localhost"],
    MIDDLEWARE=["sitemap_middleware.django.SitemapMiddleware"],
    SECRET_KEY="tests only",
)
django.setup()
urlpatterns = [
    path("", lambda request: HttpResponse("<h1>Home</h1>")),
    path("menu", lambda request: HttpResponse("<h1>Menu</h1>", status=404 if shut else 200)),
]

def get(path):
    answer = Client().get(path, headers={"host": "localhost"})
    answer.text = answer.content.decode()
    return answer
"""
PYTEST = """
from site_app import get, shut

def test_a_page_is_gone():
    shut.append(True)
    assert get("/menu").status_code == 404
    {look}
    shut.clear()

def test_b_page_is_there():
    assert "/menu<" in get("/sitemap.xml").text
"""
UNITTEST = """
import unittest
from site_app import get, shut

class Pages(unittest.TestCase):
    def test_a_page_is_gone(self):
        shut.append(True)
        self.assertEqual(get("/menu").status_code, 404)
        {look}
        shut.clear()

    def test_b_page_is_there(self):
        self.assertIn("/menu<", get("/sitemap.xml").text)
"""
LOOK = 'assert "/menu<" not in get("/sitemap.xml").text'
RUNNERS = {
    "pytest": (PYTEST, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_site.py"]),
    "pytest, in forked workers": (
        PYTEST,
        ["-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider", "-n1", "test_site.py"],
    ),
    "unittest": (UNITTEST, ["-m", "unittest", "-q", "test_site"]),
}


@pytest.mark.parametrize(
    ("app", "runner", "look"),
    [
        *(pytest.param(FLASK, runner, LOOK, id=f"Flask, {runner}") for runner in RUNNERS),
        pytest.param(DJANGO, "pytest", LOOK, id="Django, pytest"),
        pytest.param(DJANGO, "unittest", LOOK, id="Django, unittest"),
        pytest.param(FLASK, "pytest", "pass", id="Flask, without a look at the sitemap"),
    ],
)
def test_test_run_leaves_no_file_and_isolates_its_tests(app: str, runner: str, look: str, tmp_path: Path) -> None:
    tests, command = RUNNERS[runner]
    (tmp_path / "site_app.py").write_text(textwrap.dedent(app), "utf-8")
    (tmp_path / "test_site.py").write_text(tests.format(look=look), "utf-8")
    (tmp_path / "instance").mkdir()
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env={
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # loading all plugins of this environment takes seconds
        },
        capture_output=True,
        text=True,
        timeout=600,  # a loaded machine takes minutes
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["instance", "site_app.py", "test_site.py"]


# What is renewed


def flask_site(**options: Any) -> tuple[SitemapMiddleware, Callable[[str], tuple[int, bytes]]]:
    app = flask.Flask(__name__)
    app.add_url_rule("/", "home", lambda: "home")
    app.add_url_rule("/shut", "shut", lambda: ("", 404))
    site = SitemapMiddleware(app.wsgi_app, verify=False, **options)

    def get(path: str) -> tuple[int, bytes]:
        answer = wsgi(site, RequestSpec(path, host="localhost"))
        return answer.status, answer.body

    return site, get


def test_each_test_has_its_own_memory_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site, get = flask_site()
    assert get("/shut")[0] == 404
    assert [loc.rpartition("/")[2] for loc in locs(get("/sitemap.xml")[1])] == [""]
    assert site.stats()["seen"] == 1
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another.py::test (call)")
    assert [loc.rpartition("/")[2] for loc in locs(get("/sitemap.xml")[1])] == ["", "shut"]
    assert site.stats()["seen"] == 0
    get("/shut")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # between tests nothing is new
    assert [loc.rpartition("/")[2] for loc in locs(get("/sitemap.xml")[1])] == [""]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", ["option", "environment"])
def test_named_store_is_shared_by_all_tests(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if named == "environment":
        monkeypatch.setenv("SITEMAP_STORE", "memory://")
    site, get = flask_site(**({"store": "memory://"} if named == "option" else {}))
    get("/shut")
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another.py::test (call)")
    assert [loc.rpartition("/")[2] for loc in locs(get("/sitemap.xml")[1])] == [""]
    assert site.stats()["seen"] == 1
