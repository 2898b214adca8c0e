"""Versions of a site in a store, which never repeat."""

from __future__ import annotations

import secrets
import time
from typing import Final

VERSION_STEPS: Final = 16
"""Consecutive versions differ in their remainder by this number as consecutive integers do."""

_GAP: Final = 1 << 16


def next_version(version: int) -> int:
    """The version of a site that follows this one: microseconds since 1970, or a little more than this one.

    A counter would repeat: a store that lost ten changes and gained ten would look
    unchanged. The random part keeps versions apart that a clock far ahead has made.
    """
    new = max(version + 1 + secrets.randbelow(_GAP), time.time_ns() // 1000)
    return new + (version + 1 - new) % VERSION_STEPS
