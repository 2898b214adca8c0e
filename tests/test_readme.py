"""Every Python snippet of README and docs runs as it stands; where XML follows one, its app serves just that."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware

from .support.wire import DRIVERS, Ask

ROOT = Path(__file__).parent.parent
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|xml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def logger() -> Iterator[None]:
    """A snippet configures logging: other tests must not notice."""
    log = logging.getLogger("sitemap_middleware")
    level, handlers = log.level, [*log.handlers]
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


def blocks() -> list[Any]:
    return [
        pytest.param(kind, code, id=f"{text.name}-{number}")
        for text in TEXTS
        for number, (kind, code) in enumerate(BLOCK.findall(text.read_text("utf-8")))
    ]


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(code, "snippet", "exec"), names)
    return names


def sitemap_of(app: Any, code: str) -> tuple[int, str]:
    """What an app serves once every path that a code names has been visited."""
    drive = DRIVERS["asgi" if inspect.iscoroutinefunction(type(app).__call__) else "wsgi"]
    for path in re.findall(r"(?<=\")/[a-z/]*(?=\")", code):
        drive(app, Ask(path, host="bakery.example"))
    answer = drive(app, Ask("/sitemap.xml", host="bakery.example"))
    return answer.status, answer.text


@pytest.mark.parametrize(("kind", "code"), [block for block in blocks() if block.values[0] == "python"])
def test_a_snippet_runs_and_its_app_serves_a_sitemap(kind: str, code: str) -> None:
    assert kind == "python"
    names = run(code)
    for name, value in [*names.items()]:
        if name.startswith("test_"):
            value()
    if "app" in names:
        status, _ = sitemap_of(names["app"], code)
        assert status in (200, 404)


def test_the_readme_shows_the_very_sitemap_that_its_first_snippet_serves_before_and_after_visits() -> None:
    (_, code), (_, shown) = BLOCK.findall(TEXTS[0].read_text("utf-8"))[:2]
    app = run(code)["app"]
    assert sitemap_of(app, "") == (200, shown)
    assert sitemap_of(app, code) == (200, shown)


def test_the_table_of_options_names_every_option_and_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", TEXTS[0].read_text("utf-8"), re.MULTILINE))
    options = {
        name: parameter.default
        for name, parameter in inspect.signature(SitemapMiddleware.__init__).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert list(rows) == list(options)
    for name, default in options.items():
        if default is not None:
            assert rows[name].strip("`").replace('"', "'") == repr(default), name
