"""The options of `SitemapMiddleware`, checked once, when it is constructed."""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .evidence.verdict import INDEXABLE_TYPES
from .exceptions import OptionError
from .models import Changefreq, PageLimits, Site
from .patterns import Pattern, Patterns
from .sitemap_protocol import unknown_option_error, validate_changefreq, validate_priority
from .urls import ascii_host, normal_host, parse_base_url, quote_path

CONSTRUCTOR_NAME: Final = "SitemapMiddleware"

_MEDIA_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
"""A type and a subtype without parameters (RFC 6838, section 4.2)."""


@dataclass(frozen=True, slots=True)
class Options:
    """All options, validated."""

    site: Site | None
    allowed_hosts: tuple[str, ...]
    path: str
    include: Patterns
    exclude: Patterns
    learn: Patterns
    list_unseen: bool
    verify: bool
    robots: bool
    priority: float | Literal["auto"] | None
    changefreq: Changefreq | Literal["auto"] | None
    max_age: int
    max_age_days: int
    page_limits: PageLimits
    media_types: frozenset[str]
    clock: Callable[[], float]


def validate_options(
    *,
    base_url: str | None,
    allowed_hosts: str | Iterable[str],
    path: str,
    include: str | Iterable[str],
    exclude: str | Iterable[str],
    learn: str | Iterable[str],
    list_unseen: bool,
    verify: bool,
    robots: bool,
    priority: float | Literal["auto"] | None,
    changefreq: Changefreq | Literal["auto"] | None,
    max_age: int,
    max_age_days: int,
    max_pages: int,
    max_pages_per_route: int,
    media_types: str | Iterable[str] | None,
    clock: Callable[[], float] | None,
    declared_root: str,
) -> Options:
    """Validate the options; `OptionError` names an invalid value, its place and the fix."""
    return Options(
        site=_site(base_url, declared_root),
        allowed_hosts=tuple(_allowed_host(host) for host in _strings(allowed_hosts, "allowed_hosts")),
        path=_path(path),
        include=_patterns(include, "include"),
        exclude=_patterns(exclude, "exclude"),
        learn=_learn_patterns(_patterns(learn, "learn")),
        list_unseen=_flag(list_unseen, "list_unseen"),
        verify=_flag(verify, "verify"),
        robots=_flag(robots, "robots"),
        priority=priority if priority is None or priority == "auto" else validate_priority(priority, CONSTRUCTOR_NAME),
        changefreq=None if changefreq is None else validate_changefreq(changefreq, CONSTRUCTOR_NAME),
        max_age=_number(max_age, "max_age", "seconds", 0),
        max_age_days=_number(max_age_days, "max_age_days", "days", 1),
        page_limits=PageLimits(
            _number(max_pages, "max_pages", "pages", 1),
            _number(max_pages_per_route, "max_pages_per_route", "pages", 1),
        ),
        media_types=_media_types(media_types),
        clock=_clock(clock),
    )


def refuse_unknown(options: Mapping[str, object], constructor: Callable[..., Any]) -> None:
    """Raise `OptionError` for the first option that the constructor does not have, with the closest name."""
    parameters = inspect.signature(constructor).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise unknown_option_error(CONSTRUCTOR_NAME, name, known)


def _site(base_url: str | None, declared_root: str) -> Site | None:
    place = f"{CONSTRUCTOR_NAME}: base_url"
    if base_url is None:
        base_url = os.environ.get("SITEMAP_BASE_URL") or None
        place = "SITEMAP_BASE_URL"
    if base_url is None:
        return None
    site = parse_base_url(base_url, place)
    if site.root and site.root != declared_root.rstrip("/"):
        raise OptionError(
            f"{place}={base_url!r} has the path {site.root!r}, which is not the app's root path; leave it off: "
            "the root path is taken from the server (root_path in ASGI, SCRIPT_NAME in WSGI)"
        )
    return Site(site.scheme, site.host, "", site.loopback)


def _strings(value: str | Iterable[str], name: str) -> list[str]:
    if isinstance(value, str):
        return [value]
    try:
        items = list(value)
    except TypeError:
        raise OptionError(
            f"{CONSTRUCTOR_NAME}: {name}={value!r} is not a list of strings; give a tuple of them"
        ) from None
    for item in items:
        if not isinstance(item, str):
            raise OptionError(f"{CONSTRUCTOR_NAME}: {name} holds {item!r}, which is not a string")
    return items


def _allowed_host(host: str) -> str:
    normal = normal_host(ascii_host(host.removeprefix("*").removeprefix(".")), "")
    if normal is None:
        raise OptionError(
            f'{CONSTRUCTOR_NAME}: allowed_hosts holds {host!r}, which is not a host; give "example.com", '
            '"example.com:8080", ".example.com" with all subdomains, or "*.example.com" for these alone'
        )
    wildcard = next((prefix for prefix in ("*.", ".") if host.startswith(prefix)), "")
    return wildcard + normal


def _path(path: object) -> str:
    if not isinstance(path, str) or not path.endswith(".xml") or len(path) > 1000 or quote_path(path) is None:
        raise OptionError(f'{CONSTRUCTOR_NAME}: path={path!r} is not a sitemap path; give one such as "/sitemap.xml"')
    return path


def _patterns(value: str | Iterable[str], name: str) -> Patterns:
    patterns = Patterns(_strings(value, name), include_parent=name == "exclude")
    for pattern in patterns:
        if not pattern.text.startswith(("/", "*")):
            raise OptionError(
                f"{CONSTRUCTOR_NAME}: {name} holds {pattern.text!r}; a pattern begins with a slash: "
                '"/about", "/posts/<slug>", "/admin/*"'
            )
        if not pattern.is_readable:
            raise OptionError(
                f"{CONSTRUCTOR_NAME}: {name} holds {pattern.text!r}, with a bracket that belongs to no parameter; "
                'write parameters as "<slug>", "<int:id>" or "{slug}"'
            )
    return patterns


def _learn_patterns(patterns: Patterns) -> Patterns:
    for pattern in patterns:
        if pattern.literal:
            continue
        reason = _not_learned_reason(pattern)
        if reason:
            raise OptionError(
                f"{CONSTRUCTOR_NAME}: learn holds {pattern.text!r}, {reason}; name a narrower pattern, or, if "
                "every page it takes in is public, give it as include"
            )
    return patterns


def _not_learned_reason(pattern: Pattern) -> str | None:
    if pattern.is_too_wide:
        return "a catch-all, which would let anyone put URLs into the sitemap"
    if pattern.secret:
        return f"whose parameter {pattern.secret!r} is named like a secret"
    return None


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{CONSTRUCTOR_NAME}: {name}={value!r} is neither True nor False")
    return value


def _number(value: object, name: str, unit: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"{CONSTRUCTOR_NAME}: {name}={value!r} is not a number of {unit}; give {least} or more")
    return value


def _media_types(value: str | Iterable[str] | None) -> frozenset[str]:
    if value is None:
        return INDEXABLE_TYPES
    types = _strings(value, "media_types")
    for item in types:
        if not _MEDIA_TYPE.fullmatch(item):
            raise OptionError(f'{CONSTRUCTOR_NAME}: media_types holds {item!r}; give types such as "text/html"')
    return frozenset(item.lower() for item in types)


def _clock(value: Callable[[], float] | None) -> Callable[[], float]:
    if value is None:
        return time.time
    if not callable(value):
        raise OptionError(
            f"{CONSTRUCTOR_NAME}: clock={value!r} cannot be called; give a callable that returns POSIX seconds"
        )
    return value
