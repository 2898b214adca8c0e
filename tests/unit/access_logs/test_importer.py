"""Access logs: what is counted, in every format; nothing is counted twice, and hostile lines do no harm."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sitemap_middleware.access_logs import duckdb_line_grouping, line_reader
from sitemap_middleware.access_logs.import_summary import ImportSummary
from sitemap_middleware.access_logs.imported_positions import load_marks, record_name
from sitemap_middleware.access_logs.importer import LEASE_SECONDS, LogImporter
from sitemap_middleware.access_logs.log_formats_as_sql import FORMATS
from sitemap_middleware.crawlers.counted_visits import FAKE, OTHER_PATHS, UNVERIFIED, VERIFIED, CrawlerVisit
from sitemap_middleware.crawlers.ip_address_verification import Verifier
from sitemap_middleware.crawlers.known_crawlers import Crawler
from sitemap_middleware.exceptions import SitemapError, StoreError
from sitemap_middleware.models import Site
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ...support.access_logs import BINGBOT, BROWSER, DIRECTIVES, GOOGLEBOT, WRITERS, Hit, log_text, write_log

BAKERY = Site("https", "bakery.example")
AT = 1_764_000_000
NOW = AT + 86_400
GOOGLE = ("66.249.", "2001:4860:")
SOMEBODY = "203.0.113.9"
UNKNOWN = "198.51.100.1"

TRUTH = [
    Hit("/"),
    Hit("/menu", at=AT + 100),
    Hit("/menu", at=AT + 50),
    Hit("/menu", address="66.249.66.2", at=AT + 200),
    Hit("/menu", status=304, address="2001:4860:4801:10::1"),
    Hit("/gone", status=404),
    Hit("/caf%C3%A9"),
    Hit("/caf%c3%a9", at=AT + 1),
    Hit("/%6Denu", at=AT + 300),
    Hit("/menu", address=SOMEBODY),
    Hit("/menu", agent=BINGBOT, address=UNKNOWN),
    Hit("/rye", agent='Googlebot" 200 "', address=SOMEBODY),
    Hit("/menu?page=2"),
    Hit("/menu", method="HEAD"),
    Hit("/menu", method="POST"),
    Hit("/menu", agent=BROWSER, address=SOMEBODY),
    Hit("/menu", agent="-"),
]
VISITS = {
    CrawlerVisit("/", "Googlebot", True, 200, AT, AT, 1),
    CrawlerVisit("/menu", "Googlebot", True, 200, AT + 50, AT + 300, 4),
    CrawlerVisit("/menu", "Googlebot", True, 304, AT, AT, 1),
    CrawlerVisit("/gone", "Googlebot", True, 404, AT, AT, 1),
    CrawlerVisit("/café", "Googlebot", True, 200, AT, AT + 1, 2),
    CrawlerVisit(OTHER_PATHS, "Googlebot", False, 200, AT, AT, 2, fake=True),
    CrawlerVisit(OTHER_PATHS, "bingbot", False, 200, AT, AT, 1),
}
LINES = {"verified": 9, "fake": 2, "unverified": 1, "ignored": 3, "other": 1, "nameless": 1}


def identify(crawler: Crawler, address: str) -> int:
    if address == UNKNOWN:
        return UNVERIFIED
    return VERIFIED if "google" in crawler.token and address.startswith(GOOGLE) else FAKE


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    opened = MemoryStore()
    yield opened
    opened.close()


class FailingStore(SQLiteStore):
    """A store whose disk is full once."""

    def __init__(self, path: Path, fails_at: int) -> None:
        super().__init__(path)
        self._calls_left = fails_at

    def add_crawler_visits(self, *arguments: Any) -> None:
        self._calls_left -= 1
        if not self._calls_left:
            raise StoreError("the disk is full")
        super().add_crawler_visits(*arguments)


def run(
    store: MemoryStore | SQLiteStore, *files: Path, sites: Sequence[Site] = (BAKERY,), **options: object
) -> list[ImportSummary]:
    with LogImporter(store, sites, identify, clock=lambda: NOW, **options) as importer:  # type: ignore[arg-type]
        return [importer.import_log(file) for file in files]


def visits(store: MemoryStore | SQLiteStore, site: Site = BAKERY) -> set[CrawlerVisit]:
    return set(store.crawler_visits(site.store_key))


def counted(report: ImportSummary) -> dict[str, int]:
    return {name: count for name, count in report.lines.items() if count}


@pytest.mark.parametrize("suffix", [".log", ".gz", ".zst"])
@pytest.mark.parametrize("name", [name for name in WRITERS if name != "common"])
def test_one_truth_gives_equal_visits_in_every_format(
    name: str, suffix: str, store: MemoryStore, tmp_path: Path
) -> None:
    (report,) = run(store, write_log(tmp_path / f"some{suffix}", name, TRUTH))
    assert (report.format, report.problem) == (name, "")
    assert visits(store) == VISITS
    assert counted(report) == LINES
    assert report.crawlers == {"Googlebot": 9}


def test_after_the_statements_of_the_guide_a_log_is_imported_as_if_for_the_first_time(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "howto" / "access-logs.md").read_text("utf-8")
    (statements,) = re.findall(r'^sqlite3 sitemap.sqlite3 "(.+)"$', guide, re.MULTILINE)
    log = write_log(tmp_path / "access.log", "combined", TRUTH)
    with contextlib.closing(SQLiteStore(tmp_path / "sitemap.sqlite3")) as store:
        store.save(BAKERY.store_key, {"kept": b"yes"})
        run(store, log)
        assert counted(run(store, log)[0]) == {}
        with contextlib.closing(sqlite3.connect(tmp_path / "sitemap.sqlite3")) as other:
            other.executescript(statements)
        assert visits(store) == set()
        assert counted(run(store, log)[0]) == LINES
        assert visits(store) == VISITS
        assert store.load(BAKERY.store_key, ["kept"]) == {"kept": b"yes"}


def test_memory_holds_some_groups_at_a_time_and_nothing_is_lost_between_them(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_line_grouping, "ROWS_AT_ONCE", 2)
    log = write_log(tmp_path / "access.log", "combined", TRUTH)
    with contextlib.closing(duckdb_line_grouping.LogQueries(tmp_path, "UTC", ["googlebot"], NOW)) as queries:
        batches = list(queries.line_groups(log, FORMATS["combined"]))
    assert {len(batch) for batch in batches} <= {1, 2}
    addresses = [group.address for batch in batches for group in batch if group.kind == "visit"]
    assert addresses == sorted(addresses)
    (report,) = run(store, log)
    assert counted(report) == LINES
    assert visits(store) == VISITS


def test_common_log_names_no_agents_so_it_has_no_visits(store: MemoryStore, tmp_path: Path) -> None:
    (report,) = run(store, write_log(tmp_path / "access.log", "common", TRUTH))
    assert (report.format, counted(report)) == ("common", {"nameless": len(TRUTH)})
    assert visits(store) == set()


def test_traefik_without_headers_has_no_visits(store: MemoryStore, tmp_path: Path) -> None:
    lines_ = [json.loads(WRITERS["traefik-json"](hit)) for hit in TRUTH]
    for line in lines_:
        del line["request_User-Agent"]
    file = tmp_path / "traefik.log"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines_))
    (report,) = run(store, file)
    assert (report.format, counted(report)) == ("traefik-json", {"nameless": len(TRUTH)})


@pytest.mark.parametrize("name", WRITERS)
def test_detects_formats_from_the_content_whatever_the_first_lines_are(
    name: str, store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "misleading.json"
    file.write_text(log_text(name, TRUTH[:3]).replace("\n", "\nbroken\n", 1) + log_text(name, TRUTH))
    assert run(store, file)[0].format == name


def test_file_of_no_known_format_is_a_problem_that_stops_no_other(store: MemoryStore, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are\nsome notes\n")
    unknown, other = run(store, text, write_log(tmp_path / "a.log", "combined", TRUTH))
    assert unknown.problem == (
        f"{text} has none of the known formats; if it has one, name it: --format {'|'.join(FORMATS)}"
    )
    assert counted(other) == LINES


def test_a_given_format_overrides_the_detection(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("noise\n" * 9 + log_text("combined", TRUTH))
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW) as importer:
        report = importer.import_log(file, FORMATS["combined"])
    assert counted(report) == LINES | {"broken": 9}


@pytest.mark.parametrize("given", ["common", "iis", "alb"])
def test_a_log_is_not_imported_in_a_format_of_no_line(given: str, store: MemoryStore, tmp_path: Path) -> None:
    """Else its lines were all broken, marked as imported, and never counted."""
    file = write_log(tmp_path / "a.log", "combined", TRUTH)
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW) as importer:
        report = importer.import_log(file, FORMATS[given])
        assert report.problem == f"{file} is not in the format {given}, but in combined: leave --format out"
        assert counted(importer.import_log(file)) == LINES


def test_a_given_format_with_directives_is_used(store: MemoryStore, tmp_path: Path) -> None:
    file = write_log(tmp_path / "a.log", "iis", TRUTH)
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW) as importer:
        report = importer.import_log(file, FORMATS["iis"])
    assert (report.format, report.problem, report.lines["verified"] > 0) == ("iis", "", True)


def test_a_given_format_is_used_if_none_is_found(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("noise\n" * 3)
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW) as importer:
        assert counted(importer.import_log(file, FORMATS["combined"])) == {"broken": 3}


@pytest.mark.parametrize("given", [None, "combined"])
def test_a_log_of_one_endless_line(given: str | None, store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 3_000_000)
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW) as importer:
        report = importer.import_log(file, FORMATS[given] if given else None)
    assert (counted(report), "none of the known formats" in report.problem) == ({}, given is None)


# Nothing is counted twice


def test_importing_again_changes_nothing(store: MemoryStore, tmp_path: Path) -> None:
    plain = write_log(tmp_path / "access.log", "combined", TRUTH)
    run(store, plain)
    (again,) = run(store, plain)
    assert (counted(again), again.skipped_bytes) == ({}, plain.stat().st_size)
    renamed = [write_log(tmp_path / name, "combined", TRUTH) for name in ("access.log.1", "b.gz", "c.zst")]
    for report in run(store, *renamed):
        assert counted(report) == {}
    assert visits(store) == VISITS


def test_a_log_that_has_grown_is_continued_also_once_it_was_rotated(store: MemoryStore, tmp_path: Path) -> None:
    run(store, write_log(tmp_path / "access.log", "iis", TRUTH[:4]))
    run(store, write_log(tmp_path / "access.log", "iis", TRUTH[:9]))
    (report,) = run(store, write_log(tmp_path / "copy-from-before.log", "iis", TRUTH[:4]))
    assert counted(report) == {}
    (report,) = run(store, write_log(tmp_path / "rotated.gz", "iis", TRUTH))
    assert counted(report) == {key: count for key, count in LINES.items() if key != "verified"}
    assert visits(store) == VISITS


def test_a_line_without_an_end_is_left_for_the_next_import(store: MemoryStore, tmp_path: Path) -> None:
    file, text = tmp_path / "access.log", log_text("combined", TRUTH)
    for end in (10, -5):
        file.write_text(text[:end])
        assert run(store, file)[0].unfinished
    file.write_text(text)
    assert not run(store, file)[0].unfinished
    assert visits(store) == VISITS


def test_logs_that_begin_alike_are_different_logs(store: MemoryStore, tmp_path: Path) -> None:
    run(store, write_log(tmp_path / "a.log", "combined", [Hit("/"), Hit("/a")]))
    run(store, write_log(tmp_path / "b.log", "combined", [Hit("/"), Hit("/b")]))
    assert {visit.path: visit.count for visit in visits(store)} == {"/": 2, "/a": 1, "/b": 1}


def test_logs_of_equal_length_that_begin_alike_are_each_imported_once(store: MemoryStore, tmp_path: Path) -> None:
    logs = [write_log(tmp_path / name, "combined", [Hit("/"), Hit(f"/{name}")]) for name in ("a", "b")]
    run(store, *logs)
    for report in run(store, *logs):
        assert (counted(report), report.skipped_bytes) == ({}, logs[0].stat().st_size)


def test_an_import_that_was_interrupted_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 600)
    monkeypatch.setattr(line_reader, "COPIED_BYTES", 300)
    log = write_log(tmp_path / "access.log", "combined", TRUTH)
    first = FailingStore(tmp_path / "store.sqlite3", fails_at=3)
    with pytest.raises(StoreError):
        run(first, log)
    first.close()
    store = SQLiteStore(tmp_path / "store.sqlite3")
    (report,) = run(store, log)
    assert 0 < report.skipped_bytes < log.stat().st_size
    assert visits(store) == VISITS
    store.close()


def test_a_log_of_many_pieces_leaves_one_mark_of_each_import(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a large log does not crowd out the marks of others with the same first line."""
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 600)
    monkeypatch.setattr(line_reader, "COPIED_BYTES", 300)
    begin = write_log(tmp_path / "access.log.1", "combined", TRUTH[:8])
    log = write_log(tmp_path / "access.log", "combined", TRUTH)
    run(store, begin, log)
    name = record_name(log.read_bytes())
    assert name is not None
    marks = load_marks(store, BAKERY.store_key, name)
    assert sorted(marks.values()) == [begin.stat().st_size, log.stat().st_size]
    assert [counted(report) for report in run(store, begin, log)] == [{}, {}]
    assert visits(store) == VISITS


