"""The command check: what it compares a sitemap with, and in which forms it prints what it finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
from click.testing import Result
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.check.clients import AppClient
from sitemap_middleware.cli.main import command, commands_for
from sitemap_middleware.http.messages import Response
from sitemap_middleware.models import Site

from ...support.command_line import cli_runner
from ..check.web_site import Reply, WebSite, served, urlset

BAKERY = "https://bakery.example"


def run(*arguments: str | Path) -> Result:
    return cli_runner().invoke(command, ["check", *map(str, arguments)], catch_exceptions=False)


def write(file: Path, *urls: str) -> Path:
    file.write_text(urlset(*urls), "utf-8")
    return file


def codes(answer: Result) -> list[str]:
    return [message["code"] for message in json.loads(answer.stdout)]


# Forms


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = f"{urlset(f'{BAKERY}/a#b', '/100%,:')}"
    Path("sitemap.xml").write_text(text.replace("<url>", "\n<url>"), "utf-8")
    return Path("sitemap.xml")


def test_sarif(faulty: Path) -> None:
    answer = run(faulty, "--format", "sarif")
    log = json.loads(answer.stdout)
    assert (log["version"], len(log["runs"]), answer.exit_code) == ("2.1.0", 1, 1)
    (tool, results) = (log["runs"][0]["tool"]["driver"], log["runs"][0]["results"])
    assert [rule["id"] for rule in tool["rules"]] == ["loc-fragment", "loc-relative"]
    assert [(result["ruleIndex"], result["ruleId"], result["level"]) for result in results] == [
        (0, "loc-fragment", "warning"),
        (1, "loc-relative", "error"),
    ]
    assert results[0]["message"]["text"] == f"{BAKERY}/a#b: the URL has the fragment '#b'."
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "sitemap.xml"}
    assert place["region"]["startLine"] == 2
    assert {rule["helpUri"] for rule in tool["rules"]} == {"https://www.sitemaps.org/protocol.html"}


def test_annotations_of_github(faulty: Path) -> None:
    """Values of a document cannot end a command or begin another one."""
    first, second = run(faulty, "--format", "github").stdout.splitlines()
    assert first.startswith("::warning file=sitemap.xml,line=2,title=loc-fragment,col=")
    assert first.endswith(f"::{BAKERY}/a#b: the URL has the fragment '#b'")
    assert second.startswith("::error file=sitemap.xml,line=3,title=loc-relative")
    assert second.endswith("::/100%25,:: '/100%25,:' is not an absolute URL")


def test_annotations_of_github_do_not_control_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.txt"
    file.write_text("https://example.com/\n/a\N{RIGHT-TO-LEFT OVERRIDE}\x9b\x07b\n", encoding="utf-8")
    output = run(file, "--format", "github").stdout
    assert "/a\\u202e\\x9b\\x07b" in output
    assert output.replace("\n", "").isprintable()


# Pages


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served() as site:
        site.add("/robots.txt", Reply(200, f"Sitemap: {site.origin}/sitemap.xml\n".encode()))
        site.add_sitemap("/sitemap.xml", "/gone")
        yield site


def test_pages_of_a_url_are_sampled(site: WebSite) -> None:
    answer = run(f"{site.origin}/sitemap.xml")
    assert f"{site.origin}/gone: the page answers 404 [page-status]" in answer.stdout
    assert answer.stdout.endswith("1 URL in 1 document, 1 page requested: 1 error\n")
    assert run(f"{site.origin}/sitemap.xml", "--pages", "none").exit_code == 0


def test_pages_of_a_file_are_requested_if_it_is_wanted(site: WebSite, tmp_path: Path) -> None:
    """A file may list pages that are not on the web yet, and this machine's own hosts are not those of the site."""
    file = write(tmp_path / "sitemap.xml", f"{site.origin}/gone")
    quiet = ("--ignore", "loc-local")
    assert codes(run(file, "--json", *quiet)) == []
    assert codes(run(file, "--json", "--pages", "all", *quiet)) == []
    assert "/gone" not in site.requests


# An earlier run


