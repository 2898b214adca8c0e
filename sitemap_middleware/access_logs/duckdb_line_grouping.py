"""Has DuckDB split the lines of logs, and group those of crawlers: Python sees the groups only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..exceptions import SitemapError
from .line_reader import FIELD_SEPARATOR, MAX_LINE_BYTES
from .log_formats_as_sql import ANY_TIME, FORMATS, LogFormat, for_mixed_lines, sql_text, with_fields

MEMORY_LIMIT: Final = "200MB"
"""What DuckDB may use. It writes to disk what needs more."""

THREADS: Final = 2

MAX_CLOCK_SKEW_SECONDS: Final = 60 * 60
"""How far ahead the clock of the server that wrote a log may be."""

TABLE_COLUMNS: Final = ("site", "path", "status", "agent", "first", "last", "n")
"""The columns of a table of groups. It may have others; `address` is used, too."""

ROWS_AT_ONCE: Final = 10_000
"""Groups that are taken from DuckDB at once."""

_LINES: Final = (
    "SELECT line FROM read_csv({file}, columns={{'line': 'VARCHAR'}}, header=false, auto_detect=false, quote='',"
    f" escape='', delim=chr({ord(FIELD_SEPARATOR)}), max_line_size={2 * MAX_LINE_BYTES})"
)
"""An empty line is NULL."""

_MEANING: Final = """
    CASE WHEN status IS NULL OR NOT regexp_full_match(status, '[1-5][0-9][0-9]|-|0|000') THEN 'broken'
         WHEN agent IN ('', '-') THEN 'nameless'
         WHEN NOT regexp_matches(lower(agent), {tokens}) THEN 'other'
         WHEN method <> 'GET' OR length(status) <> 3 OR status = '000' OR target LIKE '%?_%'
              OR coalesce(query, '') <> ''
         THEN 'ignored'
         ELSE 'visit' END
