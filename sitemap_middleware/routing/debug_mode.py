"""Whether an app runs in debug mode: the flag of its framework."""

from __future__ import annotations

import sys
from typing import Any

from .framework_detection import framework_of, get_attribute


def is_debug(app: Any) -> bool:
    """Whether the debug flag of a framework's app is on. Falcon and Pyramid have none."""
    framework = framework_of(app)
    if framework == "django":
        settings: Any = sys.modules["django.conf"].settings
        return settings.DEBUG is True
    if framework == "bottle":
        return bool(sys.modules["bottle"].DEBUG)
    return framework is not None and get_attribute(app, "debug") is True
