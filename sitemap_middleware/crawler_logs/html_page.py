"""Renders the report as one page of HTML that needs no other file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .visits import CrawlReport

MAX_ROWS: Final = 1000
"""Rows of each table."""

_FOLDER: Final = Path(__file__).parent
_STYLE: Final = _FOLDER.parent / "report" / "style.css"


def html_page(report: CrawlReport) -> str:
    """The page. Long lists are cut off after `MAX_ROWS`."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = lambda value: f"{value:,}"
    days = Counter[str]()
    for date, _, visits in report.days:
        days[date] += visits
    never_crawled = [(url,) for url in report.never_crawled or ()]
    not_listed = [(line.path, line.visits, ", ".join(line.crawlers), line.reason) for line in report.not_listed or ()]
    return environment.get_template("page.html").render(
        report=report,
        never_crawled=never_crawled,
        not_listed=not_listed,
        days=sorted(days.items(), reverse=True),
        style=Markup(_STYLE.read_text("utf-8")),  # noqa: S704 (our own file)
        max_rows=MAX_ROWS,
    )
