"""Rules about the size of a document, and about an index and the sitemaps that it names."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("documents", "Sizes and indexes", "How large a document may be, and what an index may name.")

TOO_LARGE: Final = FAMILY.error(
    "document-too-large",
    "more than 50 MB",
    "A document may have 52,428,800 bytes before compression. Search engines refuse larger ones. The rest was not "
    "read.",
    "Split the document, and name the parts in an index.",
)
TOO_MANY_URLS: Final = FAMILY.error(
    "document-too-many-urls",
    "more than 50,000 URLs",
    "Search engines refuse a sitemap with more than 50,000 URLs, or ignore the further ones.",
    "Split the sitemap, and name the parts in an index.",
)
EMPTY: Final = FAMILY.error(
    "document-empty",
    "nothing is listed",
    "A sitemap needs at least one URL, and an index at least one sitemap. Google reports an empty document as an "
    "error. A sitemap of news may be empty, because old articles leave it.",
    "Check what fills the sitemap. If there is nothing to list, remove the document from the index.",
)
TOO_MANY_SITEMAPS: Final = FAMILY.error(
    "index-too-many-sitemaps",
    "more than 50,000 sitemaps",
    "An index may name 50,000 sitemaps.",
    "Write further indexes, and submit each.",
)
NESTED: Final = FAMILY.error(
    "index-nested",
    "an index in an index",
    "An index may name sitemaps only. Google does not read an index that another one names.",
    "Name the sitemaps in one index, or submit each index.",
)
SELF: Final = FAMILY.error(
    "index-itself",
    "an index that names itself",
    "Search engines read an index once, and find no pages at its own URL.",
    "Remove the entry, or correct its URL.",
)
LOOP: Final = FAMILY.error(
    "index-loop",
    "indexes that name each other",
    "The document was reached from the one that it names. It is not read again.",
    "Remove the entry that leads back.",
)
DUPLICATE: Final = FAMILY.warning(
    "index-duplicate",
    "a sitemap twice",
    "The index names the sitemap more than once. The further entries say nothing.",
    "Name each sitemap once.",
)
OTHER_HOST: Final = FAMILY.warning(
    "index-other-host",
    "a sitemap on another host",
    "Search engines read a sitemap on another host only if they know that both hosts have the same owner: by "
    "Search Console, or by a `Sitemap:` line in the robots.txt of the host whose pages it lists.",
    "Serve the sitemap on the host of the index, or verify both hosts.",
)
OUTSIDE_FOLDER: Final = FAMILY.info(
    "index-outside-folder",
    "a sitemap outside of the folder of the index",
    "An index may name sitemaps in its own folder or below. Search engines accept others if robots.txt names the "
    "index.",
    "Move the index to the top folder of the site.",
)
NOT_ALL_READ: Final = FAMILY.info(
    "index-not-all-read",
    "not all documents were checked",
    "The message says why: there are more documents than `--max-documents`, robots.txt forbids this program to request "
    "the document, the app does not serve it, or no file of the folder is it.",
    "Raise `--max-documents`, or check the other sitemaps one by one.",
)
