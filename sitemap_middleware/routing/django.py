"""Reads the routes of a Django project from its URLconf, in every language of `i18n_patterns`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice, product
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections
from django.urls import Resolver404, ResolverMatch, URLPattern, URLResolver, get_resolver
from django.urls.resolvers import LocalePrefixPattern, RoutePattern
from django.utils import translation
from django.utils.regex_helper import normalize
from django.views.generic.base import RedirectView, View

from ..decorator import endpoint_name, settings_of
from ..models import Context, HiddenReason, Route
from .mount_position import MatchBelow, MountPosition
from .path_builder_checks import check_params
from .prefix_index import PrefixIndex

_PARAMETER: Final = re.compile(r"<(?:[^<>:]+:)?(?P<name>[^<>]+)>")
"""A parameter of `path()`."""

_MAX_FORMS: Final = 32
"""Forms of one route with optional groups that are read."""

_ADMIN: Final = "it is part of Django's admin"
_REDIRECT: Final = HiddenReason("it declares a redirect", is_declared=True)
_FILES: Final = HiddenReason("it serves static files", is_declared=True)
_FILE_VIEWS: Final = ("django.views.static", "django.contrib.staticfiles.views")
"""The modules of the views that serve STATIC_ROOT and MEDIA_ROOT."""


class _View(NamedTuple):
    """One form of a `path()` or `re_path()`, with every `include()` around it, in one language."""

    template: str
    """As `path()` writes it, from the first slash on."""
    format: str
    """With ``%(name)s`` for each parameter."""
    names: frozenset[str]
    converters: Mapping[str, Any]
    route: str
    """As in `ResolverMatch.route`."""
    language: str
    callback: Any
    is_admin: bool
    is_regex: bool
    """Whether its form was derived from a regular expression, and so may not match it."""


def read_routes(_app: Any, position: MountPosition) -> Iterator[Route]:
    """The views of the URLconf that answer GET. Those of the admin are never pages of the site."""
    position.snapshot.add(lambda: [settings.LANGUAGE_CODE, settings.LANGUAGES, settings.ROOT_URLCONF])
    position.snapshot.add(get_resolver)
    resolver = get_resolver()
    position.snapshot.add(partial(getattr, resolver, "url_patterns"))
    earlier: PrefixIndex[_View] = PrefixIndex()
    for view in _views(resolver):
        if view.names:
            earlier.add(view.template.partition("<")[0] if not view.is_regex else "/", view)
        if not _answers_get(view.callback) or (view.is_admin and view.names):
            continue
        shadowed_by = None
        if not view.names and (view.is_regex or earlier.find(view.template)):
            match = _resolve(view.template, view.language)
            if match is None:
                continue
            shadowed_by = None if _leads_to(match, view) else f"/{match.route} ({_name(match.func)})"
        view_settings = settings_of(view.callback)
        yield Route(
            position.prefix + view.template,
            _name(view.callback),
            not view.names,
            position.host,
            view_settings,
            _hidden_reason(view.callback),
            _ADMIN if view.is_admin else None,
            shadowed_by=shadowed_by,
            builder=_PathBuilder(view, position.prefix) if view_settings.values and view.names else None,
        )


def matching_template(_app: Any, path: str, _host: str | None, _match_below: MatchBelow) -> str | None:
    """The template of the view that answers a decoded path; None if there is none."""
    language = translation.get_language_from_path(path) or settings.LANGUAGE_CODE
    match = _resolve(path, language)
    if match is None:
        return None
    views = (view for view in _views(get_resolver()) if view.language == language and _leads_to(match, view))
    return next((view.template for view in views), None)


def trusted_hosts(_app: Any) -> tuple[str, ...]:
    """The ALLOWED_HOSTS. A name that begins with a dot stands for itself, too, as in Django."""
    hosts: list[str] = []
    for host in map(str.lower, settings.ALLOWED_HOSTS):
        hosts += [host, host.removeprefix(".")] if host != "*" else []
    return tuple(hosts)


def sitemap_settings() -> dict[str, Any]:
    """The settings that are options of the middleware."""
    return {name: getattr(settings, name) for name in dir(settings) if name.startswith("SITEMAP_")}


def _views(resolver: URLResolver) -> Iterator[_View]:
    """The views of the URLconf in the order in which Django tries them."""
    for patterns, callback, language, is_admin in _patterns(resolver, settings.LANGUAGE_CODE, ()):
        with translation.override(language):
            route = ""
            for pattern in reversed(patterns):
                route = str(pattern) + route.removeprefix("^") if str(pattern) else route
            converters = {name: converter for pattern in patterns for name, converter in pattern.converters.items()}
            is_regex = not all(isinstance(pattern, RoutePattern | LocalePrefixPattern) for pattern in patterns)
            for forms in islice(product(*map(_forms, patterns)), _MAX_FORMS):
                names = frozenset(name for form in forms for name in form[2])
                template, path_format = "".join(form[0] for form in forms), "".join(form[1] for form in forms)
                yield _View(
                    f"/{template}",
                    f"/{path_format}",
                    names,
                    converters,
                    route,
                    language,
                    callback,
                    is_admin,
                    is_regex,
                )


def _patterns(
    resolver: URLResolver, language: str, outer: tuple[Any, ...], *, is_admin: bool = False
) -> Iterator[tuple[tuple[Any, ...], Any, str, bool]]:
    """Each view of a resolver: the patterns from the root's on, the view, the language, whether it is an admin's."""
    for entry in resolver.url_patterns:
        patterns = (*outer, entry.pattern)
        if isinstance(entry, URLPattern):
            yield patterns, entry.callback, language, is_admin
        elif isinstance(entry, URLResolver):
            of_admin = is_admin or (entry.app_name == "admin" and any(map(_is_admin_view, entry.url_patterns)))
            languages = _languages() if isinstance(entry.pattern, LocalePrefixPattern) else [language]
            for code in languages:
                yield from _patterns(entry, code, patterns, is_admin=of_admin)


def _languages() -> list[str]:
    """The languages that `i18n_patterns` answers in: without a LocaleMiddleware, only the default one."""
    if any("locale" in name.lower() for name in settings.MIDDLEWARE):
        return [code for code, _ in settings.LANGUAGES]
    return [settings.LANGUAGE_CODE]


def _is_admin_view(entry: Any) -> bool:
    return hasattr(getattr(entry, "callback", None), "admin_site")


def _forms(pattern: Any) -> list[tuple[str, str, Sequence[str]]]:
    """The template, the format and the parameters of each form of a pattern, in the active language."""
    if isinstance(pattern, LocalePrefixPattern):
        prefix = pattern.language_prefix
        return [(prefix, prefix, ())]
    if isinstance(pattern, RoutePattern):
        route = str(pattern)
        literals = _PARAMETER.split(route)
        names = literals[1::2]
        literals[1::2] = [f"%({name})s" for name in names]
        literals[::2] = [literal.replace("%", "%%") for literal in literals[::2]]
        return [(route, "".join(literals), names)]
    regex = pattern.regex.pattern
    return [
        (path_format % {name: _regex_parameter(regex, name) for name in names}, path_format, names)
        for path_format, names in normalize(regex)
    ]


def _regex_parameter(regex: str, name: str) -> str:
    """A group of a regular expression as `path()` writes it. One that takes anything takes slashes, too."""
    wide = re.search(rf"\(\?P<{name}>\.[*+]", regex) or (name.startswith("_") and re.search(r"\(\.[*+]", regex))
    return f"<path:{name}>" if wide else f"<{name}>"


def _resolve(path: str, language: str) -> ResolverMatch | None:
    """What Django's resolver finds for a decoded path in a language."""
    with translation.override(language), suppress(Resolver404):
        return get_resolver().resolve(path)
    return None


