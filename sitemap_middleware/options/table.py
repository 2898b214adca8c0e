"""The table of all options: default, form and check of each; and `Options`, the checked values."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from ..evidence.observations import INDEXABLE_TYPES
from ..exceptions import OptionError
from ..http.site_urls import parse_base_url
from ..http.urls import ascii_host, normal_host, quote_path
from ..models import PageLimits, Provider, Site
from ..protocol.extensions import MAX_IMAGES
from ..protocol.language_codes import X_DEFAULT, hreflang_fault, words
from ..protocol.value_checks import (
    Changefreq,
    unknown_option_error,
    validate_changefreq,
    validate_priority,
    validate_section,
)
from .entry import checked_values
from .patterns import Pattern, Patterns
from .sources import CONSTRUCTOR_NAME, FLAG_WORDS, Option, Setting

HIDING_WORDS: Final = ("disallow", "noindex")
"""The words of the option `robots` that keep a site out of search engines."""

_DECORATOR_ONLY: Final = ("lastmod", "section", "values")
"""Arguments of `@sitemap` that are no options."""

_LARGEST_NUMBER: Final = 1_000_000_000
"""The largest number of any option: what is computed from it fits dates and the columns of stores."""

DEFAULT_IMAGES: Final = 25
"""Images of a page that are listed with images=True."""

_MEDIA_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
"""A type and a subtype without parameters (RFC 6838, section 4.2)."""

_CACHE_TAG: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}").fullmatch
"""What Cloudflare, Fastly and Google all take as one tag: neither spaces nor commas, which separate tags."""

_INDEXNOW_KEY: Final = re.compile(r"[A-Za-z0-9-]{8,128}")

_PLAIN_PATH: Final = r"(?=.{2,200}\Z)(?:/[A-Za-z0-9_-][A-Za-z0-9._~-]*)+"
_FEED_PATH: Final = re.compile(_PLAIN_PATH + r"(?<=\.atom)").fullmatch
_REPORT_PATH: Final = re.compile(_PLAIN_PATH + r"(?<!\.xml|\.txt)(?<!\.atom)").fullmatch
"""Only characters that servers pass on unchanged, so that the adapters can search paths for them."""

_NOT_ABOUT_ENTRIES: Final = words(
    "allowed_hosts base_url cache_tag enabled feed gone indexnow indexnow_endpoint max_age max_pages"
    " max_pages_per_route metrics store x_default"
)
"""Options that change no entry, or only through its site. Any other is taken to change entries: a new one need not be
named here.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """All options, checked. `OPTIONS` says what each is."""

    site: Site | None
    """That of `base_url`, if it is a URL."""
    site_of_host: Callable[[str], Site | None] | None
    """What `base_url` says of a host, if it is a function. It raises what that raises, or `OptionError`."""
    allowed_hosts: tuple[str, ...]
    path: str
    include: Patterns
    exclude: Patterns
    learn: Patterns
    list_unseen: bool
    verify: bool
    robots: bool | Literal["disallow", "noindex"]
    priority: float | Literal["auto"] | None
    changefreq: Changefreq | Literal["auto"] | None
    max_age: int
    cache_tag: str | None
    """Names the documents to a CDN that purges by tag."""
    max_age_days: int
    page_limits: PageLimits
    media_types: frozenset[str]
    clock: Callable[[], float]
    enabled: bool
    images: int
    """Images of a page that are listed as its HTML shows them; 0 if none are."""
    alternates: bool
    sections: tuple[Provider, ...]
    """The providers of named sections."""
    section_by_endpoint: bool
    """Whether each route with parameters is a section, named after its endpoint."""
    language_parameter: str | None
    """Pages that differ only in this parameter of their view are versions of each other."""
    x_default: str | None
    """The language of the version for visitors whose language no version has, in lower case."""
    feed: str | None
    """The path of the feed of changes; None if there is none."""
    gone: bool
    """Whether a document has the pages that are gone."""
    indexnow: bool | str
    """Whether IndexNow is told of changes; or the key for it."""
    indexnow_endpoint: str | None
    report: str | None
    """The path of the report; None if there is none."""
    authorize: Callable[[Any], Any] | None
    """Decides who may read the report."""
    settings: Mapping[str, Setting]
    """Every option but `routes`, with the value in use and where it comes from."""

    @property
    def keeps_changes(self) -> bool:
        """Whether anything tells what changed in the sitemap."""
        return self.gone or self.feed is not None or self.indexnow is not False

    @property
    def about_entries(self) -> list[tuple[str, Any]]:
        """The settings that may change entries, each as a value whose `repr` is the same in every process.

        Objects have none. Of these, only `sections` changes entries, and the routes show what it gives.
        """
        return [
            (name, sorted(setting.value) if isinstance(setting.value, tuple) else setting.value)
            for name, setting in self.settings.items()
            if name not in _NOT_ABOUT_ENTRIES and OPTIONS[name].form != "object"
        ]

    def is_report(self, path: str) -> bool:
        """Whether a path is that of the report, or below it."""
        return self.report is not None and f"{path}/".startswith(f"{self.report}/")

    @property
    def hides_all(self) -> bool:
        """Whether the site is kept out of search engines, by robots.txt or by a header, and there is no sitemap."""
        return self.robots in HIDING_WORDS


