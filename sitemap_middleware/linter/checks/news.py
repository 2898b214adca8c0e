"""Checks the `<news:news>` element of an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from ..message import Finding
from ..message_collector import quoted
from ..rules import lastmod as lastmod_rules
from ..rules import news as rules
from ..sitemap_element_names import local_name
from ..xml_reader import Element
from .language_codes import is_language_of_news
from .lastmod import check_lastmod
from .loc import CheckedLoc

MAX_ARTICLES: Final = 1_000
"""Articles of a document."""
_MAX_AGE_SECONDS: Final = 2 * SECONDS_PER_DAY + 3600
"""An hour more than two days: documents are cached."""
_REQUIRED: Final = ("publication", "publication_date", "title")
_OUTDATED: Final = frozenset({"access", "genres", "keywords", "stock_tickers", "geo_locations"})


def check_news(elements: Sequence[Element], _page: CheckedLoc, now: float) -> Iterator[tuple[Finding, Element]]:
    """Check the article of an entry."""
    articles = [element for element in elements if local_name(element.name) == "news"]
    for element in elements:
        if local_name(element.name) != "news":
            yield (rules.UNKNOWN, f"there is no element {quoted(local_name(element.name))} in an entry"), element
    if len(articles) > 1:
        yield (rules.REPEATED, f"the URL has {len(articles)} articles"), articles[1]
    for article in articles[:1]:
        yield from _check_article(article, now)


def _check_article(article: Element, now: float) -> Iterator[tuple[Finding, Element]]:
    parts = {local_name(child.name): child for child in article.children}
    for name, child in parts.items():
        if name in _OUTDATED:
            yield (rules.OUTDATED, f"{name} is no longer read"), child
        elif name not in _REQUIRED:
            yield (rules.UNKNOWN, f"there is no element {quoted(name)} of news"), child
    publication = parts.get("publication")
    of_publication = {local_name(child.name): child for child in publication.children} if publication else {}
    for name, found in (
        ("name", of_publication),
        ("language", of_publication),
        *((name, parts) for name in _REQUIRED[1:]),
    ):
        if name not in found or not found[name].text.strip():
            yield (rules.INCOMPLETE, f"the article has no {name}"), article
    language = of_publication.get("language")
    if language is not None and (code := language.text.strip()) and not is_language_of_news(code):
        yield (rules.LANGUAGE, f"{quoted(code)} is not a language"), language
    published = parts.get("publication_date")
    if published is not None and published.text.strip():
        date = check_lastmod(published.text, now)
        if date.earliest is None or (date.finding and date.finding[0] is lastmod_rules.NO_ZONE):
            yield (rules.DATE, f"{quoted(date.text)} is not a date with a time zone"), published
        elif date.earliest > now + CLOCK_SKEW_SECONDS:
            yield (rules.DATE, f"{quoted(date.text)} is in the future"), published
        elif date.latest is not None and date.latest < now - _MAX_AGE_SECONDS:
            yield (rules.OLD, f"the article is of {date.text}"), published
