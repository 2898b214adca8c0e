"""The Django site of `django_site`, as an ASGI app."""

from __future__ import annotations

from typing import Any

from django.core.handlers.asgi import ASGIHandler

from . import django_site
from .django_site import HOST, INSTALL, PEOPLE, add_page

__all__ = ["HOST", "INSTALL", "PEOPLE", "PROTOCOL", "add_page", "build"]

PROTOCOL = "asgi"


def build() -> Any:
    django_site.build()
    return ASGIHandler()
