"""Makes the route that stands for a section of the option `sections`: its items name their URLs themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..models import Context, Provider, Route, RouteSettings

LOC: Final = "loc"
"""The only parameter: the path or the URL of a page."""


class SectionBuilder:
    """Gives the items of a named section their parameter. The app's router takes no part in it."""

    parameter_names: frozenset[str] = frozenset({LOC})

    def __init__(self, new_context: Callable[[], Context | None]) -> None:
        self._new_context = new_context

    def build(self, params: Mapping[str, Any]) -> str:
        """The path or URL as it was given. Raises `ValueError` if it is not text."""
        loc = params.get(LOC)
        if not isinstance(loc, str) or len(params) > 1:
            raise ValueError('it does not say which page it is; give its path such as "/about", or Entry(loc="/about")')
        return loc

    def matches(self, path: str) -> bool:  # noqa: ARG002 (the contract of path builders)
        """Never: only the provider knows the pages."""
        return False

    def context(self) -> Context | None:
        """A new application context, or None if the app needs none."""
        return self._new_context()


def named_section_route(provider: Provider, new_context: Callable[[], Context | None]) -> Route:
    """The route of a named section."""
    return Route(
        f"section {provider.section}",
        provider.place,
        static=False,
        settings=RouteSettings(values=provider),
        builder=SectionBuilder(new_context),
    )
