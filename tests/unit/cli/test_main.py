"""At a terminal: what the commands print, with which exit status, and that they change nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import flask
import pytest
from click.testing import Result
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.cli.main import command, commands_for
from sitemap_middleware.stores.base import SCHEMA_VERSION
from sitemap_middleware.stores.sqlite import SQLiteStore

from ...apps import terminal_site
from ...support.command_line import RUNNER_OPTIONS, cli_runner
from ...support.wire import RequestSpec, asgi, wsgi

ROOT = Path(__file__).resolve().parents[3]
SITE = "tests.apps.terminal_site"
SHOPS = ("flask_shop", "starlette_shop", "fastapi_shop")
EVERY_SHOP = pytest.mark.parametrize("shop", SHOPS)


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    """Modules and the path to them are the process's: what a test adds goes with it."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("own_"):
            del sys.modules[name]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "kept" / "sitemap.sqlite3"
    monkeypatch.setenv("SITEMAP_STORE", f"sqlite:///{file}")
    return file


def visit(shop: str, *paths: str) -> None:
    """Visit a shop as a crawler does, write the observations to its store, and close the shop."""
    app: Any = getattr(terminal_site, shop)()
    if shop == "flask_shop":
        for path in paths:
            wsgi(app, RequestSpec(path, host="shop.example"))
        app.wsgi_app.close()
        return
    app.middleware_stack = app.build_middleware_stack()
    for path in paths:
        asgi(app, RequestSpec(path, host="shop.example"))
    layer = app.middleware_stack
    while not isinstance(layer, SitemapMiddleware):
        layer = layer.app
    layer.close()


def run(*arguments: str) -> Result:
    return cli_runner().invoke(command, list(arguments), catch_exceptions=False)


def send_request(shop: str, name: str, *arguments: str) -> Result:
    return run(name, "--factory", f"{SITE}:{shop}", *arguments)


def own(source: str, name: str = "own_app") -> str:
    """A module of one's own, in the working directory."""
    Path(f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
    return name


def refused(*arguments: str) -> str:
    """Return the one-line error of a command that fails."""
    answer = run(*arguments)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    line, end = answer.stderr[:-1], answer.stderr[-1:]
    assert end == "\n"
    assert "\n" not in line
    return line


def listing(answer: Result) -> dict[str, dict[str, Any]]:
    return {row["route"]: row for row in json.loads(answer.stdout)["routes"]}


# explain


@EVERY_SHOP
def test_explain_prints_all_observations_of_a_listed_page(shop: str, store: Path) -> None:
    visit(shop, "/")
    answer = send_request(shop, "explain", "/")
    lines = answer.stdout.splitlines()
    assert answer.exit_code == 0
    assert lines[:3] == [
        "/ is listed: it answered 200 with text/html",
        "loc: https://shop.example/",
        "lastmod: 2020-05-01T06:30:00Z (Last-Modified)",
    ]
    assert lines[3].startswith("route: / (")
    assert lines[4:11] == [
        "first seen: 2025-06-15T15:06:40Z",
        "last seen: 2025-06-15T15:06:40Z (or up to an hour later)",
        "status: 200",
        "type: text/html",
        "Last-Modified: 2020-05-01T06:30:00Z",
        "HTML read: 2025-06-15T15:06:40Z",
        "content unchanged since 2025-06-15T15:06:40Z; versions known: 1",
    ]
    assert lines[11:] == []


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("2024-05-01", "2024-05-01 counts: the developer's date"),
        ("2090-05-01", "no date: the developer's date, 2090-05-01, is in the future"),
    ],
)
def test_explain_says_of_each_date_why_it_counts_or_not(given: str, first: str, store: Path) -> None:
    name = own(f"""
        from flask import Flask
        from sitemap_middleware import SitemapMiddleware, sitemap

        app = Flask(__name__)

        @app.get("/")
        @sitemap(lastmod="{given}")
        def home():
            text = '<meta property="article:modified_time" content="2090-01-01"><h1>Home</h1>'
            return text, {{"Last-Modified": "Fri, 01 May 2020 06:30:00 GMT"}}

        app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example")
    """)
    assert run("explain", f"{name}:app", "/", "--no-requests").exit_code == 1
    site: Any = sys.modules[name].app
    site.test_client().get("/").get_data()
    site.wsgi_app.close()
    lines = run("explain", f"{name}:app", "/").stdout.splitlines()
    assert lines[lines.index("dates:") + 1 :] == [
        f"  {first}",
        "  2020-05-01T06:30:00Z is not needed: Last-Modified",
        "  no date: the date that the page states cannot be true",
    ]
    (row,) = json.loads(run("explain", f"{name}:app", "/", "--json").stdout)
    assert [date["counts"] for date in row["dates"]] == [given == "2024-05-01", False, False]
    assert row["history"][-1]["event"] == "first seen"


