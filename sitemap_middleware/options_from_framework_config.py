"""Reads options from the framework's own configuration: `app.config` of Flask and Quart, Django's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .option_sources import CONFIG_PLACE
from .routing import app_layers_and_mounts
from .routing.framework_detection import framework_of


def options_from_framework_config(app: Any) -> tuple[Mapping[Any, Any], str]:
    """The configuration of a Flask or Quart app, or Django's settings, and how errors name a key of it.

    Empty for other apps.
    """
    framework = app_layers_and_mounts.framework_app(app)
    if framework_of(framework) == "django":
        from .routing.django_routes import sitemap_settings

        return sitemap_settings(), "settings.{}"
    config = getattr(framework, "config", None)
    return config if isinstance(config, dict) else {}, CONFIG_PLACE


def declared_root(app: Any, config: Mapping[Any, Any]) -> str:
    """The root path that the app or its configuration declares."""
    return str(config.get("APPLICATION_ROOT") or app_layers_and_mounts.root_path(app) or "")
