"""The decorator: what a developer says of a route, checked where it is written."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import date
from typing import Any, Final, TypeVar

from .errors import OptionError
from .model import Changefreq, Lastmod, Mark
from .protocol import checked_changefreq, checked_priority, unknown_option

T = TypeVar("T")

_ATTRIBUTE: Final = "__sitemap__"
_marked_routers: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Routers that bear a mark: FastAPI before 0.137 forgets from which router an included route came."""


def sitemap(
    *misplaced: object,
    priority: float | None = None,
    changefreq: Changefreq | None = None,
    lastmod: Lastmod | None = None,
    exclude: bool | None = None,
    **unknown: object,
) -> Callable[[T], T]:
    """Say what the sitemap shall say of a route; above or below the framework's own decorator.

    It marks functions, async functions, class-based views, blueprints and
    routers, and returns them unchanged; what a view says goes before what its
    blueprint or router says, and of two marks on one object the outer goes first.

    Args:
        priority: 0.0 to 1.0, relative to the site's other pages (Sitemap 0.9, `<priority>`).
        changefreq: one of the protocol's seven words (Sitemap 0.9, `<changefreq>`).
        lastmod: a date, a datetime (a naive one is UTC), or a callable that
            takes nothing and returns one, or None where it does not know. A
            callable is asked each time the sitemap is built.
        exclude: True keeps the route out of the sitemap; False takes it out of
            its blueprint's exclusion.

    Raises:
        OptionError: on application, for a name or value outside the protocol;
            it names the function.
    """

    def mark(target: T) -> T:
        place = f"@sitemap on {_described(target)}"
        if misplaced:
            raise OptionError(f"{place}: takes keywords alone; write it as @sitemap(priority=0.8)")
        if unknown:
            raise unknown_option(place, next(iter(unknown)), [field.name for field in fields(Mark)])
        said = Mark(
            priority=None if priority is None else checked_priority(priority, place),
            changefreq=None if changefreq is None else checked_changefreq(changefreq, place),
            lastmod=_checked_lastmod(lastmod, place),
            exclude=_checked_flag(exclude, "exclude", place),
        )
        _attach(target, merged(said, _own_mark(target)), place)
        return target

    if len(misplaced) == 1 and callable(misplaced[0]) and not unknown:
        raise OptionError(
            f"@sitemap on {_described(misplaced[0])}: needs its parentheses; write it as @sitemap(priority=0.8)"
        )
    return mark


def mark_of(endpoint: object) -> Mark:
    """The mark of an endpoint, through `functools.partial`, bound methods, view classes and wraps chains."""
    found = Mark()
    for layer in _layers(endpoint):
        said = getattr(layer, _ATTRIBUTE, None)
        if isinstance(said, Mark):
            found = merged(found, said)
    return found


def marked_routers() -> Iterator[tuple[object, Mark]]:
    """Every living router or blueprint that bears a mark."""
    for router in list(_marked_routers):
        yield router, mark_of(router)


def merged(first: Mark, second: Mark) -> Mark:
    """One mark of two: what the first leaves unsaid, the second says."""
    unsaid = {
        field.name: getattr(second, field.name)
        for field in fields(Mark)
        if getattr(first, field.name) is None and getattr(second, field.name) is not None
    }
    return replace(first, **unsaid) if unsaid else first


def _checked_lastmod(value: object, place: str) -> Lastmod | None:
    if value is None or isinstance(value, date) or callable(value):
        return value
    raise OptionError(
        f"{place}: lastmod={value!r} is no date; give a datetime.date, a datetime.datetime, "
        "or a callable that returns one"
    )


def _checked_flag(value: object, name: str, place: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise OptionError(f"{place}: {name}={value!r} is neither True nor False")


def _bearer(target: object) -> Any:
    """The object that can bear an attribute: the function of a bound method, else the target itself."""
    return getattr(target, "__func__", target)


def _own_mark(target: object) -> Mark:
    """The mark that an object bears itself, not one that a class has from its parents."""
    own: Mark = getattr(_bearer(target), "__dict__", {}).get(_ATTRIBUTE, Mark())
    return own


def _attach(target: object, mark: Mark, place: str) -> None:
    bearer = _bearer(target)
    try:
        setattr(bearer, _ATTRIBUTE, mark)
    except (AttributeError, TypeError):
        raise OptionError(f"{place}: it cannot bear a mark; put the decorator on a function around it") from None
    if not isinstance(target, type) and hasattr(target, "routes"):
        _marked_routers.add(target)


def _layers(endpoint: object) -> Iterator[object]:
    seen: set[int] = set()
    waiting = [endpoint]
    while waiting:
        layer = waiting.pop(0)
        if layer is None or id(layer) in seen:
            continue
        seen.add(id(layer))
        yield layer
        waiting.append(getattr(layer, "view_class", None))
        waiting.append(getattr(layer, "__wrapped__", None))
        waiting.append(getattr(layer, "__func__", None))
        if isinstance(layer, functools.partial):
            waiting.append(layer.func)


def _described(target: object) -> str:
    name = getattr(target, "__qualname__", None) or getattr(target, "name", None) or repr(target)
    code = getattr(_bearer(target), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{name}{where}"
