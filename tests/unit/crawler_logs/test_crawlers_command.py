"""The command `crawlers`: one truth in every format, what it tells about a sitemap, and hostile logs."""

from __future__ import annotations

import io
import json
import socket
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.response import addinfourl

import pytest
from click.testing import CliRunner
from flask import Flask

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.cli.main import command, commands_for
from sitemap_middleware.crawler_logs import crawl_report

from ...support.access_logs import BINGBOT, BROWSER, WRITERS, Hit, log_text, write_log
from ..check.web_site import index

AT = 1_764_000_000
SOMEBODY, LIAR, NAMELESS = "8.8.4.4", "8.8.4.5", "9.9.9.1"
REAL = "66.249.66.1"
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"

TRUTH = [
    Hit("/"),
    Hit("/menu", at=AT + 100),
    Hit("/menu", address="66.249.66.2", at=AT + 90_000),
    Hit("/menu", status=304, address="2001:4860:4801:10::1"),
    Hit("/gone", status=404),
    Hit("/moved", status=301),
    Hit("/caf%C3%A9"),
    Hit("/caf%c3%a9", at=AT + 1),
    Hit("/%6Denu", at=AT + 300),
    Hit("/menu", agent=BINGBOT),
    Hit("/rye", agent='Googlebot" 200 "'),
    Hit("/style.css"),
    Hit("/menu?page=2"),
    Hit("/find?q=rye"),
    Hit("/menu", method="HEAD"),
    Hit("/menu", method="POST"),
    Hit("/menu", agent=BROWSER, address=SOMEBODY),
    Hit("/menu", agent="-"),
    Hit("/sitemap.xml"),
    Hit("/robots.txt", agent=BINGBOT),
]
LISTED = [
    "https://bakery.example/",
    "https://bakery.example/menu#rye",
    "https://bakery.example/find?q=rye",
    "https://bakery.example/new",
]


