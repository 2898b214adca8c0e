"""Makes the links between the pages of the report: relative, so that they hold wherever app or files are mounted."""

from __future__ import annotations

from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

NAMES: Final = ("overview", "pages", "groups", "changes", "documents", "health", "page", "style.css")
"""The pages of the report."""


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
        wanted = given(query)
        return f"{link}?{urlencode(wanted, quote_via=quote)}" if wanted else link


def given(query: dict[str, Any]) -> dict[str, str]:
    """The arguments of a query that are not the defaults."""
    return {key: str(value) for key, value in query.items() if value not in (None, "", 1)}
