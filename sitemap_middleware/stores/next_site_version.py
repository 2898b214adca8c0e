"""Makes the version number of a site in the store, by which caches see that its pages changed. None is used twice."""

from __future__ import annotations

import secrets
import time
from typing import Final

VERSION_STEPS: Final = 16
"""Like consecutive integers, consecutive versions have consecutive remainders when divided by this."""

_MAX_RANDOM_STEP: Final = 1 << 16


def next_version(version: int) -> int:
    """The version after this one: microseconds since 1970, or slightly more than this one if that is greater.

    A counter could repeat: a store restored from a backup would reach a version for a
    second time with other pages. Times do not repeat. After a clock was far ahead, the
    version grows by random steps instead, which makes repeats unlikely.
    """
    new = max(version + 1 + secrets.randbelow(_MAX_RANDOM_STEP), time.time_ns() // 1000)
    return new + (version + 1 - new) % VERSION_STEPS
