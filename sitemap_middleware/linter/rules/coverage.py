"""Rules about the pages of an app that are known and not listed, or listed and bad; and about earlier runs."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "coverage",
    "Coverage",
    "What is listed, compared with what is known: with the pages that the middleware of an app has seen, and with the "
    "URLs of an earlier run (`--baseline`).",
)

NEVER_SEEN: Final = FAMILY.info(
    "coverage-never-seen",
    "listed and never seen",
    "The middleware lists the page because the app names it, and has seen no response of it. Pages that this run"
    " requests itself are not reported.",
    "Nothing, if the page is new. Otherwise request it from the running app: what `check` requests is not observed.",
)
NOT_LISTED: Final = FAMILY.info(
    "coverage-not-listed",
    "seen and not listed",
    "The page answered with status 200, and it is not in the sitemap. The message names the reason. Pages that you"
    " exclude are not reported.",
    "Nothing, if the reason is what you want. `sitemap-middleware explain` says more.",
)
LISTED_BAD: Final = FAMILY.error(
    "coverage-listed-bad",
    "listed though its last response was bad",
    "The page is in the sitemap though the middleware last saw it answer with another status than 200.",
    "Request the sitemap again. If the page stays, an outer cache serves an old sitemap.",
)
VANISHED: Final = FAMILY.warning(
    "coverage-vanished",
    "no longer listed",
    "The URL was in the sitemap when the file given by `--baseline` was written, and is not any more.",
    "Nothing, if the page is gone: `--update-baseline` accepts it. Otherwise find out why it is left out.",
)
