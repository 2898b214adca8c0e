"""Builds many paths of one route at a time, where it is certain that the app's router leads them back to the route.

The router would have to be asked about each path. Instead the templates of all other routes are compared with that of
the route once: `/posts/<slug>` cannot take a path of `/users/<name>`, and `/posts/new` takes just one path of it. What
this comparison cannot exclude is left to the router.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..models import PathBuilder

PARAMETER: Final = "\0"
"""Stands in a marked template for a parameter that matches no slash."""
REST: Final = "\1"
"""Stands in a marked template for anything that may match slashes."""

_SIMPLE_TEMPLATE: Final = re.compile(r"(?:/[A-Za-z0-9._~\0-]+)+/?")
_MAX_INTEGER: Final = 10**18
_PRINTABLE: Final = bytes(range(32, 127))
"""The printable characters of ASCII."""


class Shape(NamedTuple):
    """The paths that a template may match, apart from a slash at the end."""

    segments: tuple[str | None, ...]
    """The text of each segment; None for a segment that has a parameter."""
    is_open: bool
    """Whether the template takes the rest of any path that begins with these segments."""

    @property
    def literal_path(self) -> str | None:
        """The only path, without a slash at the end; None if there may be others."""
        literals = [segment for segment in self.segments if segment is not None]
        return None if self.is_open or len(literals) < len(self.segments) else "/".join(literals)

    @property
    def pattern(self) -> str:
        """A regular expression for these paths."""
        segments = "/".join("[^/]*" if segment is None else re.escape(segment) for segment in self.segments)
        return f"{segments}(?:/.*)?" if self.is_open else f"{segments}/?"


def _shape_of(marked: str) -> Shape:
    """The shape of a marked template."""
    before, rest, _ = marked.partition(REST)
    segments = before.split("/")[:-1] if rest else before.rstrip("/").split("/")
    return Shape(tuple([None if PARAMETER in segment else segment for segment in segments]), bool(rest))


def may_overlap(own: Shape, other: Shape, *, literals_first: bool) -> bool:
    """Whether a path of one template may be taken by another one.

    Args:
        own: the template whose paths are built. It is not open.
        other: the other template.
        literals_first: whether the router prefers literal segments to parameters, in whatever order routes were added.
    """
    differs = False
    for place, segment in enumerate(own.segments):
        if place == len(other.segments):
            return other.is_open and not (literals_first and not differs and segment is not None)
        if segment == other.segments[place]:
            differs = differs or segment is None
            continue
        if segment is not None and other.segments[place] is not None:
            return False
        if literals_first and not differs and segment is not None:
            return False
        differs = True
    return len(other.segments) == len(own.segments)


class BulkBuilder:
    """Builds paths of a template whose parameters are texts without slashes, or integers."""

    def __init__(
        self, marked: str, parameters: Mapping[str, bool], others: Iterable[str], *, literals_first: bool = False
    ) -> None:
        """Compare a template with all others.

        Args:
            marked: the template, with `PARAMETER` or `REST` in place of each parameter, in the order of `parameters`.
            parameters: the names of the parameters, and whether each takes only integers that are not negative.
            others: the marked templates of the routes that may take its paths first.
            literals_first: see `may_overlap`.
        """
        self._names = tuple(parameters)
        self._only_integers = tuple(parameters.values())
        self._head, *rest = marked.split(PARAMETER)
        self._tail = rest[0] if len(rest) == 1 else None
        self._format = marked.replace(PARAMETER, "%s")
        self._taken: set[str] = set()
        own, patterns = _shape_of(marked), []
        for other in others:
            start = other.partition(PARAMETER)[0].partition(REST)[0]
            if not (start.startswith(self._head) or self._head.startswith(start)):
                continue  # there may be thousands, most of which begin otherwise
            shape = _shape_of(other)
            if not may_overlap(own, shape, literals_first=literals_first):
                continue
            path = shape.literal_path
            if path is None:
                patterns.append(shape.pattern)
            else:
                self._taken |= {path, f"{path}/"}
        self._pattern = re.compile("|".join(patterns), re.DOTALL) if patterns else None

    @staticmethod
    def is_simple(marked: str) -> bool:
        """Whether a template can be built in bulk: it has parameters and plain characters only."""
        return PARAMETER in marked and _SIMPLE_TEMPLATE.fullmatch(marked) is not None

    def build(self, items: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """The decoded path for each of these parameters; None if the app's own router has to be asked."""
        paths = self._build_all(items)
        if paths is not None:
            return paths
        if len(items) <= 1:
            return [None] * len(items)
        half = len(items) // 2
        return self.build(items[:half]) + self.build(items[half:])

    def _build_all(self, items: Sequence[Mapping[str, Any]]) -> list[str | None] | None:
        """The same if no item is unusual, else None."""
        if {*map(len, items)} != {len(self._names)}:
            return None
        columns: list[list[str]] = []
        for name, only_integers in zip(self._names, self._only_integers, strict=True):
            try:
                texts = _texts([item[name] for item in items], only_integers)
            except KeyError:
                return None
            if texts is None:
                return None
            columns.append(texts)
        paths: list[str | None]
        if self._tail is not None:
            head, tail = self._head, self._tail
            paths = [f"{head}{text}{tail}" for text in columns[0]]
        else:
            template = self._format
            paths = [template % texts for texts in zip(*columns, strict=True)]
        return self._without_taken(paths)

    def _without_taken(self, paths: list[str | None]) -> list[str | None]:
        """Put None in place of the paths that another route may take."""
        if self._taken and not self._taken.isdisjoint(paths):
            paths = [None if path in self._taken else path for path in paths]
        if self._pattern is not None:
            match = self._pattern.fullmatch
            paths = [None if path is None or match(path) else path for path in paths]
        return paths


def _texts(values: list[Any], only_integers: bool) -> list[str] | None:
    """Values as they are written in a path; None if one is not plain text or a plain integer."""
    kinds = {*map(type, values)}
    if kinds == {int}:
        lowest = 0 if only_integers else -_MAX_INTEGER
        return [*map(str, values)] if lowest <= min(values) and max(values) <= _MAX_INTEGER else None
    if kinds != {str} or only_integers or not all(values):
        return None
    joined = "".join(values)
    return values if "/" not in joined and _is_printable(joined) else None


def _is_printable(text: str) -> bool:
    """`str.isprintable`, which looks up each character in the tables of Unicode, in half of the time for ASCII."""
    return not text.encode("ascii").translate(None, _PRINTABLE) if text.isascii() else text.isprintable()


def build_many(builder: PathBuilder, items: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """The path for each of these parameters; None if only `build` can find it, as always for most frameworks."""
    of_builder: Callable[[Sequence[Mapping[str, Any]]], list[str | None]] | None = getattr(builder, "build_many", None)
    return [None] * len(items) if of_builder is None else of_builder(items)


def checked_by_first(
    builder: PathBuilder, items: Sequence[Mapping[str, Any]], paths: Sequence[str | None], prefix: str
) -> list[str | None]:
    """Add a prefix to paths that were built in bulk. If the router builds the first one differently, all are None.

    An app may have changed how its router builds or matches, in a way that nobody could foresee.
    """
    for item, path in zip(items, paths, strict=True):
        if path is not None:
            try:
                is_equal = builder.build(item) == prefix + path
            except Exception:
                is_equal = False
            if not is_equal:
                return [None] * len(paths)
            break
    return [*paths] if not prefix else [None if path is None else prefix + path for path in paths]
