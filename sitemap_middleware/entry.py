"""`Entry`: one page of an enumerated route, with its date, priority or changefreq."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Final, Literal

from .exceptions import OptionError
from .models import Changefreq
from .protocol import unknown_option_error, validate_changefreq, validate_date, validate_priority

_PARAMS_NOT_GIVEN: Final[Mapping[str, Any]] = {}
"""Stands for parameters that were not given."""


@dataclass(frozen=True, slots=True, init=False)
class Entry:
    """One page of a route with parameters, as `@sitemap(values=...)` enumerates it.

    ``Entry({"slug": post.slug}, lastmod=post.updated)``

    Omitted fields come from the route's `@sitemap`, then from the options. An
    omitted lastmod comes from the route's `@sitemap`, then from what was observed.

    Args:
        params: the route's parameters, by name, as its view takes them.
        lastmod: when the page's content last changed: a date, a datetime (a naive one is UTC), or the text of either
            in ISO 8601, such as "2024-05-01".
        priority: 0.0 to 1.0, relative to the site's other pages (Sitemap 0.9, `<priority>`).
        changefreq: one of the protocol's seven words (Sitemap 0.9, `<changefreq>`),
            or "auto", to infer it from the observed changes.

    Raises:
        OptionError: for an unknown name or an invalid value. The message names the parameters.
    """

    params: Mapping[str, Any]
    lastmod: date | None
    priority: float | None
    changefreq: Changefreq | Literal["auto"] | None

    def __init__(
        self,
        params: Mapping[str, Any] = _PARAMS_NOT_GIVEN,
        *misplaced: object,
        lastmod: date | str | None = None,
        priority: float | None = None,
        changefreq: Changefreq | Literal["auto"] | None = None,
        **unknown: object,
    ) -> None:
        if params is _PARAMS_NOT_GIVEN:
            said = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in unknown.items())
            shown = ", ".join(f"{name!r}: {reprlib.repr(value)}" for name, value in unknown.items())
            shown = shown or "'slug': 'first-post'"
            raise OptionError(f"Entry({said}): the route's parameters are one mapping; write Entry({{{shown}}})")
        if misplaced:
            raise OptionError(
                f"Entry({reprlib.repr(params)}, {reprlib.repr(misplaced[0])}): only the parameters go without a name;"
                " write lastmod=, priority= or changefreq= before the others"
            )
        copied = copy_item(params)
        if type(copied) is not dict:
            raise OptionError(
                f"Entry: {reprlib.repr(params)} is no mapping of the route's parameters; "
                'give one such as Entry({"slug": "first-post"})'
            )
        place = _EntryLocation(copied)
        if unknown:
            raise unknown_option_error(place, next(iter(unknown)), [field.name for field in fields(self)])
        cure = "give a datetime.date or a datetime.datetime"
        say = object.__setattr__
        say(self, "params", copied)
        say(self, "lastmod", None if lastmod is None else validate_date(lastmod, place, cure))
        say(self, "priority", None if priority is None else validate_priority(priority, place))
        say(self, "changefreq", None if changefreq is None else validate_changefreq(changefreq, place))


class _EntryLocation:
    """Where an entry was written, for errors: by its parameters, which are written out where they are needed alone."""

    __slots__ = ("_params",)

    def __init__(self, params: object) -> None:
        self._params = params

    def __str__(self) -> str:
        return f"Entry({reprlib.repr(self._params)})"


def copy_item(item: Any) -> Any:
    """An item as it is now, for providers may fill one mapping again and again: a dict of any mapping, all else as is.

    Rows of databases (sqlite3, asyncpg) are mappings but for their type.
    """
    if type(item) is dict:
        return item.copy()
    with contextlib.suppress(Exception):  # it only looked like one
        if hasattr(item, "keys"):
            return dict(item)
    return item


EMPTY_ENTRY: Final = Entry({})
"""The entry of a page of which the provider gave the parameters alone."""
