"""Builds the contexts of the report's templates from an evaluation: the same for a server and for files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ..dates import SECONDS_PER_DAY, timestamp_of_w3c, w3c_day_from_timestamp
from ..evidence.page_timeline import histories, page_events, value_name, value_numbers
from ..listing.changes_since import PageChange
from ..models import Page
from ..value_history import History
from .background_evaluation import WEEKS, Evaluation, first_week
from .evaluated_urls_database import SORTS, PageQuery, PageRow, SiteIndex, sort_value
from .report_page_links import Links
from .svg_charts import Span, WeekCounts, timeline, weeks_chart
from .template_rendering import time

ROWS: Final = 100
"""Rows of a table on one page."""

CHANGE_KINDS: Final = ("new", "changed", "dropped")

DEFAULT_DAYS: Final = 7
"""Days whose changes are shown if no date is given."""

_RUN_CLASSES: Final = 8

Context = dict[str, Any]


class ListedChange(NamedTuple):
    """A change, and the page that it is about."""

    change: PageChange
    row: PageRow


class Listing:
    """The rows of a table, read when the template first needs them, and the link to the next ones."""

    def __init__(self, read: Callable[[], list[Any]], next_link: Callable[[Any], str | None]) -> None:
        """`read` returns one row more than the table has, if there are more."""
        self._read = read
        self._next_link = next_link
        self._found: list[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows[:ROWS])

    def __len__(self) -> int:
        return min(ROWS, len(self._rows))

    @property
    def next(self) -> str | None:
        """The link to the rows after these; None if these are the last."""
        return self._next_link(self._rows[ROWS - 1]) if len(self._rows) > ROWS else None

    @property
    def _rows(self) -> list[Any]:
        if self._found is None:
            self._found = self._read()
        return self._found


def overview(evaluation: Evaluation) -> Context:
    """The figures of the whole site."""
    index, today = evaluation.index, evaluation.now // SECONDS_PER_DAY
    start = first_week(evaluation.now)
    weeks = [
        WeekCounts(
            w3c_day_from_timestamp((start + 7 * week) * SECONDS_PER_DAY),
            {kind: index.weeks[start + 7 * week, kind] for kind in CHANGE_KINDS},
        )
        for week in range(WEEKS)
    ]
    listed_groups = index.groups(listed=True)
    return {
        "listed": index.listed,
        "left_out": index.left_out,
        "pages": index.pages,
        "dated": index.dated,
        "left_out_groups": index.groups(listed=False),
        "listed_groups": listed_groups,
        "weeks": weeks,
        "kinds": CHANGE_KINDS,
        "weeks_chart": weeks_chart(weeks, CHANGE_KINDS, f"Changes per week, of the last {WEEKS} weeks"),
        "week_counts": index.change_counts(today - DEFAULT_DAYS),
        "week_since": w3c_day_from_timestamp((today - DEFAULT_DAYS) * SECONDS_PER_DAY),
        "days": DEFAULT_DAYS,
    }


def _listing_total(index: SiteIndex, query: PageQuery) -> int | None:
    """How many pages a query has in all; None if that is not known before they are read."""
    if query.text:
        return None
    if query.group is not None:
        group = index.group(query.group)
        return group.pages if group else 0
    return {"all": index.pages, "listed": index.listed, "left-out": index.left_out}[query.show]


def pages(evaluation: Evaluation, query: PageQuery, links: Links, name: str) -> Context:
    """A table of pages. `name`: "pages", or "sitemap" for the listed ones."""
    index = evaluation.index
    group = None if query.group is None else index.group(query.group)
    parameters = {
        "q": query.text,
        "show": None if query.show == "all" or name == "sitemap" else query.show,
        "group": query.group,
        "sort": None if query.sort == "path" else query.sort,
    }

    def next_link(row: PageRow) -> str | None:
        value = sort_value(row, query.sort)
        return links.to(name, **parameters, at=value or None, after=row.path)

    return {
        "listing": Listing(lambda: index.query(query, ROWS + 1), next_link),
        "query": query,
        "group": group,
        "parameters": parameters,
        "sorts": tuple(SORTS),
        "groups": [*index.groups(listed=False), *index.groups(listed=True)] if name == "pages" else [],
        "total": _listing_total(index, query),
        "pages": index.pages,
        "listed": index.listed,
        "left_out": index.left_out,
        "name": name,
    }


def changes(
    evaluation: Evaluation, since_day: int, after: tuple[int, str] | None, links: Links, refused: str = ""
) -> Context:
    """The changes since a day, in days since 1970. `refused` is the text of the request if that text is no day."""
    since = since_day * SECONDS_PER_DAY
    day = w3c_day_from_timestamp(since)

    def read() -> list[ListedChange]:
        rows = evaluation.index.changes(since, after, ROWS + 1)
        return [ListedChange(change, row) for row in rows if (change := row.change(since)) is not None]

    def next_link(last: ListedChange) -> str | None:
        return links.to("changes", since=day, at=last.row.times.latest, after=last.row.path)

    return {
        "since": day,
        "refused": refused,
        "today": w3c_day_from_timestamp(evaluation.now),
        "counts": evaluation.index.change_counts(since_day),
        "kinds": CHANGE_KINDS,
        "listing": Listing(read, next_link),
    }


def default_since(evaluation: Evaluation) -> int:
    """The day since which changes are shown if none is given."""
    return evaluation.now // SECONDS_PER_DAY - DEFAULT_DAYS


def parse_day(text: str, now: int) -> int | None:
    """The day of a date such as 2026-01-31, in days since 1970; None if it is no date, or after today."""
    try:
        day = timestamp_of_w3c(text[:10]) // SECONDS_PER_DAY
    except ValueError:
        return None
    return day if 0 <= day <= now // SECONDS_PER_DAY else None


def page(row: PageRow, stored: Page | None) -> Context:
    """One page: its verdict, the evidence, and its history."""
    lanes = histories(stored) if stored is not None else []
    return {
        "row": row,
        "stored": stored,
        "facts": list(_facts(stored)) if stored is not None else [],
        "timeline": _timeline(stored, lanes) if stored is not None and lanes else None,
        "events": [
            (time(event.at), event.text)
            for event in (page_events(stored, row.times.dropped, time) if stored is not None else ())
        ],
    }


def _facts(stored: Page) -> Iterator[tuple[str, str]]:
    yield "Latest answer", f"{stored.status} at {time(stored.last_seen)}"
    yield "Media type", stored.media_type or "none stated"
    yield "First seen", time(stored.first_seen)
    if stored.last_modified is not None:
        yield "Last-Modified", time(stored.last_modified)
    if stored.stated_date:
        yield "Date it states", stored.stated_date
    if stored.read_at:
        yield "HTML last read", time(stored.read_at)
    for name, value in (
        ("X-Robots-Tag", "noindex" if stored.noindex else ""),
        ("Robots meta tag", "noindex" if stored.html_noindex else ""),
        ("Cache-Control", "private" if stored.private else ""),
        ("Canonical URL", stored.canonical or stored.html_canonical or ""),
        ("Not a page of its own", stored.obstacle or stored.html_obstacle),
        ("Not read completely", stored.unread_reason),
    ):
        if value:
            yield name, value
    for answer in stored.unconfirmed_answers:
        yield "Waits for confirmation", f"an answer of {answer.status} at {time(answer.at)}"


def _timeline(stored: Page, lanes: list[tuple[str, History]]) -> Any:
    runs = [run for _, history in lanes for run in history]
    first = min(stored.first_seen, *(run.first for run in runs))
    last = max(stored.last_seen, *(run.last for run in runs))
    ends = w3c_day_from_timestamp(first), w3c_day_from_timestamp(last)
    return timeline([(name, _spans(name, history)) for name, history in lanes], first, last, ends)


def _spans(name: str, history: History) -> list[Span]:
    numbers = value_numbers(history)
    return [
        Span(
            run.first,
            run.last,
            str(numbers[run.value] % _RUN_CLASSES),
            f"{value_name(name, run.value, numbers[run.value], time)}: {time(run.first)} to {time(run.last)}",
        )
        for run in history
    ]
