"""The command `check`: a file, a URL, an app; what it compares, what it prints, and its exit status."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from html import unescape
from pathlib import Path
from typing import Any

import flask
import pytest
from click.testing import Result
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.check.findings import FAMILIES, RULES, Family
from sitemap_middleware.check.run_check import sitemap_urls
from sitemap_middleware.cli.main import command, commands_for

from ...support.command_line import cli_runner
from ..check.web_site import Reply, index, served, urlset, xml

BAKERY = "https://bakery.example"


def check(*arguments: Any) -> Result:
    return cli_runner().invoke(command, ["check", *map(str, arguments)])


def codes(answer: Result) -> list[str]:
    return [message["code"] for message in json.loads(answer.stdout)]


def write(file: Path, *urls: str) -> Path:
    file.write_text(urlset(*urls), "utf-8")
    return file


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A sitemap with an error, a warning and an info."""
    return write(tmp_path / "sitemap.xml", "/about", "https://example.com/a#b", "https://example.com//c")


def bakery(**options: Any) -> flask.Flask:
    app = flask.Flask("bakery", static_folder=None)
    app.add_url_rule("/", "home", lambda: "<h1>Bakery</h1>")
    options = {"base_url": BAKERY, "store": "memory://", **options}
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, **options)  # type: ignore[method-assign]
    return app


def of_app(app: Any, *arguments: str) -> Result:
    return cli_runner().invoke(commands_for(app), ["check", *arguments], catch_exceptions=False)


def test_messages_have_place_severity_and_code(faulty: Path) -> None:
    result = check(faulty)
    assert result.exit_code == 1
    assert [line.removeprefix(f"{faulty}:") for line in result.stdout.splitlines()] == [
        "1:66: error: /about: '/about' is not an absolute URL [loc-relative]",
        "1:94: warning: https://example.com/a#b: the URL has the fragment '#b' [loc-fragment]",
        "1:139: info: https://example.com//c: the path contains // [loc-double-slash]",
        "2 URLs in 1 document: 1 error, 1 warning, 1 info",
    ]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 1),
        (["--ignore", "loc-relative"], 0),
        (["--ignore", "loc"], 0),
        (["--select", "loc-fragment", "--fail-on", "warning"], 1),
        (["--select", "LOC-double-slash", "--fail-on", "info"], 1),
        (["--select", "loc", "--ignore", "loc-relative,loc-fragment"], 0),
    ],
)
def test_exit_status(faulty: Path, arguments: list[str], status: int) -> None:
    assert check(faulty, *arguments).exit_code == status


