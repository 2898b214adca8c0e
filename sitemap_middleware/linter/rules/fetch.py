"""Rules about getting a document."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("fetch", "Fetching", "Whether a crawler gets the document, and whether its bytes are a sitemap.")

HTML: Final = FAMILY.error(
    "fetch-html",
    "an HTML page in place of a sitemap",
    "The URL leads to a page for people: often an error page with status 200, a login page, or the challenge of a "
    "firewall that takes the crawler for an attacker.",
    "Open the URL without being logged in. Let the firewall pass requests for the sitemap.",
)
GZIP_BROKEN: Final = FAMILY.error(
    "fetch-gzip-broken",
    "broken compression",
    "The compressed data is damaged or ends early, so search engines read a part of the document or nothing.",
    "Compress the document again. Check that no proxy cuts responses.",
)
GZIP_TWICE: Final = FAMILY.error(
    "fetch-gzip-twice",
    "compressed twice",
    "After decompression the document is still gzip. Often a server compresses a `.gz` file once more.",
    "Serve `.gz` files as they are, with `Content-Type: application/gzip` and no `Content-Encoding`.",
)
