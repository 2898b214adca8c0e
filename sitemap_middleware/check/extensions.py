"""Checks the extensions of an entry: images, videos and news."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from ..evidence.dates import CLOCK_SKEW_SECONDS, SECONDS_PER_DAY
from .findings import Finding, quoted
from .hints import check_lastmod
from .hreflang import XHTML, is_language_of_news
from .urls import CheckedLoc, check_loc
from .xml_reader import Element

IMAGE: Final = "http://www.google.com/schemas/sitemap-image/1.1"
VIDEO: Final = "http://www.google.com/schemas/sitemap-video/1.1"
NEWS: Final = "http://www.google.com/schemas/sitemap-news/0.9"

Located = tuple[Finding, Element]
"""What is wrong, and with which element."""

# Images

MAX_IMAGES: Final = 1_000
_IMAGE_OUTDATED: Final = frozenset({"caption", "title", "geo_location", "license"})

# Videos

_VIDEO_REQUIRED: Final = ("thumbnail_loc", "title", "description")
_PLAYED: Final = ("content_loc", "player_loc")
_VIDEO_URLS: Final = ("thumbnail_loc", *_PLAYED)
_VIDEO_DATES: Final = ("publication_date", "expiration_date")
_VIDEO_OUTDATED: Final = frozenset({"price", "category", "gallery_loc"})
_MAX_CHARS: Final = {"description": 2_048, "uploader": 255}
_MAX_TAGS: Final = 32
_MAX_DURATION_SECONDS: Final = 28_800
_DURATION: Final = re.compile(r"0*([1-9]\d{0,4})", re.ASCII)
_YES_OR_NO: Final = re.compile(r"yes|no", re.IGNORECASE)
_VALUES: Final = {
    "rating": re.compile(r"[0-4](?:\.\d*)?|5(?:\.0*)?|\.\d+", re.ASCII),
    "view_count": re.compile(r"\d+", re.ASCII),
    "family_friendly": _YES_OR_NO,
    "requires_subscription": _YES_OR_NO,
    "live": _YES_OR_NO,
    "restriction": re.compile(r"(?:[a-z]{2}(?:\s+[a-z]{2})*)?", re.IGNORECASE),
    "platform": re.compile(r"(?:(?:web|mobile|tv)(?:\s+(?:web|mobile|tv))*)?", re.IGNORECASE),
}
_WITH_RELATIONSHIP: Final = ("restriction", "platform")
_VIDEO_KNOWN: Final = frozenset(
    {*_VIDEO_REQUIRED, *_PLAYED, *_VIDEO_DATES, *_VALUES}
    | {"duration", "uploader", "tag", "id", "content_segment_loc", "tvshow"}
)

# News

MAX_ARTICLES: Final = 1_000
"""Articles of a document."""
_MAX_AGE_SECONDS: Final = 2 * SECONDS_PER_DAY + 3600
"""An hour more than two days: documents are cached."""
_NEWS_KNOWN: Final = frozenset({"publication", "publication_date", "title"})
_NEWS_OUTDATED: Final = frozenset({"access", "genres", "keywords", "stock_tickers", "geo_locations"})


def check_extensions(elements: Sequence[Element], page: CheckedLoc, now: float) -> Iterator[Located]:
    """Check the elements of an entry that are not of the protocol itself, but for those of other languages.

    Args:
        elements: the elements.
        page: the URL of the entry.
        now: the moment, in POSIX seconds.
    """
    for space, group in groupby(sorted(elements, key=_namespace), _namespace):
        of_space = [*group]
        if space in _CHECKS:
            name, check = _CHECKS[space]
            for element in of_space:
                if element.local_name != name:
                    yield (f"{name}-unknown", f"there is no element {quoted(element.local_name)} in an entry"), element
            yield from check([element for element in of_space if element.local_name == name], page, now)
        elif space != XHTML and (code := _meant_namespace(of_space[0])) is not None:
            yield (code, f"the namespace is {quoted(space)}"), of_space[0]


def _namespace(element: Element) -> str:
    return element.namespace


def _meant_namespace(element: Element) -> str | None:
    """The code of a mistake in a namespace; None if it may be that of an extension that is not known here."""
    if element.local_name == "link" and "hreflang" in element.attributes:
        return "hreflang-namespace"
    return next((f"{name}-namespace" for name, _ in _CHECKS.values() if f"sitemap-{name}" in element.namespace), None)


def _check_names(
    what: str, thing: str, children: Iterable[Element], known: Collection[str], outdated: Collection[str]
) -> Iterator[Located]:
    """Report children of an image, video or article that search engines no longer read, and unknown ones."""
    for child in children:
        if child.local_name in outdated:
            yield (f"{what}-outdated", f"{child.local_name} is no longer read"), child
        elif child.local_name not in known:
            yield (f"{what}-unknown", f"there is no element {quoted(child.local_name)} of {thing}"), child


def _check_images(images: Sequence[Element], _page: CheckedLoc, _now: float) -> Iterator[Located]:
    if len(images) > MAX_IMAGES:
        yield ("image-too-many", f"the page has {len(images):,} images"), images[0]
    known = set[str]()
    for image in images:
        loc = next((child for child in image.children if child.name == f"{IMAGE} loc"), None)
        others = (child for child in image.children if child.name != f"{IMAGE} loc")
        yield from _check_names("image", "an image", others, (), _IMAGE_OUTDATED)
        if loc is None or not loc.text.strip():
            yield ("image-loc-missing", "the image has no URL"), image
            continue
        checked = check_loc(loc.text, is_page=False)
        if not checked.host:
            yield ("image-loc-invalid", f"{quoted(checked.url)} is not an absolute URL"), loc
        elif any(code == "loc-double-escaped" for code, _ in checked.findings):
            yield ("image-double-escaped", f"{quoted(checked.url)} is escaped twice"), loc
        if checked.url in known:
            yield ("image-duplicate", f"{quoted(checked.url)} is listed twice"), loc
        known.add(checked.url)


def _check_videos(videos: Sequence[Element], page: CheckedLoc, now: float) -> Iterator[Located]:
    for video in videos:
        filled = {child.local_name for child in video.children if child.text.strip()}
        for name in _VIDEO_REQUIRED:
            if name not in filled:
                yield ("video-incomplete", f"the video has no {name}"), video
        if not filled.intersection(_PLAYED):
            yield ("video-incomplete", "the video has neither content_loc nor player_loc"), video
        yield from _check_names("video", "a video", video.children, _VIDEO_KNOWN, _VIDEO_OUTDATED)
        for child in video.children:
            for finding in _check_part(child.local_name, child, child.text.strip(), page, now):
                yield finding, child
        tags = sum(child.local_name == "tag" for child in video.children)
        if tags > _MAX_TAGS:
            yield ("video-tags", f"the video has {tags} tags"), video


def _check_part(name: str, part: Element, text: str, page: CheckedLoc, now: float) -> Iterator[Finding]:
    if name == "player_loc" and part.attributes:
        yield "video-outdated", f"the attribute {next(iter(part.attributes))} of player_loc is no longer read"
    if name in _VIDEO_URLS and text:
        if not check_loc(text, is_page=False).host:
            yield "video-url-invalid", f"{quoted(text)} is not an absolute URL"
        elif name in _PLAYED and text == page.url:
            yield "video-url-of-page", f"{name} is the URL of the page"
    if len(text) > _MAX_CHARS.get(name, len(text)):
        yield "video-too-long", f"{name} has more than {_MAX_CHARS[name]:,} characters"
    if name == "duration" and not ((found := _DURATION.fullmatch(text)) and int(found[1]) <= _MAX_DURATION_SECONDS):
        yield "video-duration", f"{quoted(text)} is not from 1 to {_MAX_DURATION_SECONDS:,} seconds"
    if name in _VIDEO_DATES:
        date = check_lastmod(part.text, now)
        if not date.has_zone:
            yield "video-date", f"{name} {quoted(date.text)} is not a date with a time zone"
        elif name == "expiration_date" and date.latest is not None and date.latest < now:
            yield "video-expired", f"the video expired on {date.text}"
    if name in _VALUES and not _VALUES[name].fullmatch(text):
        yield "video-value", f"{quoted(text)} is not a value of {name}"
    elif name in _WITH_RELATIONSHIP and part.attributes.get("relationship") not in ("allow", "deny"):
        yield "video-value", f"{name} needs the attribute relationship, allow or deny"


def _check_news(articles: Sequence[Element], _page: CheckedLoc, now: float) -> Iterator[Located]:
    if len(articles) > 1:
        yield ("news-repeated", f"the URL has {len(articles)} articles"), articles[1]
    for article in articles[:1]:
        parts = {child.local_name: child for child in article.children}
        yield from _check_names("news", "news", parts.values(), _NEWS_KNOWN, _NEWS_OUTDATED)
        inner = parts["publication"].children if "publication" in parts else ()
        values = parts | {f"publication/{child.local_name}": child for child in inner}
        for name in ("publication/name", "publication/language", "publication_date", "title"):
            if name not in values or not values[name].text.strip():
                yield ("news-incomplete", f"the article has no {name.rpartition('/')[2]}"), article
        language = values.get("publication/language")
        if language is not None and (code := language.text.strip()) and not is_language_of_news(code):
            yield ("news-language", f"{quoted(code)} is not a language"), language
        published = parts.get("publication_date")
        if published is not None and published.text.strip():
            for finding in _check_publication_date(published.text, now):
                yield finding, published


def _check_publication_date(text: str, now: float) -> Iterator[Finding]:
    date = check_lastmod(text, now)
    if not date.has_zone or date.earliest is None:
        yield "news-date", f"{quoted(date.text)} is not a date with a time zone"
    elif date.earliest > now + CLOCK_SKEW_SECONDS:
        yield "news-date", f"{quoted(date.text)} is in the future"
    elif date.latest is not None and date.latest < now - _MAX_AGE_SECONDS:
        yield "news-old", f"the article is of {date.text}"


_CHECKS: Final[dict[str, tuple[str, Callable[[Sequence[Element], CheckedLoc, float], Iterator[Located]]]]] = {
    IMAGE: ("image", _check_images),
    VIDEO: ("video", _check_videos),
    NEWS: ("news", _check_news),
}
"""The element of each extension in an entry, and the check of all of them, by namespace."""
