"""Writes the report as files that need no server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..documents.site_documents import PublishedDocument
from ..explanations_and_statistics import ServiceInspection
from ..models import Site
from ..request_response import AsyncCollector
from ..urls import quote_path
from . import template_contexts
from .background_evaluation import Evaluation, evaluate
from .evaluated_urls_database import PageQuery, PageRow
from .health import health
from .report_page_links import NESTED_FOLDER, FileLinks, list_file
from .template_rendering import STYLE, render

MAX_PAGE_FILES: Final = 10_000
"""Pages of the site that get a file of their own, with their history: the first ones by path."""

BATCH_PAGES: Final = 500
"""Pages whose histories are read at one time."""


def export_report(
    service: ServiceInspection,
    site: Site,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
    async_collector: AsyncCollector | None,
) -> int:
    """Evaluate the pages of a site, write the report of them, and return the number of files.

    Args:
        service: evaluates them. Its documents are those of the latest request for the sitemap.
        site: the site.
        folder: see `StaticReport.write`.
        on_progress: see `StaticReport.write`.
        async_collector: reads async `values` on the app's event loop.
    """
    evaluation = evaluate(service, replace(service.snapshot_now(site), async_collector=async_collector))
    documents = service.published_documents(site)
    sitemap_path = quote_path(service.options.path) or ""
    static = StaticReport(evaluation, documents, health(service, site, is_live=False), sitemap_path)
    return static.write(folder, on_progress)


class StaticReport:
    """Writes the report of one evaluation into a folder."""

    def __init__(
        self, evaluation: Evaluation, documents: list[PublishedDocument], health: dict[str, Any], sitemap_path: str
    ) -> None:
        """`sitemap_path`: percent-encoded. For other arguments see `template_contexts`."""
        self._evaluation = evaluation
        self._index = evaluation.index
        self._health = health
        site = evaluation.snapshot.site.base_url
        self._context: dict[str, Any] = {
            "evaluation": evaluation,
            "age": None,
            "site": site,
            "documents_url": site,
            "sitemap_url": site + sitemap_path,
            "documents": documents,
        }
        self._page_files: dict[str, str] = {}

    def write(self, folder: Path, on_progress: Callable[[int, int | None], None]) -> int:
        """Write all files, and return how many. Files that are there already are replaced.

        Args:
            folder: the folder. It is made if there is none.
            on_progress: called with the number of files written so far, and of all if that is known.

        Raises:
            OSError: a file cannot be written.
            StoreError: the store fails.
        """
        (folder / NESTED_FOLDER).mkdir(parents=True, exist_ok=True)
        rows = [row for batch in self._batches(PageQuery(), MAX_PAGE_FILES) for row in batch]
        self._page_files = {row.path: f"{NESTED_FOLDER}/{number}.html" for number, row in enumerate(rows, 1)}
        written = 0
        for name, content in self._files(rows):
            (folder / name).write_text(content, "utf-8", errors="replace")
            written += 1
            on_progress(written, None)
        (folder / "style.css").write_bytes(STYLE)
        return written + 1

    def _files(self, rows: list[PageRow]) -> Iterator[tuple[str, str]]:
        evaluation = self._evaluation
        for name, context in (
            ("overview", template_contexts.overview(evaluation)),
            ("documents", {}),
            ("health", self._health),
        ):
            file = "index.html" if name == "overview" else f"{name}.html"
            yield file, self._render(name, f"{name}.html", context)
        yield from self._lists("sitemap", PageQuery(show="listed"))
        for query in (PageQuery(), PageQuery(show="listed"), PageQuery(show="left-out")):
            yield from self._lists("pages", query)
        for group in (*self._index.groups(listed=True), *self._index.groups(listed=False)):
            yield from self._lists("pages", PageQuery(group=group.number))
        yield from self._changes()
        yield from self._page_contents(rows)

    def _lists(self, name: str, query: PageQuery) -> Iterator[tuple[str, str]]:
        links, number = self._links(), 0
        while number == 0 or query.after is not None:
            number += 1
            context = template_contexts.pages(self._evaluation, query, links, name)
            listing = context["listing"]
            file = list_file(name, query.show if name == "pages" else None, query.group, number)
            has_next = listing.next is not None
            context |= self._neighbours(name, query, number, has_next=has_next)
            yield file, self._render(name, "pages.html", context)
            rows = list(listing)
            query = query._replace(after=(0, rows[-1].path) if has_next else None)

    def _neighbours(self, name: str, query: PageQuery, number: int, *, has_next: bool) -> dict[str, str | None]:
        show = query.show if name == "pages" else None
        return {
            "previous": list_file(name, show, query.group, number - 1) if number > 1 else None,
            "following": list_file(name, show, query.group, number + 1) if has_next else None,
        }

    def _changes(self) -> Iterator[tuple[str, str]]:
        links, number, after = self._links(), 0, None
        since = template_contexts.default_since(self._evaluation)
        while number == 0 or after is not None:
            number += 1
            context = template_contexts.changes(self._evaluation, since, after, links)
            listing = context["listing"]
            has_next = listing.next is not None
            context |= self._neighbours("changes", PageQuery(), number, has_next=has_next)
            yield list_file("changes", None, None, number), self._render("changes", "changes.html", context)
            rows = [change.row for change in listing]
            after = (rows[-1].times.latest or 0, rows[-1].path) if has_next else None

    def _page_contents(self, rows: list[PageRow]) -> Iterator[tuple[str, str]]:
        snapshot = self._evaluation.snapshot
        for start in range(0, len(rows), BATCH_PAGES):
            batch = rows[start : start + BATCH_PAGES]
            stored = snapshot.find_pages([row.path for row in batch])
            for row in batch:
                context = template_contexts.page(row, stored.get(row.path))
                yield self._page_files[row.path], self._render("page", "page.html", context, is_nested=True)

    def _batches(self, query: PageQuery, limit: int) -> Iterator[list[PageRow]]:
        while limit > 0 and (rows := self._index.query(query, min(limit, BATCH_PAGES))):
            yield rows
            limit -= len(rows)
            query = query._replace(after=(0, rows[-1].path))

    def _links(self, *, is_nested: bool = False) -> FileLinks:
        return FileLinks(self._page_files, is_nested=is_nested)

    def _render(self, name: str, template: str, context: dict[str, Any], *, is_nested: bool = False) -> str:
        return render(template, {**self._context, "name": name, "links": self._links(is_nested=is_nested), **context})
