"""The `@sitemap` decorator, and the settings that it attaches to views, blueprints and routers."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import date
from types import FunctionType, MethodType
from typing import Any, Final, Literal, Protocol, TypeVar

from ..exceptions import OptionError
from ..models import NO_SETTINGS, Lastmod, RouteSettings
from ..protocol.extensions import Extensions, News, Video, checked_extensions, merge_extensions
from ..protocol.value_checks import (
    Changefreq,
    unknown_option_error,
    validate_changefreq,
    validate_date,
    validate_flag,
    validate_parameter,
    validate_priority,
    validate_section,
)
from .entry import checked_values
from .patterns import Pattern

T = TypeVar("T")

_Items = Iterable[Any] | AsyncIterable[Any]
"""The items of `values`. Each is a mapping of the route's parameters, an object that has them as attributes, the bare
value if there is one parameter, or an `Entry`."""


class _OfSite(Protocol):
    def __call__(self, *, base_url: str) -> _Items | Awaitable[_Items]: ...


Values = _Items | Callable[[], _Items | Awaitable[_Items]] | _OfSite
"""Enumerates a route's pages: the items, or a callable that returns them, of the site with this base URL if it asks."""

ATTRIBUTE: Final = "__sitemap__"
"""The attribute that keeps the settings of a decorated object."""

OPT_KEY: Final = "sitemap"
"""The item of Litestar's `opt` that keeps settings: a mapping of the decorator's arguments, or what they make."""

_GET_METHODS: Final = ("get", "dispatch_request")
"""Methods of a view class that answer GET, in either framework. Their own settings come before those of the class."""
_ROUTER_METHODS: Final = ("include_router", "register_blueprint", "add_url_rule", "routes")
"""Attributes of apps, blueprints, routers and mounts, which views lack."""
_routers_with_settings: Final[list[weakref.ref[Any]]] = []
"""Decorated routers, since FastAPI forgets which router an included route came from. A list: routers are unhashable."""


def sitemap(
    *misplaced: object,
    priority: float | None = None,
    changefreq: Changefreq | Literal["auto"] | None = None,
    lastmod: Lastmod | str | None = None,
    exclude: bool | None = None,
    learn: bool | None = None,
    values: Values | None = None,
    section: str | None = None,
    images: Iterable[str] | None = None,
    videos: Iterable[Video] | None = None,
    news: News | None = None,
    alternates: Mapping[str, str] | str | None = None,
    **unknown: object,
) -> Callable[[T], T]:
    """Set what the sitemap says of a route. Works above or below the framework's own decorator.

    It decorates functions, async functions, class-based views, blueprints and
    routers, and returns them unchanged. The values on a view override those on its
    blueprint or router. Of two decorators on one object, the outer overrides the inner.

    Args:
        priority: 0.0 to 1.0, relative to the site's other pages (Sitemap 0.9, `<priority>`).
        changefreq: one of the protocol's seven words (Sitemap 0.9, `<changefreq>`), or "auto", to infer it from the
            observed changes.
        lastmod: a date, a datetime (a naive one is UTC), the text of either in ISO 8601, or a callable that takes no
            arguments and returns one, or None if it does not know. A callable is called again after `max_age`.
        exclude: True keeps the route out of the sitemap. False includes it although its blueprint or router is
            excluded.
        learn: True on a route with parameters lists each of its pages after its first successful anonymous visit. Use
            it only if every page of the route is public.
        values: the pages of a route with parameters: an iterable, or a callable that needs no arguments, or only
            `base_url`, that of the site, which it gets if it can, and returns one, sync or async, such as a generator
            function. Each item is a mapping of the route's parameters, an object with attributes of their names, the
            bare value if there is one parameter, or an `Entry`. A callable is called again after a page changed or
            `max_age` has passed. The items must be public pages, and complete: other pages of the route are not listed.
        section: the name of the documents that the pages of the route are in: "posts" for ``/sitemap-posts.xml``.
        images: the URLs of images on the page, or their paths. These and the following are of each page of the route.
        videos: each a `Video`.
        news: a `News`: for 48 hours, the page is an article.
        alternates: the URLs or paths of the page in other languages, by the code of the language and, if need be, the
            region (`hreflang`), such as ``{"de": "/de/about", "de-AT": …, "x-default": …}``; or the
            parameter of the view that is the language: pages that differ only in it name each other.

    Raises:
        OptionError: when the decorator is applied, for an unknown name or an invalid value. The message names the
            function.
    """
    given = {
        "priority": priority,
        "changefreq": changefreq,
        "lastmod": lastmod,
        "exclude": exclude,
        "learn": learn,
        "values": values,
        "section": section,
        "images": images,
        "videos": videos,
        "news": news,
        "alternates": alternates,
        **unknown,
    }

    def decorate(target: T) -> T:
        place = f"@sitemap on {_describe(target)}"
        if misplaced:
            raise OptionError(f"{place}: takes only keyword arguments; write it as @sitemap(priority=0.8)")
        settings = checked_settings(given, place)
        if settings.values and any(hasattr(target, name) for name in _ROUTER_METHODS):
            raise OptionError(f"{place}: values belong to one route; put them on its view")
        _attach(target, settings, place)
        return target

    if misplaced and callable(misplaced[0]):
        raise OptionError(
            f"@sitemap on {_describe(misplaced[0])}: needs its parentheses; write it as @sitemap(priority=0.8)"
        )
    return decorate


