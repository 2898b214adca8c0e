"""Imports logs into a store: verifies the addresses of crawlers, adds up their visits by page, keeps no address."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Final, Self

from ..crawlers.counted_visits import FAKE, OTHER_PATHS, UNVERIFIED, VERIFIED, CrawlerVisit
from ..crawlers.known_crawlers import CRAWLERS, Crawler, crawler_of_agent
from ..exceptions import SitemapError, StoreError
from ..models import Site, StoreKey
from ..stores.base import Store, StoreExtras, store_name
from ..stores.checksums import verify, with_checksum
from ..urls import quote_path
from .duckdb_line_grouping import LineGroup, LogQueries, broken_lines
from .import_summary import ImportSummary
from .imported_positions import imported_lengths, load_marks, marks_as_record, record_name
from .line_reader import COPIED_BYTES, DIGEST_BYTES, LineReader, LogReadError, Piece, open_log, read_head
from .log_formats_as_sql import FORMATS, TABLE, LogFormat, with_fields
from .page_of_log_line import OtherHost, PageFinder
from .prefetch_thread import prefetched
from .temporary_folder import temporary_folder

Identify = Callable[[Crawler, str], int]
"""Whether an address is that of a crawler: `VERIFIED`, `FAKE` or `UNVERIFIED`. Threads call it at the same time."""

VERIFYING_THREADS: Final = 32
"""How many addresses are looked up at the same time: most of the time DNS is waited for."""

LEASE_SECONDS: Final = 5 * 60
"""For how long an import that was killed keeps others away from its site."""

_LEASE_NAME: Final = "import-log"

_IDENTITY_NAMES: Final = {VERIFIED: "verified", FAKE: "fake", UNVERIFIED: "unverified"}

_TOKENS: Final = tuple(crawler.token for crawler in CRAWLERS)


class LogImporter:
    """Imports logs, one after the other."""

    def __init__(
        self,
        store: Store,
        sites: Sequence[Site],
        identify: Identify,
        *,
        clock: Callable[[], float],
        timezone: str = "UTC",
        any_host: bool = False,
    ) -> None:
        """Import into a store.

        Args:
            store: any store.
            sites: whose pages count.
            identify: tells crawlers from those who pretend to be one.
            clock: returns POSIX seconds.
            timezone: of logs whose times have none.
            any_host: whether lines for any host are about the first site.

        Raises:
            SitemapError: DuckDB is missing, the time zone is unknown, or the store does not keep visits.
        """
        add = StoreExtras.of(store).add_crawler_visits
        if add is None:
            raise StoreError(f"the store {store_name(store)} does not keep visits of crawlers")
        self._store = store
        self._add = add
        self._sites = sites
        self._identify = identify
        self._clock = clock
        self._name = token_hex(8)
        self._finder = PageFinder(sites, any_host=any_host)
        self._any_host = any_host
        self._stack = ExitStack()
        folder = self._stack.enter_context(temporary_folder())
        self._piece_file = folder / "lines"
        try:
            self._queries = LogQueries(folder, timezone, _TOKENS, clock())
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(self._queries.close)
        self._verifying = self._stack.enter_context(ThreadPoolExecutor(VERIFYING_THREADS))
        self._stack.callback(self._release)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _claim(self, site: StoreKey) -> None:
        """Take or extend the lease on a site: two imports at the same time might count the same lines.

        Raises:
            SitemapError: another import has it.
        """
        if not self._store.lease(site, _LEASE_NAME, self._name, int(self._clock()), LEASE_SECONDS):
            raise SitemapError(
                f"another import-log works on {site}; if it was killed, try again in {LEASE_SECONDS // 60} minutes"
            )

    def _release(self) -> None:
        for site in self._sites:
            with suppress(StoreError):
                self._store.lease(site.store_key, _LEASE_NAME, self._name, int(self._clock()), 0)

    def _save(self, site: StoreKey, visits: Iterable[CrawlerVisit], name: str, record: bytes) -> None:
        self._claim(site)
        self._add(site, visits, {name: record})

    def import_log(
        self, file: Path, log_format: LogFormat | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> ImportSummary:
        """Import a log, from where it was imported last.

        What cannot be read is a problem of the report. Each piece is stored at once with the mark that it was, so an
        import that was interrupted is continued.

        Args:
            file: plain, or compressed with gzip or zstd.
            log_format: its format; None to detect it.
            progress: called with the number of bytes read of the file.

        Raises:
            StoreError: the store failed.
        """
        report = ImportSummary(file)
        with _reporting_problems(report):
            self._import(file, log_format, progress, report)
        return report

    def import_table(self, file: Path, progress: Callable[[int], None] = lambda _: None) -> ImportSummary:
        """Import a table of groups of lines, as another engine made it, in CSV or Parquet.

        A table of the same content is imported once. It is stored some rows at a time, each time with the number of
        rows done, so an import that was interrupted is continued.

        Args:
            file: plain, or compressed with gzip or zstd.
            progress: called with the number of bytes read of the file.

        Raises:
            StoreError: the store failed.
        """
        report = ImportSummary(file, "table")
        with _reporting_problems(report):
            self._import_table(file, progress, report)
        return report

    def _import_table(self, file: Path, progress: Callable[[int], None], report: ImportSummary) -> None:
        copy, digest, head = self._piece_file.with_name("table"), blake2b(digest_size=DIGEST_BYTES), b""
        with open_log(file) as (read, raw), copy.open("wb") as out:
            while data := read(COPIED_BYTES):
                head = head or data[:4]
                digest.update(data)
                out.write(data)
                progress(raw.tell())
        name = f"access-table/{digest.hexdigest()}"
        for site in self._sites:
            self._claim(site.store_key)
        done = {
            site.store_key: int(verify(self._store.load(site.store_key, [name]).get(name, b"")) or b"0")
            for site in self._sites
        }
        rows = min(done.values())
        for groups in self._queries.table_groups(copy, rows, is_parquet=head == b"PAR1"):
            rows += len(groups)
            visits = self._visits(groups, TABLE, report)
            for key, rows_before in done.items():
                if rows > rows_before:
                    self._save(key, visits.get(key, ()), name, with_checksum(b"%d" % rows))
        report.skipped_rows = min(done.values())

    def _import(
        self, file: Path, log_format: LogFormat | None, progress: Callable[[int], None], report: ImportSummary
    ) -> None:
        with open_log(file) as (read, _):
            head = read_head(read)
        name = record_name(head)
        if name is None:
            report.unfinished = bool(head)
            return
        log_format = self._detect(file, head, log_format)
        report.format = log_format.name
        if "f.host" not in log_format.host and log_format.host == "''" and len(self._sites) > 1 and not self._any_host:
            raise SitemapError(f"{log_format.name} does not keep the requested host: give one --base-url only")
        for site in self._sites:
            self._claim(site.store_key)
        marks = {site.store_key: dict(load_marks(self._store, site.store_key, name)) for site in self._sites}
        with open_log(file) as (read, _):
            lengths = dict(zip(marks, imported_lengths(read, list(marks.values())), strict=True))
        report.skipped_bytes, latest = min(lengths.values()), dict[StoreKey, bytes]()
        with open_log(file) as (read, raw):
            reader = LineReader(read, self._piece_file, has_directives=log_format.is_w3c)
            pieces = reader.pieces(sorted(set(lengths.values())), report.skipped_bytes)
            with closing(prefetched(self._grouped(pieces, report.skipped_bytes, log_format))) as grouped:
                for piece, batches in grouped:
                    visits = self._visits(chain.from_iterable(batches), log_format, report)
                    for key, known in marks.items():
                        if piece.end > lengths[key]:
                            known.pop(latest.get(key, b""), None)  # one mark for each import is enough
                            known[piece.digest], latest[key] = piece.end, piece.digest
                            self._save(key, visits.get(key, ()), name, marks_as_record(known))
                    progress(raw.tell())
        report.unfinished = reader.unfinished

    def _detect(self, file: Path, head: bytes, given: LogFormat | None) -> LogFormat:
        """The format of a log. Raises `LogReadError` if it is none, or another one than was given.

        With a wrong format, all lines would be broken, and yet be marked as imported.
        """
        has_directives = head.startswith(b"#")
        if given is not None and given.is_w3c and has_directives:
            return given
        data = [head[: head.rfind(b"\n") + 1], b""]
        reader = LineReader(lambda _: data.pop(0), self._piece_file, has_directives=has_directives)
        pieces = reader.pieces()
        directive = next((piece.directive for piece in pieces if piece.directive or not has_directives), "")
        found = self._queries.detect_format(self._piece_file, directive, given)
        if found is None:
            raise LogReadError(
                f"{file} has none of the known formats; if it has one, name it: --format {'|'.join(FORMATS)}"
            )
        if given not in (None, found):
            raise LogReadError(f"{file} is not in the format {given.name}, but in {found.name}: leave --format out")
        return found

    def _grouped(
        self, pieces: Iterable[Piece], skip: int, log_format: LogFormat
    ) -> Generator[tuple[Piece, list[list[LineGroup]]]]:
        """The lines of each piece in groups; none of pieces that end before a position. It runs on another thread."""
        for piece in pieces:
            if piece.end <= skip:
                yield piece, []
                continue
            batches = [[broken_lines(piece.broken)]]
            try:
                described = with_fields(log_format, piece.directive) if log_format.is_w3c else log_format
            except SitemapError:  # nothing tells what the fields of these lines are
                with self._piece_file.open("rb") as lines:
                    batches.append([broken_lines(sum(not line.startswith(b"#") for line in lines))])
            else:
                batches += self._queries.line_groups(self._piece_file, described)
            yield piece, batches

    def _visits(
        self, groups: Iterable[LineGroup], log_format: LogFormat, report: ImportSummary
    ) -> Mapping[StoreKey, list[CrawlerVisit]]:
        """Verify the crawlers of groups, and return their visits by site."""
        found = list(self._found(groups, log_format, report))
        identities = self._identities({(crawler, address) for _, _, crawler, address, _ in found if address})
        unverified: dict[StoreKey, set[str]] = {}
        for site, path, crawler, address, _ in found:
            if identities.get((crawler, address), UNVERIFIED) == UNVERIFIED:
                unverified.setdefault(site.store_key, set()).add(quote_path(path) or "")
        known = {key: self._store.find_pages(key, paths) for key, paths in unverified.items()}
        visits: dict[StoreKey, list[CrawlerVisit]] = {}
        for site, path, crawler, address, group in found:
            identity = identities.get((crawler, address), UNVERIFIED)
            first, last = int(group.first), int(group.last)
            # Who fakes a name makes paths up, too.
            if identity == FAKE or (identity == UNVERIFIED and quote_path(path) not in known[site.store_key]):
                path = OTHER_PATHS
            visit = CrawlerVisit(
                path, crawler.name, identity == VERIFIED, group.status, first, last, group.lines, identity == FAKE
            )
            visits.setdefault(site.store_key, []).append(visit)
            report.lines[_IDENTITY_NAMES[identity]] += group.lines
            if identity == VERIFIED:
                report.crawlers[crawler.name] += group.lines
        return visits

    def _identities(self, claims: Iterable[tuple[Crawler, str]]) -> dict[tuple[Crawler, str], int]:
        claims = list(claims)
        return dict(zip(claims, self._verifying.map(lambda claim: self._identify(*claim), claims), strict=True))

    def _found(
        self, groups: Iterable[LineGroup], log_format: LogFormat, report: ImportSummary
    ) -> Iterator[tuple[Site, str, Crawler, str, LineGroup]]:
        for group in groups:
            if group.kind != "visit":
                report.lines[group.kind] += group.lines
                continue
            crawler = crawler_of_agent(group.agent)
            if crawler is None:
                report.lines["other"] += group.lines
                continue
            try:
                site, path = self._finder.find(log_format, group.host, group.target)
            except OtherHost:
                report.lines["other_host"] += group.lines
            except ValueError:
                report.lines["unknown_page"] += group.lines
            else:
                yield site, path, crawler, _normal_address(group.address), group


@contextmanager
def _reporting_problems(report: ImportSummary) -> Iterator[None]:
    """Write errors into a report, except those of the store."""
    try:
        yield
    except StoreError:
        raise
    except SitemapError as error:
        report.problem = str(error) if isinstance(error, LogReadError) else f"{report.file}: {error}"


@lru_cache(10_000)
def _normal_address(text: str) -> str:
    """An IP address without its port; empty if it is none."""
    host, separator, _ = text.rpartition(":")
    for candidate in (text, text.strip("[]"), host.strip("[]") if separator else ""):
        try:
            return str(ipaddress.ip_address(candidate))
        except ValueError:
            continue
    return ""
