"""Writes the report as files that need no server: each page that a link of the report leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..http.messages import AsyncCollector
from ..http.urls import quote_path
from ..inspection import ServiceInspection
from ..models import Site
from .background_evaluation import started_evaluation
from .health import health
from .report_page_links import given
from .template_contexts import ReportPage, report_page
from .template_rendering import STYLE, render

MAX_PAGE_FILES: Final = 10_000
"""Pages of the site that get a file of their own, with their history: the first ones that the report links to."""

NESTED_FOLDER: Final = "page"
"""The folder of these files."""

_MARK: Final = b'<meta name="generator" content="sitemap-middleware report">'
"""Begins every file of a report, so that those of an earlier one are recognised."""

_MARK_BYTES: Final = 500


def export_report(
    service: ServiceInspection,
    site: Site,
    folder: Path,
    on_progress: Callable[[int, int | None], None],
    async_collector: AsyncCollector | None,
) -> int:
    """Evaluate the pages of a site, write the report of them, and return the number of files.

    Files that are there already are replaced, and those of an earlier report that this one does not have are removed.

    Args:
        service: evaluates the pages. Its documents are those of the latest request for the sitemap.
        site: the site.
        folder: the folder. It is made if there is none.
        on_progress: called with the number of files written so far, and of all if that is known.
        async_collector: reads async `values` on the app's event loop.

    Raises:
        OSError: a file cannot be written.
        StoreError: the store fails.
    """
    evaluation = started_evaluation(service, replace(service.snapshot_now(site), async_collector=async_collector))
    evaluation.fill(service)
    files = _Files()
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "age": None,
        "site": site.base_url,
        "documents_url": site.base_url,
        "sitemap_url": site.base_url + (quote_path(service.options.path) or ""),
        "documents": service.published_documents(site),
    }
    (folder / NESTED_FOLDER).mkdir(parents=True, exist_ok=True)
    written = {folder / "style.css"}
    (folder / "style.css").write_bytes(STYLE)
    for file, name, arguments in files.linked():
        if name == "documents":
            page = ReportPage("documents.html", {})
        elif name == "health":
            page = ReportPage("health.html", health(service, site, is_live=False))
        else:
            page = report_page(name, arguments, evaluation, service)
        links = _FileLinks(files, is_nested=name == "page")
        content = render(page.template, {**context, **page.context, "name": name, "links": links})
        (folder / file).write_text(content, "utf-8", errors="replace")
        written.add(folder / file)
        on_progress(len(written), None)
    for earlier in {*folder.glob("*.html"), *(folder / NESTED_FOLDER).glob("*.html")} - written:
        if _MARK in _beginning(earlier):
            earlier.unlink()
    return len(written)


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_MARK_BYTES)


class _Files:
    """The files of the pages that were linked so far."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {("overview", ()): "index.html"}
        self._groups: dict[str, int] = {}
        self._page_files = 0

    def linked(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each file with the name and the arguments of its page; also those that are linked meanwhile."""
        done = 0
        while done < len(self._names):
            for (name, arguments), file in [*self._names.items()][done:]:
                done += 1
                yield file, name, dict(arguments)

    def file(self, name: str, arguments: dict[str, str]) -> str | None:
        """The file of a page; None if there is none, because there are too many pages of the site."""
        key = name, tuple(sorted(arguments.items()))
        if key not in self._names:
            if name == "page":
                if self._page_files == MAX_PAGE_FILES:
                    return None
                self._page_files += 1
                self._names[key] = f"{NESTED_FOLDER}/{self._page_files}.html"
            else:
                self._names[key] = f"{'-'.join([name, *self._words(arguments)])}.html"
        return self._names[key]

    def _words(self, arguments: dict[str, str]) -> Iterator[str]:
        """The parts of a file name that tell the pages of one name apart."""
        if show := arguments.get("show"):
            yield show
        if group := arguments.get("group"):
            yield f"group-{self._groups.setdefault(group, len(self._groups) + 1)}"
        if number := arguments.get("page"):
            yield number


class _FileLinks:
    """Links from a file to others. The pages that they lead to are written, too."""

    is_dynamic = False

    def __init__(self, files: _Files, *, is_nested: bool) -> None:
        """`is_nested`: whether the linking file is itself in a folder of the report."""
        self._files = files
        self._prefix = "../" if is_nested else ""

    def to(self, name: str, /, **query: Any) -> str | None:
        if name == "style.css":
            return self._prefix + name
        file = self._files.file(name, given(query))
        return None if file is None else self._prefix + file