def validate_options(settings: Mapping[str, Setting], declared_root: str) -> Options:
    """Check the options; `OptionError` names an invalid value, its place and the fix."""
    values: dict[str, Any] = {
        name: None if setting.value is None is OPTIONS[name].default else OPTIONS[name].check(setting)
        for name, setting in settings.items()
    }
    place, base_url = settings["base_url"].place, values.pop("base_url")
    is_function, sections, alternates = callable(base_url), values.pop("sections"), values.pop("alternates")
    del values["store"], values["metrics"]  # objects that the middleware makes
    return Options(
        site=None if is_function else _site(base_url, place, declared_root),
        site_of_host=partial(_site_of_host, base_url, place, declared_root) if is_function else None,
        page_limits=PageLimits(values.pop("max_pages"), values.pop("max_pages_per_route")),
        media_types=values.pop("media_types") or INDEXABLE_TYPES,
        clock=values.pop("clock") or time.time,
        section_by_endpoint=sections is True,
        alternates=alternates is True,
        language_parameter=alternates if isinstance(alternates, str) else None,
        sections=() if sections in (None, True) else sections,
        settings=settings,
        **values,
    )


def refuse_unknown(options: Mapping[str, object], *further: str) -> None:
    """Raise `OptionError` for the first name that is no option, nor one of these further ones, with the closest."""
    for name in options:
        if name in _DECORATOR_ONLY:
            raise OptionError(
                f"{CONSTRUCTOR_NAME}: {name} is no option, but an argument of @sitemap; decorate the view with it"
            )
        if name not in OPTIONS and name not in further:
            raise unknown_option_error(CONSTRUCTOR_NAME, name, [*OPTIONS, *further])


def _sections(sections: Setting) -> tuple[Provider, ...] | Literal[True]:
    if sections.value is True:
        return True
    if not isinstance(sections.value, Mapping):
        raise OptionError(
            f"{sections.place}={sections.value!r} is not a mapping; give the items by the name of their section, "
            'such as {"guides": all_guides}, or True for a section of each route with parameters'
        )
    providers = []
    for name, values in sections.value.items():
        try:
            validate_section(name)
        except OptionError as error:
            raise OptionError(f"{sections.place}: {error}") from None
        place = f"{sections.place}[{name!r}]"
        provider = checked_values(values, place, name)
        if provider is None:
            raise OptionError(f"{place}: values=None is not iterable; give an iterable, or a callable that returns one")
        providers.append(provider)
    return tuple(providers)


def _site(base_url: object, place: str, declared_root: str) -> Site | None:
    """The site of a base_url, without the root path, which the server knows."""
    if base_url is None:
        return None
    site = parse_base_url(base_url, place)
    if site.root and site.root != declared_root.rstrip("/"):
        raise OptionError(
            f"{place}={base_url!r} has the path {site.root!r}, which is not the app's root path; leave"
            " it off: the root path is taken from the server (root_path in ASGI, SCRIPT_NAME in WSGI)"
        )
    return replace(site, root="")


def _site_of_host(function: Callable[[str], object], place: str, declared_root: str, host: str) -> Site | None:
    """What a function given as base_url says of a host."""
    site = _site(function(host), f"{place}({host!r})", declared_root)
    return site and replace(site, loopback=False)  # loopback hosts share their pages


