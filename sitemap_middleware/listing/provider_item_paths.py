"""Builds the paths of the items of `@sitemap(values=...)` by the router, and keeps what items say of their pages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, NamedTuple

from ..entry import EMPTY_ENTRY, Entry
from ..exceptions import ValuesError
from ..models import PathBuilder, Route, Site
from ..routing.named_section_as_route import SectionBuilder
from ..urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, loc_of, quote_path, resolve_loc
from .provider_item_parameters import AttributeParams, checked_params, entry_of_fields, item_params, split_fields
from .provider_item_queue import describe_error

MAX_SKIP_EXAMPLES: Final = 3
"""Maximum number of skipped items that are shown."""

Builders = Sequence[tuple[Route, PathBuilder]]


@dataclass(slots=True)
class ProviderReport:
    """Counts of one enumeration."""

    count: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    undated: int = 0
    """Items whose lastmod is not a date."""
    undated_example: str = ""
    failure: ValuesError | None = None
    wanted: frozenset[str] = frozenset()
    """Values of the parameters of the page that somebody asks about."""
    wanted_item: str | None = None
    """The first item with one of these values that makes no page, and why."""

    def skip(self, item: Any, reason: str) -> None:
        """Count an item that makes no page, and show it if it is among the first."""
        self.skipped += 1
        if len(self.examples) < MAX_SKIP_EXAMPLES:
            self.examples.append(f"{_describe_item(item)} was left out: {reason}")
        if self.wanted_item is None and not self.wanted.isdisjoint(_written_values(item)):
            self.wanted_item = f"{_describe_item(item)} was left out: {reason}"

    def count_undated(self, path: str, text: str) -> None:
        """Count an item whose lastmod is not a date, and show the first."""
        self.undated += 1
        self.undated_example = self.undated_example or f"{reprlib.repr(text)} of {path}"

    def messages(self) -> tuple[str, ...]:
        """Describe to people what is wrong with the items."""
        lines: list[str] = []
        if self.skipped:
            shown = len(self.examples)
            first = f"; the first {shown} are:" if shown < self.skipped else ""
            lines += [f"{self.skipped} of {self.count} items were left out{first}", *self.examples]
        if self.undated:
            example = self.undated_example
            lines.append(f"{self.undated} of {self.count} items have a lastmod that is not a date, such as {example}")
        return tuple(lines)


class ProvidedPage(NamedTuple):
    """One page that a provider enumerates."""

    path: str
    """Percent-encoded."""
    route: Route
    entry: Entry
    loc: str | None = None
    """The loc, if the page is that of a named section."""


class ProvidedPages(NamedTuple):
    """Pages that a provider enumerates, as columns of equal lengths, in its order."""

    paths: list[str]
    """Percent-encoded."""
    entries: list[Entry]
    routes: list[Route] | Route
    """The route of each, or the one route of all."""
    locs: list[str | None] | None = None
    """The loc of each that is a page of a named section; None if none is."""

    def rows(self) -> Iterator[ProvidedPage]:
        """The pages one by one."""
        count = len(self.paths)
        routes = [self.routes] * count if isinstance(self.routes, Route) else self.routes
        locs = [None] * count if self.locs is None else self.locs
        return map(ProvidedPage, self.paths, routes, self.entries, locs)

    def select(self, wanted: Sequence[bool]) -> ProvidedPages:
        """Those of the pages that are wanted."""
        if all(wanted):
            return self
        rows = list(compress(self.rows(), wanted))
        return _pages_of_rows(rows)


def _pages_of_rows(rows: Sequence[ProvidedPage]) -> ProvidedPages:
    """Pages as columns."""
    return ProvidedPages(
        [page.path for page in rows],
        [page.entry for page in rows],
        [page.route for page in rows],
        [page.loc for page in rows] if any(page.loc for page in rows) else None,
    )


def pages_of_items(site: Site, items: Sequence[Any], builders: Builders, report: ProviderReport) -> ProvidedPages:
    """The pages of some items. An item that fits none of the routes is reported."""
    return _pages_of_rows([page for item in items for page in _pages_of_item(site, item, builders, report)])


def _pages_of_item(site: Site, item: Any, builders: Builders, report: ProviderReport) -> Iterator[ProvidedPage]:
    """The pages of one item: one for each route that it fits. An item that fits none is reported."""
    entry, params = EMPTY_ENTRY, item
    if isinstance(item, Entry):
        entry, params = item, item.params
    elif isinstance(item, AttributeParams):
        entry = entry_of_fields(item.fields)
    reason = ""
    fits = False
    for route, builder in builders:
        page_entry, failure = entry, None
        try:
            path = builder.build(
                checked_params(params) if type(params) is dict else item_params(params, builder.parameter_names)
            )
        except Exception as error:
            failure = error
            own_params, fields = split_fields(item, builder.parameter_names)
            if fields:
                try:
                    path, page_entry, failure = builder.build(checked_params(own_params)), entry_of_fields(fields), None
                except Exception as error_without_fields:
                    failure = error_without_fields
        if failure is not None:
            reason = reason or f"{describe_error(failure)} ({route.path})"
            continue
        loc: str | None = None
        if isinstance(builder, SectionBuilder):
            try:
                path, loc = resolve_loc(site, path)
            except ValueError as error:
                reason = str(error)
                continue
        quoted = path if loc else quote_path(path)
        if quoted is None or (loc or loc_of(site, quoted)) is None:
            reason = UNREACHABLE_REASON if quoted is None else LOC_LENGTH_REASON
            continue
        if not fits and page_entry.unusable_lastmod is not None:
            report.count_undated(quoted, page_entry.unusable_lastmod)
        fits = True
        yield ProvidedPage(quoted, route, page_entry, loc)
    if not fits:
        report.skip(item, reason)


def _written_values(item: Any) -> list[str]:
    """The values of an item as a path would have them."""
    params = item.params if isinstance(item, Entry) else item
    values = params.values() if isinstance(params, dict) else (params,)
    return [str(value) for value in values if isinstance(value, str | int)]


def _describe_item(item: Any) -> str:
    return f"Entry({reprlib.repr(item.params)})" if isinstance(item, Entry) else reprlib.repr(item)
