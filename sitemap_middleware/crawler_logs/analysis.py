"""Reads logs, and reports what crawlers did: the function behind the command `crawlers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from .addresses import Identities
from .known_crawlers import Crawler, crawler_of_agent
from .log_formats import Hit
from .log_reader import LogReadError, read_hits
from .visits import CrawlReport, VisitCounter, page_of_url, report_of

_BATCH_HITS: Final = 10_000
"""Visits whose addresses are looked up at once."""


def crawl_report(
    logs: Iterable[str],
    *,
    identities: Identities,
    listed: Iterable[str] | None = None,
    since: int = 0,
    host: str = "",
    reason_of: Callable[[str], str] = lambda _path: "",
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None,
) -> CrawlReport:
    """Read logs, and report what crawlers did.

    Args:
        logs: paths of files; `-` is standard input.
        identities: finds out whose addresses are.
        listed: the URLs of the sitemap; None if it is not known.
        since: POSIX seconds. Earlier visits do not count.
        host: if lines name hosts, those of others do not count. Default: the host of the listed URLs, if they have one.
        reason_of: says why a page is not listed, given its decoded path.
        on_progress: is told how many lines were read.

    Returns:
        The report. Its problems name logs that could not be read to their end; what was read of them counts.
    """
    pages: Mapping[str, str] | None = None
    if listed is not None:
        pages, hosts = {}, set[str]()
        for url in listed:
            url_host, path, query = page_of_url(url)
            pages[f"{path}?{query}" if query else path] = url
            hosts.add(url_host)
        host = host or (hosts.pop() if len(hosts) == 1 else "")
    lines = Counter[str]()
    counter = VisitCounter(lines, since=since, host=host, listed=pages)
    problems: list[str] = []
    visits = _visits_of_crawlers(logs, lines, problems, on_progress)
    while batch := list(islice(visits, _BATCH_HITS)):
        identities.look_up((crawler, hit.address) for hit, crawler in batch)
        for hit, crawler in batch:
            counter.add(hit, crawler, identities.of((crawler, hit.address)))
    report = report_of(counter, lines, reason_of)
    report.notes = [*_notes(report), *identities.problems]
    report.problems = problems
    return report


def _visits_of_crawlers(
    logs: Iterable[str], lines: Counter[str], problems: list[str], on_progress: Callable[[int, int | None], None]
) -> Iterator[tuple[Hit, Crawler]]:
    for log in logs:
        try:
            for hit in read_hits(log, lines):
                if lines["read"] % 10_000 == 0:
                    on_progress(lines["read"], None)
                crawler = crawler_of_agent(hit.agent)
                if crawler is not None:
                    yield hit, crawler
                elif not hit.agent:
                    lines["no User-Agent"] += 1
        except LogReadError as error:
            problems.append(str(error))


def _notes(report: CrawlReport) -> Iterator[str]:
    lines = report.lines
    read, unreadable = lines.get("read", 0), lines.get("unreadable", 0)
    if unreadable or lines.get("too long"):
        yield f"lines that could not be read: {unreadable:,} of {read:,}, and {lines.get('too long', 0):,} too long"
    if read > unreadable and lines.get("no User-Agent") == read - unreadable:
        yield "the logs keep no User-Agent, so no crawler can be recognised: log in the combined format"
    if report.pages_beyond:
        yield f"visits to pages that are in no list, because there were too many: {report.pages_beyond:,}"