def test_urls_that_vanish(tmp_path: Path) -> None:
    file, baseline = tmp_path / "sitemap.xml", tmp_path / "urls.txt"
    write(file, f"{BAKERY}/", f"{BAKERY}/a", f"{BAKERY}/caf%c3%a9")
    assert codes(run(file, "--json", "--baseline", baseline)) == []
    assert baseline.read_text("utf-8").splitlines() == [f"{BAKERY}/", f"{BAKERY}/a", f"{BAKERY}/caf%c3%a9"]

    write(file, f"{BAKERY}/", f"{BAKERY}/b", f"{BAKERY}/caf%C3%A9")
    (message,) = json.loads(run(file, "--json", "--baseline", baseline).stdout)
    assert (message["code"], message["url"]) == ("coverage-vanished", f"{BAKERY}/a")
    assert codes(run(file, "--json", "--baseline", baseline)) == ["coverage-vanished"]

    answer = run(file, "--json", "--baseline", baseline, "--update-baseline")
    assert codes(answer) == ["coverage-vanished"]
    assert f"{baseline} is written" in " ".join(answer.stderr.split())
    assert codes(run(file, "--json", "--baseline", baseline)) == []
    assert {path.name for path in tmp_path.iterdir()} == {"sitemap.xml", "urls.txt"}


def test_baseline_that_cannot_be_written(tmp_path: Path) -> None:
    file = write(tmp_path / "sitemap.xml", f"{BAKERY}/")
    answer = run(file, "--baseline", tmp_path / "missing" / "urls.txt")
    assert (answer.exit_code, "--baseline cannot be written" in answer.stderr) == (2, True)


def test_update_needs_a_baseline(tmp_path: Path) -> None:
    answer = run(write(tmp_path / "sitemap.xml", f"{BAKERY}/"), "--update-baseline")
    assert (answer.exit_code, "--baseline FILE" in answer.stderr) == (2, True)


# An app


def check_app(app: object, *arguments: str) -> Result:
    return cli_runner().invoke(commands_for(app), ["check", *arguments, "--json"], catch_exceptions=False)


def messages(answer: Result) -> dict[tuple[str, str], str]:
    """The messages by code and path."""
    found = json.loads(answer.stdout)
    return {(message["code"], message["url"].removeprefix(BAKERY)): message["message"] for message in found}


def flask_bakery() -> flask.Flask:
    app = flask.Flask("bakery")
    app.add_url_rule("/", "home", lambda: "<h1>Our bread</h1>")
    app.add_url_rule("/menu", "menu", lambda: flask.redirect("/prices"))
    app.add_url_rule("/prices", "prices", lambda: "<h1>Prices</h1>")
    app.add_url_rule("/search", "search", lambda: flask.redirect("/found?q=rye%20bread&page=1#first"))
    app.add_url_rule("/found", "found", lambda: f"<h1>{flask.request.args['q']}</h1>")
    app.add_url_rule("/shop", "shop", lambda: flask.redirect("https://shop.example/"))
    app.add_url_rule("/gone", "gone", lambda: ("Gone", 410))
    app.add_url_rule("/circle", "circle", lambda: flask.redirect("/circle"))
    app.add_url_rule("/failing", "failing", lambda: 1 / 0)
    app.add_url_rule("/staff", "staff", lambda: "<h1>Staff</h1>")
    app.add_url_rule(
        "/robots.txt", "robots", lambda: flask.Response("User-agent: *\nDisallow:\n", mimetype="text/plain")
    )
    return app


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f"<h1>{request.url.path}</h1>")