"""
"""What becomes of a line: broken, from a client without a User-Agent or one that is no crawler, no request for a whole
page, or a visit."""


class LineGroup(NamedTuple):
    """Lines of a log that say the same, apart from the time."""

    kind: str
    """`visit`, `ignored`, `other`, `nameless` or `broken`. Only visits have the fields that follow, besides `lines`."""
    host: str
    address: str
    target: str
    status: int
    agent: str
    first: float
    last: float
    """When the first and the last of them came, in POSIX seconds."""
    lines: int


def broken_lines(number: int) -> LineGroup:
    """A group of lines that cannot be read."""
    return LineGroup("broken", "", "", "", 0, "", 0, 0, number)


class LogQueries:
    """A DuckDB of one's own, in memory."""

    def __init__(self, folder: Path, timezone: str, tokens: Iterable[str], now: float) -> None:
        """Open it.

        Args:
            folder: where it may write what its memory has no room for.
            timezone: of times without a zone, as a name of the IANA database.
            tokens: what the User-Agents of crawlers contain, in lower case.
            now: POSIX seconds. A line that is later by more than `MAX_CLOCK_SKEW_SECONDS` is broken.

        Raises:
            SitemapError: DuckDB is not installed, or does not know the time zone.
        """
        try:
            self._duckdb: Any = import_module("duckdb")
        except ModuleNotFoundError:
            raise SitemapError('import-log needs DuckDB: pip install "sitemap-middleware[logs]"') from None
        settings = {"memory_limit": MEMORY_LIMIT, "threads": THREADS, "temp_directory": str(folder)}
        self._connection = self._duckdb.connect(":memory:", config={**settings, "preserve_insertion_order": False})
        self._tokens = sql_text("|".join(_escaped(token) for token in tokens))
        self._latest = now + MAX_CLOCK_SKEW_SECONDS
        try:
            self._connection.execute(f"SET TimeZone = {sql_text(timezone)}")
        except self._duckdb.Error:
            self.close()
            raise SitemapError(
                f"--timezone={timezone!r} is no time zone; give a name such as Europe/Berlin or UTC"
            ) from None

    def close(self) -> None:
        self._connection.close()

    def line_groups(self, file: Path, log_format: LogFormat) -> Iterator[list[LineGroup]]:
        """The lines of a file, as `line_reader` writes it, in groups, some at a time, those of an address together.

        Raises:
            SitemapError: DuckDB failed, for example because the disk is full.
        """
        f = for_mixed_lines(log_format)
        rows = f"""
            SELECT {f.host} AS host, {f.address} AS address, {f.method} AS method, {f.target} AS target,
                   {f.status} AS status, {f.time} AS first, {f.time} AS last, {f.agent} AS agent, {f.query} AS query,
                   1 AS n
            FROM (SELECT {f.split} AS f FROM ({_LINES.format(file=sql_text(str(file)))})
                  WHERE NOT {f.is_w3c} OR coalesce(line, '') NOT LIKE '#%')"""
        query = f"""
            {self._labelled(rows)}
            SELECT kind, host, address, target, status, agent, min(first), max(last), sum(n)
            FROM labelled GROUP BY ALL ORDER BY address"""
        return self._batches(query)

    def table_groups(self, file: Path, skip: int, *, is_parquet: bool) -> Iterator[list[LineGroup]]:
        """The rows of a table of groups in their order, some at a time.

        Args:
            file: a CSV or Parquet file.
            skip: how many rows to leave out at the beginning.
            is_parquet: which of them it is.

        Raises:
            SitemapError: it cannot be read, or lacks a column.
        """
        name = sql_text(str(file))
        table = f"read_parquet([{name}])" if is_parquet else f"read_csv([{name}], header=true, all_varchar=true)"
        columns = {row[0].lower(): row[0] for row in self._run(f"DESCRIBE SELECT * FROM {table}").fetchall()}
        if missing := [column for column in TABLE_COLUMNS if column not in columns]:
            raise SitemapError(f"the table has no column {', '.join(missing)}; it needs {', '.join(TABLE_COLUMNS)}")
        text = {
            column: 'CAST("' + columns[column].replace('"', '""') + '" AS VARCHAR)' if column in columns else "''"
            for column in (*TABLE_COLUMNS, "address")
        }
        rows = f"""
            SELECT regexp_extract(coalesce({text["site"]}, ''), '^(?:https?://)?([^/]*)', 1) AS host,
                   {text["address"]} AS address, 'GET' AS method, {text["path"]} AS target,
                   CASE WHEN try_cast({text["n"]} AS BIGINT) > 0 THEN {text["status"]} END AS status,
                   {ANY_TIME.format(text["first"])} AS first, {ANY_TIME.format(text["last"])} AS last,
                   {text["agent"]} AS agent, '' AS query, greatest(1, try_cast({text["n"]} AS BIGINT)) AS n
            FROM (SELECT * FROM {table} OFFSET {skip})"""
        self._run("SET preserve_insertion_order = true")
        yield from self._batches(f"{self._labelled(rows)} SELECT * FROM labelled")

    def _labelled(self, rows: str) -> str:
        """The beginning of a query about rows; `labelled` has their kind, and all else only of visits."""
        meaning = _MEANING.format(tokens=self._tokens)
        in_time = f"first BETWEEN 0 AND {self._latest} AND last BETWEEN first AND {self._latest}"
        return f"""
            WITH parsed AS (SELECT *, {meaning} AS meaning FROM ({rows})),
                 dated AS (SELECT *, meaning = 'visit' AND coalesce({in_time}, false) AS is_visit FROM parsed),
                 labelled AS (
                     SELECT CASE WHEN meaning = 'visit' AND NOT is_visit THEN 'broken' ELSE meaning END AS kind,
                            CASE WHEN is_visit THEN host END AS host, CASE WHEN is_visit THEN address END AS address,
                            CASE WHEN is_visit THEN target END AS target, CASE WHEN is_visit THEN status END AS status,
                            CASE WHEN is_visit THEN agent END AS agent, CASE WHEN is_visit THEN first END AS first,
                            CASE WHEN is_visit THEN last END AS last, coalesce(n, 1) AS n
                     FROM dated
                 )"""

    def _batches(self, query: str) -> Iterator[list[LineGroup]]:
        result = self._run(query)
        while rows := result.fetchmany(ROWS_AT_ONCE):
            yield [
                LineGroup(
                    kind,
                    host or "",
                    address or "",
                    target or "",
                    int(status or 0),
                    agent or "",
                    first or 0,
                    last or 0,
                    int(count),
                )
                for kind, host, address, target, status, agent, first, last, count in rows
            ]

    def _run(self, query: str) -> Any:
        try:
            return self._connection.execute(query)
        except self._duckdb.Error as error:
            raise SitemapError(f"DuckDB failed: {error}") from error

    def detect_format(self, file: Path, directive: str, given: LogFormat | None) -> LogFormat | None:
        """The format that fits at least half of a file's lines, and more of them than others; None if there is none.

        Args:
            file: the beginning of a log, as `line_reader` writes it.
            directive: the line that names the fields; empty if there is none.
            given: returned if it fits a line, or if no other format is found.
        """
        counts = {}
        for log_format in FORMATS.values():
            if log_format.is_w3c != bool(directive):
                continue
            tried = with_fields(log_format, directive) if directive else log_format
            query = f"""
                SELECT count(*) FILTER (coalesce({tried.status}, '') <> '' AND {tried.target} IS NOT NULL), count(*)
                FROM (SELECT {tried.split} AS f FROM ({_LINES.format(file=sql_text(str(file)))})
                      WHERE line NOT LIKE '#%')"""
            ((fitting, lines),) = self._run(query).fetchall()
            if log_format is given and fitting:
                return given
            if 2 * fitting >= max(lines, 1):
                counts[log_format.name] = fitting
        return FORMATS[max(counts, key=lambda name: counts[name])] if counts else given


def _escaped(token: str) -> str:
    return "".join(char if char.isalnum() or char in " -_" else f"\\{char}" for char in token)
