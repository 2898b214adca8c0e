"""The command import-log: which store and site, what it prints, and its exit status."""

from __future__ import annotations

import json
from ipaddress import ip_network
from pathlib import Path

import flask
import pytest
from click.testing import Result

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.cli.main import command, commands_for
from sitemap_middleware.crawlers.ip_address_ranges import pack_ranges
from sitemap_middleware.crawlers.known_crawlers import crawler_of_agent
from sitemap_middleware.models import Site
from sitemap_middleware.observation.verified_visit_counting import RANGES_OWNER, RANGES_RECORD
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ...support.access_logs import BROWSER, Hit, write_log
from ...support.command_line import RUNNER_OPTIONS, cli_runner

BAKERY = Site("https", "bakery.example")
HITS = [Hit("/menu", address="66.249.66.1"), Hit("/menu?x=1"), Hit("/menu", agent=BROWSER)]
SITE = ("--base-url", "https://bakery.example")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "access.log", "combined", HITS)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sitemap.sqlite3'}"


def run(*arguments: str | Path) -> Result:
    return cli_runner().invoke(command, ["import-log", "--no-dns", *map(str, arguments)], catch_exceptions=False)


def visited(store: str, site: Site = BAKERY) -> dict[str, int]:
    opened = SQLiteStore(store.removeprefix("sqlite:///"))
    found = {visit.path: visit.count for visit in opened.crawler_visits(site.store_key)}
    opened.close()
    return found


def test_prints_what_became_of_the_lines(log: Path, store: str) -> None:
    answer = run(log, "--store", store, *SITE)
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        f"{log}  combined, lines read: 3",
        "  1 of crawlers that could not be verified",
        "  1 of crawlers with another method than GET, a query string or no status",
        "  1 of other clients",
    ]
    assert visited(store) == {"": 1}
    again = run(log, "--store", store, *SITE)
    assert again.stdout == f"{log}  combined, lines read: 0, imported before: {log.stat().st_size:,} bytes\n"
    assert visited(store) == {"": 1}


def test_addresses_in_the_ranges_of_the_store_are_verified_without_dns(log: Path, store: str) -> None:
    opened = SQLiteStore(store.removeprefix("sqlite:///"))
    ranges = {url: [ip_network("66.249.64.0/19")] for url in crawler_of_agent("Googlebot").range_urls}
    opened.save(RANGES_OWNER, {RANGES_RECORD: pack_ranges(ranges, 1_764_000_000)})
    opened.close()
    answer = run(log, "--store", store, *SITE)
    assert answer.stdout.splitlines()[1] == "  1 visits of verified crawlers"
    assert answer.stdout.splitlines()[-2:] == ["visits of verified crawlers", "  Googlebot  1"]


def test_prints_json(log: Path, store: str) -> None:
    answer = json.loads(run(log, "--store", store, *SITE, "--json").stdout)
    assert answer == {
        "store": store,
        "sites": ["https://bakery.example"],
        "files": [
            {
                "file": str(log),
                "format": "combined",
                "lines": {
                    "verified": 0,
                    "fake": 0,
                    "unverified": 1,
                    "ignored": 1,
                    "unknown_page": 0,
                    "other_host": 0,
                    "other": 1,
                    "nameless": 0,
                    "broken": 0,
                },
                "imported_before": {"bytes": 0, "rows": 0},
                "unfinished": False,
                "problem": None,
            }
        ],
        "verified_visits": {},
    }


