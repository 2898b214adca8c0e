"""The decorator: what a developer says of a route, checked where it is written."""

from __future__ import annotations

import functools
import inspect
import reprlib
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import date
from types import FunctionType, MethodType
from typing import Any, Final, Literal, TypeVar

from .exceptions import OptionError
from .models import Changefreq, Lastmod, Provider, RouteSettings
from .patterns import Pattern
from .protocol import unknown_option_error, validate_changefreq, validate_date, validate_priority

T = TypeVar("T")

_Items = Iterable[Any] | AsyncIterable[Any]
"""What the pages of a route are given as, each: a mapping of its parameters, an object that has them as attributes, the
bare value if there is one parameter, or an `Entry`."""
Values = _Items | Callable[[], _Items | Awaitable[_Items]]
"""What enumerates a route's pages."""

NO_SETTINGS: Final = RouteSettings()
"""The mark of what nothing was said of."""

ATTRIBUTE: Final = "__sitemap__"
"""Where what is marked bears its mark."""

_GET_METHODS: Final = ("get", "dispatch_request")
"""What answers a GET in a view class, by either framework's name; a mark on it is the nearest there is."""
_ROUTER_METHODS: Final = ("include_router", "register_blueprint", "add_url_rule", "routes")
"""What apps, blueprints, routers and mounts have, and views have not."""
_routers_with_settings: Final[list[weakref.ref[Any]]] = []
"""Routers that bear a mark: FastAPI forgets from which router an included route came. They cannot be hashed."""
_settings_count: Final = [0]
"""How many marks were put on anything."""


def sitemap(
    *misplaced: object,
    priority: float | None = None,
    changefreq: Changefreq | Literal["auto"] | None = None,
    lastmod: Lastmod | str | None = None,
    exclude: bool | None = None,
    learn: bool | None = None,
    values: Values | None = None,
    **unknown: object,
) -> Callable[[T], T]:
    """Set what the sitemap says of a route. Works above or below the framework's own decorator.

    It decorates functions, async functions, class-based views, blueprints and
    routers, and returns them unchanged. The values on a view override those on its
    blueprint or router. Of two decorators on one object, the outer overrides the inner.

    Args:
        priority: 0.0 to 1.0, relative to the site's other pages (Sitemap 0.9, `<priority>`).
        changefreq: one of the protocol's seven words (Sitemap 0.9, `<changefreq>`),
            or "auto", to infer it from the observed changes.
        lastmod: a date, a datetime (a naive one is UTC), the text of either in
            ISO 8601, or a callable that takes no arguments and returns one, or None
            if it does not know. A callable is called again after `max_age`.
        exclude: True keeps the route out of the sitemap. False includes it
            although its blueprint or router is excluded.
        learn: True on a route with parameters lists each of its pages after its
            first successful anonymous visit. Use it only if every page of the route is public.
        values: the pages of a route with parameters: an iterable, or a callable
            that takes no arguments and returns one, sync or async, such as a generator
            function. Each item is a mapping of the route's parameters, an object with
            attributes of their names, the bare value if there is one parameter, or an
            `Entry`. A callable is called again after a page changed or `max_age` has passed.
            The items must be public pages, and complete: other pages of the route are not listed.

    Raises:
        OptionError: when the decorator is applied, for an unknown name or an invalid
            value. The message names the function.
    """

    def mark(target: T) -> T:
        place = f"@sitemap on {_describe(target)}"
        if misplaced:
            raise OptionError(f"{place}: takes keywords alone; write it as @sitemap(priority=0.8)")
        if unknown:
            raise unknown_option_error(place, next(iter(unknown)), [field.name for field in fields(RouteSettings)])
        said = RouteSettings(
            priority=None if priority is None else validate_priority(priority, place),
            changefreq=None if changefreq is None else validate_changefreq(changefreq, place),
            lastmod=_checked_lastmod(lastmod, place),
            exclude=_checked_flag(exclude, "exclude", place),
            learn=_checked_flag(learn, "learn", place),
            values=_checked_values(values, place),
        )
        if said.values and said.learn:
            raise OptionError(f"{place}: values enumerates its pages, so none are learned; leave learn=True off")
        if said.values and any(hasattr(target, name) for name in _ROUTER_METHODS):
            raise OptionError(f"{place}: values are those of one route; put them on the view itself")
        _attach(target, said, place)
        return target

    if misplaced and callable(misplaced[0]):
        raise OptionError(
            f"@sitemap on {_describe(misplaced[0])}: needs its parentheses; write it as @sitemap(priority=0.8)"
        )
    return mark


def settings_of(endpoint: object) -> RouteSettings:
    """The mark of an endpoint, through `functools.partial`, bound methods, view classes and wraps chains."""
    if type(endpoint) is FunctionType and not (hasattr(endpoint, "__wrapped__") or hasattr(endpoint, "view_class")):
        own = getattr(endpoint, ATTRIBUTE, None)  # most are plain functions, and there may be tens of thousands
        return own if isinstance(own, RouteSettings) else NO_SETTINGS
    found = NO_SETTINGS
    for layer in _layers(endpoint):
        said = _own_settings(layer)
        if said is not None:
            found = merge_settings(found, said)
    return found


def endpoint_name(endpoint: object) -> str:
    """What a person calls an endpoint."""
    if type(endpoint) is FunctionType:
        return endpoint.__qualname__
    while isinstance(endpoint, functools.partial):
        endpoint = endpoint.func
    name = getattr(endpoint, "__qualname__", None) or getattr(endpoint, "name", None)
    return name if isinstance(name, str) else type(endpoint).__qualname__


