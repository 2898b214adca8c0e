"""Rules about `<news:news>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("news", "News", "The extension for articles of the last two days, which Google News reads.")

NAMESPACE: Final = FAMILY.error(
    "news-namespace",
    "a wrong namespace for news",
    "A namespace is compared character by character. Google ignores news in any other.",
    'Write exactly `xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"`.',
)
INCOMPLETE: Final = FAMILY.error(
    "news-incomplete",
    "a required element is missing",
    "An article needs `publication` with `name` and `language`, `publication_date` and `title`. Google reports a "
    "missing tag and ignores the article.",
    "Add the element.",
)
LANGUAGE: Final = FAMILY.error(
    "news-language",
    "not a language",
    "The language is a code of ISO 639 with two or three letters; Chinese is `zh-cn` or `zh-tw`.",
    "Write the code alone, such as `en`, without a region.",
)
DATE: Final = FAMILY.error(
    "news-date",
    "not a date",
    "The publication date is a date or a datetime with a time zone. It is not in the future.",
    "Write `2024-05-01T10:00:00Z`.",
)
OLD: Final = FAMILY.warning(
    "news-old",
    "an article older than two days",
    "A sitemap of news lists articles that were published in the last two days.",
    "Remove older articles. They stay in the ordinary sitemap.",
)
TOO_MANY: Final = FAMILY.error(
    "news-too-many",
    "more than 1,000 articles",
    "A document may have 1,000 articles.",
    "Split the document, and name the parts in an index.",
)
REPEATED: Final = FAMILY.error(
    "news-repeated",
    "two articles at one URL",
    "A URL has one `news:news`.",
    "Write one, with the title of the page.",
)
OUTDATED: Final = FAMILY.info(
    "news-outdated",
    "an element that Google no longer reads",
    "Google reads `publication`, `publication_date` and `title`. It dropped `access`, `genres`, `keywords`, "
    "`stock_tickers` and `geo_locations`.",
    "Remove the elements.",
)
UNKNOWN: Final = FAMILY.warning(
    "news-unknown",
    "an element that the extension does not have",
    "Google ignores it.",
    "Correct its name, or remove it.",
)
