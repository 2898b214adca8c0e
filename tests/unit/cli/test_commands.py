"""At a terminal: how apps, sites and pages are named, what the commands answer, and that they change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
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

from sitemap_middleware import SitemapMiddleware, __main__, sitemap
from sitemap_middleware.cli.main import command, commands_for

from ...support.command_line import RUNNER_OPTIONS, cli_runner
from ...support.wire import RequestSpec, asgi, wsgi

ROOT = Path(__file__).resolve().parents[3]

BLOG = """
import flask
from sitemap_middleware import SitemapMiddleware, __main__, sitemap
def create_app(name="blog", *, base_url="https://blog.example", **more):
    app = flask.Flask(name, static_folder=None)
    app.add_url_rule("/", "home", lambda: "home")
    app.add_url_rule("/gone", "gone", lambda: ("", 410))
    app.add_url_rule("/search", "search", lambda: "search")
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=["rye", "spelt"], lastmod="2024-05-01")(lambda slug: slug))
    app.add_url_rule("/<tag>", "tag", sitemap(learn=True)(lambda tag: tag))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=base_url, **{"verify": False, **more})
    return app
"""
SHOP = """
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from sitemap_middleware import SitemapMiddleware

def create_app():
    app = FastAPI(openapi_url=None)
    page = lambda: "page"
    app.get("/", response_class=HTMLResponse)(page)
    app.get("/about", response_class=HTMLResponse)(page)
    app.add_middleware(SitemapMiddleware, base_url="https://shop.example", verify=False)
    return app

def page(name):
    return name

app = create_app()
declared = create_app()
declared.root_path = "/shop"
"""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two apps in the working folder, and the file of their store. Imported modules go with the test."""
    file = tmp_path / "kept.sqlite3"
    monkeypatch.setenv("SITEMAP_STORE", f"sqlite:///{file}")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_blog.py").write_text(BLOG, "utf-8")
    Path("own_shop.py").write_text(SHOP, "utf-8")
    yield file
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def own(source: str) -> None:
    Path("own_app.py").write_text(source, "utf-8")


def run(*arguments: str) -> Result:
    return cli_runner().invoke(command, list(arguments), catch_exceptions=False)


def refused(*arguments: str) -> str:
    answer = run(*arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "\n" not in answer.stderr.strip()
    return answer.stderr


def visit_blog(*paths: str) -> None:
    from own_blog import create_app  # type: ignore[import-not-found]

    app = create_app()
    for path in paths:
        wsgi(app, RequestSpec(path, host="blog.example"))
    app.wsgi_app.close()


def visit_shop(root: str, *paths: str) -> None:
    """As behind uvicorn --root-path."""
    from own_shop import create_app  # type: ignore[import-not-found]

    app = create_app()
    app.middleware_stack = stack = app.build_middleware_stack()
    for path in paths:
        asgi(app, RequestSpec(path, root=root, host="shop.example"))
    while not hasattr(stack, "service"):
        stack = stack.app
    stack.close()


# Which app


@pytest.mark.parametrize(
    "name",
    [
        "own_blog:create_app",
        "own_blog:create_app()",
        "own_blog:create_app('blog')",
        "own_blog:create_app(name='blog', base_url='https://blog.example')",
    ],
)
def test_a_factory_is_called_as_servers_call_it(name: str) -> None:
    answer = run("explain", name, "/")
    assert (answer.exit_code, answer.stdout.splitlines()[1]) == (0, "loc: https://blog.example/")


@pytest.mark.parametrize("place", ["own_blog.py", "./own_blog.py", "{folder}/own_blog.py", "../{name}/own_blog.py"])
def test_an_app_is_named_by_its_file(place: str, tmp_path: Path) -> None:
    place = place.format(folder=tmp_path, name=tmp_path.name)
    answer = run("list", f"{place}:create_app")
    assert (answer.exit_code, answer.stdout.splitlines()[0]) == (0, "https://blog.example/")
    assert run("explain", f"{place}:create_app(name='blog')", "/").exit_code == 0
    assert "memory://" not in run("status", f"{place}:create_app").stderr


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("own_blog", "give MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE, such as own_blog:app"),
        ("own_blog.py", "such as own_blog.py:app\n"),
        ("own_blog.create_app", "such as own_blog.create_app:app\n"),
        ("own blog:", "such as app:app, shop.web:app or shop/web.py:app"),
        ("own_other.web:app", "no module named 'own_other' in "),
        ("nothing/like/it.py:app", "no such file: nothing/like/it.py\n"),
        ("own_blog:creat_app", "module own_blog has no 'creat_app'; it has create_app, so try own_blog:create_app"),
        ("own_shop:pages", "module own_shop has no 'pages'; it has app, create_app, so try own_shop:app"),
        ("own_shop:apo", "module own_shop has no 'apo'; it has app, so try own_shop:app"),
        ("own_blog.py:blog", "module own_blog.py has no 'blog'; it has create_app, so try own_blog.py:create_app"),
        ("own_blog:create_app(**{'name': 'blog'})", "cannot be read: give a call with plain values"),
        ("own_blog:create_app({[]: 1})", "cannot be read: give a call with plain values"),
    ],
)
def test_what_does_not_exist_is_named_with_what_is_near(name: str, error: str) -> None:
    assert error in refused("list", name)


