"""Writes the report as files that need no server: each page that a link of the report leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..documents.inspection import ServiceInspection
from ..http.messages import AsyncCollector
from ..models import Site
from .evaluation import evaluate
from .pages import common_context, given_arguments, pages_csv, report_page
from .template_rendering import STYLE, render

MAX_PAGE_FILES: Final = 10_000
"""Pages of the site that get a file of their own, with their history: the first ones that the report links to."""

NESTED_FOLDER: Final = "page"

_MARK: Final = b'<meta name="generator" content="sitemap-middleware report">'
"""Begins every file of a report, so that those of an earlier one are recognised."""


def export_report(
    service: ServiceInspection,
    site: Site,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
    async_collector: AsyncCollector | None,
) -> int:
    """Evaluate the pages of a site, write the report of them into a folder, and return the number of files.

    Files that are there already are replaced, and those of an earlier report that this one does not have are removed.
    Raises `OSError` if a file cannot be written, `StoreError` if the store fails.
    """
    evaluation = evaluate(service, replace(service.snapshot(site), async_collector=async_collector))
    links = _FileLinks()
    context = common_context(service, site, evaluation)
    (folder / NESTED_FOLDER).mkdir(parents=True, exist_ok=True)
    written = {folder / "style.css"}
    (folder / "style.css").write_bytes(STYLE)
    for file, name, arguments in links.linked():
        if name == "pages.csv":
            content = pages_csv(evaluation, arguments)
        else:
            page = report_page(name, arguments, service, site, evaluation, is_live=False)
            content = render(page.template, {**context, **page.context, "name": name, "links": links})
        (folder / file).write_text(content, "utf-8", errors="replace")
        written.add(folder / file)
        on_progress(len(written), None)
    for earlier in {*folder.glob("*.html"), *(folder / NESTED_FOLDER).glob("*.html")} - written:
        if _MARK in earlier.read_bytes():
            earlier.unlink()
    return len(written)


class _FileLinks:
    """Links from one file to others. The pages that they lead to are written, too."""

    is_dynamic = False

    def __init__(self) -> None:
        self._files: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {("overview", ()): "index.html"}
        """The file of each page that was linked so far, by its name and arguments."""
        self._numbers: dict[tuple[str, str], int] = {}
        """Of each group and route that has a list."""
        self._page_files = 0
        self._prefix = ""

    def linked(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each file with the name and the arguments of its page; also those that it links."""
        done = 0
        while done < len(self._files):
            for (name, arguments), file in [*self._files.items()][done:]:
                done += 1
                self._prefix = "../" if name == "page" else ""
                yield file, name, dict(arguments)

    def to(self, name: str, /, **query: Any) -> str | None:
        """The link to a page; None if there is no such file, because there are too many pages of the site."""
        if name == "style.css":
            return self._prefix + name
        arguments = given_arguments(query)
        key = name, tuple(sorted(arguments.items()))
        if key not in self._files:
            if name == "page" and self._page_files == MAX_PAGE_FILES:
                return None
            self._files[key] = self._new_file(name, arguments)
        return self._prefix + self._files[key]

    def _new_file(self, name: str, arguments: dict[str, str]) -> str:
        if name == "page":
            self._page_files += 1
            return f"{NESTED_FOLDER}/{self._page_files}.html"
        for key in {"group", "route"} & arguments.keys():
            arguments[key] = f"{key}-{self._numbers.setdefault((key, arguments[key]), len(self._numbers) + 1)}"
        words = (arguments[key] for key in ("show", "group", "route", "page") if key in arguments)
        return name if name == "pages.csv" else f"{'-'.join([name, *words])}.html"
