"""Reads the parameters of a page from an item of a provider.

An item is a mapping of parameters, an `Entry`, an object with attributes of their names such as a database row, or,
if the route has one parameter, its bare value. Mappings and objects may also have the fields of an `Entry`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from numbers import Number
from typing import Any, Final
from uuid import UUID

from ..exceptions import OptionError
from ..options.entry import EMPTY_ENTRY, Entry, copy_item, plain_entry
from ..routing.framework_detection import get_attribute

_SCALAR_TYPES: Final = (str, Number, UUID, date, time, Enum)
"""Types of bare values. For other types it is unknown how the app writes them in a URL."""

_TEXT_TYPES: Final = frozenset({str, int})
_UNCHANGING_TYPES: Final = frozenset({str, int, Entry})
"""Types of items that need not be copied."""
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)

_ENTRY_FIELDS: Final = frozenset({"lastmod", "priority", "changefreq"})
"""The fields of an `Entry` that a mapping or an object may have besides the parameters."""

_FIELD_TYPES: Final[Mapping[str, Any]] = {"priority": float | Decimal, "changefreq": str}
"""The types that a field must have, for a column of its name may mean something else."""


class AttributeParams(dict[str, Any]):
    """The attributes of an object that are named like parameters, and the reason for each that cannot be read."""

    __slots__ = ("fields", "missing", "of")

    def __init__(self, of: str) -> None:
        self.of: str = of
        self.missing: dict[str, str] = {}
        self.fields: dict[str, Any] = {}
        """The attributes that are named like fields of an `Entry`, and that no parameter is named like."""

    def __repr__(self) -> str:
        return f"{self.of}({', '.join(f'{name}={reprlib.repr(value)}' for name, value in self.items())})"


class UnreadableItem:
    """Stands for an item that fails when it is looked at."""

    __slots__ = ("reason",)

    def __init__(self, item: object, error: Exception) -> None:
        self.reason: str = f"it is of type {type(item).__name__}, and cannot be read ({type(error).__name__})"

    def __repr__(self) -> str:
        return "one item"


def read_item(item: Any, names: Collection[str]) -> Any:
    """Copy what is needed of an item, on the provider's thread.

    A database row may be unusable on other threads, and a provider may reuse one object for all items.

    Args:
        item: what the provider gave.
        names: the parameters of all its routes.
    """
    if type(item) is dict:
        return item.copy()
    if type(item) in _UNCHANGING_TYPES:
        return item
    try:
        return _read_other_item(item, names)
    except Exception as error:  # a proxy may raise even when it is asked for its class
        return UnreadableItem(item, error)


def _read_other_item(item: Any, names: Collection[str]) -> Any:
    if isinstance(item, Entry):
        return plain_entry(item)
    item = copy_item(item)
    if type(item) is dict or item is None or isinstance(item, (*_SCALAR_TYPES, *_BYTES_TYPES)):
        return item
    row = get_attribute(item, "_mapping")  # a SQLAlchemy row: the methods of tuple may hide its attributes
    if not isinstance(row, Mapping):
        row = None
        if (
            isinstance(item, Collection) and get_attribute(item, "_fields") is None
        ):  # a collection is not an item, except for a named tuple
            return item
    params = AttributeParams(type(item).__name__)
    for name in names:
        try:
            value = getattr(item, name) if row is None else row[name]
        except (AttributeError, KeyError):
            params.missing[name] = f"has no attribute {name}"
        except Exception as error:
            params.missing[name] = f"its {name} cannot be read ({type(error).__name__})"
        else:
            if callable(value):
                params.missing[name] = f"its {name} is a method"
            else:
                params[name] = value
    for name in _ENTRY_FIELDS.difference(names):
        value = get_attribute(item, name) if row is None else row.get(name)
        if value is not None and not callable(value):
            params.fields[name] = value
    return params


def item_params(item: Any, names: Collection[str]) -> dict[str, Any]:
    """The parameters that an item gives a route with these names. Raises `ValueError` if one is missing or unusable."""
    if type(item) is dict:
        return checked_params(item)
    needed = ", ".join(sorted(names))
    if isinstance(item, AttributeParams):
        for name in sorted(names):
            if name not in item:
                raise ValueError(f"it is of type {item.of}, and {item.missing[name]}; the route's parameters: {needed}")
        return checked_params({name: item[name] for name in names})
    if isinstance(item, UnreadableItem):
        raise ValueError(item.reason)  # noqa: TRY004 (as all reasons)
    kind = type(item).__name__
    example = f"give a mapping such as {{{', '.join(f'{name!r}: ...' for name in sorted(names))}}}"
    if item is None or isinstance(item, (bool, *_BYTES_TYPES)):
        raise ValueError(f"{reprlib.repr(item)} is not a text, a number or a similar value; {example}")
    if not isinstance(item, _SCALAR_TYPES):
        raise ValueError(  # noqa: TRY004 (as all reasons)
            f"it is of type {kind}, which does not say what is its {needed}; {example}"
        )
    if len(names) != 1:
        raise ValueError(f"it is one value, and the route has {len(names)} parameters ({needed}); {example}")
    return checked_params(dict.fromkeys(names, item))


def checked_params(params: dict[str, Any]) -> dict[str, Any]:
    """Check that the values can be written in a path, and replace enum members by their values. Raises `ValueError`."""
    for name, value in params.items():
        if type(value) in _TEXT_TYPES:
            continue
        if value is None or isinstance(value, _BYTES_TYPES):
            raise ValueError(f"{name}={value!r:.20} is not a text, a number or a similar value")
        if isinstance(value, Enum):
            return checked_params({**params, name: value.value})
    return params


def split_fields(item: Any, names: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A mapping as its parameters and the fields of an `Entry`, which are those that no parameter is named like.

    Both are empty if the item is not a mapping.
    """
    if type(item) is not dict:
        return {}, {}
    fields = {name: item[name] for name in _ENTRY_FIELDS.difference(names) if name in item}
    return {name: value for name, value in item.items() if name not in fields}, fields


def entry_of_fields(fields: Mapping[str, Any]) -> Entry:
    """An entry without parameters, with those of its fields that are valid.

    A priority counts only as a float and a changefreq only as one of the protocol's words: a column of that name may
    mean something else. A lastmod that is not a date is kept as `Entry.unusable_lastmod`.
    """
    if not fields:
        return EMPTY_ENTRY
    usable: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _FIELD_TYPES and not isinstance(value, _FIELD_TYPES[name]):
            continue
        try:
            Entry({}, **{name: value})
        except OptionError:
            if name == "lastmod":
                usable[name] = reprlib.repr(value)  # text that is not a date
        else:
            usable[name] = value
    return Entry({}, **usable)
