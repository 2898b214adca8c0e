"""The report as files: the same pages, with relative links that all lead to a file."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import Result

from sitemap_middleware.cli.main import command
from sitemap_middleware.report import pages

from ...support.command_line import cli_runner

APP = """
from datetime import date
from flask import Flask
from sitemap_middleware import Entry, SitemapMiddleware, sitemap
items = [Entry({"slug": f"loaf-{n:03}"}, lastmod=date(2025, 1, 1 + n % 28)) for n in range(230)]
app = Flask("shop")
app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
app.add_url_rule("/kitchen", "kitchen", lambda: ("no", 403))
app.add_url_rule("/loaves/<slug>", "loaf", sitemap(values=lambda: items)(lambda slug: slug))
app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", store="sqlite:///shop.sqlite3")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "static_shop.py").write_text(APP, "utf-8")
    monkeypatch.delitem(sys.modules, "static_shop", raising=False)
    return "static_shop:app"


def report(app: str, *arguments: str) -> Result:
    return cli_runner().invoke(command, ["report", app, "--out", "out", *arguments])


def links(file: Path) -> list[str]:
    return [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]*)"', file.read_text("utf-8"))]


def test_every_link_leads_to_a_file_or_to_the_site(app: str, tmp_path: Path) -> None:
    answer = report(app, "--json")
    assert answer.exit_code == 0, answer.output
    folder = tmp_path / "out"
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert json.loads(answer.stdout) == {"site": "https://shop.example", "folder": "out", "files": len(files)}
    for file in files:
        for link in links(file) if file.suffix == ".html" else ():
            if not link.startswith(("https://shop.example/", "#")):
                assert (file.parent / unquote(link)).is_file(), (file.name, link)


def test_only_so_many_pages_have_a_file_of_their_own(app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE_FILES", 3)
    report(app)
    names = sorted(file.name for file in (tmp_path / "out").glob("page-*"))
    assert names == ["page-1.html", "page-2.html", "page-3.html"]
    link = '<a class="path" href="https://shop.example/loaves/loaf-100">/loaves/loaf-100</a>'
    assert any(link in file.read_text("utf-8") for file in (tmp_path / "out").glob("pages-*.html"))


def test_files_of_an_earlier_report_are_removed_and_no_others(app: str, tmp_path: Path) -> None:
    report(app)
    old = tmp_path / "out" / "pages-99.html"
    old.write_bytes((tmp_path / "out" / "pages.html").read_bytes())
    own = tmp_path / "out" / "pages-10.html"
    own.write_text("<p>Mine</p>", "utf-8")
    report(app)
    assert (old.exists(), own.exists()) == (False, True)


def test_a_folder_that_cannot_be_written_is_named(app: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    answer = report(app, "--out", "file/out")
    assert (answer.exit_code, answer.stderr.startswith("Error: file/out cannot be written: ")) == (2, True)


def test_without_the_extra_the_error_names_it(app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pages", "template_rendering"):
        monkeypatch.delitem(sys.modules, f"sitemap_middleware.report.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    answer = report(app)
    assert answer.exit_code == 2
    assert 'the command needs jinja2: pip install "sitemap-middleware[report]"' in " ".join(answer.stderr.split())