def starlette_bakery() -> Starlette:
    async def robots(_: Request) -> PlainTextResponse:
        return PlainTextResponse("User-agent: *\nDisallow:\n")

    async def menu(_: Request) -> RedirectResponse:
        return RedirectResponse("/prices")

    async def shop(_: Request) -> RedirectResponse:
        return RedirectResponse("https://shop.example/")

    async def gone(_: Request) -> PlainTextResponse:
        return PlainTextResponse("Gone", 410)

    async def circle(_: Request) -> RedirectResponse:
        return RedirectResponse("/circle")

    async def failing(_: Request) -> PlainTextResponse:
        raise ZeroDivisionError("division by zero")

    async def search(_: Request) -> RedirectResponse:
        return RedirectResponse("/found?q=rye%20bread&page=1#first")

    async def found(request: Request) -> HTMLResponse:
        return HTMLResponse(f"<h1>{request.query_params['q']}</h1>")

    pages = {"/": page, "/prices": page, "/staff": page, "/menu": menu, "/shop": shop, "/gone": gone}
    more = {"/search": search, "/found": found, "/circle": circle, "/failing": failing, "/robots.txt": robots}
    return Starlette(routes=[Route(path, view) for path, view in (pages | more).items()])


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_pages_and_robots_of_an_app(protocol: str, tmp_path: Path) -> None:
    """Without `verify`, routes are listed before a visit, so the sitemap has pages that it should not."""
    options = {"base_url": BAKERY, "store": f"sqlite:///{tmp_path / 'sitemap.sqlite3'}", "verify": False}
    inner = flask_bakery().wsgi_app if protocol == "wsgi" else starlette_bakery()
    app = SitemapMiddleware(inner, **options, robots=False, exclude=["/staff"])
    app.service.store.check_writable()
    found = messages(check_app(app))
    assert found["page-redirect", "/menu"] == f"the page redirects to {BAKERY}/prices"
    assert found["page-redirect", "/search"] == f"the page redirects to {BAKERY}/found?q=rye%20bread&page=1"
    assert found["page-redirect", "/shop"] == "the page redirects to https://shop.example/"
    assert found["page-status", "/gone"] == "the page answers 410"
    assert found["page-redirect-loop", "/circle"] == f"{BAKERY}/circle redirects in a circle"
    assert [code for code, path in found if path == "/failing"] == [
        "page-status" if protocol == "wsgi" else "page-failed"
    ]
    assert found["robots-no-sitemap-line", "/robots.txt"] == "no Sitemap line names this sitemap"
    assert not [code for code, path in found if path in ("/", "/prices")]


@pytest.mark.parametrize(("mode", "never_seen"), [("none", 120), ("sample", 70), ("all", 0)])
def test_pages_that_the_run_requests_are_not_reported_as_never_seen(mode: str, never_seen: int) -> None:
    app = flask.Flask("bakery", static_folder=None)
    values = sitemap(values=[*map(str, range(120))])
    app.add_url_rule("/breads/<name>", "bread", values(lambda name: f"<h1>{name}</h1>"))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=BAKERY, store="memory://")
    found = codes(check_app(app, "--pages", mode, "--limit", "0", "--select", "coverage"))
    assert found == ["coverage-never-seen"] * never_seen


def test_page_that_was_seen_and_is_not_listed(tmp_path: Path) -> None:
    app = flask.Flask("bakery")
    app.add_url_rule("/", "home", lambda: "<h1>Our bread</h1>")
    app.add_url_rule("/offer", "offer", lambda: '<meta name="robots" content="noindex"><h1>Offer</h1>')
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=BAKERY, store=f"sqlite:///{tmp_path / 'sitemap.sqlite3'}")
    client = app.test_client()
    for path in ("/", "/offer"):
        client.get(path, base_url=BAKERY)
    client.get("/sitemap.xml", base_url=BAKERY)
    app.wsgi_app.flush()
    found = messages(check_app(app))
    assert found["coverage-not-listed", "/offer"] == "the page is left out: its robots meta tag says noindex"
    assert ("coverage-never-seen", "/") not in found


def pages_of(answers: dict[str, tuple[int, str]], *, root: str = "") -> AppClient:
    """The pages of an app that answers with a status and a Location."""

    def fetch(path: str, _encoding: str, _query: str) -> Response:
        status, location = answers.get(path, (404, ""))
        return Response(status, [("location", location)] if location else [], b"")

    return AppClient(fetch, Site("https", "bakery.example", root))


def test_app_below_a_path_has_no_robots_file() -> None:
    assert asyncio.run(pages_of({"/robots.txt": (200, "")}, root="/shop").robots_txt(f"{BAKERY}/shop/")) is None