@EVERY_SHOP
def test_a_page_that_is_not_listed_is_an_exit_status_of_1(shop: str, store: Path) -> None:
    visit(shop, "/closed")
    answer = send_request(shop, "explain", "/closed")
    assert answer.exit_code == 1
    assert answer.stdout.startswith("/closed is not listed: it answered 403\n")
    assert "status: 403\n" in answer.stdout


@EVERY_SHOP
def test_unseen_page_is_reported_as_unseen(shop: str, store: Path) -> None:
    visit(shop, "/closed")
    answer = send_request(shop, "explain", "/")
    assert answer.exit_code == 0
    assert answer.stdout.endswith("seen: no response that counts\n")


def test_what_the_output_cannot_hold_is_escaped(store: Path) -> None:
    answer = cli_runner(charset="ascii").invoke(command, ["explain", "--factory", f"{SITE}:flask_shop", "/ü"])
    assert answer.exit_code == 1
    assert answer.stdout.startswith(r"/\xfc is not listed")


# routes


@EVERY_SHOP
def test_every_route_is_printed_with_its_outcome(shop: str, store: Path) -> None:
    visit(shop, "/", "/closed", "/posts/one", "/posts/two")
    answer = send_request(shop, "routes", "--json")
    assert answer.exit_code == 0
    rows = {re.sub(r"[<{](\w+)[>}]", r"{\1}", path): row for path, row in listing(answer).items()}
    rows.pop("/static/<path:filename>", None)
    assert {path: (row["listed"], row["reason"]) for path, row in rows.items()} == {
        "/": (True, "it answered 200 with text/html"),
        "/closed": (False, "it answered 403"),
        "/posts/{slug}": (True, "its pages are learned: 2 listed, of 2 known"),
        "/users/{user}": (False, "it has parameters, and neither values nor learn"),
        "/admin/{page}": (False, rows["/admin/{page}"]["reason"]),
    }
    assert "exclude" in rows["/admin/{page}"]["reason"]
    assert [path for path, row in rows.items() if row["undecided"]] == ["/users/{user}"]
    assert {path: (row["pages_seen"], row["pages_listed"], row["lastmod_from"]) for path, row in rows.items()} == {
        "/": (1, 1, {"Last-Modified": 1}),
        "/closed": (1, 0, {}),
        "/posts/{slug}": (2, 2, {"none": 2}),
        "/users/{user}": (0, 0, {}),
        "/admin/{page}": (0, 0, {}),
    }


READS = [["explain", "/posts/rye"], *(["list"], ["routes", "--strict"], ["changes"])]
REQUESTS = [["check", "--pages", "all"], ["build", "--out", "files"], ["report", "--out", "files"]]


def app_with_a_pool(enter: Callable[[], None]) -> Starlette:
    """An app whose `values` need what its lifespan creates, on the event loop that created it."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        enter()
        app.state.loop = asyncio.get_running_loop()
        yield
        del app.state.loop

    async def slugs() -> AsyncIterator[str]:
        assert app.state.loop is asyncio.get_running_loop()
        yield "rye"

    @sitemap(values=slugs)
    async def post(request: Any) -> HTMLResponse:
        return HTMLResponse("<h1>Post</h1>")

    @sitemap(values=lambda: [app.state.loop and "spelt"])
    async def bread(request: Any) -> HTMLResponse:
        return HTMLResponse("<h1>Bread</h1>")

    app = Starlette(routes=[Route("/posts/{slug}", post), Route("/breads/{slug}", bread)], lifespan=lifespan)
    app.add_middleware(SitemapMiddleware, base_url="https://shop.example", store="memory://")
    return app


@pytest.mark.parametrize(
    ("error", "text"), [(OSError("no database"), "OSError: no database"), (SystemExit(3), "SystemExit: 3")]
)
@pytest.mark.parametrize("arguments", [*READS, *REQUESTS], ids=lambda arguments: arguments[0])
def test_an_app_that_does_not_start_is_named_as_the_cause(
    arguments: list[str], error: BaseException, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def enter() -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    answer = cli_runner().invoke(commands_for(app_with_a_pool(enter)), arguments, catch_exceptions=False)
    assert answer.exit_code == (1 if arguments[0] in ("explain", "routes") else 2)
    output = answer.stdout + answer.stderr
    assert "the app did not start" in output
    assert text in output
    assert not (tmp_path / "files").exists()


@EVERY_SHOP
def test_strict_makes_an_undecided_route_an_exit_status_of_1(shop: str, store: Path) -> None:
    answer = send_request(shop, "routes", "--strict")
    assert answer.exit_code == 1
    assert "warning: these routes have parameters" in answer.stdout
    assert send_request(shop, "routes", "--strict", "--json").exit_code == 1


# Sites


HOSTS = """
    from starlette.applications import Starlette
    from starlette.routing import Host, Route, Router
    from sitemap_middleware import SitemapMiddleware

    def page(request): ...

    app = Starlette(routes=[
        Host("shop.example", Router([Route("/", page)])),
        Host("blog.example", Router([Route("/", page)])),
        Route("/none", page),
    ])
    app.add_middleware(SitemapMiddleware, store="memory://", base_url="https://shop.example", verify=False)
