"""Reads the options of the middleware from Django's settings."""

from __future__ import annotations

import inspect
from typing import Any, Final

from django.conf import settings

from ..middleware import SitemapMiddleware

PREFIX: Final = "SITEMAP_"


def options_of_settings() -> dict[str, Any]:
    """The options that the settings give: `SITEMAP_BASE_URL` is `base_url`, and so on."""
    parameters = inspect.signature(SitemapMiddleware).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    given = {name: f"{PREFIX}{name.upper()}" for name in names}
    return {name: getattr(settings, setting) for name, setting in given.items() if hasattr(settings, setting)}
