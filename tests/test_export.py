"""`sitemap-middleware build`: the sitemap as files, just as the app would serve it."""

from __future__ import annotations

import gzip
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sitemap_middleware.cli import command
from sitemap_middleware.document import MAX_URLS
from sitemap_middleware.model import Observation
from sitemap_middleware.stores.sqlite import SQLiteStore

from .apps.terminal_site import BASE, NOW
from .support.documents import entries, locs

SITE = "tests.apps.terminal_site"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SQLiteStore:
    """The store that the apps will open."""
    file = tmp_path / "kept.sqlite3"
    monkeypatch.setenv("SITEMAP_STORE", f"sqlite:///{file}")
    monkeypatch.chdir(tmp_path)
    return SQLiteStore(file)


def build(app: str, out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["build", app, "--out", str(out), *arguments], catch_exceptions=False)


def own(source: str, name: str) -> str:
    Path(f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
    return name


def seen(path: str, route: str, **more: object) -> Observation:
    return Observation(path, route, NOW - 100, 200, "text/html", learned="<" in route or "{" in route, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("shop", ["flask_shop", "starlette_shop", "fastapi_shop"])
def test_the_files_are_what_the_app_would_serve(shop: str, store: SQLiteStore, tmp_path: Path) -> None:
    route = "/posts/<slug>" if shop == "flask_shop" else "/posts/{slug}"
    store.fold(BASE, [seen("/posts/one", route), seen("/", "/", modified=1_588_314_600)])
    out = tmp_path / "public"
    result = build(f"{SITE}:{shop}", out, "--factory")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"2 files in {out}\n"
    body = (out / "sitemap.xml").read_bytes()
    assert entries(body) == {
        f"{BASE}/": {"lastmod": "2020-05-01T06:30:00Z"},
        f"{BASE}/closed": {},
        f"{BASE}/posts/one": {},
    }
    assert gzip.decompress((out / "sitemap.xml.gz").read_bytes()) == body


def test_an_index_has_its_documents_beside_it_and_leaves_no_older_ones(store: SQLiteStore, tmp_path: Path) -> None:
    store.fold(BASE, [seen(f"/posts/{number}", "/posts/<slug>") for number in range(MAX_URLS)])
    out = tmp_path / "public"
    assert build(f"{SITE}:flask_shop", out, "--factory").stdout == f"6 files in {out}\n"
    names = [loc.removeprefix(f"{BASE}/") for loc in locs((out / "sitemap.xml").read_bytes())]
    assert names == ["sitemap-routes-1.xml", "sitemap-pages-1.xml"]
    assert sum(len(locs((out / name).read_bytes())) for name in names) == MAX_URLS + 2
    (out / "sitemap-of-mine.xml").write_text("mine")
    store.forget(BASE, NOW, NOW)
    assert build(f"{SITE}:flask_shop", out, "--factory").stdout == f"2 files in {out}\n"
    assert sorted(path.name for path in out.iterdir()) == ["sitemap-of-mine.xml", "sitemap.xml", "sitemap.xml.gz"]


def test_the_base_url_may_be_given_where_the_app_names_none(store: SQLiteStore, tmp_path: Path) -> None:
    app = own(
        """
        import flask
        from sitemap_middleware import SitemapMiddleware
        app = flask.Flask(__name__)
        app.add_url_rule("/", "home", lambda: "Home")
        app.wsgi_app = SitemapMiddleware(app.wsgi_app, path="/maps/pages.xml")
        """,
        "own_nameless",
    )
    refused = build(f"{app}:app", tmp_path / "public")
    assert refused.exit_code == 2
    assert "give --base-url https://example.com" in refused.output
    result = build(
        f"{own((tmp_path / 'own_nameless.py').read_text(), 'own_named')}:app",
        tmp_path / "public",
        "--base-url",
        "https://www.example.org",
    )
    assert result.exit_code == 0, result.output
    assert locs((tmp_path / "public/maps/pages.xml").read_bytes()) == ["https://www.example.org/"]


def test_an_asgi_app_lives_while_it_is_asked(store: SQLiteStore, tmp_path: Path) -> None:
    app = own(
        """
        import contextlib
        from pathlib import Path
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route
        from sitemap_middleware import SitemapMiddleware

        @contextlib.asynccontextmanager
        async def lifespan(app):
            Path("log").write_text("up")
            yield {"rules": "User-agent: *\\nDisallow: /private"}
            Path("log").write_text("down")

        async def robots(request):
            return PlainTextResponse(request.state.rules)

        async def page(request):
            return PlainTextResponse("page")

        routes = [Route("/robots.txt", robots), Route("/private", page), Route("/public", page)]
        app = Starlette(routes=routes, lifespan=lifespan)
        app.add_middleware(SitemapMiddleware, base_url="https://example.com:8443")
        """,
        "own_living",
    )
    result = build(f"{app}:app", tmp_path / "public")
    assert result.exit_code == 0, result.output
    assert locs((tmp_path / "public/sitemap.xml").read_bytes()) == ["https://example.com:8443/public"]
    assert Path("log").read_text() == "down"


FAILING = {
    "an app that cannot start": (
        """
        from sitemap_middleware import SitemapMiddleware
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route
        import contextlib

        @contextlib.asynccontextmanager
        async def lifespan(app):
            raise OSError("no database")
            yield

        async def page(request):
            return PlainTextResponse("page")

        app = Starlette(routes=[Route("/", page)], lifespan=lifespan)
        app.add_middleware(SitemapMiddleware, base_url="https://example.com")
        """,
        "the app did not start: OSError: no database",
    ),
    "nothing to list": (
        """
        from sitemap_middleware import SitemapMiddleware

        async def raw(scope, receive, send):
            assert scope["type"] == "http"
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body"})

        app = SitemapMiddleware(raw, base_url="https://example.com")
        """,
        "the app answered 404 for /sitemap.xml: There is nothing to list",
    ),
    "a route of its own": (
        """
        import flask
        from sitemap_middleware import SitemapMiddleware
        app = flask.Flask(__name__)
        app.add_url_rule("/sitemap.xml", "own", lambda: "<own/>")
        app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://example.com")
        """,
        "by a route of its own, and not with our sitemap",
    ),
    "no middleware": ("import flask\napp = flask.Flask(__name__)\n", "has no SitemapMiddleware"),
}


@pytest.mark.parametrize("case", FAILING)
def test_what_cannot_be_built_is_said_in_one_line(case: str, store: SQLiteStore, tmp_path: Path) -> None:
    source, words = FAILING[case]
    result = build(f"{own(source, f'own_{abs(hash(case))}')}:app", tmp_path / "public")
    assert result.exit_code == 2
    assert words in result.output
    assert not (tmp_path / "public").exists()


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left(store: SQLiteStore, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = build(f"{SITE}:flask_shop", tmp_path / "file" / "public", "--factory")
    assert result.exit_code == 2
    assert f"{tmp_path / 'file' / 'public'} cannot be written" in result.output
    out = tmp_path / "public"
    (out / "sitemap.xml.gz").mkdir(parents=True)  # no file can take its place
    assert build(f"{SITE}:flask_shop", out, "--factory").exit_code == 2
    assert [path.name for path in out.iterdir()] == ["sitemap.xml.gz"]


def test_an_app_that_answers_in_parts_and_waits_for_its_client_to_leave_is_let_go(
    store: SQLiteStore, tmp_path: Path
) -> None:
    app = own(
        """
        from sitemap_middleware import SitemapMiddleware

        async def raw(scope, receive, send):
            assert scope["type"] == "http"
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await send({"type": "http.response.body", "body": b"two"})
            assert (await receive())["type"] == "http.disconnect"

        app = SitemapMiddleware(raw, base_url="https://example.com", path="/maps.xml", robots=False)
        app.core.owns = lambda request: False
        """,
        "own_waiting",
    )
    result = build(f"{app}:app", tmp_path / "public")
    assert result.exit_code == 2
    assert "the app answers for /maps.xml by a route of its own" in result.output
