"""What the routes of Starlette and FastAPI declare about their responses."""

from __future__ import annotations

import sys
from typing import Any, Final

from starlette.responses import RedirectResponse
from starlette.routing import Route as StarletteRoute

from ..evidence.observations import INDEXABLE_TYPES
from ..models import HiddenReason

_NOT_IN_SCHEMA: Final = HiddenReason("it is left out of the API's schema")

_PARAMETER_KINDS: Final = (
    ("query_params", "query parameter"),
    ("header_params", "header"),
    ("cookie_params", "cookie"),
    ("body_params", "body"),
)
"""Attributes of FastAPI's dependants, and what each holds."""


class DeclaredResponses:
    """Why the declarations of FastAPI and Starlette hide a route until a response shows that it is a page.

    Reasons are cached by response class, because many routes share a few.
    """

    def __init__(self) -> None:
        self._of_classes: dict[type, HiddenReason | None] = {}
        client = getattr(sys.modules.get("nicegui.client"), "Client", None)
        self._nicegui_pages = getattr(client, "page_routes", ())
        """The functions that NiceGUI's `ui.page` decorates. Their routes declare nothing."""

    def hidden_reason(self, route: Any, original: Any, static: bool) -> HiddenReason | None:
        """The reason of one route; None if it may be listed at once.

        Args:
            route: as it answers, with the settings of the routers that include it.
            original: as the app defines it.
            static: whether it has no parameters.
        """
        if type(original) is StarletteRoute:  # it declares nothing else
            return None if original.include_in_schema else _NOT_IN_SCHEMA
        if self._is_nicegui_page(getattr(original, "endpoint", None)):
            return _required_parameter(original) if static else None
        response_class = getattr(route, "response_class", None)
        response_class = getattr(response_class, "value", response_class)  # the default is in a DefaultPlaceholder
        if isinstance(response_class, type):
            if response_class not in self._of_classes:
                self._of_classes[response_class] = _not_a_page(response_class)
            reason = self._of_classes[response_class]
            if reason is not None:
                return reason
        if not getattr(route, "include_in_schema", True):
            return _NOT_IN_SCHEMA
        return _required_parameter(original) if static else None

    def _is_nicegui_page(self, endpoint: Any) -> bool:
        return bool(self._nicegui_pages) and getattr(endpoint, "__wrapped__", None) in self._nicegui_pages


def _not_a_page(response_class: type) -> HiddenReason | None:
    """The reason if responses of a class are not pages."""
    if issubclass(response_class, RedirectResponse):
        return HiddenReason("it declares a redirect", is_declared=True)
    media_type = getattr(response_class, "media_type", None) or ""
    if media_type and media_type.partition(";")[0] not in INDEXABLE_TYPES:
        return HiddenReason(f"it declares a response of {media_type}", is_declared=True)
    return None


def _required_parameter(route: Any) -> HiddenReason | None:
    """The reason if a FastAPI route answers a plain GET with an error, because a query, header or body is required."""
    dependant = getattr(route, "dependant", None)
    dependants = [dependant] if dependant is not None else []
    for dependant in dependants:  # grows while it is read: dependencies have dependencies
        dependants += dependant.dependencies
        for kind, description in _PARAMETER_KINDS:
            for field in getattr(dependant, kind):
                # The name depends on FastAPI's version.
                required = field.required if hasattr(field, "required") else field.field_info.is_required()
                if required:
                    return HiddenReason(f"it needs the {description} {field.alias!r}")
    return None