def test_two_imports_at_the_same_time_do_not_count_the_same_lines(store: MemoryStore, tmp_path: Path) -> None:
    log, now = write_log(tmp_path / "access.log", "combined", TRUTH), [NOW]
    first = LogImporter(store, [BAKERY], identify, clock=lambda: now[0])
    first.import_log(write_log(tmp_path / "other.log", "combined", [Hit("/other")]))
    (report,) = run(store, log)
    assert report.problem == (
        f"{log}: another import-log works on https://bakery.example; if it was killed, try again in 5 minutes"
    )
    with LogImporter(store, [BAKERY], identify, clock=lambda: NOW + LEASE_SECONDS) as second:
        assert counted(second.import_log(log)) == LINES
        now[0] = NOW + LEASE_SECONDS
        assert "another import-log works" in first.import_log(log).problem
    with first:
        assert counted(first.import_log(log)) == {}
    assert counted(run(store, log)[0]) == {}


def test_each_site_of_a_log_is_imported_once(store: MemoryStore, tmp_path: Path) -> None:
    shop, english = Site("https", "shop.example"), Site("https", "bakery.example", "/en")
    hits = [
        Hit("/menu"),
        Hit("/en/menu"),
        Hit("/en"),
        Hit("/menu", host="www.shop.example"),
        Hit("/", host="x.example"),
    ]
    file = write_log(tmp_path / "all.log", "vhost-combined", hits)
    (report,) = run(store, file, sites=[shop])
    assert counted(report) == {"verified": 1, "other_host": 4}
    (report,) = run(store, file, sites=[BAKERY, shop, english])
    assert counted(report) == {"verified": 4, "other_host": 1}
    for site, paths in ((shop, {"/menu"}), (BAKERY, {"/menu"}), (english, {"/menu", "/"})):
        assert {(visit.path, visit.count) for visit in visits(store, site)} == {(path, 1) for path in paths}


