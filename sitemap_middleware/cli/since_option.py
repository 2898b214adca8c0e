"""Parses the option --since: a date, or a duration before now."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from ..dates import timestamp_of
from .terminal_output import CommandError

_AGE: Final = re.compile(r"(\d{1,6})\s*([mhdw])")

_UNIT_SECONDS: Final = {"m": 60, "h": 60 * 60, "d": 24 * 60 * 60, "w": 7 * 24 * 60 * 60}


def parse_since(text: str, now: int) -> int:
    """Return the POSIX time of an age, such as "7d", or of a date or datetime, in UTC unless it says otherwise.

    Raises `CommandError` if it is neither, or in the future.
    """
    if age := _AGE.fullmatch(text.strip()):
        return max(0, now - int(age[1]) * _UNIT_SECONDS[age[2]])
    try:
        moment = int(timestamp_of(datetime.fromisoformat(text.strip())))
    except (ValueError, OverflowError):
        raise CommandError(
            f"--since={text!r} is no moment; give an age such as 24h, 7d or 2w, or a date such as 2026-01-31"
        ) from None
    if moment > now:
        raise CommandError(f"--since={text!r} is in the future")
    return moment
