"""The protocol's words and limits (Sitemap 0.9, "XML tag definitions"), and the refusal of all else."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Literal

from .errors import OptionError
from .model import CHANGEFREQS, Changefreq


def checked_priority(value: object, place: object) -> float:
    """A priority as a float from 0.0 to 1.0; `OptionError` for anything else."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real | Decimal):
        with contextlib.suppress(ValueError, OverflowError):  # a signaling NaN; an integer past all floats
            number = float(value)
    if not 0.0 <= number <= 1.0:
        raise OptionError(f"{place}: priority={value!r} is outside the protocol; give a number from 0.0 to 1.0")
    return abs(number)  # for -0.0


def checked_changefreq(value: object, place: object) -> Changefreq | Literal["auto"]:
    """A changefreq of the protocol, or "auto"; `OptionError` for anything else."""
    if value == "auto":
        return "auto"
    for known in CHANGEFREQS:
        if value == known:
            return known
    raise OptionError(
        f"{place}: changefreq={value!r} is outside the protocol; give one of {', '.join(CHANGEFREQS)}, "
        'or "auto" to have it inferred from the changes that are seen'
    )


def checked_date(value: object, place: object, cure: str) -> date:
    """A date, or a datetime that is a moment in UTC; `OptionError` for anything else."""
    if not isinstance(value, date):
        raise OptionError(f"{place}: lastmod={value!r} is no date; {cure}")
    if isinstance(value, datetime) and value.tzinfo is not None:
        try:
            value.astimezone(UTC)
        except OverflowError:
            raise OptionError(f"{place}: lastmod={value!r} is no moment of the calendar in UTC") from None
    return value


def unknown_option(place: object, name: str, known: Sequence[str]) -> OptionError:
    """The error for an option of an unknown name, with the name that was likely meant."""
    close = get_close_matches(name, known, n=1)
    cure = f"did you mean {close[0]}?" if close else f"the options are {', '.join(known)}"
    return OptionError(f"{place}: there is no option {name!r}; {cure}")
