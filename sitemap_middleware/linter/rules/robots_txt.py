"""Rules about robots.txt."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "robots",
    "robots.txt",
    "What the robots.txt of the site says about sitemaps. Files on disk have none, so nothing is said about it.",
)

MISSING_LINE: Final = FAMILY.info(
    "robots-no-sitemap-line",
    "robots.txt does not name the sitemap",
    "A `Sitemap:` line tells all search engines where the sitemap is. Without it, each has to be told by its own tool.",
    "Add a line such as `Sitemap: https://example.com/sitemap.xml`.",
)
RELATIVE: Final = FAMILY.error(
    "robots-relative",
    "a Sitemap line without an absolute URL",
    "The URL in a `Sitemap:` line has a scheme and a host. Search engines ignore other lines.",
    "Write the whole URL.",
)
OTHER_HOST: Final = FAMILY.info(
    "robots-other-host",
    "a Sitemap line that names another host",
    "A line may name a sitemap on another host: this tells search engines that it may list pages of this one. Often "
    "it was copied from another site.",
    "Check that the other host is meant.",
)
SITEMAP_MISSING: Final = FAMILY.error(
    "robots-sitemap-missing",
    "a Sitemap line that leads to nothing",
    "The URL in the line does not answer 200.",
    "Correct the URL, or remove the line.",
)
HTML: Final = FAMILY.warning(
    "robots-html",
    "an HTML page in place of robots.txt",
    "Crawlers skip lines that are not rules, so the page forbids nothing. Often the app answers each URL with a page.",
    "Serve a text file, or answer 404.",
)
TOO_LARGE: Final = FAMILY.warning(
    "robots-too-large",
    "more than 500 KiB",
    "Google ignores what comes after the first 500 KiB (RFC 9309, section 2.5, requires no more of a crawler).",
    "Shorten the file.",
)
