"""At a terminal: how apps, sites and pages are named, and the lists of pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
from click.testing import Result

from sitemap_middleware.cli.app_loader import load_app
from sitemap_middleware.cli.main import command
from sitemap_middleware.cli.terminal import CommandError

from ...support.command_line import cli_runner
from ...support.wire import RequestSpec, asgi, wsgi

BLOG = """
import flask
from sitemap_middleware import SitemapMiddleware, sitemap

def create_app(name="blog", *, base_url="https://blog.example", **more):
    app = flask.Flask(name, static_folder=None)
    app.add_url_rule("/", "home", lambda: "home")
    app.add_url_rule("/gone", "gone", lambda: ("", 410))
    app.add_url_rule("/search", "search", lambda: "search")
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=["rye", "spelt"], lastmod="2024-05-01")(lambda slug: slug))
    app.add_url_rule("/<tag>", "tag", sitemap(learn=True)(lambda tag: tag))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=base_url, verify=False, **more)
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
def _own_apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SITEMAP_STORE", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_blog.py").write_text(BLOG, "utf-8")
    Path("own_shop.py").write_text(SHOP, "utf-8")
    yield
    for name in ("own_blog", "own_shop"):
        sys.modules.pop(name, None)


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
        ("nothing/like/it.py:app", "no such file: nothing/like/it.py\n"),
        ("own_blog:creat_app", "module own_blog has no 'creat_app'; it has create_app, so try own_blog:create_app"),
        ("own_shop:pages", "module own_shop has no 'pages'; it has app, create_app, so try own_shop:app"),
        ("own_shop:apo", "module own_shop has no 'apo'; it has app, create_app, so try own_shop:app"),
        ("own_blog.py:blog", "module own_blog.py has no 'blog'; it has create_app, so try own_blog.py:create_app"),
        ("own_blog:create_app(**{'name': 'blog'})", "cannot be read: give a call with plain values"),
        ("own_blog:create_app({[]: 1})", "cannot be read: give a call with plain values"),
        (
            "own_needy:make",
            "own_needy:make is a function that is no app; if it makes one, give its arguments: own_needy:",
        ),
    ],
)
def test_what_does_not_exist_is_named_with_what_is_near(name: str, error: str) -> None:
    Path("own_needy.py").write_text("def make(settings):\n    ...")
    assert error in refused("list", name)
    sys.modules.pop("own_needy", None)


def test_version_is_printed() -> None:
    assert run("--version").stdout.startswith("sitemap-middleware, version ")


# Which site


@pytest.mark.parametrize("name", ["explain", "list", "routes", "build"])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--base-url", "x"], "--base-url='x' does not begin with http:// or https://"),
        (
            ["--base-url", "https://other.example"],
            "the app's base_url differs from --base-url='https://other.example'",
        ),
        (["--root-path", "shop"], "--root-path='shop' is not a path; give one such as /shop"),
        (["--root-path", "/\n"], "is not a path"),
        (
            ["--base-url", "https://shop.example/a", "--root-path", "/b"],
            "--base-url='https://shop.example/a' and --root-path='/b' name different root paths",
        ),
    ],
)
def test_impossible_site_is_refused_by_the_options_name(name: str, options: list[str], error: str) -> None:
    more = {"explain": ["/"], "build": ["--out", "out"]}.get(name, [])
    assert error in refused(name, "own_shop:app", *options, *more)
    assert not Path("out").exists()


@pytest.mark.parametrize("options", [["--root-path", "/shop"], ["--base-url", "https://shop.example/shop"]])
def test_app_below_a_root_path_is_found_as_its_server_serves_it(options: list[str]) -> None:
    visit_shop("/shop", "/about")
    answer = run("explain", "own_shop:app", "/about", *options)
    assert "loc: https://shop.example/shop/about" in answer.stdout
    assert "first seen: " in answer.stdout
    assert "note: the store has no pages" not in answer.stdout
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
    output = run("explain", name, "/").stdout
    assert f"loc: {cure}/" in output
    assert "first seen: " in output
    visit_blog("/")
    output = run("explain", name, "/", "--no-requests").stdout
    if cure != "http://localhost":  # which is what is looked up by itself
        assert "note: the store has no pages of http://localhost, but of other sites: give --base-url " in output
    assert "first seen: " in run("explain", name, "/", "--base-url", cure).stdout


def test_public_site_is_found_in_the_store_of_an_app_without_base_url() -> None:
    visit_blog("/")
    output = run("explain", "own_blog:create_app(base_url=None)", "/").stdout
    assert "loc: https://blog.example/\n" in output
    assert "note: base_url is not set, so this is about https://blog.example; --base-url chooses another" in output


ONE_HOST = "own_blog:create_app(base_url=None, allowed_hosts=['a.example', '.b.example', 'localhost'])"
TWO_HOSTS = "own_blog:create_app(base_url=None, allowed_hosts=['a.example', 'b.example'])"


def visit_host(host: str, path: str, scheme: str = "https") -> None:
    from own_blog import create_app  # type: ignore[import-not-found]

    app = create_app(base_url=None, allowed_hosts=["a.example", ".b.example"])
    wsgi(app, RequestSpec(path, host=host, scheme=scheme))
    app.wsgi_app.close()


@pytest.mark.parametrize("host", ["a.example", "b.example", "x.b.example"])
def test_a_url_of_any_allowed_host_is_explained(host: str) -> None:
    visit_host(host, "/bread", "http")
    answer = run("explain", ONE_HOST, f"http://{host}/bread")
    assert answer.exit_code == 0, answer.stderr
    assert f"loc: http://{host}/bread\n" in answer.stdout
    assert "first seen: " in answer.stdout
    assert "--base-url" not in answer.stdout


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


