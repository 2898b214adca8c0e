"""The Flask extension: apps with one line, app factories, several apps, and the commands `flask sitemap`."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import flask
import pytest
import quart
from werkzeug.middleware.proxy_fix import ProxyFix

from sitemap_middleware import MiddlewareLookupError, OptionError, SitemapMiddleware, sitemap
from sitemap_middleware.flask import Sitemap

from ..support.command_line import RUNNER_OPTIONS
from ..support.documents import locs
from ..support.sample_sites import plain_flask

BASE_URL = "https://example.com"


flask_app = partial(plain_flask, "/a")


def listed(app: flask.Flask, **environ: Any) -> list[str]:
    return locs(app.test_client().get("/sitemap.xml", **environ).data)


# Apps


def test_an_app_gets_a_sitemap_in_one_line() -> None:
    app = flask_app()
    Sitemap(app, base_url=BASE_URL)
    assert listed(app) == ["https://example.com/a"]
    assert app.extensions["sitemap"] is app.wsgi_app
    assert SitemapMiddleware.of(app) is app.wsgi_app


def test_an_app_factory_needs_only_the_configuration() -> None:
    extension = Sitemap()

    def create_app(host: str, **config: Any) -> flask.Flask:
        app = flask_app(SITEMAP_BASE_URL=f"https://{host}", **config)
        extension.init_app(app)
        return app

    first, second = create_app("one.example"), create_app("two.example", SITEMAP_EXCLUDE="/a")
    assert listed(first) == ["https://one.example/a"]
    assert second.test_client().get("/sitemap.xml").status_code == 404
    assert first.extensions["sitemap"] is not second.extensions["sitemap"]
    for app in (first, second):
        with app.app_context():
            assert extension.middleware is app.extensions["sitemap"]


def test_options_of_init_app_go_before_those_of_the_extension_and_these_before_the_configuration() -> None:
    extension = Sitemap(max_age=2, max_pages=2)
    app = flask_app(SITEMAP_MAX_AGE=1, SITEMAP_MAX_PAGES=1, SITEMAP_MAX_PAGES_PER_ROUTE=1)
    extension.init_app(app, max_age=3)
    settings = [app.extensions["sitemap"].settings[name] for name in ("max_age", "max_pages", "max_pages_per_route")]
    assert [(setting.value, setting.source) for setting in settings] == [
        (3, "argument"),
        (2, "argument"),
        (1, "config"),
    ]
    other = flask_app()
    extension.init_app(other)
    assert other.extensions["sitemap"].settings["max_age"].value == 2


# Mistakes


def test_an_app_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    app = flask_app()
    extension = Sitemap(app, base_url=BASE_URL)
    for again in (extension.init_app, Sitemap):
        with pytest.raises(OptionError, match="<Flask 'site'> has a SitemapMiddleware already; add it once"):
            again(app)
    by_hand = flask_app()
    by_hand.wsgi_app = ProxyFix(SitemapMiddleware(by_hand.wsgi_app))
    with pytest.raises(OptionError, match="has a SitemapMiddleware already; add it once, by init_app or by wsgi_app"):
        extension.init_app(by_hand)
    assert listed(app) == ["https://example.com/a"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("app", ["app", 5, quart.Quart("site"), SitemapMiddleware(flask_app())])
def test_what_is_no_flask_app_is_refused(app: Any) -> None:
    with pytest.raises(OptionError, match=r"^Sitemap: app=.* is not a Flask app; give the Flask object"):
        Sitemap(app)


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match="there is no option 'base_ur'; did you mean base_url"):
        Sitemap(base_ur=BASE_URL)  # type: ignore[call-arg] # that is what is tested
    with pytest.raises(OptionError, match="there is no option 'routes'"):
        Sitemap().init_app(flask_app(), routes=flask_app())  # type: ignore[call-arg] # that is what is tested


def test_the_middleware_is_that_of_the_current_app() -> None:
    for context in (nullcontext(), flask_app().app_context()):
        with context, pytest.raises(MiddlewareLookupError, match="that of the current app: call init_app"):
            _ = Sitemap().middleware


# Commands


def run(app: flask.Flask, *words: str) -> Any:
    return app.test_cli_runner(**RUNNER_OPTIONS).invoke(args=["sitemap", *words])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[flask.Flask]:
    """An app that nobody has visited, with a store in the working directory."""
    app = flask_app(SITEMAP_BASE_URL=BASE_URL, SITEMAP_STORE=f"sqlite:///{tmp_path}/site.sqlite3")
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=[{"slug": "rye"}])(lambda slug: slug))
    Sitemap(app, exclude="/private")
    yield app
    app.extensions["sitemap"].close()


def test_status_tells_the_value_of_each_option_and_where_it_comes_from(
    site: flask.Flask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.test_client().get("/a")
    site.extensions["sitemap"].flush()
    monkeypatch.setenv("SITEMAP_MAX_AGE", "60")
    options = json.loads(run(site, "status", "--json").stdout)["options"]
    assert options["base_url"] == {"value": BASE_URL, "source": 'app.config["SITEMAP_BASE_URL"]'}
    assert options["exclude"] == {"value": ["/private"], "source": "argument"}
    assert options["max_age"] == {"value": 300, "source": "default"}, "the environment was read at construction"
    other = flask_app(SITEMAP_STORE=f"sqlite:///{tmp_path}/site.sqlite3")
    Sitemap(other)
    assert "  max_age: 60 (SITEMAP_MAX_AGE)\n" in run(other, "status").stdout


def test_flask_finds_the_commands_in_a_factory(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        """
from flask import Flask
from sitemap_middleware.flask import Sitemap
extension = Sitemap()
def create_app():
    app = Flask(__name__, static_folder=None)
    app.config.from_prefixed_env()
    app.add_url_rule("/a", view_func=lambda: "a page", endpoint="a")
    extension.init_app(app)
    return app
"""
    )
    command = [sys.executable, "-m", "flask", "--app", "shop", "sitemap", "routes"]
    environment = {"FLASK_SITEMAP_BASE_URL": BASE_URL, "FLASK_SITEMAP_VERIFY": "0"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert answer.stdout.startswith("https://example.com/sitemap.xml: routes 1, pages seen 0, pages listed 1\n")