def test_a_problem_with_one_file_ends_with_2_and_the_others_are_imported(log: Path, store: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.log"
    answer = run(missing, log, "--store", store, *SITE)
    assert answer.exit_code == 2
    assert answer.stdout.startswith(f"{missing}  not imported\n{log}  combined")
    assert answer.stderr == f"Error: {missing} cannot be read: No such file or directory\n"
    assert visited(store) == {"": 1}


def test_notes_on_logs_without_agents_and_lines_without_an_end(store: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", "common", HITS)
    log.write_text(log.read_text() + "half a li")
    answer = run(log, "--store", store, *SITE)
    assert answer.stdout.splitlines()[1:] == [
        "  3 without a User-Agent",
        "  its last line has no end yet, and was left out",
        "  note: without User-Agents no crawler can be recognised; let the server log them",
    ]
    log.write_text("half a li")
    assert run(log, "--store", store, *SITE).stdout.startswith(f"{log}  no complete line, lines read: 0\n")


def test_the_site_is_that_of_the_store_if_it_has_one_only(log: Path, store: str) -> None:
    answer = run(log, "--store", store).stderr
    assert answer.startswith("Error: no store exists at ")
    assert answer.endswith("; name the site to make one, such as --base-url https://example.com\n")
    run(write_log(log.with_name("other.log"), "combined", [Hit("/other")]), "--store", store, *SITE)
    assert run(log, "--store", store).stderr.startswith("Error: the store has no pages yet: give the one")
    for host in ("bakery.example", "shop.example"):
        app = flask.Flask(__name__)
        app.add_url_rule("/menu", view_func=lambda: "<h1>Menu</h1>")
        app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=f"https://{host}", store=store)
        app.test_client().get("/menu")
        app.wsgi_app.close()
        answer = run(log, "--store", store.removeprefix("sqlite:///"))
        assert answer.exit_code == (0 if host == "bakery.example" else 2)
    assert (
        "the store has pages of the sites https://bakery.example, https://shop.example: give the one" in answer.stderr
    )
    assert visited(store) == {"": 1, "/menu": 1}  # a page that the store knows


def test_an_app_stands_for_its_store_and_site(log: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEMAP_STORE", store)
    app = flask.Flask(__name__)
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.example")
    app.cli.add_command(commands_for(app))
    arguments = ["sitemap", "import-log", "--no-dns", str(log)]
    answer = app.test_cli_runner(**RUNNER_OPTIONS).invoke(args=arguments)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert visited(store) == {"": 1}


def test_the_store_may_be_the_path_of_a_new_file(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(log, "--store", "new.sqlite3", *SITE).exit_code == 0
    assert visited("sqlite:///new.sqlite3") == {"": 1}
    assert "--store='localhost:6379' names no store" in run(log, "--store", "localhost:6379", *SITE).stderr


def test_the_resolver_of_an_app_is_asked(log: Path, store: str) -> None:
    class Resolver:
        def names(self, address: str) -> list[str]:
            return ["crawl-66-249-66-1.googlebot.com"]

        def addresses(self, name: str) -> list[str]:
            return ["66.249.66.1"]

    app = flask.Flask(__name__)
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.example", store=store, crawlers=Resolver())
    answer = cli_runner().invoke(commands_for(app), ["import-log", str(log)], catch_exceptions=False)
    assert "1 visits of verified crawlers" in answer.stdout
    assert visited(store) == {"/menu": 1}


@pytest.mark.parametrize("name", ["flask_shop", "starlette_shop"])
def test_names_an_app(name: str, log: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEMAP_STORE", store)
    answer = run(log, "--app", f"tests.apps.terminal_site:{name}", "--factory")
    assert answer.exit_code == 0, answer.stderr
    assert visited(store, Site("https", "shop.example")) == {"": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the app's store, such as --store sqlite:///sitemap.sqlite3, or the app by --app"),
        (("--store", "memory://", *SITE), "a store in memory is of the running app only"),
        (("--store", "mongo://x", *SITE), "--store='mongo://x' names no store"),
        (("--store", "sqlite:////dev/null/x.sqlite3", *SITE), "/dev/null/x.sqlite3"),
        (("--store", "sqlite:///x.sqlite3", *SITE, "--timezone", "Mars"), "--timezone='Mars' is no time zone"),
        (("--store", "sqlite:///x.sqlite3", "--base-url", "bakery"), "--base-url='bakery' does not begin with http"),
    ],
    ids=["nothing", "memory", "unknown store", "no folder", "time zone", "base URL"],
)
def test_wrong_options_are_errors(
    arguments: tuple[str, ...], message: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run(log, *arguments)
    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: ")
    assert message in answer.stderr


def test_app_whose_store_is_in_memory_is_an_error(log: Path) -> None:
    app = flask.Flask(__name__)
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url="https://bakery.example", store="memory://")
    answer = cli_runner().invoke(commands_for(app), ["import-log", str(log)])
    assert answer.exit_code == 2
    assert "a store in memory" in answer.stderr


def test_format_and_table_are_given_by_options(store: str, tmp_path: Path) -> None:
    log = tmp_path / "noise.log"
    log.write_text("noise\n" * 9 + write_log(tmp_path / "a.log", "combined", HITS).read_text())
    assert "9 broken" in run(log, "--store", store, *SITE, "--format", "combined").stdout
    table = tmp_path / "table.csv"
    table.write_text(
        "site,path,status,agent,first,last,n\nhttps://bakery.example,/rye,200,Googlebot,1764000000,1764000000,4\n"
    )
    assert "table, lines read: 4" in run(table, "--store", store, *SITE, "--aggregated").stdout
    assert "imported before: 1 rows" in run(table, "--store", store, *SITE, "--aggregated").stdout
    assert visited(store) == {"": 5}