def settings_count() -> int:
    """How many marks were put on anything so far: while it stands still, so do all marks."""
    return _settings_count[0]


def routers_with_settings() -> Iterator[tuple[object, RouteSettings]]:
    """Every living router that bears a mark and can be included in another."""
    for router in filter(None, [reference() for reference in _routers_with_settings]):
        yield router, settings_of(router)


def merge_settings(first: RouteSettings, second: RouteSettings) -> RouteSettings:
    """One mark of two: what the first leaves unsaid, the second says."""
    if second is NO_SETTINGS:
        return first
    if first is NO_SETTINGS:
        return second
    unsaid = {
        field.name: getattr(second, field.name)
        for field in fields(RouteSettings)
        if getattr(first, field.name) is None and getattr(second, field.name) is not None
    }
    return replace(first, **unsaid) if unsaid else first


def inherited_settings(path: str, own: RouteSettings, whole: RouteSettings) -> tuple[RouteSettings, str | None]:
    """The mark of a route below others, and why its pages are not learned although one of those says so.

    Whoever marks a blueprint or router has not each of its routes in mind. So the
    pages of catch-alls, and of parameters named like secrets, are learned only if the
    view's own mark says so.

    Args:
        path: the template of the route.
        own: what its view says.
        whole: the same, and what all around it says.
    """
    if not whole.learn or own.learn:
        return whole, None
    pattern = Pattern(path)
    if pattern.secret is None and not pattern.is_too_wide:
        return whole, None
    what = f"its parameter {pattern.secret!r} is named like a secret" if pattern.secret else "it is a catch-all"
    reason = f"{what}, so its pages are learned only if its view itself is marked @sitemap(learn=True)"
    return replace(whole, learn=None), reason


def _checked_lastmod(value: object, place: str) -> Lastmod | None:
    if inspect.iscoroutinefunction(value):
        raise OptionError(f"{place}: lastmod={endpoint_name(value)} is async; give a callable that needs no await")
    if value is None or (callable(value) and not isinstance(value, date)):
        return value
    return validate_date(value, place, "give a datetime.date, a datetime.datetime, or a callable that returns one")


def _checked_values(value: object, place: str) -> Provider | None:
    """What enumerates a route's pages, if it can be asked again and again."""
    if value is None:
        return None
    name = reprlib.repr(value)
    if isinstance(value, Iterator | AsyncIterator | Awaitable):
        raise OptionError(
            f"{place}: values={name} can be read but once; give a list, or the function that makes it, not called"
        )
    if isinstance(value, str | bytes | Mapping):
        raise OptionError(f"{place}: values={name} is one thing, not many; give a list")
    if isinstance(value, Iterable | AsyncIterable):
        return Provider(value, place)
    if not callable(value):
        raise OptionError(f"{place}: values={name} is no iterable; give one, or a callable that returns one")
    if _needs_arguments(value):
        raise OptionError(f"{place}: values={name} cannot be called without arguments; give one that takes nothing")
    return Provider(value, place)


def _needs_arguments(value: Callable[..., object]) -> bool:
    try:
        signature = inspect.signature(value)
    except ValueError:  # of some builtins it cannot be told
        return False
    try:
        signature.bind()
    except TypeError:
        return True
    return False


def _checked_flag(value: object, name: str, place: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise OptionError(f"{place}: {name}={value!r} is neither True nor False")


def _settings_holder(target: object) -> Any:
    """The object that can bear an attribute: the function of a bound method, else the target itself."""
    return getattr(target, "__func__", target)


def _own_settings(target: object) -> RouteSettings | None:
    """The mark that an object bears itself, not one that it has from its class or that from its parents."""
    own = getattr(target, "__dict__", {}).get(ATTRIBUTE)
    return own if isinstance(own, RouteSettings) else None


def _attach(target: object, mark: RouteSettings, place: str) -> None:
    bearer = _settings_holder(target)
    mark = merge_settings(mark, _own_settings(bearer) or NO_SETTINGS)
    try:
        setattr(bearer, ATTRIBUTE, mark)
    except (AttributeError, TypeError):
        raise OptionError(f"{place}: it cannot bear a mark; put the decorator on a function around it") from None
    if hasattr(target, "include_router") and not any(reference() is target for reference in _routers_with_settings):
        _routers_with_settings.append(weakref.ref(target, _routers_with_settings.remove))
    _settings_count[0] += 1  # once it is there to be seen, so that what is read at this number has seen it


def _layers(endpoint: object) -> Iterator[object]:
    """An endpoint and all that it is made of, the nearest to its answer first."""
    seen: set[int] = set()
    waiting = [endpoint]
    while waiting:
        layer = waiting.pop(0)
        if layer is None or id(layer) in seen:
            continue
        seen.add(id(layer))
        if isinstance(layer, type):
            for name in _GET_METHODS:
                yield from _layers(getattr(layer, name, None))
            yield from layer.__mro__
            continue
        yield layer
        waiting += [getattr(layer, name, None) for name in ("view_class", "__wrapped__", "__func__")]
        if isinstance(layer, functools.partial):
            waiting.append(layer.func)
        elif not isinstance(layer, (FunctionType, MethodType)):
            waiting.append(type(layer))  # an instance of a marked class


def _describe(target: object) -> str:
    code = getattr(_settings_holder(target), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{endpoint_name(target)}{where}"