def test_many_equal_messages_are_one_line_with_a_count(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.xml"
    urls = urlset(*(f"https://example.com/{number}" for number in range(7)), "/relative")
    file.write_text(urls.replace("</loc>", "</loc><changefreq>Daily</changefreq>"), "utf-8")
    first, second, summary = check(file).stdout.splitlines()
    text = "warning: https://example.com/0: 'Daily' is not in lower case: write daily (and 7 more) [changefreq-case]"
    assert first.endswith(text)
    assert second.endswith("[loc-relative]")
    assert summary == "7 URLs in 1 document: 1 error, 8 warnings"
    assert check(file, "--limit", "0").stdout.count("[changefreq-case]") == 8
    limited = check(file, "--limit", "2")
    assert limited.stdout.count("[changefreq-case]") == 2
    assert "note: 6 more of changefreq-case; --limit 0 prints all" in limited.stderr


def test_pages_with_equal_messages_are_all_named() -> None:
    with served() as site:
        site.add_sitemap("/sitemap.xml", *(f"/{number}" for number in range(7)))
        lines = check(f"{site.origin}/sitemap.xml", "--select", "page").stdout.splitlines()
    assert [line.split(": ")[2] for line in lines[:-1]] == [f"{site.origin}/{number}" for number in range(7)]


def test_sarif(faulty: Path) -> None:
    answer = check(faulty, "--format", "sarif", "--select", "loc-relative,loc-fragment")
    log = json.loads(answer.stdout)
    assert (log["version"], len(log["runs"]), answer.exit_code) == ("2.1.0", 1, 1)
    tool, results = log["runs"][0]["tool"]["driver"], log["runs"][0]["results"]
    assert [rule["id"] for rule in tool["rules"]] == ["loc-relative", "loc-fragment"]
    assert [(result["ruleIndex"], result["ruleId"], result["level"]) for result in results] == [
        (0, "loc-relative", "error"),
        (1, "loc-fragment", "warning"),
    ]
    assert results[1]["message"]["text"] == "https://example.com/a#b: the URL has the fragment '#b'."
    place = results[1]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"].endswith("sitemap.xml"), place["region"]["startLine"]) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["no-such-file.xml"], "no such file: no-such-file.xml"),
        (["https://"], "'https://' is not a URL"),
        (["http://seo:1#pass@example.com/x"], "'…@example.com/x' is not a URL"),
        (["http:/seo:pass@example.com/x"], "no such file: …@example.com/x;"),
        ([Path(__file__).parent], "has no file *.xml or *.xml.gz"),
        ([__file__], f"name the app in it, such as {__file__}:app"),
        (["sitemap.xml", "--ignore", "loc-nonsense"], "'loc-nonsense' is neither the code of a rule nor a family"),
        (["sitemap.xml", "--ignore", "loc-fragmnt"], "did you mean loc-fragment?"),
        (["--explain", "nonsense"], "'nonsense' is neither the code of a rule nor a family of rules; --explain lists"),
        (["https://example.com", "--base-url", "https://example.com"], "--base-url is for a file or an app"),
        (["sitemap.xml", "--json", "--format", "sarif"], "--json and --format sarif exclude each other"),
    ],
)
def test_what_cannot_be_checked_is_an_error(arguments: list[Any], error: str) -> None:
    result = check(*arguments)
    assert result.exit_code == 2
    assert error in result.stderr
    assert "seo:" not in result.stderr


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_family_lists_its_codes_and_a_rule_is_explained(family: Family) -> None:
    listed = check("--explain", family.name).stdout.splitlines()[-len(family.rules) :]
    assert [line.split()[0] for line in listed] == [rule.code for rule in family.rules]
    assert {*listed} <= {*check("--explain").stdout.splitlines()}
    rule = family.rules[0]
    result = check("--explain", rule.code.upper())
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{rule.code} ({rule.severity})")
    assert result.stdout.endswith(f"See: {rule.source}\n") or not rule.source


# Files


def test_folder_is_checked_with_all_its_sitemaps(tmp_path: Path) -> None:
    (tmp_path / "pages.xml").write_text(urlset("https://example.com/a", "/b"), "utf-8")
    (tmp_path / "posts.xml.gz").write_bytes(gzip.compress(urlset("https://example.com/c").encode()))
    (tmp_path / "pages.xml.gz").write_bytes(gzip.compress((tmp_path / "pages.xml").read_bytes()))  # a copy
    (tmp_path / "notes.txt").write_text("nothing", "utf-8")
    (tmp_path / "de").mkdir()
    (tmp_path / "de" / "pages.xml").write_text(urlset("https://example.com/de/a"), "utf-8")
    names = ("pages.xml", "posts.xml.gz", "de/pages.xml")
    (tmp_path / "index.xml").write_text(index(*(f"https://example.com/{name}" for name in names)), "utf-8")
    result = check(tmp_path, "--base-url", "https://example.com")
    assert result.stdout.splitlines()[-1] == "3 URLs in 4 documents: 1 error"
    assert f"{tmp_path / 'pages.xml'}:1:" in result.stdout
    assert "not checked" not in result.stderr
    other = write(tmp_path / "de" / "sitemap.xml", "https://example.com/de/b")
    (tmp_path / "pom.xml").write_text("<project/>", "utf-8")
    assert f"no index names them: 1 ({other})" in " ".join((result := check(tmp_path)).stderr.split())
    assert (
        result.stdout.count("[xml-root]"),
        f"no sitemaps, not checked: 1 ({tmp_path}/pom.xml)" in result.stderr,
    ) == (0, 1)