"""


def test_base_url_selects_another_host_of_the_app() -> None:
    name = own(HOSTS)
    answer = run("explain", f"{name}:app", "/", "--base-url", "https://blog.example")
    assert answer.exit_code == 0
    assert "loc: https://blog.example/\n" in answer.stdout
    rows = json.loads(run("routes", f"{name}:app", "--json", "--base-url", "https://blog.example").stdout)
    assert rows["site"] == "https://blog.example"
    assert [row["host"] for row in rows["routes"] if row["listed"]] == ["blog.example", "shop.example"]


NAMELESS = """
    import flask
    from sitemap_middleware import SitemapMiddleware

    app = flask.Flask("own", static_folder=None)
    app.config["TRUSTED_HOSTS"] = {trusted}
    app.add_url_rule("/", "home", lambda: "")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, store="memory://", verify=False)
"""


def test_invalid_base_url_is_refused(store: Path) -> None:
    error = refused("routes", "--factory", f"{SITE}:flask_shop", "--base-url", "shop")
    assert error.startswith("Error: --base-url='shop' does not begin with http:// or https://")


# Finding the app, and the middleware in it


WAYS = {
    "the middleware itself": "wrapped = SitemapMiddleware(starlette(), store='memory://', verify=False)",
    "Flask's own attribute": """
        wrapped = flask_app()
        wrapped.wsgi_app = Layer(SitemapMiddleware(wrapped.wsgi_app, store='memory://', verify=False))
    """,
    "Starlette's list, inside other middleware": """
        inner = starlette()
        inner.add_middleware(SitemapMiddleware, store='memory://', verify=False)
        inner.add_middleware(GZipMiddleware)
        wrapped = CORSMiddleware(inner)
    """,
    "an attribute of an attribute": """
        class held:
            wrapped = SitemapMiddleware(flask_app(), store='memory://', verify=False)
    """,
}


@pytest.mark.parametrize("way", WAYS)
def test_middleware_is_found_in_any_position(way: str) -> None:
    name = own(
        textwrap.dedent("""
        import functools
        import flask
        from starlette.applications import Starlette
        from starlette.middleware.cors import CORSMiddleware
        from starlette.middleware.gzip import GZipMiddleware
        from starlette.routing import Route
        from sitemap_middleware import SitemapMiddleware

        class Layer:
            def __init__(self, app):
                self.app = app

            def __call__(self, environ, start_response):
                return self.app(environ, start_response)

        def flask_app():
            app = flask.Flask("own", static_folder=None)
            app.add_url_rule("/", "home", lambda: "")
            return app

        def starlette():
            return Starlette(routes=[Route("/", lambda request: None)])
        """)
        + textwrap.dedent(WAYS[way])
    )
    attribute = "held.wrapped" if "class held" in WAYS[way] else "wrapped"
    answer = run("routes", f"{name}:{attribute}", "--json")
    assert answer.exit_code == 0
    assert listing(answer)["/"]["listed"]


STARLETTE_WITH = "from starlette.applications import Starlette\nfrom sitemap_middleware import SitemapMiddleware\n"
NO_APP = {
    "no module": ("app = 1", "own_other.web:app", "no module named 'own_other' in "),
    "attribute missing": ("app = 1", "{name}:site", "module {name} has no 'site'"),
    "attribute below missing": ("app = 1", "{name}:app.x", "no 'app.x': an object of type int has no 'x'"),
    "a module": ("import json", "{name}:json", "{name}:json is the module json, not an app"),
    "no callable": ("app = 1", "{name}:app", "{name}:app is an object of type int, not an app"),
    "a factory that makes nothing": (
        "def app(): ...",
        "{name}:app",
        "{name}:app() is an object of type NoneType, not an app",
    ),
    "a function that needs arguments": ("def app(a, b, c): ...", "{name}:app", "{name}:app has no SitemapMiddleware"),
    "an async function": ("async def app(): ...", "{name}:app", "{name}:app has no SitemapMiddleware"),
    "a call of something that is not a function": ("app = 1", "{name}:app()", "not an app factory"),
    "no middleware": (
        "def app(environ, start_response): ...",
        "{name}:app",
        "{name}:app has no SitemapMiddleware; add it: app.add_middleware(SitemapMiddleware) in Starlette and FastAPI, ",
    ),
    "no middleware in a circle": (
        "class App:\n    def __call__(self): ...\napp = App()\napp.app = App()\napp.app.app = app",
        "{name}:app",
        "has no SitemapMiddleware",
    ),
    "import of another fails": ("\nimport own_missing", "{name}:app", "No module named 'own_missing' ({file}, line 2)"),
    "import fails": ("\n\nx = 1 / 0", "{name}:app", "ZeroDivisionError: division by zero ({file}, line 3)"),
    "the library's caller is named": ("import json\njson.loads('{')", "{name}:app", "({file}, line 2)"),
    "bad syntax": ("x = 1\nx = (", "{name}:app", "SyntaxError: '(' was never closed ({file}, line 2)"),
    "import ends the process": ("import sys\nsys.exit('enough')", "{name}:app", "SystemExit: enough ({file}, line 2)"),
    "a message of several lines": ("raise ValueError('a\\n  b')", "{name}:app", "ValueError: a b ({file}, line 1)"),
    "a bad option in Starlette's list": (
        STARLETTE_WITH + "app = Starlette()\napp.add_middleware(SitemapMiddleware, max_age=-1)",
        "{name}:app",
        "the middleware of {name}:app failed: OptionError: SitemapMiddleware: max_age=-1",
    ),
}


@pytest.mark.parametrize("case", NO_APP)
def test_faulty_app_is_reported_in_one_line(case: str, tmp_path: Path) -> None:
    source, target, error = NO_APP[case]
    name = own(source)
    file = tmp_path / f"{name}.py"
    assert error.format(name=name, file=file) in refused("routes", target.format(name=name))


@pytest.mark.parametrize(
    "path", ["about", "", "ftp://shop.example/about", "mailto:a@shop.example", "https://", "http://[/"]
)
def test_invalid_path_is_refused(path: str) -> None:
    assert re.search(
        "is not a path: give the part after the host|is not a URL", refused("explain", f"{SITE}:flask_shop", path)
    )


def test_without_arguments_the_usage_is_shown() -> None:
    answer = run()
    assert answer.exit_code in {0, 2}, "0 before click 8.2"
    printed = answer.stdout + answer.stderr
    assert "explain" in printed
    assert "routes" in printed


# The store is looked at, and left as it is


@pytest.mark.parametrize("name", ["explain", "list", "changes", "routes", "build"])
def test_without_an_app_the_error_says_what_to_type(name: str) -> None:
    answer = run(name)
    assert answer.exit_code == 2
    assert answer.stderr.endswith("Missing argument 'APP'. Give an app, such as app:app or shop/web.py:app.\n")


@pytest.mark.parametrize("file", ["sitemap.sqlite3", "instance/sitemap.sqlite3", ""])
def test_without_a_store_the_error_names_the_one_that_is_there(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if file:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    answer = run("status")
    assert answer.exit_code == 2
    assert answer.stderr.endswith(
        f"Missing argument 'STORE'. Give a store, such as {file or 'sitemap.sqlite3'} or redis://localhost, or its app,"
        " such as app:app or shop/web.py:app.\n"
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_store_that_does_not_exist_is_not_made(store: Path) -> None:
    answer = send_request("flask_shop", "explain", "/", "--no-requests")
    assert f"note: no store exists at {store}" in answer.stdout
    assert "note: no store exists" not in send_request("flask_shop", "explain", "/").stdout
    assert not store.parent.exists()


def test_what_the_app_was_not_asked_yet_is_requested(store: Path) -> None:
    name = own("""
        from flask import Flask
        from sitemap_middleware import SitemapMiddleware

        app = Flask(__name__, static_folder=None)
        app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
        app.add_url_rule("/closed", "closed", lambda: ("", 403))
        app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://shop.example", robots=False)
    """)
    rows = listing(run("routes", f"{name}:app", "--json"))
    assert {path: row["reason"] for path, row in rows.items()} == {
        "/": "it answered 200 with text/html",
        "/closed": "it answered 403",
    }
    assert [row["url"] for row in json.loads(run("list", f"{name}:app", "--json").stdout)] == ["https://shop.example/"]
    del sys.modules[name]
    answer = run("explain", f"{name}:app", "/", "--no-requests")
    assert "/ is not listed: it was not requested yet: request /sitemap.xml once" in answer.stdout
    assert not store.parent.exists()


def test_memory_store_of_another_process_is_reported_as_unknown() -> None:
    name = own(NAMELESS.format(trusted=None))
    for name_of_command in ("routes", "changes"):
        assert (
            "note: the store is memory://, so only the running app knows"
            in run(name_of_command, f"{name}:app", "--no-requests").stdout
        )


def foreign(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE thing (x)")
    connection.close()


def of_another_version(file: Path) -> None:
    store = SQLiteStore(file)
    store.check_writable()
    store.close()
    connection = sqlite3.connect(file)
    connection.execute(f"DROP TABLE page_{SCHEMA_VERSION}")
    connection.close()


def corrupt(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (foreign, "is not a sitemap store"),
        (of_another_version, "is of another version"),
        (corrupt, "does not work now: file is not a database"),
    ],
)
def test_unreadable_store_is_left_alone_and_reported(spoil: Any, error: str, store: Path) -> None:
    store.parent.mkdir()
    spoil(store)
    before = files(store.parent)
    assert error in refused("explain", "--factory", f"{SITE}:flask_shop", "/")
    assert files(store.parent) == before


# The command, as a process


def process(*arguments: str, code: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    start = ["-m", "sitemap_middleware"] if code is None else ["-c", textwrap.dedent(code)]
    return subprocess.run(
        [sys.executable, *start, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_runs_as_a_module_and_ends(store: Path) -> None:
    visit("flask_shop", "/")
    answer = process("routes", "--factory", f"{SITE}:flask_shop", "--strict")
    assert answer.returncode == 1
    assert "| Last-Modified |" in answer.stdout
    assert answer.stderr == ""


WITHOUT = """
    import sys

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == {missing!r}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

    sys.meta_path.insert(0, Missing())
    from sitemap_middleware.__main__ import main
    main()