def _allowed_hosts(setting: Setting) -> tuple[str, ...]:
    hosts = []
    for host in setting.value:
        normal = normal_host(ascii_host(host.removeprefix("*").removeprefix(".")), "")
        if normal is None:
            raise OptionError(
                f'{setting.place} holds {host!r}, which is not a host; give "example.com", '
                '"example.com:8080", ".example.com" with all subdomains, or "*.example.com" for these alone'
            )
        wildcard = next((prefix for prefix in ("*.", ".") if host.startswith(prefix)), "")
        hosts.append(wildcard + normal)
    return tuple(hosts)


def _text(fits: Callable[[str], object], what: str, setting: Setting) -> str:
    if isinstance(setting.value, str) and fits(setting.value):
        return setting.value
    raise OptionError(f"{setting.place}={setting.value!r} is not {what}")


def _is_sitemap_path(path: str) -> bool:
    return path.endswith(".xml") and len(path) <= 1000 and quote_path(path) is not None


def _patterns(setting: Setting) -> Patterns:
    patterns = Patterns(Pattern(text, include_parent=setting.name == "exclude") for text in setting.value)
    for pattern in patterns:
        if not pattern.text.startswith(("/", "*")):
            raise OptionError(
                f"{setting.place} holds {pattern.text!r}; a pattern begins with a slash: "
                '"/about", "/posts/<slug>", "/admin/*"'
            )
        if not pattern.is_readable:
            raise OptionError(
                f"{setting.place} holds {pattern.text!r}, with a bracket that belongs to no parameter; "
                'write parameters as "<slug>", "<int:id>" or "{slug}"'
            )
    return patterns


def _learn_patterns(setting: Setting) -> Patterns:
    patterns = _patterns(setting)
    for pattern in patterns:
        if pattern.is_too_wide:
            reason = "a catch-all, which would let anyone put URLs into the sitemap"
        elif pattern.secret:
            reason = f"whose parameter {pattern.secret!r} is named like a secret"
        else:
            continue
        raise OptionError(
            f"{setting.place} holds {pattern.text!r}, {reason}; name a narrower pattern, or, if "
            "every page it takes in is public, give it as include"
        )
    return patterns


def _robots(setting: Setting) -> Any:
    return setting.value if setting.value in HIDING_WORDS else _flag(setting, '"disallow" or "noindex"')


def _priority(setting: Setting) -> float | Literal["auto"]:
    return "auto" if setting.value == "auto" else validate_priority(setting.value, setting.place)


def _flag(setting: Setting, other: str = "") -> bool:
    """The value of an option that is true or false, or this `other` value, which the error names."""
    if isinstance(setting.value, bool):
        return setting.value
    given = f"{setting.place}={setting.value!r}"
    if setting.source in ("config", "environment"):
        others = f", or {other}" if other else ""
        raise OptionError(f"{given} is neither True nor False; give {FLAG_WORDS}{others}")
    raise OptionError(f"{given} is neither {f'True, False, {other}' if other else 'True nor False'}")


def _number(unit: str, least: int, setting: Setting) -> int:
    value = setting.value
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"{setting.place}={value!r} is not a number of {unit}; give {least} or more")
    if value > _LARGEST_NUMBER:
        raise OptionError(f"{setting.place}: the number of {unit} is too large; give {_LARGEST_NUMBER} or less")
    return value


def _image_limit(setting: Setting) -> int:
    value = setting.value
    if isinstance(value, str) and value.strip().isdecimal() and value.isascii():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_IMAGES:
        return DEFAULT_IMAGES * _flag(setting, f"a number from 1 to {MAX_IMAGES:,}")
    return value


def _media_types(setting: Setting) -> frozenset[str]:
    for item in setting.value:
        if not _MEDIA_TYPE.fullmatch(item):
            raise OptionError(f'{setting.place} holds {item!r}; give types such as "text/html"')
    return frozenset(item.lower() for item in setting.value)


def _alternates(setting: Setting) -> bool | str:
    if isinstance(setting.value, str) and setting.value.isidentifier():
        return setting.value
    return _flag(setting, 'the parameter that is the language, such as "lang"')