BAD_OPTION = """
from starlette.applications import Starlette
from sitemap_middleware import SitemapMiddleware
app = Starlette()
app.add_middleware(SitemapMiddleware, max_age=-1)
"""
FAULTY = [
    ("app = 1", "app.x", "no 'app.x': an object of type int has no 'x'"),
    ("import json", "json", "own_app:json is the module json, not an app"),
    ("app = 1", "app", "own_app:app is an object of type int, not an app"),
    ("app = 1", "app()", "not an app factory"),
    ("def app(): ...", "app", "own_app:app() is an object of type NoneType, not an app"),
    (
        "def app(settings): ...",
        "app",
        "is a function that is no app; if it makes one, give its arguments: own_app:app(",
    ),
    ("async def app(): ...", "app", "own_app:app has no SitemapMiddleware; add it: app.add_middleware("),
    ("def app(environ, start_response): ...", "app", "own_app:app has no SitemapMiddleware; add it: "),
    ("\nimport own_missing", "app", "No module named 'own_missing' ({file}, line 2)"),
    ("\n\nx = 1 / 0", "app", "ZeroDivisionError: division by zero ({file}, line 3)"),
    ("import json\njson.loads('')", "app", "({file}, line 2)"),  # the line of the user's own
    ("x = 1\nx = (", "app", "SyntaxError: '(' was never closed ({file}, line 2)"),
    ("import sys\nsys.exit('enough')", "app", "SystemExit: enough ({file}, line 2)"),
    ("raise ValueError('a\\n  b')", "app", "ValueError: a b ({file}, line 1)"),
    (BAD_OPTION, "app", "the middleware of own_app:app failed: OptionError: SitemapMiddleware: max_age=-1"),
]


@pytest.mark.parametrize(("source", "attribute", "error"), FAULTY)
def test_faulty_app_is_reported_in_one_line(source: str, attribute: str, error: str, tmp_path: Path) -> None:
    own(source)
    assert error.format(file=tmp_path / "own_app.py") in refused("routes", f"own_app:{attribute}")


# Which site


@pytest.mark.parametrize("name", ["list", "build"])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--base-url", "x"], "--base-url='x' does not begin with http:// or https://"),
        (["--base-url", "https://other.example"], "the app's base_url differs from --base-url='https://other.example'"),
        (["--root-path", "shop"], "--root-path='shop' is not a path; give one such as /shop"),
        (["--root-path", "/\n"], "is not a path"),
        (
            ["--base-url", "https://shop.example/a", "--root-path", "/b"],
            "--base-url='https://shop.example/a' and --root-path='/b' name different root paths",
        ),
    ],
)
def test_impossible_site_is_refused_by_the_options_name(name: str, options: list[str], error: str) -> None:
    more = ["--out", "out"] if name == "build" else []
    assert error in refused(name, "own_shop:app", *options, *more)
    assert not Path("out").exists()


def test_command_on_an_app_of_many_tenants_asks_for_one_of_them() -> None:
    own(BLOG + "app = create_app(base_url={'a.example': 'https://a.example'}.get)")
    assert "name the site by --base-url, such as https://example.com" in refused("list", "own_app:app")
    assert "https://a.example/posts/rye" in run("list", "own_app:app", "--base-url", "https://a.example").stdout
    assert "--base-url='https://b.example'" in refused("list", "own_app:app", "--base-url", "https://b.example")