def checked_settings(given: Mapping[str, Any], place: str) -> RouteSettings:
    """The settings that arguments of `sitemap` make, by name. The place begins the message of an `OptionError`."""
    for name in given:
        if name not in _ARGUMENTS:
            raise unknown_option_error(place, name, _ARGUMENTS)
    values = checked_values(given.get("values"), place)
    try:
        checked = {name: check(given[name]) for name, check in _CHECKS.items() if given.get(name) is not None}
        if isinstance(language := given.get("alternates"), str):
            checked["language_parameter"] = validate_parameter(language)
            given = {**given, "alternates": None}
        extensions = checked_extensions(given)
    except OptionError as error:
        raise OptionError(f"{place}: {error}") from None
    if values and checked.get("learn"):
        raise OptionError(f"{place}: values and learn=True exclude each other; leave one out")
    return RouteSettings(**checked, values=values, extensions=extensions)


def settings_of(endpoint: object) -> RouteSettings:
    """The settings of an endpoint, through `functools.partial`, bound methods, view classes and `functools.wraps`."""
    return functools.reduce(merge_settings, map(_own_settings, _layers(endpoint)), NO_SETTINGS)


def endpoint_name(endpoint: object) -> str:
    """The name of an endpoint, for people."""
    while isinstance(endpoint, functools.partial):
        endpoint = endpoint.func
    name = getattr(endpoint, "__qualname__", None) or getattr(endpoint, "name", None)
    return name if isinstance(name, str) else type(endpoint).__qualname__


def routers_with_settings() -> Iterator[tuple[object, RouteSettings]]:
    """Every living decorated router that can be included in another, with its settings."""
    for router in filter(None, [reference() for reference in _routers_with_settings]):
        yield router, settings_of(router)


def merge_settings(first: RouteSettings, second: RouteSettings) -> RouteSettings:
    """Merge settings: the second fills in what the first leaves open."""
    if second is NO_SETTINGS:
        return first
    pairs = zip(first, second, strict=True)
    merged = RouteSettings._make([added if own is None else own for own, added in pairs])
    return merged._replace(extensions=merge_extensions(first.extensions, second.extensions))


def inherited_settings(path: str, own: RouteSettings, merged: RouteSettings) -> tuple[RouteSettings, str | None]:
    """The settings of a route, and the reason if it does not inherit `learn`.

    `learn=True` on a blueprint or router does not extend to catch-alls and to parameters
    named like secrets, because a developer may not think of each route there. Set it on
    the view of such a route, whose `own` settings are merged with those of what is around it.
    """
    if not merged.learn or own.learn:
        return merged, None
    pattern = Pattern(path)
    if pattern.secret is None and not pattern.is_too_wide:
        return merged, None
    what = f"its parameter {pattern.secret!r} is named like a secret" if pattern.secret else "it is a catch-all"
    reason = f"{what}, so its pages are learned only if its view itself is marked @sitemap(learn=True)"
    return merged._replace(learn=None), reason


def _checked_lastmod(value: object) -> Lastmod:
    if inspect.iscoroutinefunction(value):
        raise OptionError(f"lastmod={endpoint_name(value)} is async; give a callable that needs no await")
    if callable(value) and not isinstance(value, date):
        return value
    return validate_date(value, "give a datetime.date, a datetime.datetime, or a callable that returns one")


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "priority": validate_priority,
    "changefreq": validate_changefreq,
    "lastmod": _checked_lastmod,
    "exclude": functools.partial(validate_flag, "exclude"),
    "learn": functools.partial(validate_flag, "learn"),
    "section": validate_section,
}
"""The check of each argument of `sitemap` that needs no other one, which returns what is kept of it."""

_ARGUMENTS: Final = (*_CHECKS, "values", *Extensions._fields)


def _own_settings(target: object) -> RouteSettings:
    """The settings of an object itself, without those of its class or base classes."""
    own = getattr(target, "__dict__", {}).get(ATTRIBUTE)
    return own if isinstance(own, RouteSettings) else NO_SETTINGS


def _attach(target: object, settings: RouteSettings, place: str) -> None:
    holder = getattr(target, "__func__", target)  # a bound method has no attributes of its own
    settings = merge_settings(settings, _own_settings(holder))
    try:
        setattr(holder, ATTRIBUTE, settings)
    except (AttributeError, TypeError):
        opt = getattr(target, "opt", None)
        if isinstance(opt, dict):  # of Litestar's routers and handlers
            opt[OPT_KEY] = settings
            return
        raise OptionError(f"{place}: its attributes cannot be set; decorate a function that calls it") from None
    if hasattr(target, "include_router") and not any(reference() is target for reference in _routers_with_settings):
        _routers_with_settings.append(weakref.ref(target, _routers_with_settings.remove))


def _layers(endpoint: object) -> Iterator[object]:
    """An endpoint and the objects that it wraps or is an instance of, the most specific first."""
    seen: set[int] = set()
    pending = [endpoint]
    while pending:
        layer = pending.pop(0)
        if layer is None or id(layer) in seen:
            continue
        seen.add(id(layer))
        if isinstance(layer, type):
            for name in _GET_METHODS:
                yield from _layers(getattr(layer, name, None))
            yield from layer.__mro__
            continue
        yield layer
        pending += [getattr(layer, name, None) for name in ("view_class", "__wrapped__", "__func__")]
        if isinstance(layer, functools.partial):
            pending.append(layer.func)
        elif not isinstance(layer, (FunctionType, MethodType)):
            pending.append(type(layer))  # an instance of a decorated class


def _describe(target: object) -> str:
    code = getattr(target, "__code__", None)  # a bound method has that of its function
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{endpoint_name(target)}{where}"