def test_sitemap_of_another_site_is_not_written() -> None:
    Path("own_moved.py").write_text(
        SHOP + "\nclass Moved:\n"
        "    def __init__(self, app): self.app = app\n"
        "    async def __call__(self, scope, receive, send):\n"
        "        moved = {'root_path': '', 'path': scope['path'].removeprefix('/shop')} if 'path' in scope else {}\n"
        "        await self.app({**scope, **moved}, receive, send)\n"
        "app = Moved(app)\n",
        "utf-8",
    )
    error = refused("build", "own_moved:app", "--out", "out", "--root-path", "/shop")
    assert "/sitemap.xml lists https://shop.example/, which is not a page of https://shop.example/shop" in error
    assert not Path("out").exists()


# Which pages


def test_a_page_may_be_named_by_its_whole_url() -> None:
    assert "/posts/rye is listed" in run("explain", "own_blog:create_app", "https://blog.example/posts/rye#end").stdout
    assert "/ is listed" in run("explain", "own_blog:create_app", "https://blog.example").stdout
    for url in ("https://other.example/", "https://not..a.host/"):
        error = refused("explain", "own_blog:create_app", url)
        assert f"{url!r} is not a page of this app, whose site is https://blog.example" in error
    error = refused("explain", "own_shop:declared", "https://shop.example/about")
    assert "is not below the root path /shop of the app" in error


@pytest.mark.parametrize("page", ["/search?q=a", "https://blog.example/search?q=a"])
def test_a_page_with_a_query_is_never_listed(page: str) -> None:
    answer = run("explain", "own_blog:create_app", page)
    assert answer.exit_code == 1
    assert answer.stdout.startswith(f"{page} is not listed: a page with a query string is never listed; this is about")
    assert "/search is listed" in answer.stdout
    (row,) = json.loads(run("explain", "own_blog:create_app", page, "--json").stdout)
    assert (row["listed"], row["path"]) == (False, "/search")
    assert "query string" in row["reason"]


@pytest.mark.parametrize("middle", ["", "-routes-1", "-guides"])
def test_documents_of_the_middleware_are_named_as_such(middle: str) -> None:
    name = "own_blog:create_app(sections={'guides': ['/guides/one']})"
    answer = run("explain", name, f"/sitemap{middle}.xml")
    assert "is not listed: it is a document of the sitemap, which the middleware serves" in answer.stdout
    answer = run("explain", "own_shop:app", "/robots.txt")
    assert "/robots.txt is not listed: it is robots.txt, which is no page" in answer.stdout


def test_the_route_of_an_unvisited_page_is_named() -> None:
    answer = run("explain", "own_blog:create_app", "/bread")
    assert (
        "/bread is not listed: its route /<tag> is learned, but no visit has shown that it is a page" in answer.stdout
    )
    assert "route: /<tag> (tag)" in answer.stdout


# Lists


def test_the_pages_of_the_sitemap_are_listed_each_once() -> None:
    visit_blog("/", "/gone", "/bread", "/posts/rye")
    answer = run("list", "own_blog:create_app")
    assert answer.exit_code == 0
    assert sorted(line.split()[0] for line in answer.stdout.splitlines()) == [
        f"https://blog.example/{path}" for path in ("", "bread", "posts/rye", "posts/spelt", "search")
    ]
    assert "https://blog.example/posts/rye  2024-05-01 (" in answer.stdout


def test_the_pages_that_are_left_out_are_listed_with_the_reason() -> None:
    visit_blog("/", "/gone", "/bread")
    assert run("list", "own_blog:create_app", "--not-listed").stdout == (
        "https://blog.example/gone  not listed: it answered 410\n"
    )


# Stores


def test_status_names_the_app_by_name_path_and_url(tmp_path: Path) -> None:
    visit_blog("/")
    output = run("status", f"sqlite:///{tmp_path / 'kept.sqlite3'}").stdout
    assert "site https://blog.example\n" in output
    assert "block" not in output
    assert run("status", "own_blog:create_app").stdout.partition("options\n")[0] == output
    assert run("status", "kept.sqlite3").stdout == output
    assert run("status", str(tmp_path / "kept.sqlite3")).stdout == output


def test_file_that_is_not_a_database_is_reported() -> None:
    Path("notes.sqlite3").write_text("no database" * 100, "utf-8")
    assert "notes.sqlite3 does not work now: file is not a database" in refused("status", "notes.sqlite3")


@pytest.mark.parametrize(
    ("options", "status"), [("", 0), ("exclude=['/serach']", 1), ("learn=['/posts-of/*'], exclude=['/tags/*']", 1)]
)
def test_strict_finds_patterns_that_match_nothing(options: str, status: int) -> None:
    Path("own_patterns.py").write_text(BLOG.replace('"/<tag>"', '"/t/<tag>"') + f"\napp = create_app({options})\n")
    answer = run("routes", "own_patterns:app", "--strict")
    assert answer.exit_code == status, answer.stdout
    assert ("warning: these patterns match nothing:" in answer.stdout) is bool(status)
    report = json.loads(run("routes", "own_patterns:app", "--json").stdout)
    assert bool(report["unmatched"]) is bool(status)
    del sys.modules["own_patterns"]


def test_app_object_without_middleware() -> None:
    with pytest.raises(CommandError, match="SitemapMiddleware"):
        load_app(flask.Flask("bare"), factory=False)
