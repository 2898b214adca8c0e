"""Items: the forms in which a provider may give the parameters of a page.

A mapping of parameters, an `Entry`, an object with attributes of their names (a row of a database, say), or, if the
route has one parameter, its bare value.
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
"""Types of values that are parameters by themselves. Of any other type nobody knows what it is as text."""

_TEXT_TYPES: Final = frozenset({str, int})
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)


class AttributeParams(dict[str, Any]):
    """What was read of an object: the attributes named like parameters. Of one that cannot be read, the reason."""

    __slots__ = ("missing", "of")

    def __init__(self, of: str) -> None:
        self.of = of
        self.missing: dict[str, str] = {}


def read_item(item: Any, names: Collection[str]) -> Any:
    """An item as it is now, on the thread of the provider: a row may be read by no other, and be filled again.

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
    row = _get_attribute(item, "_mapping")  # SQLAlchemy's rows, whose attributes may be hidden by a tuple's
    if not isinstance(row, Mapping):
        row = None
        if isinstance(item, Collection) and _get_attribute(item, "_fields") is None:  # which a named tuple has
            return item
    found = AttributeParams(type(item).__name__)
    for name in names:
        try:
            value = getattr(item, name) if row is None else row[name]
        except (AttributeError, KeyError):
            found.missing[name] = f"has no attribute {name}"
        except Exception as error:
            found.missing[name] = f"its {name} cannot be read ({type(error).__name__})"
        else:
            if callable(value):
                found.missing[name] = f"its {name} is a method"
            else:
                found[name] = value
    return found


def _get_attribute(item: Any, name: str) -> Any:
    try:
        return getattr(item, name, None)
    except Exception:  # an object may do anything when it is asked
        return None


def item_params(item: Any, names: Collection[str]) -> dict[str, Any]:
    """The parameters that an item gives a route which has these; `ValueError` says why it gives none."""
    if isinstance(item, AttributeParams):
        for name in sorted(names):
            if name not in item:
                raise ValueError(f"it is of type {item.of}, and {item.missing[name]}")
        return checked_params({name: item[name] for name in names})
    kind = type(item).__name__
    needed = ", ".join(sorted(names))
    example = f"give a mapping such as {{{', '.join(f'{name!r}: ...' for name in sorted(names))}}}"
    if item is None or isinstance(item, (bool, *_BYTES_TYPES)):
        raise ValueError(f"{reprlib.repr(item)} is no text, number or the like; {example}")
    if not isinstance(item, _SCALAR_TYPES):
        raise ValueError(  # noqa: TRY004 (as all reasons)
            f"it is of type {kind}, which does not say what is its {needed}; {example}"
        )
    if len(names) != 1:
        raise ValueError(f"it is one value, and the route has {len(names)} parameters ({needed}); {example}")
    return checked_params(dict.fromkeys(names, item))


def checked_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters whose values can stand in a path; `ValueError` for one that cannot. An enum's member is its value."""
    for name, value in params.items():
        if type(value) in _TEXT_TYPES:
            continue
        if value is None or isinstance(value, _BYTES_TYPES):
            raise ValueError(f"{name}={value!r:.20} is no text, number or the like")
        if isinstance(value, Enum):
            return checked_params({**params, name: value.value})
    return params