def run(*arguments: str | Path, code: int = 0, stdin: bytes | None = None) -> Any:
    result = CliRunner().invoke(command, ["crawlers", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    return result


def report(*arguments: str | Path, code: int = 0, stdin: bytes | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json", code=code, stdin=stdin).stdout)
    return found


@pytest.fixture
def sitemap_file(tmp_path: Path) -> Path:
    file = tmp_path / "sitemap.xml"
    urls = "".join(f"<url><loc>{url}</loc></url>" for url in LISTED)
    file.write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>')
    return file


@pytest.mark.parametrize(
    ("name", "suffix"), [*((name, ".log") for name in WRITERS if name != "common"), ("alb", ".gz"), ("alb", ".zst")]
)
def test_one_truth_gives_one_report_in_every_format(name: str, suffix: str, sitemap_file: Path, tmp_path: Path) -> None:
    found = report(write_log(tmp_path / f"some{suffix}", name, TRUTH), "--sitemap", sitemap_file)
    google, bing = found["crawlers"]
    assert (google["crawler"], google["visits"], google["unverified"], google["fake"]) == ("Googlebot", 14, 14, 0)
    assert (google["pages"], google["errors"], google["redirects"], google["parameters"]) == (6, 1, 1, 1)
    assert (google["first"], google["last"]) == ("2025-11-24T16:00:00Z", "2025-11-25T17:00:00Z")
    assert (bing["crawler"], bing["visits"], bing["pages"]) == ("bingbot", 2, 1)
    assert [(day["date"], day["crawler"], day["visits"]) for day in found["days"]] == [
        ("2025-11-25", "Googlebot", 1), ("2025-11-24", "bingbot", 2), ("2025-11-24", "Googlebot", 13),
    ]  # fmt: skip
    assert {(line["status"], line["visits"]) for line in found["statuses"] if line["crawler"] == "Googlebot"} == {
        (200, 11), (301, 1), (304, 1), (404, 1),
    }  # fmt: skip
    pages = {(line["path"], line["status"]): (line["visits"], line["crawlers"]) for line in found["pages"]}
    assert pages["/menu", 200] == (4, ["Googlebot", "bingbot"])
    assert pages["/café", 200] == (2, ["Googlebot"])
    assert {(line["path"], line["status"]) for line in found["wasted"]} == {("/gone", 404), ("/moved", 301)}
    assert found["parameters"] == [{"path": "/menu", "visits": 1, "parameters": ["page"]}]
    assert {(line["path"], *line["crawlers"]) for line in found["documents"]} == {
        ("/sitemap.xml", "Googlebot"), ("/robots.txt", "bingbot"),
    }  # fmt: skip
    assert found["never_crawled"] == ["https://bakery.example/new"]
    assert [line["path"] for line in found["not_listed"]] == ["/café", "/rye"]
    assert found["lines"] == {"read": 20, "other requests": 2}


def test_a_common_log_names_no_crawlers(tmp_path: Path) -> None:
    result = run(write_log(tmp_path / "access.log", "common", TRUTH))
    assert "the logs keep no User-Agent" in result.stderr


def test_a_log_may_change_its_format_and_come_by_standard_input() -> None:
    text = "".join(log_text(name, TRUTH) for name in ("combined", "caddy-json", "cloudfront", "alb"))
    found = report("-", stdin=text.encode())
    assert found["crawlers"][0]["visits"] == 4 * 14
    assert found["never_crawled"] is found["not_listed"] is None


def test_only_visits_since_a_moment_count(tmp_path: Path) -> None:
    found = report(write_log(tmp_path / "access.log", "combined", TRUTH), "--since", "2025-11-25")
    assert [(line["crawler"], line["visits"]) for line in found["crawlers"]] == [("Googlebot", 1)]
    assert found["pages"] == [{"path": "/menu", "crawlers": ["Googlebot"], "status": 200, "visits": 1}]
    assert found["lines"]["earlier"] == 17
    assert report(tmp_path / "access.log", "--until", "2025-11-25")["lines"]["later"] == 1


def test_lines_of_other_hosts_do_not_count(sitemap_file: Path, tmp_path: Path) -> None:
    hits = [Hit("/menu", host="www.bakery.example"), Hit("/", host="shop.example"), Hit("/rye", host="shop.example")]
    log = write_log(tmp_path / "access.log", "vhost-combined", hits)
    assert report(log)["crawlers"][0]["visits"] == 3
    assert "several hosts, which all count: 3 (shop.example: 2, bakery.example: 1)" in report(log)["notes"][0]
    assert "and not on shop.example" in run(log, "--sitemap", sitemap_file, "--host", "shop.example", code=2).stderr
    for host in ("shop.example", "https://Shop.example:443/"):
        assert report(log, "--host", host)["crawlers"][0]["visits"] == 2
    assert "--host='http://x y' has an invalid host" in run(log, "--host", "x y", code=2).stderr
    found = report(log, "--sitemap", sitemap_file)
    assert (found["crawlers"][0]["visits"], found["lines"]["other hosts"]) == (1, 2)
    assert "other hosts than bakery.example, which do not count: 2 (shop.example: 2)" in found["notes"][0]


def test_listed_urls_of_other_hosts_do_not_count(sitemap_file: Path, tmp_path: Path) -> None:
    text = sitemap_file.read_text().replace("</urlset>", "<url><loc>https://shop.example/rye</loc></url></urlset>")
    sitemap_file.write_text(text)
    log = write_log(tmp_path / "access.log", "combined", [Hit("/rye")])
    result = run(log, "--sitemap", sitemap_file, "--json")
    assert json.loads(result.stdout)["listed"] == len(LISTED)
    assert "listed URLs of other hosts, which do not count: 1" in result.stderr
    assert report(log, "--sitemap", sitemap_file, "--host", "shop.example")["never_crawled"] == []


def test_a_listed_page_that_answers_with_errors_was_requested(sitemap_file: Path, tmp_path: Path) -> None:
    hits = [
        Hit("/"),
        Hit("/menu", status=500),
        Hit("/menu", status=301, agent=BINGBOT),
        Hit("/new", status=404),
        Hit("/new"),
        Hit("/lost?page=2", status=404),
    ]
    found = report(write_log(tmp_path / "access.log", "combined", hits), "--sitemap", sitemap_file)
    assert [(line["path"], line["status"], line["crawlers"]) for line in found["listed_failing"]] == [
        ("/menu", 301, ["bingbot"]), ("/menu", 500, ["Googlebot"]),
    ]  # fmt: skip
    assert found["never_crawled"] == ["https://bakery.example/find?q=rye"]
    assert found["wasted_visits"] == 4


def test_bots_that_are_not_known_are_counted_by_the_name_they_give(tmp_path: Path) -> None:
    agents = ["Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", "SemrushBot-SA/0.97", "curl/8.0"]
    log = write_log(tmp_path / "access.log", "combined", [Hit("/", agent=agent) for agent in agents * 2])
    found = report(log)
    assert [(line["name"], line["visits"]) for line in found["others"]] == [("AhrefsBot", 2), ("SemrushBot-SA", 2)]
    assert found["crawlers"] == []


def test_an_app_says_why_a_crawled_page_is_not_listed(tmp_path: Path) -> None:
    app = Flask("bakery")
    app.add_url_rule("/", "home", lambda: "<title>Home</title>")
    app.add_url_rule("/menu", "menu", lambda: "<title>Menu</title>")
    app.add_url_rule("/secret", "secret", lambda: ("<title>Secret</title>", {"X-Robots-Tag": "noindex"}))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.example", store="memory://")  # type: ignore[method-assign]
    app.test_client().get("/sitemap.xml")
    log = write_log(tmp_path / "access.log", "combined", [Hit("/"), Hit("/secret"), Hit("/made-up")])
    result = CliRunner().invoke(commands_for(app), ["crawlers", str(log), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["never_crawled"] == ["https://bakery.example/menu"]
    reasons = {line["path"]: line["reason"] for line in found["not_listed"]}
    assert "noindex" in reasons["/secret"]
    assert reasons["/made-up"]


# Whose addresses they are


@pytest.fixture
def known() -> set[str]:
    return {"crawl-1.googlebot.com", "developers.google.com"}


@pytest.fixture
def network(known: set[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """DNS knows Google's crawler; operators' files answer with one network. The set says what was asked."""
    asked: set[str] = set()

    def names(address: tuple[str, int], _: int) -> tuple[str, str]:
        asked.add(address[0])
        if address[0] == NAMELESS:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if address[0] not in (REAL, LIAR):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return "crawl-1.googlebot.com", "0"

    def addresses(name: str, *_: Any, **__: Any) -> list[Any]:
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (REAL, 0))]

    class Operators(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            asked.add(request.full_url)
            if "gptbot" not in request.full_url:
                raise OSError("no route to host")
            body = io.BytesIO(b'{"prefixes": [{"ipv4Prefix": "20.171.206.0/24"}]}')
            answer: Any = addinfourl(body, Message(), request.full_url, 200)
            answer.msg = "OK"
            return answer

    monkeypatch.setattr(socket, "getnameinfo", names)
    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener(Operators))
    return asked


SENDERS = [
    Hit("/a"),
    Hit("/b", address=SOMEBODY),
    Hit("/c", address=LIAR),  # its owner claims Google's name for it
    Hit("/d", address=NAMELESS),  # DNS fails
    Hit("/e", address="10.0.0.1"),  # a proxy's
    Hit("/f", agent=GPTBOT, address="20.171.206.7"),
    Hit("/g", agent=GPTBOT, address="8.8.8.8"),
]


def identities(found: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {line["crawler"]: (line["verified"], line["unverified"], line["fake"]) for line in found["crawlers"]}


def test_nothing_is_asked_without_verify(network: set[str], tmp_path: Path) -> None:
    found = report(write_log(tmp_path / "access.log", "combined", SENDERS))
    assert identities(found) == {"Googlebot": (0, 5, 0), "GPTBot": (0, 2, 0)}
    assert network == set()


def test_dns_and_published_ranges_tell_fakes(network: set[str], tmp_path: Path) -> None:
    result = run(write_log(tmp_path / "access.log", "combined", SENDERS), "--verify", "--json")
    found = json.loads(result.stdout)
    assert identities(found) == {"Googlebot": (1, 2, 2), "GPTBot": (1, 0, 1)}
    assert {line["path"] for line in found["pages"]} == {"/a", "/d", "/e", "/f"}
    assert found["fakes"][1:] == [
        {"address": LIAR, "crawler": "Googlebot", "visits": 1},
        {"address": "8.8.8.8", "crawler": "GPTBot", "visits": 1},
    ]
    assert "common-crawlers.json could not be fetched: no route to host" in result.stderr
    assert "8.8.8.8" not in network  # its operator publishes ranges alone


def test_dns_that_is_filtered_calls_nobody_fake(known: set[str], network: set[str], tmp_path: Path) -> None:
    known.clear()
    result = run(write_log(tmp_path / "access.log", "combined", SENDERS), "--verify", "--json")
    assert identities(json.loads(result.stdout)) == {"Googlebot": (0, 5, 0), "GPTBot": (0, 2, 0)}
    assert network == set(), "which would wait for DNS, or not know the host"
    assert "DNS does not know developers.google.com here" in result.stderr
    assert "no published ranges were fetched" in result.stderr


# Hostile logs


@pytest.mark.parametrize(
    ("junk", "unreadable", "too_long"),
    [
        (b"x" * 200_000 + b"\n", 0, 1),
        (b"\n  \n", 0, 0),
        (b"noise\n\xff\xfe\n{]\n{}\n[1]\n", 5, 0),
        (b'{"request": {"headers": []}, "status": [], "ts": {}}\n', 1, 0),
        (b"[" * 60_000 + b"\n" + b'{"a":' * 10_000 + b"\n", 2, 0),
        (log_text("combined", [Hit("/")]).replace("Nov", "Foo").encode(), 1, 0),
    ],
    ids=["long", "blank", "noise", "odd JSON", "deep JSON", "no month"],
)
def test_what_is_no_request_is_counted_and_skipped(junk: bytes, unreadable: int, too_long: int) -> None:
    found = report(
        "-", stdin=log_text("combined", [Hit("/")]).encode() + junk + log_text("combined", [Hit("/menu")]).encode()
    )
    assert [line["path"] for line in found["pages"]] == ["/", "/menu"]
    assert (found["lines"].get("unreadable", 0), found["lines"].get("too long", 0)) == (unreadable, too_long)


@pytest.mark.parametrize(
    "target", ["*", "bakery.example:443", "http://[", "/" + "a" * 3000, "/%00%ff\x1b[31m", "//evil", "/?" + "&" * 999]
)
def test_a_target_of_any_kind_does_no_harm(target: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "access.log", "combined", [Hit(target), Hit("/")])
    text = run(log, "--html", tmp_path / "page.html").output + run(log).output
    assert "\x1b" not in text
    assert "/" in {line["path"] for line in report(log)["pages"]}


def test_more_paths_than_memory_has_room_for_are_counted_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(crawl_report, "MAX_COUNTED_PAGES", 3)
    log = write_log(tmp_path / "access.log", "combined", [Hit(f"/{number}") for number in range(9)] * 2)
    found = report(log)
    assert (len(found["pages"]), found["pages_beyond"], found["crawlers"][0]["visits"]) == (3, 12, 18)
    assert "too many: 12" in found["notes"][0]


def test_a_damaged_log_is_named_and_the_others_count(tmp_path: Path) -> None:
    good = write_log(tmp_path / "good.log", "combined", TRUTH)
    cut = write_log(tmp_path / "cut.gz", "combined", TRUTH)
    cut.write_bytes(cut.read_bytes()[:-20])
    notes = tmp_path / "notes.txt"
    notes.write_text("these are\nsome notes\n")
    result = run(cut, notes, tmp_path / "absent.log", good, "--json", code=2)
    assert json.loads(result.stdout)["crawlers"][0]["visits"] >= 14
    assert f"{cut} cannot be read: it is damaged or not complete" in result.stderr
    assert "lines that could not be read: 2 of 22\n" in result.stderr
    nothing = run(notes, tmp_path / "absent.log", "--html", tmp_path / "page.html", code=2)
    for error in (f"{notes} has no line in a known format", "absent.log cannot be read: No such file or directory"):
        assert error in result.stderr
        assert error in nothing.stderr
    assert (nothing.stdout, (tmp_path / "page.html").exists()) == ("", False)


def test_text_has_the_figures_and_the_page_of_html_needs_nothing_else_and_escapes(
    sitemap_file: Path, tmp_path: Path
) -> None:
    hits = [*TRUTH, Hit("/%3Cscript%3Ealert(1)%3C/script%3E")]
    (tmp_path / "index.xml").write_text(index("https://bakery.example/sitemap.xml", "https://bakery.example/dead.xml"))
    log, file = write_log(tmp_path / "access.log", "combined", hits), tmp_path / "page.html"
    text = run(log, "--sitemap", sitemap_file.with_name("index.xml"), "--html", file).stdout
    assert "visits of crawlers 17, wasted 3, lines read 21, from 2025-11-24 to 2025-11-25" in text
    assert not {"fake", "reason"} & {*text.split()}
    assert "listed, and never requested: 1 of 4\nURL \nhttps://bakery.example/new\n" in text.replace("  ", "")
    assert "crawled, and not listed: 3" in text
    page = file.read_text()
    assert '<a href="https://bakery.example/new">' in page
    for part in ("/café", "From 2025-11-24 to", "URLs are missing here: https://bakery.example/dead.xml"):
        assert part in page
    assert "--verify" not in page
    assert "<script" not in page
    assert "&lt;script&gt;alert" in page
    assert "<link" not in page
