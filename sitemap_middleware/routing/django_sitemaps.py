"""Reads the `Sitemap` classes of `django.contrib.sitemaps` that the setting SITEMAP_SITEMAPS names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib.sites.shortcuts import get_current_site
from django.urls import get_script_prefix, set_script_prefix
from django.utils import timezone, translation
from django.utils.module_loading import import_string

from ..exceptions import OptionError
from ..http.urls import quote_path
from ..models import I18N, PathBuilder, Provider, Route, RouteSettings, Version
from ..options.decorator import settings_of
from ..options.entry import Entry
from ..protocol.language_codes import X_DEFAULT, language_code
from ..protocol.value_checks import parse_date, validate_changefreq, validate_priority
from .django_urlconf import default_language, own_connections, resolve
from .language_versions import group_of
from .route_table import section_name

SETTING = "SITEMAP_SITEMAPS"


class SitemapSection:
    """The pages of one `Sitemap`: a provider, and settings of the static routes among its locations.

    Its locations may lead to any view, so which views have pages in it is known once it was read.
    """

    def __init__(self, name: str, sitemap: Any) -> None:
        self.key: str = name
        self.name: str = re.sub(r"\W", lambda match: f"_{ord(match[0]):x}_", name)  # of unequal names, unequal ones
        self._sitemap = sitemap
        self.provider: Provider = Provider(self._items, f"{SETTING}[{name!r}]", any_route=True)
        self.has_static_pages_only = False
        """Whether its pages are all static, as it was read last. Then no document has pages of its provider."""
        self.static_settings: Mapping[str, RouteSettings] = {}
        """The settings of static routes, by path. Replaced when the sitemap was read to its end."""
        self.paths: Collection[int] = ()
        """The hashes of its paths that lead to routes with parameters."""

    def route(self, prefix: str, host: str | None) -> Route:
        """The route that stands for all views with pages in this sitemap."""
        sitemap = self._instance()
        has_versions = getattr(sitemap, "i18n", False) and getattr(sitemap, "alternates", False)
        language = I18N if has_versions else None
        section = "" if self.has_static_pages_only else None
        return Route(
            f"section {self.name}",
            self.key,  # the documents are named after it, as those of Django's own view
            static=False,
            host=host,
            settings=RouteSettings(values=self.provider, language_parameter=language, section=section),
            builder=_paths(self, prefix),
        )

    def _instance(self) -> Any:
        return self._sitemap() if isinstance(self._sitemap, type) else self._sitemap

    def _items(self) -> Iterator[Entry]:
        """The pages of views with parameters. Views that are decorated to be excluded or enumerated are left out."""
        static: dict[str, RouteSettings] = {}
        paths = set[int]()
        section = section_name(self.key) if getattr(settings, "SITEMAP_SECTIONS", None) is True else None
        with _plain_urls():
            sitemap = self._instance()
            site = get_current_site(SimpleNamespace(get_host=_host))
            for number in range(1, sitemap.paginator.num_pages + 1):
                for url in sitemap.get_urls(page=number, site=site, protocol="https"):
                    location = urlsplit(url["location"])
                    path = unquote(location.path)
                    language = translation.get_language_from_path(path) or default_language()
                    match = None if location.query else resolve(path, language)
                    view_settings = settings_of(match.func) if match else RouteSettings()
                    if view_settings.exclude or view_settings.values:
                        continue
                    fields = _fields(url, view_settings)
                    version = _version(url)
                    if match is not None and not any((*match.args, *match.captured_kwargs.values())):
                        # also the home page of a catch-all
                        static[path] = RouteSettings(**fields, version=version, section=section)
                        if not (match.args or match.captured_kwargs):
                            continue
                    if match is not None:
                        paths.add(hash(path))
                    entry = Entry({self.name: path if match else url["location"]}, **fields)
                    entry.__dict__["version"] = version
                    yield entry
        self.paths = paths
        if static != self.static_settings:
            self.static_settings, self.has_static_pages_only = static, not paths


@contextmanager
def _plain_urls() -> Iterator[None]:
    """Have `reverse` make the paths of a visitor who prefers no language, without the root path: it is added later."""
    prefix = get_script_prefix()
    set_script_prefix("/")
    try:
        with translation.override(default_language()):
            yield
    finally:
        set_script_prefix(prefix)


def _host() -> str:
    """The host by which Django finds its Site record if there is no `SITE_ID`. No location depends on it."""
    hosts = [urlsplit(getattr(settings, "SITEMAP_BASE_URL", None) or "").netloc, *settings.ALLOWED_HOSTS]
    return next((host for host in hosts if host and not host.startswith(("*", "."))), "localhost")


_sections: list[tuple[Any, list[SitemapSection]]] = []
"""One item: the setting, and its sections. They are kept, because providers are compared by identity."""


def sitemap_sections() -> list[SitemapSection]:
    """The sections of the setting SITEMAP_SITEMAPS.

    Raises:
        OptionError: the setting is neither a mapping of sitemaps nor the dotted path of one.
        ImportError: a dotted path is wrong.
    """
    setting = getattr(settings, SETTING, None)
    if setting is None:
        return []
    if not _sections or _sections[0][0] is not setting:
        _sections[:] = [(setting, [SitemapSection(name, sitemap) for name, sitemap in _mapping(setting).items()])]
    return _sections[0][1]


def _mapping(setting: Any) -> Mapping[str, Any]:
    sitemaps = _imported(setting)
    if isinstance(sitemaps, Mapping):
        imported = {str(name): _imported(sitemap) for name, sitemap in sitemaps.items()}
        if all(hasattr(sitemap, "get_urls") for sitemap in imported.values()):
            return imported
    raise OptionError(
        f"{SETTING}={setting!r} is not a mapping of names to Sitemap classes; give the one that the view `sitemap`"
        ' has, or its dotted path, such as "project.urls.sitemaps", or dotted paths of the classes'
    )


def _imported(value: Any) -> Any:
    try:
        return import_string(value) if isinstance(value, str) else value
    except ImportError as error:
        raise ImportError(f"{SETTING} names {value!r}, which cannot be imported: {error}") from error


def _fields(url: Mapping[str, Any], view_settings: RouteSettings) -> dict[str, Any]:
    """The lastmod, changefreq and priority of a URL, those that it has. The settings of its view come first."""
    lastmod = url.get("lastmod")
    if isinstance(lastmod, str):
        lastmod = parse_date(lastmod)
    if isinstance(lastmod, datetime) and timezone.is_naive(lastmod):
        lastmod = timezone.make_aware(lastmod, timezone.get_default_timezone())
    fields: dict[str, Any] = {
        "lastmod": lastmod if isinstance(lastmod, date) else None,
        "changefreq": view_settings.changefreq,
        "priority": view_settings.priority,
    }
    # Django writes whatever a Sitemap class says, so an invalid value leaves its own field out and no page.
    with suppress(OptionError):
        fields["changefreq"] = view_settings.changefreq or validate_changefreq(url.get("changefreq"))
    if view_settings.priority is None:
        with suppress(OptionError, ValueError):  # `get_urls` gives it as text
            fields["priority"] = validate_priority(float(url.get("priority") or "nan"))
    return {name: value for name, value in fields.items() if value is not None}


def _version(url: Mapping[str, Any]) -> Version | None:
    """What a URL is a version of: all versions of an object have the same alternates."""
    paths = {str(other["lang_code"]): urlsplit(other["location"]).path for other in url.get("alternates") or ()}
    default, own = quote_path(unquote(paths.pop(X_DEFAULT, ""))) or "", urlsplit(url["location"]).path
    code = next((language_code(code) for code, path in paths.items() if path == own), None)
    group = group_of(*(f"{code} {path}" for code, path in sorted(paths.items())))
    return None if code is None else Version(group, code, default)


def _paths(section: SitemapSection, prefix: str) -> PathBuilder:
    """Takes the locations as paths. Those that lead to no view are refused."""

    def write(params: Mapping[str, Any]) -> str:
        path = str(params[section.name])
        if not path.startswith("/"):
            location = urlsplit(path)._replace(scheme="", netloc="").geturl()
            raise ValueError(f"{location} leads to no view of the project")
        return path

    # Not checked, because the paths are known once all locations have been read.
    return PathBuilder(
        names=frozenset({section.name}),
        prefix=prefix,
        write=write,
        leads_here=lambda path: hash(path) in section.paths,
        is_checked=False,
        context=own_connections,
    )