@pytest.mark.parametrize("first", ["combined", "vhost-combined"])
def test_hosts_are_read_line_by_line_in_a_log_of_both_combined_formats(
    first: str, store: MemoryStore, tmp_path: Path
) -> None:
    with_hosts = [Hit("/menu"), Hit("/other", host="other.example"), Hit("/ip", host="192.0.2.1")]
    hits = {"combined": [Hit("/"), Hit("/v6", address="2001:4860::1")], "vhost-combined": with_hosts}
    second = "combined" if first == "vhost-combined" else "vhost-combined"
    file = tmp_path / "mixed.log"
    file.write_text(log_text(first, hits[first] * 3) + log_text(second, hits[second]))
    (report,) = run(store, file)
    assert (report.format, report.lines["broken"]) == (first, 0)
    assert {visit.path for visit in visits(store)} == {"/", "/v6", "/menu"}
    assert report.lines["other_host"] == 2 * (3 if first == "vhost-combined" else 1)
    assert report.lines.total() == report.lines["verified"] + report.lines["other_host"]


@pytest.mark.parametrize("host", ["bakery.example:443", "bakery.example", "192.0.2.1:443", "[2001:db8::1]:443"])
def test_a_line_that_begins_with_a_host_is_never_taken_for_one_without(
    host: str, store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "hosts.log"
    file.write_text(f"{host} {WRITERS['combined'](Hit('/'))}\n")
    assert run(store, file)[0].format == "vhost-combined"
    file.write_text(f"{host} {WRITERS['combined'](Hit('/', address='named.example'))}\n" + log_text("combined", TRUTH))
    (report,) = run(MemoryStore(), file)
    assert (report.format, counted(report)) == ("combined", LINES | {"broken": 1})


def test_log_without_hosts_is_of_one_site_only(store: MemoryStore, tmp_path: Path) -> None:
    file = write_log(tmp_path / "a.log", "combined", TRUTH)
    (report,) = run(store, file, sites=[BAKERY, Site("https", "shop.example")])
    assert report.problem == f"{file}: combined does not keep the requested host: give one --base-url only"


def test_any_host_counts_all_lines_for_the_site(store: MemoryStore, tmp_path: Path) -> None:
    file = write_log(tmp_path / "inner.log", "nginx-json", [Hit("/", host="app:8000"), Hit("/", host="")])
    assert counted(run(store, file, any_host=True)[0]) == {"verified": 2}


# Fake crawlers


NAMES = {
    "66.249.66.1": ["crawl-66-249-66-1.googlebot.com"],
    "45.33.32.156": ["crawl-66-249-66-1.googlebot.com"],
    "8.8.4.4": ["googlebot.com.evil.example"],
    "1.1.1.1": [],
}
ADDRESSES = {"crawl-66-249-66-1.googlebot.com": ["66.249.66.1"]}


class RecordedDNS:
    """Answers of DNS, as they were recorded. A forged name belongs to no address of the crawler."""

    def names(self, address: str) -> list[str]:
        if address == "9.9.9.9":
            raise TimeoutError
        return NAMES[address]

    def addresses(self, name: str) -> list[str]:
        return ADDRESSES.get(name, [])


def test_forged_googlebots_are_fake(store: MemoryStore, tmp_path: Path) -> None:
    addresses = ["66.249.66.1", "45.33.32.156", "8.8.4.4", "1.1.1.1", "9.9.9.9", "10.0.0.1"]
    file = write_log(tmp_path / "a.log", "combined", [Hit("/", address=address) for address in addresses])
    with LogImporter(store, [BAKERY], Verifier(RecordedDNS(), lambda: NOW).identity, clock=lambda: NOW) as importer:
        report = importer.import_log(file)
    assert counted(report) == {"verified": 1, "fake": 3, "unverified": 2}
    assert {(visit.verified, visit.fake, visit.count) for visit in visits(store)} == {
        (True, False, 1),
        (False, True, 3),
        (False, False, 2),
    }


def test_no_address_is_kept(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.sqlite3")
    run(store, write_log(tmp_path / "a.log", "combined", TRUTH))
    store.close()
    for address in {hit.address for hit in TRUTH}:
        assert address.encode() not in (tmp_path / "store.sqlite3").read_bytes()


# Hostile and damaged content


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_lines_are_counted_and_harm_no_other(name: str, store: MemoryStore, tmp_path: Path) -> None:
    good = log_text(name, TRUTH * 2).splitlines(keepends=True)
    bad = [
        "\n",
        "#comment\n" if name not in DIRECTIVES else "no comment\n",
        "garbage\n",
        "\0\1\2\x1b[31m\n",
        '"' * 500 + "\n",
        "{}\n",
        "[]\n",
        '{"status": 200\n',
        "é\n",
        "x" * 300_000 + "\n",
    ]
    file = tmp_path / "damaged.log"
    file.write_bytes("".join(good + bad).encode() + b"\xff\xfe\x80 - -\n" + "".join(good[-2:]).encode())
    (report,) = run(store, file)
    assert (report.format, report.problem) == (name, "")
    assert report.lines["broken"] == len(bad) + 1
    assert report.lines.total() == 2 * len(TRUTH) + len(bad) + 1 + 2


def test_long_lines_of_any_length_are_broken_in_the_same_memory(store: MemoryStore, tmp_path: Path) -> None:
    file, text = tmp_path / "long.log", log_text("combined", TRUTH)
    endless = b"x" * (line_reader.COPIED_BYTES * 2 + 17)
    file.write_bytes(b"".join([text.encode(), endless, b"\n", b"y" * 130_000, b"\n", b"z" * 140_000, b"\n", endless]))
    (report,) = run(store, file)
    assert counted(report) == LINES | {"broken": 3}
    assert report.unfinished
    file.write_bytes(file.read_bytes() + b"\n" + WRITERS["combined"](Hit("/new")).encode() + b"\n")
    (report,) = run(store, file)
    assert counted(report) == {"verified": 1, "broken": 1}


@pytest.mark.parametrize(
    "line",
    [
        f'203.0.113.9 - x [24/Nov/2025:16:00:00 +0000] - [24/Nov/2025:16:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "{GOOGLEBOT}"',
        f'203.0.113.9 - - [24/Nov/2025:16:00:00 +0000] "GET /a" 200 5 "-" "x" 200 "GET / HTTP/1.1" 200 5 "-" "{GOOGLEBOT}"',
        f'203.0.113.9 - - [24/Nov/2025:16:00:00 +0000] "GET /a HTTP/1.1\\" 200 5 \\"-\\" \\"{GOOGLEBOT}\\"" 400 5 "-" "curl"',
    ],
)
def test_forged_fields_make_no_visit_of_a_verified_crawler(line: str, store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "forged.log"
    file.write_text(f"{line}\n{log_text('combined', [Hit('/')])}")
    run(store, file)
    assert {visit.path for visit in visits(store) if visit.verified} == {"/"}


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://bakery.example/menu", "/menu"),
        ("HTTPS://bakery.example:443/menu", "/menu"),
        ("http://bakery.example", "/"),
        ("http://user:x@www.bakery.example/menu", "/menu"),
        ("/menu?", "/menu"),
        ("//menu", "//menu"),
        ("http://elsewhere.example/menu", None),
        ("http://[::1/menu", None),
        ("*", None),
        ("menu", None),
        ("/a/../b", None),
        ("/%00", None),
        ("/%ff", None),
        ("/a#b", None),
        ("/a%23b", "/a#b"),
        ("/" + "x" * 3000, None),
    ],
)
def test_targets_stand_for_the_pages_that_live_requests_reach(
    target: str, path: str | None, store: MemoryStore, tmp_path: Path
) -> None:
    run(store, write_log(tmp_path / "a.log", "combined", [Hit(target), Hit("/other")]))
    assert {visit.path for visit in visits(store)} == {"/other"} | ({path} if path else set())


@pytest.mark.parametrize(
    ("line", "path"),
    [(r"/caf\xc3\xa9", "/café"), (r"/caf\xe9", None), (r"/a\\b", "/a\\b"), (r"/a\"b", '/a"b'), (r"/a\nb", None)],
)
def test_backslashes_of_apache_and_nginx_are_read(
    line: str, path: str | None, store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "a.log"
    file.write_text(log_text("combined", [Hit("/TARGET"), Hit("/other")]).replace("/TARGET", line))
    run(store, file)
    assert {visit.path for visit in visits(store)} == {"/other"} | ({path} if path else set())


def test_plus_sign_in_a_path_of_iis_is_left_out_because_it_may_be_a_space(store: MemoryStore, tmp_path: Path) -> None:
    (report,) = run(store, write_log(tmp_path / "a.log", "iis", [Hit("/a+b"), Hit("/c")]))
    assert counted(report) == {"verified": 1, "unknown_page": 1}


def test_agent_that_only_looks_like_a_crawler_is_another_client(store: MemoryStore, tmp_path: Path) -> None:
    (report,) = run(store, write_log(tmp_path / "a.log", "combined", [Hit("/", agent="xgooglebotx")]))
    assert counted(report) == {"other": 1}


@pytest.mark.parametrize("address", ["-", "unix:", "crawl-66-249-66-1.googlebot.com", "66.249.66.1,", "999.1.1.1"])
def test_address_that_is_none_is_not_verified(address: str, store: MemoryStore, tmp_path: Path) -> None:
    (report,) = run(store, write_log(tmp_path / "a.log", "combined", [Hit("/", address=address)]))
    assert counted(report) == {"unverified": 1}


@pytest.mark.parametrize("status", [0, 99, 600])
def test_status_that_is_none_is_not_counted(status: int, store: MemoryStore, tmp_path: Path) -> None:
    file = write_log(tmp_path / "a.log", "caddy-json", [Hit("/", status=status), Hit("/a"), Hit("/b")])
    assert run(store, file)[0].lines["verified"] == 2


# Times


@pytest.mark.parametrize(
    ("time", "at"),
    [
        ("24/Nov/2025:16:00:00 +0000", AT),
        ("24/Nov/2025:17:00:00 +0100", AT),
        ("24/Nov/2025:08:30:00 -0730", AT),
        ("24/Nov/2125:16:00:00 +0000", None),
        ("24/Nov/1925:16:00:00 +0000", None),
        ("31/Feb/2025:16:00:00 +0000", None),
        ("24/Nov/2025:16:00:00", None),
    ],
)
def test_times_have_their_zone_and_are_not_in_the_future(
    time: str, at: int | None, store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "a.log"
    file.write_text(
        log_text("combined", [Hit("/")]).replace("24/Nov/2025:16:00:00 +0000", time) + log_text("combined", [Hit("/b")])
    )
    (report,) = run(store, file)
    assert {visit.first for visit in visits(store) if visit.path == "/"} == ({at} if at else set())
    assert report.lines["broken"] == (at is None)


@pytest.mark.parametrize(
    "time",
    [
        "1764000000",
        "1764000000.123",
        "1764000000123",
        "2025-11-24T16:00:00Z",
        "2025-11-24T17:00:00+01:00",
        "24/Nov/2025:16:00:00 +0000",
    ],
)
def test_times_in_json_may_have_any_usual_form(time: str, store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    for key in ("msec", "time_local", "@timestamp"):
        line = {
            "request": "GET /a HTTP/1.1",
            "remote_addr": "66.249.66.1",
            "status": 200,
            "user_agent": GOOGLEBOT,
            key: time,
        }
        file.write_text(json.dumps(line) + "\n")
        run(store, file)
    assert visits(store) == {CrawlerVisit("/a", "Googlebot", True, 200, AT, AT, 3)}


def test_times_without_a_zone_are_of_the_zone_given(store: MemoryStore, tmp_path: Path) -> None:
    run(store, write_log(tmp_path / "iis.log", "iis", [Hit("/")]), timezone="America/New_York")
    assert {visit.first for visit in visits(store)} == {AT + 5 * 3600}


def test_unknown_time_zone_is_an_error(store: MemoryStore) -> None:
    with pytest.raises(SitemapError, match="--timezone='Middle/Earth' is no time zone"):
        run(store, timezone="Middle/Earth")


# W3C


def test_fields_of_a_w3c_log_may_change_within(store: MemoryStore, tmp_path: Path) -> None:
    unusable = "#Fields: time\n16:00:00\n"
    other = "#Fields: time date cs-method sc-status cs-uri-stem c-ip cs(User-Agent)\n"
    line = f"16:00:00 2025-11-24 GET 200 /other 66.249.66.1 {GOOGLEBOT.replace(' ', '+')}\n"
    file = tmp_path / "iis.log"
    file.write_text(log_text("iis", [Hit("/a")]) + unusable + other + line + log_text("iis", [Hit("/b")]))
    (report,) = run(store, file)
    assert counted(report) == {"verified": 3, "broken": 1}
    assert {visit.path for visit in visits(store)} == {"/a", "/other", "/b"}


def test_w3c_log_without_a_needed_field_is_a_problem(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "iis.log"
    file.write_text("#Fields: date time cs-uri-stem\n2025-11-24 16:00:00 /\n")
    (report,) = run(store, file)
    assert report.problem == f"{file}: the log does not keep cs-method, sc-status: let the server log these fields, too"


def test_lines_before_the_fields_are_named_are_broken(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "iis.log"
    file.write_text(f"#Version: 1.0\nlost line\n\n{log_text('iis', [Hit('/')])}")
    assert counted(run(store, file)[0]) == {"broken": 2, "verified": 1}


def test_directives_are_no_lines_of_a_w3c_log(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "iis.log"
    file.write_text(log_text("iis", [Hit("/")]) + "#Date: 2025-11-24 16:00:00\n" + log_text("iis", [Hit("/a")]))
    assert counted(run(store, file)[0]) == {"verified": 2}


@pytest.mark.parametrize("text", ["", "no line", DIRECTIVES["iis"]])
def test_log_without_a_line_has_nothing_to_import(text: str, store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(text)
    (report,) = run(store, file)
    assert (report.problem, counted(report), report.unfinished) == ("", {}, bool(text))


# Files


def test_damaged_compression_is_a_problem_and_what_came_before_is_kept(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "COPIED_BYTES", 1000)
    file = write_log(tmp_path / "a.gz", "combined", TRUTH * 50)
    file.write_bytes(file.read_bytes()[:-30])
    (report,) = run(store, file)
    assert report.problem.startswith(f"{file} is damaged or not complete: ")
    assert report.lines["verified"] > 0
    (again,) = run(store, write_log(file, "combined", TRUTH * 50))
    assert again.problem == ""
    assert {visit._replace(count=visit.count // 50) for visit in visits(store)} == VISITS


@pytest.mark.parametrize(
    ("magic", "name"), [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"PK\3\4", "zip"), (b"\xff\xfe1\0", "UTF-16")]
)
def test_other_compressions_are_named(magic: bytes, name: str, store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(magic)
    assert run(store, file)[0].problem == f"{file} is {name}: give it plain, or compressed with gzip or zstd"


def test_file_that_is_damaged_from_its_begin_is_a_problem(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(b"\x1f\x8b no more")
    assert run(store, file)[0].problem.startswith(f"{file} is damaged or not complete: ")


def test_lines_are_read_whole_however_few_bytes_arrive_at_once(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "COPIED_BYTES", 50)
    run(store, write_log(tmp_path / "a.log", "iis", TRUTH))
    assert visits(store) == VISITS


def test_missing_file_and_folder_are_problems(store: MemoryStore, tmp_path: Path) -> None:
    for report in run(store, tmp_path / "missing.log", tmp_path):
        assert "cannot be read" in report.problem


@pytest.mark.parametrize("module", ["duckdb", "zstd"])
def test_missing_libraries_are_named_with_their_extra(
    module: str, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("duckdb",) if module == "duckdb" else ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    file = write_log(tmp_path / "a.zst", "combined", TRUTH)
    with contextlib.suppress(SitemapError) if module == "zstd" else pytest.raises(SitemapError, match=r"\[logs\]"):
        (report,) = run(store, file)
        assert report.problem.endswith('is compressed with zstd: pip install "sitemap-middleware[logs]"')


def test_store_that_keeps_no_visits_is_an_error() -> None:
    with pytest.raises(StoreError, match="the store object does not keep visits of crawlers"):
        run(object())  # type: ignore[arg-type]


def test_line_ends_of_windows_and_a_byte_order_mark_are_no_part_of_lines(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    for name in ("combined", "nginx-json", "cloudfront", "common"):
        file.write_bytes(b"\xef\xbb\xbf" + log_text(name, TRUTH).replace("\n", "\r\n").encode())
        (report,) = run(MemoryStore(), file)
        assert (report.format, report.lines["broken"]) == (name, 0)


# Tables of counted lines

COLUMNS = ("site", "path", "status", "agent", "first", "last", "n", "address")
ROWS = [
    ("https://bakery.example", "/menu", 200, GOOGLEBOT, AT, AT + 60, 3, "66.249.66.1"),
    ("bakery.example", "/caf%C3%A9", 200, GOOGLEBOT, "2025-11-24T16:00:00Z", "2025-11-24T16:01:00Z", 2, SOMEBODY),
    ("elsewhere.example", "/menu", 200, GOOGLEBOT, AT, AT, 1, "66.249.66.1"),
    ("bakery.example", "/menu?x=1", 200, GOOGLEBOT, AT, AT, 1, "66.249.66.1"),
    ("bakery.example", "/menu", 200, GOOGLEBOT, AT, AT, -5, "66.249.66.1"),
    ("bakery.example", "/menu", 200, GOOGLEBOT, AT + 60, AT, 1, "66.249.66.1"),
    ("bakery.example", "/menu", 200, BROWSER, AT, AT, 7, SOMEBODY),
]
TABLE_VISITS = {
    CrawlerVisit("/menu", "Googlebot", True, 200, AT, AT + 60, 3),
    CrawlerVisit(OTHER_PATHS, "Googlebot", False, 200, AT, AT + 60, 2, fake=True),
}


def write_csv(file: Path, columns: Sequence[str] = COLUMNS) -> Path:
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(columns)
        rows.writerows(row[: len(columns)] for row in ROWS)
    return file


def write_log_copy(folder: Path) -> Path:
    """The same table, compressed."""
    file = folder / "again.csv.gz"
    file.write_bytes(gzip.compress(write_csv(folder / "plain.csv").read_bytes()))
    return file


def import_table(store: MemoryStore | SQLiteStore, file: Path, *other_sites: Site) -> ImportSummary:
    with LogImporter(store, [BAKERY, *other_sites], identify, clock=lambda: NOW) as importer:
        return importer.import_table(file)


def test_table_of_counted_lines_is_imported_once(store: MemoryStore, tmp_path: Path) -> None:
    report = import_table(store, write_csv(tmp_path / "counted[1].csv"))
    assert visits(store) == TABLE_VISITS
    assert counted(report) == {"verified": 3, "fake": 2, "other_host": 1, "ignored": 1, "other": 7, "broken": 2}
    again = import_table(store, write_log_copy(tmp_path))
    assert (counted(again), again.skipped_rows) == ({}, len(ROWS))
    assert visits(store) == TABLE_VISITS
    elsewhere = Site("https", "elsewhere.example")
    import_table(store, tmp_path / "plain.csv", elsewhere)
    assert visits(store) == TABLE_VISITS
    assert visits(store, elsewhere) == {CrawlerVisit("/menu", "Googlebot", True, 200, AT, AT, 1)}


def test_parquet_and_other_columns_are_read(store: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "counted.parquet"
    table = f"SELECT *, 1 AS more, now() AS at FROM read_csv('{write_csv(tmp_path / 'a.csv')}', all_varchar=true)"
    duckdb.sql(f"COPY (SELECT * REPLACE (status::INT AS status, n::INT AS n) FROM ({table})) TO '{file}'")
    import_table(store, file)
    assert visits(store) == TABLE_VISITS


def test_table_without_addresses_has_visits_that_are_neither_verified_nor_fake(
    store: MemoryStore, tmp_path: Path
) -> None:
    report = import_table(store, write_csv(tmp_path / "a.csv", COLUMNS[:-1]))
    assert {(visit.verified, visit.fake) for visit in visits(store)} == {(False, False)}
    assert report.lines["unverified"] == 5


def test_table_that_was_interrupted_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_line_grouping, "ROWS_AT_ONCE", 1)
    store = FailingStore(tmp_path / "store.sqlite3", fails_at=2)
    file = write_csv(tmp_path / "a.csv")
    with pytest.raises(StoreError):
        import_table(store, file)
    assert import_table(store, file).skipped_rows == 1
    assert visits(store) == TABLE_VISITS
    store.close()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"path,status\n/,200\n", "the table has no column site, agent, first, last, n; it needs site, path, status,"),
        (b"PAR1 no more", "DuckDB failed: "),
        (b"\x1f\x8b broken", "is damaged or not complete"),
    ],
)
def test_table_that_cannot_be_read_is_a_problem(
    content: bytes, problem: str, store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "table"
    file.write_bytes(content)
    report = import_table(store, file)
    assert problem in report.problem
    assert report.problem.startswith(str(file))