def test_base_url_is_that_of_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "sitemap.xml"
    file.write_text(urlset("https://example.com/shop/a", "https://example.com/b", "https://example.net/"), "utf-8")
    assert "[loc-other-host]" not in check(file).stdout
    lines = check(file, "--base-url", "https://example.com/shop").stdout.splitlines()
    codes = {line.rpartition("[")[2] for line in lines}
    assert codes >= {"loc-other-host]", "loc-outside-folder]"}


def test_pages_of_a_file_are_requested_if_it_is_wanted_and_of_this_machine_if_it_is_named(tmp_path: Path) -> None:
    with served() as site:
        file = write(tmp_path / "sitemap.xml", f"{site.origin}/gone")
        for mode in ("none", "all"):
            assert codes(check(file, "--json", "--pages", mode, "--ignore", "loc-local")) == []
        assert "/gone" not in site.requests
        assert codes(check(file, "--json", "--pages", "all", "--base-url", site.origin))[:1] == ["page-status"]


# The web


def test_url_with_its_index() -> None:
    with served() as site:
        site.add("/sitemap.xml", xml(index(f"{site.origin}/a.xml")))
        site.add("/a.xml", xml(urlset(f"{site.origin}/gone")))
        site.add("/robots.txt", Reply(200, f"Sitemap: {site.origin}/sitemap.xml\n".encode()))
        result = check(site.origin.upper(), "--pages", "none")
        sampled = check(site.origin)
        assert f"end the URL with a slash: {site.origin}/shop/\n" in check(f"{site.origin}/shop").stderr
    assert (result.exit_code, result.stdout) == (0, "1 URL in 2 documents: nothing found\n")
    assert f"{site.origin}/gone: the page answers 404 [page-status]" in sampled.stdout
    assert sampled.stdout.endswith("1 URL in 2 documents, 1 page requested: 1 error\n")
    gone = check(f"{site.origin}/sitemap.xml", "--json")
    assert (gone.exit_code, codes(gone)) == (1, ["fetch-failed"])


def test_credentials_of_the_url_reach_its_origin_only_and_no_output(tmp_path: Path) -> None:
    with served() as site, served() as other:
        site.add("/sitemap.xml", xml(index(f"{site.origin}/a.xml")))
        site.add("/a.xml", xml(urlset(f"{site.origin}/gone", f"{other.origin}/gone")))
        url = site.origin.replace("//", "//seo:s3%40cret@")
        files = [tmp_path / "check.html", tmp_path / "baseline.txt"]
        options = ["--pages", "all", "--html", files[0], "--baseline", files[1]]
        forms = (["--json"], ["--format", "sarif"])
        output = "".join(check(f"{url}/sitemap.xml", *form, *options).output for form in forms)
        assert site.requests.count("/gone") == 2
        assert sitemap_urls(f"{url}/sitemap.xml", []) == [f"{site.origin}/gone", f"{other.origin}/gone"]
    assert (site.credentials, other.credentials) == ({"Basic c2VvOnMzQGNyZXQ="}, {None})
    assert "s3" not in output + "".join(file.read_text("utf-8") for file in files)


def test_url_without_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "sitemap_middleware.check.web_client", raising=False)
    result = check("https://example.com/")
    assert result.exit_code == 2
    assert 'pip install "sitemap-middleware[check]"' in result.stderr


# An earlier run


