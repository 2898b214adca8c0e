"""The documentation is true: every snippet of README and docs runs as it stands, and tables name all that there is."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from types import ModuleType
from typing import Any

import flask
import pytest

import sitemap_middleware
from sitemap_middleware import Entry, Explanation, OptionError, SitemapError, SitemapMiddleware, sitemap
from sitemap_middleware.cli.main import command as program
from sitemap_middleware.options.table import OPTIONS
from sitemap_middleware.pytest_plugin.sitemap_in_test import read_sitemap

from ..support.console import console
from ..support.wire import DRIVERS, RequestSpec

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*|\{\w+\})\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")
"""The first line of a snippet that commands of its page find as a file."""
OUTSIDE = {
    *("grep", "redis-cli", "xargs", "pip", "litestar", "python", "python3", "sqlite3", "curl", "git", "nox"),
    *("sitemap-middleware", ".", "docker", "pre-commit", "zcat"),
}
"""Programs of `sh` blocks: they change the reader's machine, or need what tests have not."""


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of a page."""
    return [(language, code) for _, language, code in BLOCK.findall(page.read_text("utf-8"))]


EVERY = [(page, language, code) for page in PAGES for language, code in blocks(page)]
SNIPPETS = [
    pytest.param(code, id=f"{named(page)}-{number}")
    for page in PAGES
    for number, (language, code) in enumerate(blocks(page))
    if language == "python"
]
CONSOLES = [pytest.param(page, id=named(page)) for page in PAGES if any(kind == "console" for kind, _ in blocks(page))]


@pytest.fixture(autouse=True)
def logger() -> Iterator[None]:
    """A snippet configures logging: other tests must not notice."""
    log = logging.getLogger("sitemap_middleware")
    level, handlers = log.level, [*log.handlers]
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


@contextmanager
def loop_of_thread() -> Iterator[None]:
    """An event loop that is set for the thread: without one, mangum would set one and leave it open."""
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        try:
            yield
        finally:
            asyncio.set_event_loop(None)


def run(code: str) -> dict[str, Any]:
    module = sys.modules["snippet"] = ModuleType("snippet")  # Litestar reads annotations by it
    try:
        exec(compile(code, "snippet", "exec"), vars(module))
    finally:
        del sys.modules["snippet"]
    return vars(module)


def sitemap_of(app: Any, code: str) -> tuple[int, str]:
    """What an app serves once every path that a code names has been visited."""
    drive = DRIVERS["asgi" if inspect.iscoroutinefunction(type(app).__call__) else "wsgi"]
    for path in re.findall(r"(?<=\")/[a-z/]*(?=\")", code):
        drive(app, RequestSpec(path, host="bakery.example"))
    answer = drive(app, RequestSpec("/sitemap.xml", host="bakery.example"))
    return answer.status, answer.text


def first_table(page: str) -> dict[str, str]:
    """The names in the first column of a page's first table, each with the second column."""
    text = (DOCS / page).read_text("utf-8").partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text, re.MULTILINE))


@pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient.")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette.testclient")  # of the lowest Starlette
@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    context = copy_context()  # Dash sets variables of it
    with loop_of_thread() if "mangum" in code else nullcontext():
        names = context.run(run, code)
    for name, value in [*names.items()]:
        if name.startswith("test_"):
            value(**dict.fromkeys(inspect.signature(value).parameters, read_sitemap))  # the only fixture
    if "app" in names:
        status, _ = context.run(sitemap_of, names["app"], code)
        assert status in (200, 404)


@pytest.mark.slow
@pytest.mark.parametrize("page", CONSOLES)
def test_console_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    with console(tmp_path) as shell:
        for language, code in blocks(page):
            if language == "python" and (file := FILE.match(code)):
                (tmp_path / file[1]).write_text(code, "utf-8")
            if language == "console":
                shell.run(code)


def test_readme_shows_the_sitemap_of_its_first_snippet() -> None:
    (_, code), (_, shown) = blocks(README)[:2]
    app = run(code)["app"]
    assert sitemap_of(app, "") == (200, shown)
    assert sitemap_of(app, code) == (200, shown)


