"""Walks Django's URLconf: its views in every language of `i18n_patterns`, and how it resolves paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections
from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, URLPattern, URLResolver, get_resolver
from django.urls.resolvers import LocalePrefixPattern, RoutePattern
from django.utils import translation
from django.utils.regex_helper import normalize

_PARAMETER: Final = re.compile(r"<(?:[^<>:]+:)?(?P<name>[^<>]+)>")
"""A parameter of `path()`."""

_GROUP: Final = re.compile(r"(?<!\\)\((?:[^()\\]|\\.)*\)")
_CLASS: Final = re.compile(r"\\[dDwWsS]|(?<!\\)[.\[|]")
"""What stands for several characters or alternatives."""

_REGEX_TOKEN: Final = re.compile(r"\\.|(?P<open>\((?:\?P<(?P<name>\w+)>)?)|(?P<close>\))", re.DOTALL)
"""An escaped character, and the ends of a group, in a regular expression that `normalize` can read."""

_PATHS: Final = ("a/b", "a/b/", "1/2", "1/2/")
"""Texts of which a parameter for paths takes one."""

_MAX_FORMS: Final = 32
"""Forms of one route with optional groups that are read."""


class View(NamedTuple):
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
    is_translated: bool
    """Whether it is in `i18n_patterns`."""

    def answers(self, match: ResolverMatch) -> bool:
        """Whether this is the view that Django's resolver found."""
        return match.route == self.route and match.func is self.callback


def views(resolver: URLResolver) -> Iterator[View]:
    """The views of the URLconf in the order in which Django tries them."""
    for patterns, callback, language, is_admin in _patterns(resolver, settings.LANGUAGE_CODE, ()):
        with translation.override(language):  # not around the `yield`: the language is the thread's
            found = _forms_of_view(patterns, callback, language, is_admin=is_admin)
        yield from found


def _forms_of_view(patterns: tuple[Any, ...], callback: Any, language: str, *, is_admin: bool) -> list[View]:
    """The forms of one view, in the active language. Its patterns are those from the root's `include()` to its own."""
    route = ""
    for pattern in reversed(patterns):
        route = str(pattern) + route.removeprefix("^") if str(pattern) else route
    converters = {name: converter for pattern in patterns for name, converter in pattern.converters.items()}
    is_regex = not all(isinstance(pattern, RoutePattern | LocalePrefixPattern) for pattern in patterns)
    is_translated = any(isinstance(pattern, LocalePrefixPattern) for pattern in patterns)
    found = []
    for forms in islice(product(*map(_forms, patterns)), _MAX_FORMS):
        template = "/" + "".join(form[0] for form in forms)
        path_format = "/" + "".join(form[1] for form in forms)
        names = frozenset(name for form in forms for name in form[2])
        view = View(
            template, path_format, names, converters, route, language, callback, is_admin, is_regex, is_translated
        )
        found.append(view)
    return found


def _patterns(
    resolver: URLResolver, language: str, outer: tuple[Any, ...], *, is_admin: bool = False
) -> Iterator[tuple[tuple[Any, ...], Any, str, bool]]:
    """Each view of a resolver: the patterns from the root's on, the view, the language, whether it is an admin's."""
    for entry in resolver.url_patterns:
        patterns = (*outer, entry.pattern)
        if isinstance(entry, URLPattern):
            yield patterns, entry.callback, language, is_admin
        else:
            callbacks = [getattr(inner, "callback", None) for inner in entry.url_patterns]
            of_admin = (
                is_admin
                or (entry.app_name == "admin" and any(hasattr(view, "admin_site") for view in callbacks))
                or getattr(entry.urlconf_name, "__name__", entry.urlconf_name) == "wagtail.admin.urls"
            )
            languages = _languages() if isinstance(entry.pattern, LocalePrefixPattern) else [language]
            for code in languages:
                yield from _patterns(entry, code, patterns, is_admin=of_admin)


def _languages() -> list[str]:
    """The languages that `i18n_patterns` answers in: without a LocaleMiddleware, only the default one.

    Paths without a prefix are those of the default one even if it is not in LANGUAGES, such as "en-us" beside "en".
    """
    _, is_default_prefixed = is_language_prefix_patterns_used(settings.ROOT_URLCONF)
    codes = [code for code, _ in settings.LANGUAGES] if _has_locale_middleware() else []
    return codes if codes and is_default_prefixed else list(dict.fromkeys([settings.LANGUAGE_CODE, *codes]))


def default_language() -> str:
    """The language that Django activates for a visitor who prefers none."""
    _, is_default_prefixed = is_language_prefix_patterns_used(settings.ROOT_URLCONF)
    if is_default_prefixed and _has_locale_middleware():
        return str(translation.get_language_from_request(HttpRequest()))
    return str(settings.LANGUAGE_CODE)


def _has_locale_middleware() -> bool:
    return any("locale" in name.lower() for name in settings.MIDDLEWARE)


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
    try:
        forms, groups = normalize(regex.replace("%", "%%")), _groups(regex)
        return [
            (path_format % {name: _regex_parameter(name, groups[name]) for name in names}, path_format, names)
            for path_format, names in forms
            if names or _has_one_path(regex)
        ]
    except (LookupError, TypeError, ValueError, re.error):  # Django cannot reverse it either
        return []


def _has_one_path(regex: str) -> bool:
    """Whether a regular expression, without its groups, matches one text only."""
    before = None
    while regex != before:
        regex, before = _GROUP.sub("", regex), regex
    return _CLASS.search(regex) is None


def _groups(regex: str) -> dict[str, str]:
    """The groups of a regular expression that are parameters, by the names that `normalize` gives them."""
    found: dict[str, str] = {}
    opened: list[tuple[str, int]] = []
    for token in _REGEX_TOKEN.finditer(regex):
        if token["open"]:
            is_parameter = not any(name for name, _ in opened) and (token["name"] or regex[token.end()] != "?")
            name = token["name"] or f"_{sum(name.startswith('_') for name in found)}" if is_parameter else ""
            opened.append((name, token.end()))
        elif token["close"]:
            name, start = opened.pop()
            if name:
                found[name] = regex[start : token.start()]
    return found


def _regex_parameter(name: str, group: str) -> str:
    """A group of a regular expression as `path()` writes it: one that takes slashes is a path."""
    return f"<path:{name}>" if any(re.fullmatch(group, text) for text in _PATHS) else f"<{name}>"


def resolve(path: str, language: str) -> ResolverMatch | None:
    """What Django's resolver finds for a decoded path in a language."""
    with translation.override(language), suppress(Resolver404):
        return get_resolver().resolve(path)
    return None


@contextmanager
def own_connections() -> Iterator[None]:
    """A context for the project's code on a thread of the middleware. Its end closes the thread's connections."""
    try:
        yield
    finally:
        with suppress(SynchronousOnlyOperation):  # on an event loop, Django's async queries use other threads
            connections.close_all()