def test_urls_that_vanish_but_by_a_move_to_https(tmp_path: Path) -> None:
    file, baseline = tmp_path / "sitemap.xml", tmp_path / "urls.txt"
    urls = [f"http://bakery.example/{path}" for path in ("", "a", "caf%c3%a9")]
    write(file, *urls)
    assert codes(check(file, "--json", "--baseline", baseline)) == []
    assert baseline.read_text("utf-8").splitlines() == urls

    write(file, f"{BAKERY}/", f"{BAKERY}/b", f"{BAKERY}/caf%C3%A9")
    answer = check(file, "--json", "--baseline", baseline)
    assert f"URLs that are new since {baseline}: 1 ({BAKERY}/b)" in answer.stderr
    found = messages(answer)
    assert found == {("coverage-vanished", urls[1]): "the URL was listed before"}
    assert codes(check(file, "--json", "--baseline", baseline)) == ["coverage-vanished"]

    answer = check(file, "--json", "--baseline", baseline, "--write-baseline")
    assert f"{baseline} is written" in " ".join(answer.stderr.split())
    assert codes(check(file, "--json", "--baseline", baseline)) == []
    assert {path.name for path in tmp_path.iterdir()} == {"sitemap.xml", "urls.txt"}


def test_baseline_keeps_urls_of_documents_that_cannot_be_read(tmp_path: Path) -> None:
    file, baseline = tmp_path / "index.xml", tmp_path / "urls.txt"
    file.write_text(index(f"{BAKERY}/b.xml", f"{BAKERY}/a.xml"), "utf-8")
    documents = [write(tmp_path / f"{name}.xml", f"{BAKERY}/{name}") for name in "ab"]
    for unread, document in enumerate([*documents, file]):
        answer = check(file, "--baseline", baseline, "--write-baseline", "--ignore", "documents")
        document.unlink()
        assert baseline.read_text("utf-8") == f"{BAKERY}/a\n{BAKERY}/b\n"
        assert (f"documents that were not read: {unread} (" in answer.stderr) is bool(unread)
    assert f"{baseline} is not written" in answer.stderr


def test_a_document_that_never_could_be_read_hides_no_url_that_is_gone(tmp_path: Path) -> None:
    file, baseline = tmp_path / "index.xml", tmp_path / "urls.txt"
    file.write_text(index(f"{BAKERY}/a.xml", f"{BAKERY}/dead.xml"), "utf-8")
    write(tmp_path / "a.xml", f"{BAKERY}/rye", f"{BAKERY}/oat")
    check(file, "--baseline", baseline, "--write-baseline")
    write(tmp_path / "a.xml", f"{BAKERY}/rye")
    assert codes(check(file, "--json", "--baseline", baseline)) == ["coverage-vanished"]
    check(file, "--baseline", baseline, "--write-baseline")
    assert f"{BAKERY}/oat" not in baseline.read_text("utf-8")