@pytest.mark.parametrize("options", [[], ["--root-path", "/shop"], ["--base-url", "https://shop.example/shop"]])
def test_app_below_a_root_path_is_found_as_its_server_serves_it(options: list[str]) -> None:
    visit_shop("/shop", "/about")
    answer = run("explain", "own_shop:app", "/about", *options)
    assert "loc: https://shop.example/shop/about" in answer.stdout
    assert "first seen: " in answer.stdout
    assert "note: the store has no pages" not in answer.stderr
    for page in ("/shop/about", "https://shop.example/shop/about"):
        assert run("explain", "own_shop:app", page, *options).stdout == answer.stdout
    assert run("build", "own_shop:app", "--out", "out", *options).exit_code == 0
    assert "<loc>https://shop.example/shop/about</loc>" in Path("out/sitemap.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("host", "root", "cure"),
    [
        ("localhost:5000", "", "http://localhost:5000"),
        ("127.0.0.1:8000", "/shop", "http://localhost:8000/shop"),
        ("localhost", "", "http://localhost"),
    ],
)
def test_development_server_is_found_by_its_port_in_the_store(host: str, root: str, cure: str) -> None:
    from own_blog import create_app  # type: ignore[import-not-found]

    app = create_app(base_url=None)
    wsgi(app, RequestSpec("/", host=host, root=root))
    app.wsgi_app.close()
    name = "own_blog:create_app(base_url=None)"
    output = run("explain", name, "/").output
    assert f"loc: {cure}/" in output
    assert "first seen: " in output
    visit_blog("/")
    output = run("explain", name, "/", "--no-requests").output
    if cure != "http://localhost":  # which is what is looked up by itself
        assert "note: the store has no pages of http://localhost, but of other sites: give --base-url " in output
    assert "first seen: " in run("explain", name, "/", "--base-url", cure).stdout


def test_public_site_is_found_in_the_store_of_an_app_without_base_url() -> None:
    visit_blog("/")
    output = run("explain", "own_blog:create_app(base_url=None)", "/").output
    assert "loc: https://blog.example/\n" in output
    assert "note: base_url is not set, so this is about https://blog.example; --base-url chooses another" in output


ONE_HOST = "own_blog:create_app(base_url=None, allowed_hosts=['a.example', '.b.example', 'localhost'])"
TWO_HOSTS = "own_blog:create_app(base_url=None, allowed_hosts=['a.example', 'b.example'])"


@pytest.mark.parametrize("host", ["a.example", "x.b.example"])
def test_a_url_of_any_allowed_host_is_explained(host: str) -> None:
    from own_blog import create_app  # type: ignore[import-not-found]

    app = create_app(base_url=None, allowed_hosts=["a.example", ".b.example"])
    wsgi(app, RequestSpec("/bread", host=host))
    app.wsgi_app.close()
    answer = run("explain", ONE_HOST, f"http://{host}/bread")
    assert answer.exit_code == 0, answer.stderr
    assert f"loc: http://{host}/bread\n" in answer.stdout
    assert "first seen: " in answer.stdout


@pytest.mark.parametrize("url", ["http://c.example/bread", "http://localhost/bread", "http://a_b..example/bread"])
def test_a_url_of_a_host_that_is_not_served_is_refused(url: str) -> None:
    error = refused("explain", TWO_HOSTS, url)
    assert "is not a page of this app, whose site is https://a.example, https://b.example" in error


@pytest.mark.parametrize(
    "arguments",
    [["build", "--out", "out"], ["report", "--out", "out"], ["check"], ["explain", "/bread"]],
    ids=lambda arguments: arguments[0],
)
def test_of_several_named_hosts_one_is_to_be_chosen(arguments: list[str]) -> None:
    error = refused(arguments[0], TWO_HOSTS, *arguments[1:])
    assert "base_url is not set, and the app has several sites (https://a.example, https://b.example)" in error
    assert "choose one, such as --base-url https://a.example" in error


# Which pages


def test_a_page_may_be_named_by_its_whole_url() -> None:
    assert "/posts/rye is listed" in run("explain", "own_blog:create_app", "https://blog.example/posts/rye#end").stdout
    assert "/ is listed" in run("explain", "own_blog:create_app", "https://blog.example").stdout
    for url in ("https://other.example/", "https://not..a.host/"):
        error = refused("explain", "own_blog:create_app", url)
        assert f"{url!r} is not a page of this app, whose site is https://blog.example" in error
    error = refused("explain", "own_shop:declared", "https://shop.example/about")
    assert "is not below the root path /shop of the app" in error


