"""Makes the links between the pages of the report: relative, so that they hold wherever app or files are mounted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

NAMES: Final = ("overview", "pages", "sitemap", "changes", "documents", "health", "page", "style.css")
"""The pages of the report."""

NESTED_FOLDER: Final = "page"
"""The folder of the files of single pages."""


class Links(Protocol):
    """Links from one page to others."""

    is_dynamic: bool
    """Whether a server answers, which can search, filter and sort."""

    def to(self, name: str, /, **query: Any) -> str | None:
        """The link to a page; None if there is no such page."""


class ServerLinks:
    """Links within the report that a server answers."""

    is_dynamic = True

    def __init__(self, path: str, name: str) -> None:
        """A page of this name links to others; `path` is the path of the report."""
        self._overview = path.rpartition("/")[2]
        self._from_overview = name == "overview"

    def to(self, name: str, /, **query: Any) -> str | None:
        if name == "overview":
            return self._overview if self._from_overview else f"../{self._overview}"
        link = f"{self._overview}/{name}" if self._from_overview else name
        wanted = {key: value for key, value in query.items() if value not in (None, "")}
        return f"{link}?{urlencode(wanted, quote_via=quote)}" if wanted else link


class FileLinks:
    """Links within the report that consists of files."""

    is_dynamic = False

    def __init__(self, page_files: Mapping[str, str], *, is_nested: bool) -> None:
        """`page_files`: the file of each page of the site that has one, by path.

        `is_nested`: whether the linking file is itself in a folder of the report.
        """
        self._page_files = page_files
        self._prefix = "../" if is_nested else ""

    def to(self, name: str, /, **query: Any) -> str | None:
        if name == "page":
            file = self._page_files.get(str(query.get("path")))
        elif name == "style.css":
            file = name
        elif name == "overview":
            file = "index.html"
        else:
            file = list_file(name, query.get("show"), query.get("group"), 1)
        return None if file is None else self._prefix + file


def list_file(name: str, show: object, group: object, number: int) -> str:
    """The name of a file of a list: of all pages, of those shown, or of one group; and its number from 1 on."""
    parts = [name]
    if group:
        parts.append(f"group-{group}")
    elif show and show != "all":
        parts.append(str(show))
    if number > 1:
        parts.append(str(number))
    return f"{'-'.join(parts)}.html"
