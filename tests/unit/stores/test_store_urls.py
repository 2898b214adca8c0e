"""No password of a store's URL reaches a text, whatever the URL looks like."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import flask
import pytest
from starlette.applications import Starlette

from sitemap_middleware import OptionError, SitemapMiddleware
from sitemap_middleware.cli.main import command

from ...support.command_line import cli_runner

SECRETS = [
    "hun/ter2",
    "hun@ter2",
    "hun#ter2",
    "hun?ter2",
    "hun ter2",
    "h@un/t@er2",
    "hun:ter2",
    "[hunter2",
    "hun%ter2",
    "/hunter2",
]
ENGINES = ["redis", "rediss", "unix", "postgresql", "postgres", "mysql", "sqlite"]
MALFORMED = [
    "redis:/:hunter2@host/0",
    "redis://:hunter2",
    "redis://me:hunter2",
    "postgresql:me:hunter2@host/db",
    "host=db user=me password=hunter2",
    "postgresql:///host=db password=hunter2",
    "postgresql://host/db?password=hun@ter2",
    "redis://host/0?password=hunter2#",
    "redis ://me:hunter2@host",
    b"redis://me:hunter2@host/0",
    "red is://hunter2",
    "me:hunter2@localhost",
]
PARTS = ("hunter2", "hun", "ter2", "un/t", "er2")


def texts_about(url: object, caplog: pytest.LogCaptureFixture) -> str:
    """All that is said of a store: the error, or what the app logs and says while the store cannot be reached."""
    caplog.set_level(logging.DEBUG)
    said: list[object] = []
    for app in (flask.Flask("site"), Starlette()):
        options: dict[str, Any] = {"store": url, "base_url": "http://localhost", "verify": False}
        try:
            site = SitemapMiddleware(app, **options)
        except OptionError as error:
            said.append(error)
            continue
        said += [site.settings, site.settings["store"].shown_value]
        try:
            said.append(site.explain("/"))
        except Exception as error:  # the store does not answer
            said += [error, error.__cause__]
        site.close()
    return "\n".join([*map(str, said), *(record.getMessage() for record in caplog.records), caplog.text])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("secret", SECRETS)
def test_password_that_was_not_encoded_is_not_shown(
    engine: str, secret: str, caplog: pytest.LogCaptureFixture, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = texts_about(f"{engine}://me:{secret}@localhost:1/db", caplog)
    assert said
    assert not [part for part in PARTS if part in said]


@pytest.mark.parametrize("url", MALFORMED, ids=str)
def test_malformed_url_is_refused_without_its_password(url: object, caplog: pytest.LogCaptureFixture) -> None:
    said = texts_about(url, caplog)
    assert "store" in said
    assert not [part for part in PARTS if part in said]


@pytest.mark.parametrize("engine", ["redis", "postgresql"])
def test_error_says_how_to_write_the_password(engine: str) -> None:
    with pytest.raises(OptionError, match=r"of the form engine://.*; .*write @ as %40, / as %2F, # as %23, \? as %3F"):
        SitemapMiddleware(flask.Flask("site"), store=f"{engine}://me:hun/ter2@localhost/0")


@pytest.mark.parametrize("engine", ["redis", "postgresql"])
def test_encoded_password_is_accepted_and_not_shown(engine: str, caplog: pytest.LogCaptureFixture) -> None:
    said = texts_about(f"{engine}://me:hun%2Fte%40r2%23%3F@localhost:1/0", caplog)
    assert f"Setting('store', '{engine}://***@localhost:1/0', 'argument')" in said
    assert not [part for part in (*PARTS, "te@r", "te%40r") if part in said]


@pytest.mark.parametrize("url", [*MALFORMED[:3], *(f"postgresql://me:{secret}@host/db" for secret in SECRETS)])
def test_a_command_does_not_show_it(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli_runner().invoke(command, ["status", url])
    assert ran.exit_code == 2
    assert not [part for part in PARTS if part in ran.output + ran.stderr]