"""


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_its_libraries_it_names_the_extra(missing: str) -> None:
    answer = process("routes", "app:app", code=WITHOUT.format(missing=missing))
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr == f'Error: the command needs {missing}: pip install "sitemap-middleware[cli]"\n'


# Before anybody has asked the running app for its sitemap


@pytest.mark.parametrize("target", ["app", "application", "app.wsgi_app"])
@pytest.mark.parametrize("there", ["create_app", "make_app"])
def test_missing_module_is_reported_once_with_suggestions(target: str, there: str) -> None:
    name = own(f"def {there}():\n    return None\n", f"own_{there}")
    line = refused("routes", f"{name}:{target}")
    assert line.count(repr(target.partition(".")[0])) == 1
    assert f"try {name}:{there}" in line


# the commands of a framework's own command line


def test_commands_for_an_app_take_no_name_of_it(store: Path) -> None:
    visit("flask_shop", "/")
    app = terminal_site.flask_shop()
    app.cli.add_command(commands_for(app))
    runner = app.test_cli_runner(**RUNNER_OPTIONS)
    answer = runner.invoke(args=["sitemap", "explain", "/"])
    assert (answer.exit_code, answer.output) == (0, send_request("flask_shop", "explain", "/").output)
    assert runner.invoke(args=["sitemap", "list"]).output == send_request("flask_shop", "list").output
    assert runner.invoke(args=["sitemap", "status"]).output.startswith(run("status", str(store)).output)
    assert "STORE" not in runner.invoke(args=["sitemap", "status", "--help"]).output
    assert "--factory" not in runner.invoke(args=["sitemap", "list", "--help"]).output
    assert "STORE" in run("status", "--help").output
    app.wsgi_app.close()


def test_commands_for_an_app_without_the_middleware_say_so() -> None:
    app = flask.Flask("plain")
    answer = cli_runner().invoke(commands_for(app), ["routes"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: <Flask 'plain'> has no SitemapMiddleware; add it: ")
