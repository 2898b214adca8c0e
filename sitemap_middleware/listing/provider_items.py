"""Reads the items of `@sitemap(values=...)`: which page each one is, by the app's router, and what it says of the page.

An item is a mapping of parameters, an `Entry`, an object with attributes of their names such as a database row, or,
if the route has one parameter, its bare value. Mappings and objects may also have the fields of an `Entry`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from enum import Enum
from numbers import Number
from typing import Any, Final, NamedTuple
from uuid import UUID

from ..exceptions import OptionError, ValuesError
from ..http.site_urls import loc_of, resolve_loc
from ..http.urls import LOC_LENGTH_REASON, UNREACHABLE_REASON, quote_path
from ..models import PathBuilder, Route, Site
from ..options.entry import EMPTY_ENTRY, Entry, copy_item
from ..routing.framework_detection import get_attribute

MAX_SKIP_EXAMPLES: Final = 3
"""Maximum number of skipped items that are shown, one for each reason."""

_MAX_REASON_CHARS: Final = 200
"""Characters of an exception's text that are shown."""

_SCALAR_TYPES: Final = (str, Number, UUID, date, time, Enum)
"""Types of bare values. For other types it is unknown how the app writes them in a URL."""

_TEXT_TYPES: Final = frozenset({str, int})
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)

_FIELD_TYPES: Final[Mapping[str, Any]] = {"lastmod": object, "priority": float | Decimal, "changefreq": str}
"""The fields of an `Entry` that a mapping or an object may have besides the parameters, and the types that count.

A column named priority or changefreq may mean something else.
"""


class Item(NamedTuple):
    """What is kept of an item."""

    given: Any
    """What messages show."""
    params: Any
    """A dict of parameters, or a bare value."""
    entry: Entry = EMPTY_ENTRY


class _Attributes(dict[str, Any]):
    """The attributes of an object that are named like parameters, and can be read."""

    def __init__(self, of: str, error: str = "") -> None:
        self.of, self.error = of, error

    def __repr__(self) -> str:
        return f"{self.of}({', '.join(f'{name}={reprlib.repr(value)}' for name, value in self.items())})"


@dataclass(slots=True)
class ProviderReport:
    """Counts of one enumeration."""

    count: int = 0
    skipped: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    """The first skipped items, by the reason."""
    failure: ValuesError | None = None

    def skip(self, item: Any, reason: str) -> None:
        """Count an item that makes no page, and show it if it is the first with its reason."""
        self.skipped += 1
        if reason not in self.examples and len(self.examples) < MAX_SKIP_EXAMPLES:
            shown = f"Entry({reprlib.repr(item.params)})" if isinstance(item, Entry) else reprlib.repr(item)
            self.examples[reason] = f"{shown}: {reason}"

    def messages(self) -> tuple[str, ...]:
        """Describe to people what is wrong with the items."""
        if not self.skipped:
            return ()
        return f"{self.skipped} of {self.count} items were left out", *self.examples.values()


class ProvidedPage(NamedTuple):
    """One page that a provider enumerates."""

    path: str
    """Percent-encoded."""
    route: Route
    entry: Entry
    loc: str | None = None
    """The loc, if the page is that of a named section."""


def read_item(item: Any, names: Collection[str]) -> Item:
    """Copy what is needed of an item, on the provider's thread; `names` are the parameters of all its routes.

    A database row may be unusable on other threads, and a provider may reuse one object for all items.
    """
    if type(item) is Entry:
        return Item(item, item.params, item)
    try:
        return _read(item, names)
    except Exception as error:  # a proxy may raise even when it is asked for its class
        params = _Attributes(type(item).__name__, type(error).__name__)
        return Item(params, params)


def _read(item: Any, names: Collection[str]) -> Item:
    if type(item) is str:
        return Item(item, item)
    if isinstance(item, Entry):
        return Item(item, item.params, item)
    item = copy_item(item)
    if type(item) is dict:
        fields = {name: item[name] for name in _FIELD_TYPES if name in item and name not in names}
        params = {name: value for name, value in item.items() if name not in fields} if fields else item
        return Item(item, params, _entry_of_fields(fields))
    if item is None or isinstance(item, (*_SCALAR_TYPES, *_BYTES_TYPES)):
        return Item(item, item)
    row = get_attribute(item, "_mapping")  # a SQLAlchemy row: the methods of tuple may hide its attributes
    if not isinstance(row, Mapping):
        row = None
        if isinstance(item, Collection) and get_attribute(item, "_fields") is None:  # but for a named tuple
            return Item(item, item)
    params = _Attributes(type(item).__name__)
    for name in sorted(names):
        try:
            value = getattr(item, name) if row is None else row[name]
            if not callable(value):
                params[name] = value
        except Exception as error:
            params.error = type(error).__name__
    found = {
        name: get_attribute(item, name) if row is None else row.get(name) for name in _FIELD_TYPES if name not in names
    }
    return Item(params, params, _entry_of_fields({name: value for name, value in found.items() if not callable(value)}))