def test_a_page_with_a_query_is_never_listed() -> None:
    assert "query string" in refused("explain", "own_blog:create_app", "https://blog.example/search?q=a")
    answer = run("explain", "own_blog:create_app", "/search?q=a", "/")
    assert (answer.exit_code, "/ is listed" in answer.stdout) == (2, True), "the others are explained"


@pytest.mark.parametrize("path", ["about", "", "ftp://shop.example/about", "https://", "http://[/"])
def test_invalid_path_is_refused(path: str) -> None:
    error = refused("explain", "own_blog:create_app", path)
    assert re.search("is not a path: give the part after the host|is not a URL", error)


# An app's start

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


@pytest.mark.parametrize("arguments", [*READS, *REQUESTS], ids=lambda arguments: arguments[0])
def test_values_may_need_what_the_lifespan_makes(arguments: list[str]) -> None:
    app = app_with_a_pool(lambda: None)
    assert cli_runner().invoke(commands_for(app), arguments, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize(
    ("error", "text"), [(OSError("no database"), "OSError: no database"), (SystemExit(3), "SystemExit: 3")]
)
@pytest.mark.parametrize("arguments", [*READS, *REQUESTS], ids=lambda arguments: arguments[0])
def test_an_app_that_does_not_start_is_named_as_the_cause(
    arguments: list[str], error: BaseException, text: str
) -> None:
    def enter() -> None:
        raise error

    answer = cli_runner().invoke(commands_for(app_with_a_pool(enter)), arguments, catch_exceptions=False)
    assert answer.exit_code == (1 if arguments[0] in ("explain", "routes") else 2)
    output = answer.stdout + answer.stderr
    assert "the app did not start" in output
    assert text in output
    assert not Path("files").exists()


@pytest.mark.parametrize(
    ("arguments", "output", "status"),
    [("list", "/posts/spelt", 2), ("check --pages=none", "4 URLs", 1), ("routes --strict", "  /gone/<x>: ", 1)],
)
@pytest.mark.parametrize("values", ["lambda: int('long ' * 99)", "[{'id': 1}]"])
def test_values_that_fail_cost_a_command_their_own_pages(values: str, arguments: str, output: str, status: int) -> None:
    failing = f'"/gone/<x>", "gone", sitemap(values={values})(lambda x: x)'
    own(BLOG.replace('"/gone", "gone", lambda: ("", 410)', failing) + "app = create_app()\n")
    answer = run(*arguments.split(), "own_app:app")
    assert (answer.exit_code, output in answer.stdout) == (status, True), answer.output
    assert "Traceback" not in answer.stderr
    assert "long …" in answer.output or "lambda" not in values


def test_a_lastmod_that_is_no_date_fails_strict() -> None:
    given = 'values=["rye", "spelt"], lastmod="2024-05-01"'
    own(BLOG.replace(given, "values=[{'slug': 'rye', 'lastmod': 'soon'}]") + "app = create_app()\n")
    answer = run("routes", "own_app:app", "--strict")
    assert (answer.exit_code, "which is not a date" in answer.stdout) == (1, True), answer.output


@pytest.mark.parametrize(
    ("options", "status"), [("", 0), ("exclude=['/serach']", 1), ("learn=['/posts-of/*'], exclude=['/tags/*']", 1)]
)
def test_strict_finds_patterns_that_match_nothing(options: str, status: int) -> None:
    own(BLOG.replace('"/<tag>"', '"/t/<tag>"') + f"\napp = create_app({options})\n")
    answer = run("routes", "own_app:app", "--strict")
    assert answer.exit_code == status, answer.stdout
    assert ("warning: these patterns match nothing:" in answer.stdout) is bool(status)
    report = json.loads(run("routes", "own_app:app", "--json").stdout)
    assert bool(report["unmatched"]) is bool(status)


# The store is looked at, and left as it is


def test_status_names_the_app_by_name_path_and_url(tmp_path: Path) -> None:
    visit_blog("/")
    output = run("status", f"sqlite:///{tmp_path / 'kept.sqlite3'}").stdout
    assert "site https://blog.example\n" in output
    assert run("status", "own_blog:create_app").stdout.partition("options\n")[0] == output
    assert run("status", "kept.sqlite3").stdout == output
    assert run("status", str(tmp_path / "kept.sqlite3")).stdout == output


def test_a_store_that_does_not_exist_is_not_made(store: Path) -> None:
    assert f"note: no store exists at {store}" in run("explain", "own_blog:create_app", "/", "--no-requests").stderr
    assert "note: no store exists" not in run("explain", "own_blog:create_app", "/").stderr
    assert "base_url: https://blog.example (argument)" in run("status", "own_blog:create_app").stdout
    assert not store.exists()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_file_whose_tables_another_process_is_about_to_make_is_an_empty_store(mode: str, store: Path) -> None:
    store.touch()
    with contextlib.closing(sqlite3.connect(store)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        size = store.stat().st_size
        answer = run("status", str(store))
        assert (answer.exit_code, answer.stderr) == (0, f"note: nothing is saved in sqlite:///{store} yet\n")
        assert run("list", "own_blog:create_app", "--no-requests").exit_code == 0
        assert store.stat().st_size == size
    assert run("list", "own_blog:create_app(verify=True)").exit_code == 0
    assert "pages seen: " in run("status", str(store)).stdout


def test_an_unreadable_store_is_left_alone_and_reported(store: Path) -> None:
    store.write_bytes(b"no database" * 1000)
    assert "does not work now: file is not a database" in refused("explain", "own_blog:create_app", "/")
    assert store.read_bytes() == b"no database" * 1000


def test_what_the_app_was_not_asked_yet_is_requested() -> None:
    name = "own_blog:create_app(verify=True, robots=False)"
    reasons = {row["route"]: row["reason"] for row in json.loads(run("routes", name, "--json").stdout)["routes"]}
    assert (reasons["/search"], reasons["/gone"]) == ("it answered 200 with text/html", "it answered 410")
    assert "/search is listed" in run("explain", name, "/search").stdout
    answer = run("explain", name, "/search", "--no-requests")
    assert "/search is not listed: it was not requested yet by this process: request /sitemap.xml once" in answer.stdout


# The program


def test_without_its_libraries_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(sys.modules):
        if name.startswith(("sitemap_middleware.cli.", "rich.")) or name == "rich":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(SystemExit, match="2"):
        __main__.main()
    assert capsys.readouterr() == ("", 'Error: the command needs rich: pip install "sitemap-middleware[cli]"\n')


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [(["list", "own_app:app", "--csv"], "pages read"), (["build", "own_app:app", "--out", "out"], "documents")],
)
def test_progress_is_shown_on_a_terminal_and_never_in_the_output(arguments: list[str], shown: str) -> None:
    many = BLOG.replace('["rye", "spelt"]', "[*map(str, range(2500))]")
    own(f"{many}\napp = create_app(store='memory://', robots=False)")
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    with Path("output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sitemap_middleware", *arguments], env=environment, stdout=output, stderr=slave
        )
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):  # Linux raises it when the process has closed the terminal
        while chunk := os.read(master, 65_536):
            seen += chunk
    os.close(master)
    assert process.wait() == 0, seen
    assert shown in seen.decode()
    assert b"\x1b" not in Path("output").read_bytes()
    assert b"pages read" not in Path("output").read_bytes()


# the commands of a framework's own command line


def test_commands_for_an_app_take_no_name_of_it(store: Path) -> None:
    visit_blog("/")
    from own_blog import create_app

    app = create_app()
    app.cli.add_command(commands_for(app))
    runner = app.test_cli_runner(**RUNNER_OPTIONS)
    answer = runner.invoke(args=["sitemap", "explain", "/"])
    assert (answer.exit_code, answer.output) == (0, run("explain", "own_blog:create_app", "/").output)
    assert runner.invoke(args=["sitemap", "list"]).output == run("list", "own_blog:create_app").output
    assert runner.invoke(args=["sitemap", "status"]).output.startswith(run("status", str(store)).output)
    assert "STORE" not in runner.invoke(args=["sitemap", "status", "--help"]).output
    assert "STORE" in run("status", "--help").output
    app.wsgi_app.close()


def test_commands_for_an_app_without_the_middleware_say_so() -> None:
    app = flask.Flask("plain")
    answer = cli_runner().invoke(commands_for(app), ["routes"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: <Flask 'plain'> has no SitemapMiddleware; add it: ")
