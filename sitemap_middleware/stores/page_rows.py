"""The stored form of a page: a JSON array of its fields but for the path. Pure; for every engine.

A text that is no such array, or has values of other types than the fields of `Page`, is no page.
"""

from __future__ import annotations

import json
from typing import Any, Final, get_args, get_origin, get_type_hints

from ..models import Page

_decode_json: Final = json.JSONDecoder().decode
_encode_json: Final = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: it suits every database
_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class

_HINTS: Final = list(get_type_hints(Page).values())[1:]
_ROW_FIELDS: Final = [(index, get_args(hint)[0]) for index, hint in enumerate(_HINTS) if get_origin(hint) is tuple]
"""The fields that hold any number of named tuples of integers, such as the runs of a history."""
_TYPES: Final[list[Any]] = [(list,) if get_origin(hint) is tuple else get_args(hint) or (hint,) for hint in _HINTS]
"""The types that each field has in JSON."""

_valid_types: Final[set[tuple[type, ...]]] = set()
"""The types of the fields of pages, as far as they have been met: of all pages there are some dozens."""


def encode_page(page: Page) -> str:
    """The stored form, without the path, by which it is stored."""
    return _encode_json(page[1:])


def decode_page(path: object, text: object) -> Page | None:
    """The page of a path; None if its stored form cannot be read."""
    try:
        values = _decode_json(text)  # type: ignore[arg-type] # whatever the store has
        types = tuple(map(type, values))
        if types not in _valid_types:
            if len(types) != len(_TYPES) or not all(map(_contains, _TYPES, types)):
                return None
            _valid_types.add(types)
        for index, named_tuple in _ROW_FIELDS:
            if values[index]:
                values[index] = tuple([_row(named_tuple, row) for row in values[index]])
            else:
                values[index] = ()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return _make(Page, (path, *values)) if type(path) is str and type(values) is list else None


def _contains(types: tuple[type, ...], one: type) -> bool:
    return one in types


def _row(named_tuple: Any, values: list[object]) -> Any:
    if len(values) != len(named_tuple._fields) or {*map(type, values)} != {int}:
        raise ValueError
    return _make(named_tuple, values)