def _entry_of_fields(fields: Mapping[str, Any]) -> Entry:
    """An entry without parameters, with those of its fields that are valid.

    A lastmod that is not a date is kept as `Entry.unusable_lastmod`.
    """
    usable = {name: value for name, value in fields.items() if isinstance(value, _FIELD_TYPES[name])}
    try:
        return Entry({}, **usable) if usable else EMPTY_ENTRY
    except OptionError:  # because of one of them
        for name, value in [*usable.items()]:
            try:
                Entry({}, **{name: value})
            except OptionError:
                del usable[name]
                if name == "lastmod":
                    usable[name] = reprlib.repr(value)  # text that is not a date
        return Entry({}, **usable)


def pages_of_item(
    site: Site, item: Item, builders: Sequence[tuple[Route, PathBuilder]], report: ProviderReport
) -> Iterator[ProvidedPage]:
    """The pages of one item: one for each route that it fits. An item that fits none is reported."""
    reason, fits = "", False
    for route, builder in builders:
        try:
            path = builder.build(_params_of(item.params, builder.names))
        except Exception as error:
            reason = reason or f"{describe_error(error)} ({route.path})"
            continue
        try:
            is_named = route.settings.values is not None and route.settings.values.section is not None
            quoted, loc = resolve_loc(site, path) if is_named else (_quoted(site, path), None)
        except ValueError as error:
            reason = str(error)
            continue
        fits = True
        yield ProvidedPage(quoted, route, item.entry, loc)
    if not fits:
        report.skip(item.given, reason)


def _quoted(site: Site, path: str) -> str:
    """A path, percent-encoded. Raises `ValueError` if it cannot be listed."""
    quoted = quote_path(path)
    if quoted is None or loc_of(site, quoted) is None:
        raise ValueError(UNREACHABLE_REASON if quoted is None else LOC_LENGTH_REASON)
    return quoted


def _params_of(given: Any, names: Collection[str]) -> dict[str, Any]:
    """The parameters of an item for a route with these names. Raises `ValueError` if one is missing or unusable."""
    if isinstance(given, _Attributes):
        if missing := [name for name in sorted(names) if name not in given]:
            why = f" ({given.error})" if given.error else ""
            raise ValueError(
                f"it is of type {given.of}, and has no value {missing[0]} that can be read{why};"
                f" the route's parameters: {', '.join(sorted(names))}"
            )
        given = {name: given[name] for name in names}
    if type(given) is dict:
        return {name: _checked(name, value) for name, value in given.items()}
    needed = ", ".join(sorted(names))
    example = f"give a mapping such as {{{', '.join(f'{name!r}: ...' for name in sorted(names))}}}"
    if given is None or isinstance(given, (bool, *_BYTES_TYPES)):
        raise ValueError(f"{reprlib.repr(given)} is not a text, a number or a similar value; {example}")
    if not isinstance(given, _SCALAR_TYPES):
        raise ValueError(  # noqa: TRY004 (as all reasons)
            f"it is of type {type(given).__name__}, which does not say what is its {needed}; {example}"
        )
    if len(names) != 1:
        raise ValueError(f"it is one value, and the route has {len(names)} parameters ({needed}); {example}")
    return {name: _checked(name, given) for name in names}


def _checked(name: str, value: Any) -> Any:
    """A parameter, or the value of an enum member. Raises `ValueError` if a path cannot express it."""
    if type(value) in _TEXT_TYPES:
        return value
    if value is None or isinstance(value, _BYTES_TYPES):
        raise ValueError(f"{name}={value!r:.20} is not a text, a number or a similar value")
    return _checked(name, value.value) if isinstance(value, Enum) else value


def as_values_error(error: BaseException) -> ValuesError:
    """An exception of the app's code as a `ValuesError`."""
    if isinstance(error, ValuesError):
        return error
    wrapped = ValuesError(describe_error(error))
    wrapped.__cause__ = error
    return wrapped


def describe_error(error: BaseException) -> str:
    """An exception in one line; a plain ValueError by its text alone."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    if len(text) > _MAX_REASON_CHARS:
        start = text[:_MAX_REASON_CHARS]
        text = f"{start.rpartition(' ')[0] or start} …"
    if type(error) is ValueError and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
