"""Rules about `<lastmod>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "lastmod",
    "lastmod",
    "Dates. Google uses them only from sites whose dates prove true; Bing schedules its visits by them.",
)

INVALID: Final = FAMILY.error(
    "lastmod-invalid",
    "not a date",
    "The value is not a date or datetime in the W3C format, or does not exist in the calendar. Google reports an "
    "invalid date and ignores it.",
    "Write `2024-05-01` or `2024-05-01T10:00:00Z`.",
)
EMPTY: Final = FAMILY.warning(
    "lastmod-empty",
    "no date in the element",
    "The element is there and says nothing. Google reports an invalid date.",
    "Leave the element out if the date is not known.",
)
NO_ZONE: Final = FAMILY.error(
    "lastmod-no-zone",
    "a time without a time zone",
    "The W3C format requires a time zone after a time. Google reports an invalid date.",
    "Add `Z` for UTC or an offset such as `+02:00`, or write the date alone.",
)
REDUCED: Final = FAMILY.info(
    "lastmod-reduced",
    "a date that validators refuse",
    "`2024`, `2024-05` and times without seconds are W3C dates, but the schema of the protocol does not allow them.",
    "Write the whole date, and times with seconds.",
)
FUTURE: Final = FAMILY.error(
    "lastmod-future",
    "a date in the future",
    "No page has changed in the future. Bing refuses such dates, and Google trusts the others less.",
    "Write when the page last changed. Check the clock and the time zone of the server.",
)
TOO_OLD: Final = FAMILY.warning(
    "lastmod-too-old",
    "a date before 1990",
    "No page on the web is older. Such a date comes from an empty field: 1970-01-01 and 0001-01-01 are zero.",
    "Leave the element out if the date is not known.",
)
ALL_EQUAL: Final = FAMILY.warning(
    "lastmod-all-equal",
    "all dates are equal",
    "Pages rarely change all at once. Such dates are those of a build or a deployment. Google stops using the "
    "dates of a site that claims them.",
    "Write when the content of each page last changed, or leave the element out.",
)
NOW: Final = FAMILY.warning(
    "lastmod-now",
    "all dates are the time of the request",
    "The sitemap says that all pages changed just now. Google stops using the dates of a site that claims this.",
    "Write when the content of each page last changed, or leave the element out.",
)
INDEX_OLDER: Final = FAMILY.warning(
    "lastmod-index-older",
    "the index has an older date than the sitemap",
    "The date in an index says when the sitemap last changed. If it is older than a date inside of it, search "
    "engines may not read the sitemap again.",
    "Write the newest date of the sitemap into the index.",
)
