"""`sitemap-middleware build`: the sitemap as files, just as the app would serve it."""

from __future__ import annotations

import gzip
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from sitemap_middleware.cli.main import command
from sitemap_middleware.cli.sitemap_files import RETRY_SECONDS, export, fetch_documents
from sitemap_middleware.documents.xml import render_sitemap
from sitemap_middleware.exceptions import SitemapError
from sitemap_middleware.http.messages import GENERATING_HEADER, Response
from sitemap_middleware.models import Site

from ...support.command_line import cli_runner
from ...support.documents import entries, locs

BASE = "https://shop.example"
SHOP = """
    import flask
    from sitemap_middleware import SitemapMiddleware, sitemap
    app = flask.Flask(__name__, static_folder=None)
    app.add_url_rule("/", "home", lambda: ("Home", {"Last-Modified": "Fri, 01 May 2020 06:30:00 GMT"}))
    app.add_url_rule("/posts/<slug>", "post", sitemap(values=["one"], lastmod="2024-05-01")(lambda slug: slug))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, path="/maps/pages.xml")
"""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SITEMAP_STORE", f"sqlite:///{tmp_path / 'kept.sqlite3'}")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_app", None)


def build(source: str, *arguments: str, out: Path = Path("public")) -> Result:
    """Build the sitemap of an app that a module makes."""
    Path("own_app.py").write_text(textwrap.dedent(source), "utf-8")
    sys.modules.pop("own_app", None)
    return cli_runner().invoke(command, ["build", "own_app:app", "--out", str(out), *arguments], catch_exceptions=False)


def test_the_files_are_what_the_app_would_serve() -> None:
    refused = build(SHOP)
    assert refused.exit_code == 2
    assert "give --base-url, such as https://example.com" in refused.stderr
    result = build(SHOP, "--base-url", BASE)
    assert result.exit_code == 0, result.output
    body, gzipped = Path("public/maps/pages.xml").read_bytes(), Path("public/maps/pages.xml.gz").read_bytes()
    assert result.stdout.splitlines() == [
        f"maps/pages.xml  2 URLs, {len(body)} bytes; {len(gzipped)} bytes as pages.xml.gz",
        f"2 URLs of https://shop.example, {len(body)} bytes: 2 files in public",
    ]
    assert entries(body) == {
        f"{BASE}/": {"lastmod": "2020-05-01T06:30:00Z"},
        f"{BASE}/posts/one": {"lastmod": "2024-05-01"},
    }
    assert gzip.decompress(gzipped) == body


FAILING = {
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
        "the app has a route for /sitemap.xml, so SitemapMiddleware does not serve it",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_failed_export_is_reported_in_one_line(case: str) -> None:
    source, words = FAILING[case]
    result = build(source)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path("public").exists()


def test_unwritable_folder_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = build(SHOP, "--base-url", BASE, out=Path("file/public"))
    assert result.exit_code == 2
    assert "file/public cannot be written" in result.stderr
    (tmp_path / "public/maps/pages.xml.gz").mkdir(parents=True)  # no file can take its place
    assert build(SHOP, "--base-url", BASE).exit_code == 2
    assert [path.name for path in (tmp_path / "public/maps").iterdir()] == ["pages.xml.gz"]


# What is not there yet


def answered(body: str, status: int = 200) -> Response:
    if status != 200:
        return Response(status, [], body.encode())
    return Response(200, [("content-encoding", "gzip")], gzip.compress(body.encode(), mtime=0))


def index_of(*numbers: int) -> Response:
    lines = "".join(render_sitemap(f"{BASE}/sitemap-{number}.xml", None) for number in numbers)
    return answered(f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{lines}</sitemapindex>')


MADE = answered("<urlset/>")
GONE = answered("There is nothing to list in /sitemap.xml.\n", 404)


def exported(responses: dict[str, list[Response]], out: Path) -> tuple[list[str], list[float]]:
    """The files written where an app says these things in turn, and the last of each on; and the pauses between."""
    pauses: list[float] = []

    def send_request(path: str, encoding: str) -> Response:
        assert encoding == "gzip"
        return responses[path].pop(0) if len(responses[path]) > 1 else responses[path][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", pauses.append)
        site = Site("https", "shop.example")
        written = export(fetch_documents(send_request, site, "/sitemap.xml"), site, "/sitemap.xml", out)
    for file in written:
        body, gzipped = file.path.read_bytes(), file.path.with_name(f"{file.path.name}.gz").read_bytes()
        assert gzip.decompress(gzipped) == body
        assert (file.size, file.gzipped_size) == (len(body), len(gzipped))
        assert (file.urls, file.documents) == (body.count(b"<url>"), body.count(b"<sitemap>"))
    return [file.path.name for file in written], pauses


def test_documents_are_fetched_again_if_the_index_changed(tmp_path: Path) -> None:
    responses = {
        "/sitemap.xml": [index_of(1, 2), index_of(1, 3)],
        "/sitemap-1.xml": [answered("<old/>"), MADE],
        "/sitemap-2.xml": [GONE],
        "/sitemap-3.xml": [MADE],
    }
    assert "sitemap-3.xml" in exported(responses, tmp_path)[0]
    assert locs((tmp_path / "sitemap.xml").read_bytes()) == [f"{BASE}/sitemap-{number}.xml" for number in (1, 3)]
    assert (tmp_path / "sitemap-1.xml").read_bytes() == b"<urlset/>"


def test_current_documents_stay_and_obsolete_ones_are_removed(tmp_path: Path) -> None:
    responses = {f"/sitemap-{number}.xml": [MADE] for number in (1, 2, 3)}
    exported({**responses, "/sitemap.xml": [index_of(1, 2)]}, tmp_path)
    exported({**responses, "/sitemap.xml": [index_of(2, 3)]}, tmp_path)
    names = [name for number in (2, 3) for name in (f"sitemap-{number}.xml", f"sitemap-{number}.xml.gz")]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "sitemap.xml", "sitemap.xml.gz"]


def test_files_of_other_programs_stay(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_bytes(gzip.decompress(index_of(1, 2).body))
    for name in ("sitemap-1.xml", "sitemap-1.xml.gz", "sitemap-2.xml"):
        (tmp_path / name).write_text("of another program")
    exported({"/sitemap.xml": [MADE]}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"sitemap-1.xml", "sitemap-1.xml.gz", "sitemap-2.xml"}


def test_missing_document_of_an_index_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SitemapError, match=r"answered 404 for /sitemap-2\.xml"):
        exported({"/sitemap.xml": [index_of(1, 2)], "/sitemap-1.xml": [MADE], "/sitemap-2.xml": [GONE]}, tmp_path)
    assert not (tmp_path / "sitemap.xml").exists()


def test_documents_that_are_being_generated_are_waited_for(tmp_path: Path) -> None:
    generating = Response(503, [(name.lower(), value) for name, value in [GENERATING_HEADER]], b"")
    responses = {"/sitemap.xml": [generating, generating, MADE]}
    assert exported(responses, tmp_path) == (["sitemap.xml"], [RETRY_SECONDS, RETRY_SECONDS])
