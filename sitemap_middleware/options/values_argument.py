"""Checks what is given as `values=`: an iterable that can be read twice, or a callable that returns an iterable."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from ..exceptions import OptionError
from ..models import Provider


def checked_values(value: object, place: str, section: str | None = None) -> Provider | None:
    """The provider for an argument `values`, which must be readable more than once.

    Args:
        value: an iterable, or a callable that returns one; None for no provider.
        place: where it was given, for messages.
        section: the name of its section, if it has one.

    Raises:
        OptionError: it cannot be read, or only once.
    """
    if value is None:
        return None
    if isinstance(value, Iterable | AsyncIterable) and not isinstance(
        value, Iterator | AsyncIterator | Awaitable | str | bytes | Mapping
    ):
        return Provider(value, place, section)  # without its repr: that of a QuerySet of Django asks the database
    name = reprlib.repr(value)
    if isinstance(value, Iterator | AsyncIterator | Awaitable):
        raise OptionError(
            f"{place}: values={name} can be read only once; give a list, or the function itself without calling it"
        )
    if isinstance(value, str | bytes | Mapping):
        raise OptionError(f"{place}: values={name} is a single item; give a list")
    if not callable(value):
        raise OptionError(f"{place}: values={name} is not iterable; give an iterable, or a callable that returns one")
    if _needs_arguments(value):
        raise OptionError(f"{place}: values={name} cannot be called without arguments; give one that needs none")
    return Provider(value, place, section)


def unread(source: Any) -> Any:
    """Return an iterable that queries the database each time: a QuerySet of Django keeps the rows that it has read."""
    return source.all() if hasattr(source, "_result_cache") and hasattr(source, "all") else source


def _needs_arguments(value: Callable[..., object]) -> bool:
    try:
        signature = inspect.signature(value)
    except ValueError:  # some builtins have no signature
        return False
    try:
        signature.bind()
    except TypeError:
        return True
    return False
