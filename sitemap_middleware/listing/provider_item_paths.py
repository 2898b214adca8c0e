"""Builds the paths of the items of `@sitemap(values=...)` by the router, and keeps what items say of their pages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..exceptions import ValuesError
from ..http.urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, loc_of, quote_path, resolve_loc
from ..models import PathBuilder, Route, Site
from ..options.entry import EMPTY_ENTRY, Entry
from ..routing.route_table import SectionBuilder
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
            first = f", such as the {shown} that follow" if shown < self.skipped else ""
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


def pages_of_item(site: Site, item: Any, builders: Builders, report: ProviderReport) -> Iterator[ProvidedPage]:
    """The pages of one item: one for each route that it fits. An item that fits none is reported."""
    reason, fits = "", False
    for route, builder in builders:
        loc: str | None = None
        try:
            path, entry = _path_and_entry(item, builder)
        except Exception as error:
            reason = reason or f"{describe_error(error)} ({route.path})"
            continue
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
        if not fits and entry.unusable_lastmod is not None:
            report.count_undated(quoted, entry.unusable_lastmod)
        fits = True
        yield ProvidedPage(quoted, route, entry, loc)
    if not fits:
        report.skip(item, reason)


def _path_and_entry(item: Any, builder: PathBuilder) -> tuple[str, Entry]:
    """The path that a router builds of an item, and what the item says of its page. Raises whatever the router does."""
    names = builder.parameter_names
    if isinstance(item, Entry):
        return builder.build(item_params(item.params, names)), item
    try:
        path = builder.build(item_params(item, names))
    except Exception:
        params, fields = split_fields(item, names)
        if not fields:
            raise
        return builder.build(checked_params(params)), entry_of_fields(fields)
    return path, entry_of_fields(item.fields) if isinstance(item, AttributeParams) else EMPTY_ENTRY


def _written_values(item: Any) -> list[str]:
    """The values of an item as a path would have them."""
    params = item.params if isinstance(item, Entry) else item
    values = params.values() if isinstance(params, dict) else (params,)
    return [str(value) for value in values if isinstance(value, str | int)]


def _describe_item(item: Any) -> str:
    return f"Entry({reprlib.repr(item.params)})" if isinstance(item, Entry) else reprlib.repr(item)