@pytest.mark.parametrize("code", [code for _, language, code in EVERY if language == "sh"])
def test_shell_blocks_are_valid(code: str) -> None:
    subprocess.run(["sh", "-n", "-c", code], check=True)
    for line in code.splitlines():
        for part in re.split(r"&&|\|", line.partition("  #")[0]):
            words = shlex.split(part, comments=True)
            assert not words or words[0] in OUTSIDE, line


def of_our_program() -> Iterator[str]:
    for _, language, code in EVERY:
        for line in code.splitlines() if language in ("sh", "console") else ():
            if line.removeprefix("$ ").startswith("sitemap-middleware "):
                yield line.removeprefix("$ ").partition("  #")[0]


@pytest.mark.parametrize("command", [*of_our_program()])
def test_documented_options_exist(command: str) -> None:
    _, name, *words = shlex.split(command)
    known = {text for parameter in program.commands[name].params for text in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_options_table_is_complete() -> None:
    table = first_table("reference/options.md")
    options = {name: option.default for name, option in OPTIONS.items()}
    assert sorted(table) == sorted([*options, "routes"])
    for name, default in options.items():
        if default is not None:
            assert table[name].strip("`").replace('"', "'") == repr(default), name


@pytest.mark.parametrize(
    ("page", "signed"), [("reference/decorator.md", sitemap), ("reference/entry.md", Entry.__init__)]
)
def test_argument_tables_are_complete(page: str, signed: Any) -> None:
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        parameter.name for parameter in inspect.signature(signed).parameters.values() if parameter.kind in kinds
    ]
    assert list(first_table(page)) == [name for name in parameters if name != "self"]


def test_reference_names_the_public_api() -> None:
    text = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    assert [name for name in sitemap_middleware.__all__ if f"`{name}`" not in text and f"`{name}(" not in text] == [
        name for name in sitemap_middleware.__all__ if name == "sitemap" and "`@sitemap(...)`" not in text
    ]
    methods = [name for name, value in vars(SitemapMiddleware).items() if not name.startswith("_") and callable(value)]
    for name in methods:
        assert re.search(rf"^\| `{name}\(", (DOCS / "reference" / "methods.md").read_text("utf-8"), re.MULTILINE), name
    fields = (DOCS / "reference" / "methods.md").read_text("utf-8").partition("## Explanation")[2].partition("## ")[0]
    assert {name for name in Explanation.__dataclass_fields__ if f"`{name}`" not in fields} == set()


def test_reference_names_every_public_error() -> None:
    errors = {
        name
        for name in sitemap_middleware.__all__
        if inspect.isclass(cls := getattr(sitemap_middleware, name)) and issubclass(cls, SitemapError)
    }
    assert set(first_table("reference/errors.md")) == errors


def raising(call: Callable[[], object]) -> str:
    with pytest.raises(OptionError) as raised:
        call()
    return str(raised.value)


def wrapped(*arguments: Any, **options: Any) -> SitemapMiddleware:
    return SitemapMiddleware(flask.Flask("site").wsgi_app, *arguments, **options)


def test_messages_of_option_errors_begin_as_documented() -> None:
    host = "https://example.com"
    calls: list[Callable[[], object]] = [
        lambda: wrapped(base_ur=host),
        lambda: wrapped(values=[]),
        lambda: wrapped(host),
        lambda: wrapped(base_url="example.com"),
        lambda: wrapped(base_url=f"{host}/shop"),
        lambda: wrapped(learn=["/<path:page>"]),
        lambda: wrapped(store="mysql://localhost"),
        lambda: wrapped(routes=object()),
        lambda: sitemap(print),
        lambda: sitemap(values=[], learn=True)(print),
    ]
    messages = [raising(call) for call in calls]
    table = (
        (DOCS / "reference" / "errors.md").read_text("utf-8").partition("message begins with")[2].partition("\n\n")[0]
    )
    shown = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
    assert len(shown) == len(messages)
    for beginning, message in zip(shown, messages, strict=True):
        assert re.match(re.escape(beginning).replace("…", ".*"), message), message


LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=named)
def test_links_lead_to_files(page: Path) -> None:
    for link in LINK.findall(page.read_text("utf-8")):
        target = link.partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:") and "check-rules/" not in target:
            assert (page.parent / target).exists(), link