def _leads_to(match: ResolverMatch, view: _View) -> bool:
    return match.route == view.route and match.func is view.callback


def _name(callback: Any) -> str:
    return endpoint_name(getattr(callback, "view_class", callback))


def _answers_get(callback: Any) -> bool:
    """Whether a view may answer GET, by its class and by `require_http_methods` and its kind."""
    view_class = getattr(callback, "view_class", None)
    if isinstance(view_class, type) and getattr(view_class, "dispatch", None) is View.dispatch:
        options = getattr(callback, "view_initkwargs", {})
        methods = options.get("http_method_names", getattr(view_class, "http_method_names", ()))
        if not hasattr(view_class, "get") or "get" not in methods:
            return False
    layer, depth = callback, 0
    while layer is not None and depth < _MAX_FORMS:
        names = getattr(getattr(layer, "__code__", None), "co_freevars", ())
        if "request_method_list" in names:
            allowed = layer.__closure__[names.index("request_method_list")].cell_contents
            if "GET" not in allowed:
                return False
        layer, depth = getattr(layer, "__wrapped__", None), depth + 1
    return True


def _hidden_reason(callback: Any) -> HiddenReason | None:
    view_class = getattr(callback, "view_class", None)
    if isinstance(view_class, type) and issubclass(view_class, RedirectView):
        return _REDIRECT
    return _FILES if getattr(callback, "__module__", None) in _FILE_VIEWS else None


@contextmanager
def _own_connections() -> Iterator[None]:
    """Closes the database connections that the app's code opens on a thread of the middleware."""
    try:
        yield
    finally:
        with suppress(SynchronousOnlyOperation):  # on an event loop, Django's async queries use other threads
            connections.close_all()


class _PathBuilder:
    """Builds and matches the paths of one view with parameters."""

    def __init__(self, view: _View, prefix: str) -> None:
        self._view = view
        self._prefix = prefix
        self.names = view.names

    def build(self, params: Mapping[str, Any]) -> str:
        view = self._view
        check_params(params, view.names, view.names)
        texts = {
            name: view.converters[name].to_url(value) if name in view.converters else str(value)
            for name, value in params.items()
        }
        path = view.format % texts
        if not self.matches(self._prefix + path):
            raise ValueError(f"{path} does not lead back to {view.template}")
        return self._prefix + path

    def matches(self, path: str) -> bool:
        below = path.removeprefix(self._prefix) if path.startswith(self._prefix) else ""
        match = _resolve(below, self._view.language)
        return match is not None and _leads_to(match, self._view)

    def context(self) -> Context | None:
        return _own_connections()