def _x_default(setting: Setting) -> str:
    code = str(setting.value).lower()
    if code == X_DEFAULT or hreflang_fault(code):
        raise OptionError(f'{setting.place}={setting.value!r} is not the code of a language; give one such as "en"')
    return code


def _indexnow(setting: Setting) -> bool | str:
    value = setting.value
    if isinstance(value, str) and _INDEXNOW_KEY.fullmatch(value):
        return value
    return _flag(setting, "a key for IndexNow: 8 to 128 letters, digits and hyphens")


def _endpoint(setting: Setting) -> str:
    with suppress(ValueError):
        parts = urlsplit(str(setting.value))
        if parts.scheme in ("http", "https") and normal_host(parts.netloc, parts.scheme) is not None:
            return urlunsplit(parts if parts.path not in ("", "/") else parts._replace(path="/indexnow"))
    raise OptionError(
        f'{setting.place}={setting.value!r} is not a URL; give one such as "https://www.bing.com/indexnow"'
    )


_REPORT_PATH_FIX: Final = (
    'a path for the report; give one such as "/sitemap-report": a slash, and then letters, digits, hyphens and further'
    " slashes, without one at the end"
)


def _authorize(setting: Setting) -> Any:
    value = setting.value
    function, problem = value, "cannot be called"
    if setting.source == "config" and isinstance(value, str):  # a settings module cannot import what imports it
        try:
            function = resolve_name(value)
        except (ImportError, AttributeError, ValueError) as error:
            function, problem = None, f"cannot be imported ({error})"
    if not callable(function):
        raise OptionError(
            f"{setting.place}={value!r} {problem}; give a function of a request that returns whether it may read the"
            ' report, or in the configuration its dotted path, such as "project.access.may_read_report"'
        )
    return function


def _clock(setting: Setting) -> Any:
    if callable(setting.value):
        return setting.value
    raise OptionError(f"{setting.place}={setting.value!r} cannot be called; give a callable that returns POSIX seconds")


def _made_elsewhere(setting: Setting) -> Any:
    return setting.value


OPTIONS: Final[Mapping[str, Option]] = {
    option.name: option
    for option in (
        Option("base_url", None, "text", _made_elsewhere),
        Option("allowed_hosts", (), "list", _allowed_hosts),
        Option(
            "path",
            "/sitemap.xml",
            "text",
            partial(_text, _is_sitemap_path, 'a sitemap path; give one such as "/sitemap.xml"'),
        ),
        Option("store", None, "text", _made_elsewhere),
        Option("include", (), "list", _patterns),
        Option("exclude", (), "list", _patterns),
        Option("learn", (), "list", _learn_patterns),
        Option("list_unseen", True, "flag", _flag),
        Option("verify", True, "flag", _flag),
        Option("priority", None, "decimal", _priority),
        Option("changefreq", None, "text", lambda setting: validate_changefreq(setting.value, setting.place)),
        Option("robots", True, "flag", _robots),
        Option("max_age", 300, "number", partial(_number, "seconds", 0)),
        Option(
            "cache_tag",
            None,
            "text",
            partial(_text, _CACHE_TAG, 'one tag; give up to 128 letters, digits and ._:-, such as "sitemap"'),
        ),
        Option("max_age_days", 365, "number", partial(_number, "days", 1)),
        Option("max_pages", 1_000_000, "number", partial(_number, "pages", 1)),
        Option("max_pages_per_route", 100_000, "number", partial(_number, "pages", 1)),
        Option("media_types", None, "list", _media_types),
        Option("clock", None, "object", _clock),
        Option("metrics", None, "text", _made_elsewhere),
        Option("enabled", True, "flag", _flag),
        Option("sections", None, "object", _sections),
        Option("x_default", None, "text", _x_default),
        Option(
            "feed", None, "text", partial(_text, _FEED_PATH, 'a path for the feed; give one such as "/changes.atom"')
        ),
        Option("gone", False, "flag", _flag),
        Option("indexnow", False, "flag", _indexnow),
        Option("indexnow_endpoint", None, "text", _endpoint),
        Option("report", None, "text", partial(_text, _REPORT_PATH, _REPORT_PATH_FIX)),
        Option("images", False, "flag", _image_limit),
        Option("alternates", False, "flag", _alternates),
        Option("authorize", None, "object", _authorize),
    )
}
"""Every option but `routes`, which is an app. docs/reference/options.md describes them."""
