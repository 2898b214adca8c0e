"""Django's settings. A process has one set of them, so each test that needs others sets them by `use`."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import django
from django.conf import global_settings, settings
from django.core.signals import setting_changed
from django.urls import clear_url_caches

BASE: dict[str, Any] = {
    "ALLOWED_HOSTS": ["*"],
    "DATABASES": {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:"}
    },  # a database that ends with its connection
    "FORCE_SCRIPT_NAME": None,
    "INSTALLED_APPS": [
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django.contrib.sitemaps",
        "sitemap_middleware.django",
    ],
    "LANGUAGES": [("en", "English")],
    "LANGUAGE_CODE": "en",
    "LOGGING_CONFIG": None,
    "MIDDLEWARE": [],
    "SECRET_KEY": "none",
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    "TIME_ZONE": "UTC",
    "USE_I18N": True,
    "USE_TZ": True,
}


settings.configure(**BASE)
django.setup()

_changed: set[str] = set()
"""The names of the settings that are not those of `BASE`."""


def use(patterns: Iterable[Any], **changes: Any) -> list[Any]:
    """Make these the URLs and settings of the process; all others are those of `BASE`. Returns the list of URLs."""
    restore()
    urls = types.ModuleType("urls")
    urls.urlpatterns = list(patterns)
    for name, value in {**changes, "ROOT_URLCONF": urls}.items():
        _set(name, value)
        _changed.add(name)
    clear_url_caches()
    return urls.urlpatterns


def restore() -> None:
    for name in _changed:
        if name.startswith("SITEMAP_"):
            delattr(settings, name)
        else:
            _set(name, BASE.get(name, getattr(global_settings, name, None)))
    _changed.clear()


def _set(name: str, value: Any) -> None:
    setattr(settings, name, value)
    setting_changed.send(None, setting=name, value=value, enter=True)  # clears Django's caches
