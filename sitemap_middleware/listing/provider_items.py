"""Reads the parameters of a page from an item of a provider.

An item is a mapping of parameters, an `Entry`, an object with attributes of their names such as a database row, or,
if the route has one parameter, its bare value.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping
from datetime import date, time
from enum import Enum
from numbers import Number
from typing import Any, Final
from uuid import UUID

from ..entry import Entry, copy_item

_SCALAR_TYPES: Final = (str, Number, UUID, date, time, Enum)
"""Types of bare values. For other types it is unknown how the app writes them in a URL."""

_TEXT_TYPES: Final = frozenset({str, int})
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)


class AttributeParams(dict[str, Any]):
    """The attributes of an object that are named like parameters, and the reason for each that cannot be read."""

    __slots__ = ("missing", "of")

    def __init__(self, of: str) -> None:
        self.of = of
        self.missing: dict[str, str] = {}


def read_item(item: Any, names: Collection[str]) -> Any:
    """Copy what is needed of an item, on the provider's thread.

    A database row may be unusable on other threads, and a provider may reuse one object for all items.

    Args:
        item: what the provider gave.
        names: the parameters of all its routes.
    """
    if type(item) is dict:
        return item.copy()
    if type(item) in _TEXT_TYPES or isinstance(item, Entry):
        return item
    item = copy_item(item)
    if type(item) is dict or item is None or isinstance(item, (*_SCALAR_TYPES, *_BYTES_TYPES)):
        return item
    row = _get_attribute(item, "_mapping")  # a SQLAlchemy row: the methods of tuple may hide its attributes
    if not isinstance(row, Mapping):
        row = None
        if (
            isinstance(item, Collection) and _get_attribute(item, "_fields") is None
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
    return params


def _get_attribute(item: Any, name: str) -> Any:
    try:
        return getattr(item, name, None)
    except Exception:  # a property may raise anything
        return None


def item_params(item: Any, names: Collection[str]) -> dict[str, Any]:
    """The parameters that an item gives a route with these names. Raises `ValueError` if one is missing or unusable."""
    if isinstance(item, AttributeParams):
        for name in sorted(names):
            if name not in item:
                raise ValueError(f"it is of type {item.of}, and {item.missing[name]}")
        return checked_params({name: item[name] for name in names})
    kind = type(item).__name__
    needed = ", ".join(sorted(names))
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
