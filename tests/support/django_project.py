"""Django's settings. A process has one set of them, so each test that needs others sets them by `use`."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import django
from django.conf import settings
from django.urls import clear_url_caches

BASE: dict[str, Any] = {
    "ALLOWED_HOSTS": ["*"],
    "DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    "FORCE_SCRIPT_NAME": None,
    "INSTALLED_APPS": [
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
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
    "USE_I18N": True,
    "USE_TZ": True,
}


def use(patterns: Iterable[Any], **changes: Any) -> list[Any]:
    """Make these the URLs and settings of the process; all others are those of `BASE`. Returns the list of URLs."""
    if not settings.configured:
        settings.configure(**BASE)
        django.setup()
    for name in [name for name in dir(settings) if name.startswith("SITEMAP_")]:
        delattr(settings, name)
    urls = types.ModuleType("urls")
    urls.urlpatterns = list(patterns)
    for name, value in {**BASE, **changes, "ROOT_URLCONF": urls}.items():
        if name != "INSTALLED_APPS":
            setattr(settings, name, value)
    clear_url_caches()
    return urls.urlpatterns