def test_baseline_keeps_findings_of_pages_that_are_not_requested(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.txt"
    with served() as site:
        site.add_sitemap("/sitemap.xml", "/gone", "/lost")
        for mode in ("all", "none", "all"):
            check(f"{site.origin}/sitemap.xml", "--pages", mode, "--baseline", baseline, "--write-baseline")
            lines = baseline.read_text("utf-8").splitlines()
            assert {f"page-status {site.origin}/{name}" for name in ("gone", "lost")} <= {*lines}
        check(f"{site.origin}/sitemap.xml", "--ignore", "page-status", "--baseline", baseline, "--write-baseline")
        assert "page-status" in baseline.read_text("utf-8")
        site.add("/gone", Reply(200))
        site.add_sitemap("/sitemap.xml", "/gone")
        check(f"{site.origin}/sitemap.xml", "--baseline", baseline, "--write-baseline")
    assert "page-status" not in baseline.read_text("utf-8")


def test_known_findings(tmp_path: Path) -> None:
    """Another date in the text, or another folder, makes no other finding; another page does."""
    baseline = tmp_path / "baseline.txt"

    def check_dated(file: Path, date: str, names: str) -> Any:
        text = urlset(*(f"{BAKERY}/{name}#bread" for name in names))
        file.write_text(text.replace("</loc>", f"</loc><lastmod>{date}</lastmod>"), "utf-8-sig")
        return check(file, "--json", "--limit", "1", "--baseline", baseline)

    missing = check(write(tmp_path / "sitemap.xml"), "--baseline", tmp_path / "missing" / "urls.txt")
    assert (missing.exit_code, "--baseline cannot be written" in missing.stderr) == (2, True)
    answer = check_dated(tmp_path / "sitemap.xml", "01.05.2024", "abc")
    assert codes(answer) == ["xml-bom", "loc-fragment", "lastmod-invalid"]
    (tmp_path / "built").mkdir()
    answer = check_dated(tmp_path / "built" / "sitemap.xml", "02.05.2024", "abc")
    assert (answer.exit_code, codes(answer)) == (0, [])
    assert "names them: 7" in " ".join(answer.stderr.split())
    answer = check_dated(tmp_path / "sitemap.xml", "02.05.2024", "abcd")
    assert (answer.exit_code, {message["url"] for message in json.loads(answer.stdout)}) == (1, {f"{BAKERY}/d#bread"})


def test_page_of_html(tmp_path: Path) -> None:
    file, page = write(tmp_path / "sitemap.xml", f"{BAKERY}/a#&lt;b>", "/about", "/menu"), tmp_path / "check.html"
    answer = check(file, "--html", page, "--limit", "1")
    assert (answer.exit_code, "[loc-relative]" in answer.stdout, f"open {page}" in answer.stderr) == (1, True, True)
    text = unescape(page.read_text("utf-8"))
    rule = RULES["loc-relative"]
    assert text.index(rule.code) < text.index("loc-fragment")
    example = "such as <code>https://example.com/about</code>"
    for part in (rule.explanation, example, f"{file}:1:", "found: 2", "And 1 more."):
        assert part in text
    assert "#<b>" not in page.read_text("utf-8")
    assert "<script" not in text
    assert "<link" not in text
    assert check(file, "--html", tmp_path / "missing" / "check.html").exit_code == 2


# An app


def test_commands_of_an_app_check_other_sitemaps_too(faulty: Path) -> None:
    assert "[loc-relative]" in of_app(bakery(), str(faulty)).stdout


def test_pages_that_vanish_and_values_that_fail_are_told_with_the_reason(tmp_path: Path) -> None:
    def check_app(status: int, values: Any) -> Result:
        app = bakery()
        app.add_url_rule("/rye", "rye", lambda: ("<h1>Rye</h1>", status))
        app.add_url_rule("/tags/<name>", "tag", sitemap(values=values)(lambda name: f"<h1>{name}</h1>"))
        return of_app(app, "--json", "--baseline", str(tmp_path / "baseline.txt"))

    assert codes(check_app(200, ["white"])) == []
    answer = check_app(410, lambda: 1 / 0)
    found = messages(answer)
    assert answer.exit_code == 1
    assert found["coverage-vanished", "/rye"] == "the URL was listed before; now it answered 410"
    assert "failed: ZeroDivisionError" in found["coverage-values", "/sitemap.xml"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--pages", "all"],
        ["build", "--out", "files"],
        ["report", "--out", "files"],
        ["explain", "/", "/breads/rye"],
        *(["list"], ["routes"], ["changes"]),
    ],
    ids=lambda arguments: arguments[0],
)
def test_code_of_a_wsgi_app_is_called_where_no_event_loop_runs(arguments: list[str]) -> None:
    """As under a WSGI server: Django refuses SQL on the thread of a running loop."""
    app = bakery()
    called = set[str]()

    def respond(place: str, value: Any) -> Any:
        called.add(place)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return value

    @app.route("/menu")
    @sitemap(lastmod=lambda: respond("lastmod", None))
    def menu() -> Any:
        return respond("menu", "<h1>Menu</h1>")

    @app.route("/breads/<slug>")
    @sitemap(values=lambda: respond("values", ["rye"]))
    def bread(slug: str) -> Any:
        return respond("bread", f"<h1>{slug}</h1>")

    app.add_url_rule(
        "/robots.txt", "robots", lambda: respond("robots", ("User-agent: *", {"Content-Type": "text/plain"}))
    )
    result = cli_runner().invoke(commands_for(app), arguments, catch_exceptions=False)
    assert "500" not in result.output
    assert "values" in called
    assert arguments[0] != "check" or called == {"lastmod", "menu", "values", "bread", "robots"}
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [({"exclude": "/*"}, 1, "the server answers 404 [fetch-status]"), ({"enabled": False}, 2, "there is no sitemap")],
)
def test_app_without_a_sitemap(options: dict[str, Any], status: int, text: str) -> None:
    result = of_app(bakery(**options))
    assert (result.exit_code, text in result.output) == (status, True)


