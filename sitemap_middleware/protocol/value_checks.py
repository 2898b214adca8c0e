"""The allowed values of the sitemap protocol (Sitemap 0.9, "XML tag definitions"), and their checks."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Final, Literal, get_args

from ..exceptions import OptionError

Changefreq = Literal["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"]

CHANGEFREQS: Final[tuple[Changefreq, ...]] = get_args(Changefreq)
"""The values of `<changefreq>` (Sitemap 0.9, "XML tag definitions")."""

RESERVED_SECTIONS: Final = ("routes", "pages", "gone")
"""The names of the sections of static routes, of learned pages and of pages that are gone, in the URLs of documents."""

_SECTION_NAME: Final = re.compile(r"(?=.{1,50}\Z)(?!.*-(?:[0-9]+|routes|pages)\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
"""No name ends like that of another document of a section."""

_ISO_DATE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s?([Zz]|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
"""A date, or a date and a time, with or without a zone: "2024-05-01", "2024-05-01 10:00:00 +0200"."""


def validate_priority(value: object, name: str = "priority") -> float:
    """A priority as a float from 0.0 to 1.0; `OptionError`, which begins with the name, for anything else."""
    number = math.nan
    if isinstance(value, float | Real | Decimal) and not isinstance(value, bool):
        with contextlib.suppress(Exception):  # a signaling NaN; an integer past all floats; a class of the app
            number = float(value)
    if not 0.0 <= number <= 1.0:
        raise OptionError(f"{name}={value!r} is not valid; give a number from 0.0 to 1.0")
    return abs(number)  # for -0.0


def validate_changefreq(value: object, name: str = "changefreq") -> Changefreq | Literal["auto"]:
    """A changefreq of the protocol, or "auto"; `OptionError`, which begins with the name, for anything else."""
    if value == "auto":
        return "auto"
    for known in CHANGEFREQS:
        if value == known:
            return known
    raise OptionError(
        f"{name}={value!r} is not valid; give one of {', '.join(CHANGEFREQS)}, "
        'or "auto" to infer it from observed changes'
    )


def validate_section(name: object) -> str:
    """The name of a section of one's own; `OptionError` for anything else."""
    if isinstance(name, str) and _SECTION_NAME.fullmatch(name) and name not in RESERVED_SECTIONS:
        return name
    raise OptionError(
        f"{name!r} cannot name a section; give up to 50 of a-z, 0-9 and single hyphens, such as"
        f' "guides", and no number, {" or ".join(RESERVED_SECTIONS[:2])} at the end, nor {RESERVED_SECTIONS[2]}'
    )


def validate_parameter(value: object) -> str:
    """The name of a parameter of views; `OptionError`, which begins with `alternates`, for anything else."""
    if isinstance(value, str) and value.isidentifier():
        return value
    raise OptionError(f'alternates={value!r} is not the name of a parameter; give that of the language, such as "lang"')


def validate_flag(name: str, value: object) -> bool:
    """True or False; `OptionError`, which begins with the name, for anything else."""
    if isinstance(value, bool):
        return value
    raise OptionError(f"{name}={value!r:.50} is neither True nor False")


def validate_date(value: object, fix: str, name: str = "lastmod") -> date:
    """A date or datetime, given as such or as text in ISO 8601; `OptionError` for anything else.

    The error begins with the name, and ends with the fix.
    """
    if isinstance(value, str):
        parsed = parse_date(value)
        if parsed is None:
            raise OptionError(
                f'{name}={value!r} is not a date; write it as "2024-05-01" or "2024-05-01T10:00:00Z", or {fix}'
            )
        value = parsed
    if not isinstance(value, date):
        raise OptionError(f"{name}={value!r} is not a date; {fix}")
    if type(value) is not date and not (type(value) is datetime and (value.tzinfo is None or value.tzinfo is UTC)):
        try:
            if isinstance(value, datetime):
                value = datetime.combine(date(value.year, value.month, value.day), value.timetz())
                value.astimezone(UTC)
            else:
                value = date(value.year, value.month, value.day)
        except OverflowError:
            raise OptionError(f"{name}={value!r} is outside the calendar in UTC") from None
        except Exception:  # pandas.NaT is a datetime by its class only
            raise OptionError(f"{name}={value!r} is not a date; {fix}") from None
    return value


def parse_date(text: str) -> date | None:
    """Parse a date or datetime in ISO 8601, in the forms that front matter uses; None if it is not one."""
    match = _ISO_DATE.fullmatch(str.strip(text))
    if match is None:
        return None
    day, time, zone = match.groups()
    with contextlib.suppress(ValueError):  # the 30th of February
        return datetime.fromisoformat(f"{day}T{time}{(zone or '').upper()}") if time else date.fromisoformat(day)
    return None


def likely_name(name: str, known: Collection[str]) -> str | None:
    """The known option that is spelled much like an unknown name; None if there is none."""
    return next(iter(get_close_matches(name, known, n=1)), None)


def unknown_option_error(place: object, name: str, known: Sequence[str]) -> OptionError:
    """The error for an unknown option, with the known one that was meant."""
    likely = likely_name(name, known)
    fix = f"did you mean {likely}?" if likely else f"the options are {', '.join(known)}"
    return OptionError(f"{place}: there is no option {name!r}; {fix}")