def messages(answer: Result) -> dict[tuple[str, str], str]:
    found = json.loads(answer.stdout)
    return {(message["code"], message["url"].removeprefix(BAKERY)): message["message"] for message in found}


def test_pages_and_robots_of_an_app() -> None:
    """Without `verify`, routes are listed before a visit, so the sitemap has pages that it should not."""
    app = bakery(verify=False, robots=False)
    for path, view in {
        "/menu": lambda: flask.redirect("/"),
        "/search": lambda: flask.redirect("/found?q=rye%20bread&page=1#first"),
        "/found": lambda: f"<h1>{flask.request.args['q']}</h1>",
        "/shop": lambda: flask.redirect("https://shop.example/"),
        "/gone": lambda: ("Gone", 410),
        "/circle": lambda: flask.redirect("/circle"),
        "/failing": lambda: 1 / 0,
        "/robots.txt": lambda: flask.Response("User-agent: *\nDisallow:\n", mimetype="text/plain"),
    }.items():
        app.add_url_rule(path, path, view)  # type: ignore[arg-type]
    found = messages(of_app(app, "--json"))
    assert found["page-redirect", "/menu"] == f"the page redirects to {BAKERY}/"
    assert found["page-redirect", "/search"] == f"the page redirects to {BAKERY}/found?q=rye%20bread&page=1"
    assert found["page-redirect", "/shop"] == "the page redirects to https://shop.example/"
    assert found["page-status", "/gone"] == "the page answers 410"
    assert found["page-redirect-loop", "/circle"] == f"{BAKERY}/circle redirects in a circle"
    assert [code for code, path in found if path == "/failing"] == ["page-status"]
    assert found["robots-no-sitemap-line", "/robots.txt"] == "no Sitemap line names this sitemap"
    assert not [code for code, path in found if path == "/"]


def test_page_of_an_asgi_app_that_raises() -> None:
    async def failing(_: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    app = SitemapMiddleware(Starlette(routes=[Route("/", failing)]), base_url=BAKERY, store="memory://", verify=False)
    assert messages(of_app(app, "--json"))["page-failed", "/"] == "the app raises ZeroDivisionError: division by zero"


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
    found = messages(of_app(app, "--json"))
    assert found["coverage-not-listed", "/offer"] == "the page is left out: its robots meta tag says noindex"


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
@pytest.mark.parametrize("gzip_is", ["nowhere", "inside", "outside"])
def test_pages_requested_by_check_are_no_visits(kind: Any, gzip_is: str, tmp_path: Path) -> None:
    app = kind(routes=[Route("/", lambda _: HTMLResponse("<p>Home"))])
    options = {"store": f"sqlite:///{tmp_path / 'site.sqlite3'}", "base_url": BAKERY, "verify": False}
    if gzip_is == "inside":
        app.add_middleware(GZipMiddleware)
    app.add_middleware(SitemapMiddleware, **options)
    if gzip_is == "outside":
        app.add_middleware(GZipMiddleware)
    assert "1 page requested" in of_app(app).stdout
    site = SitemapMiddleware(Starlette(), **options)
    assert site.explain("/").page is None
    site.close()
