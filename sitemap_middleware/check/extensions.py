"""Checks the extensions of an entry: images, videos, news, and the versions of the page in other languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from ..evidence.dates import CLOCK_SKEW_SECONDS
from ..http.urls import MAX_LOC_CHARS
from ..protocol.extensions import MAX_CHARS, MAX_DURATION_SECONDS, MAX_IMAGES, MAX_TAGS, NAMESPACES, NEWS_SECONDS
from ..protocol.language_codes import X_DEFAULT, hreflang_fault, is_news_language, words
from .findings import Problem, quoted
from .reader import Element
from .url_elements import CheckedLoc, check_lastmod, check_loc

IMAGE, VIDEO, NEWS, XHTML = (NAMESPACES[prefix] for prefix in ("image", "video", "news", "xhtml"))

Located = tuple[Problem, Element]


# Images, videos and news

_VIDEO_REQUIRED: Final = ("thumbnail_loc", "title", "description")
_PLAYED: Final = ("content_loc", "player_loc")
_VIDEO_URLS: Final = ("thumbnail_loc", *_PLAYED)
_VIDEO_DATES: Final = ("publication_date", "expiration_date")
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
_NEWS_REQUIRED: Final = ("publication/name", "publication/language", "publication_date", "title")
_MAX_NEWS_SECONDS: Final = NEWS_SECONDS + 3600
"""An hour more: documents are cached."""


def check_extensions(elements: Sequence[Element], page: CheckedLoc, now: float) -> Iterator[Located]:
    """Check the elements of an entry that are not of the protocol itself, but for those of other languages."""
    for space, group in groupby(sorted(elements, key=_namespace), _namespace):
        of_space = [*group]
        extension = _EXTENSIONS.get(space)
        if extension is None:
            if space != XHTML and (code := _meant_namespace(of_space[0])) is not None:
                yield (code, f"the namespace is {quoted(space)}"), of_space[0]
            continue
        things = list[Element]()
        for element in of_space:
            if element.local_name == extension.name:
                things.append(element)
                yield from _check_names(extension, element)
            else:
                text = f"there is no element {quoted(element.local_name)} in an entry"
                yield (f"{extension.name}-unknown", text), element
        yield from extension.check(things, page, now)


def _namespace(element: Element) -> str:
    return element.namespace


def _meant_namespace(element: Element) -> str | None:
    """The code of a mistake in a namespace; None if it may be that of an extension that is not known here."""
    if element.local_name == "link" and "hreflang" in element.attributes:
        return "hreflang-namespace"
    names = (extension.name for extension in _EXTENSIONS.values())
    return next((f"{name}-namespace" for name in names if f"sitemap-{name}" in element.namespace), None)


def _check_names(extension: _Extension, element: Element) -> Iterator[Located]:
    """Report children that search engines no longer read, and unknown ones."""
    for child in element.children:
        name = child.local_name
        if name in extension.outdated:
            yield (f"{extension.name}-outdated", f"{name} is no longer read"), child
        elif name not in extension.children:
            yield (f"{extension.name}-unknown", f"there is no element {quoted(name)} of {extension.thing}"), child


def _check_images(images: Sequence[Element], _page: CheckedLoc, _now: float) -> Iterator[Located]:
    if len(images) > MAX_IMAGES:
        yield ("image-too-many", f"the page has {len(images):,} images"), images[0]
    known = set[str]()
    for image in images:
        loc = next((child for child in image.children if child.local_name == "loc"), None)
        if loc is None or not loc.text.strip():
            yield ("image-loc-missing", "the image has no URL"), image
            continue
        checked = check_loc(loc.text, is_page=False)
        if not checked.host:
            yield ("image-loc-invalid", f"{quoted(checked.url)} is not an absolute URL"), loc
        elif any(code == "loc-double-escaped" for code, _ in checked.problems):
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
        for child in video.children:
            for problem in _check_part_of_video(child.local_name, child, page, now):
                yield problem, child
        tags = sum(child.local_name == "tag" for child in video.children)
        if tags > MAX_TAGS:
            yield ("video-tags", f"the video has {tags} tags"), video


def _check_part_of_video(name: str, part: Element, page: CheckedLoc, now: float) -> Iterator[Problem]:
    text = part.text.strip()
    if name == "player_loc" and part.attributes:
        yield "video-outdated", f"the attribute {next(iter(part.attributes))} of player_loc is no longer read"
    if name in _VIDEO_URLS and text:
        if not check_loc(text, is_page=False).host:
            yield "video-url-invalid", f"{quoted(text)} is not an absolute URL"
        elif name in _PLAYED and text == page.url:
            yield "video-url-of-page", f"{name} is the URL of the page"
    if len(text) > MAX_CHARS.get(name, len(text)):
        yield "video-too-long", f"{name} has more than {MAX_CHARS[name]:,} characters"
    if name == "duration" and not ((found := _DURATION.fullmatch(text)) and int(found[1]) <= MAX_DURATION_SECONDS):
        yield "video-duration", f"{quoted(text)} is not from 1 to {MAX_DURATION_SECONDS:,} seconds"
    if name in _VIDEO_DATES:
        date = check_lastmod(text, now)
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
        inner = parts["publication"].children if "publication" in parts else ()
        parts |= {f"publication/{child.local_name}": child for child in inner}
        values = {name: part.text.strip() for name, part in parts.items()}
        for name in _NEWS_REQUIRED:
            if not values.get(name):
                yield ("news-incomplete", f"the article has no {name.rpartition('/')[2]}"), article
        if (code := values.get("publication/language")) and not is_news_language(code.lower()):
            yield ("news-language", f"{quoted(code)} is not a language"), parts["publication/language"]
        if (written := values.get("publication_date")) and (problem := _check_news_date(written, now)) is not None:
            yield problem, parts["publication_date"]


def _check_news_date(text: str, now: float) -> Problem | None:
    date = check_lastmod(text, now)
    if not date.has_zone or date.earliest is None or date.latest is None:
        return "news-date", f"{quoted(date.text)} is not a date with a time zone"
    if date.earliest > now + CLOCK_SKEW_SECONDS:
        return "news-date", f"{quoted(date.text)} is in the future"
    if date.latest < now - _MAX_NEWS_SECONDS:
        return "news-old", f"the article is of {date.text}"
    return None


class _Extension(NamedTuple):
    """What an entry may have of a namespace."""

    name: str
    """That of its element, with which the codes of its rules begin."""
    thing: str
    """The element, in a text."""
    children: frozenset[str]
    outdated: frozenset[str]
    check: Callable[[Sequence[Element], CheckedLoc, float], Iterator[Located]]


_EXTENSIONS: Final = {
    IMAGE: _Extension("image", "an image", words("loc"), words("caption title geo_location license"), _check_images),
    VIDEO: _Extension(
        "video",
        "a video",
        frozenset({*_VIDEO_REQUIRED, *_PLAYED, *_VIDEO_DATES, *_VALUES})
        | words("duration uploader tag id content_segment_loc tvshow"),
        words("price category gallery_loc"),
        _check_videos,
    ),
    NEWS: _Extension(
        "news",
        "news",
        words("publication publication_date title"),
        words("access genres keywords stock_tickers geo_locations"),
        _check_news,
    ),
}

# Other languages

LINK: Final = f"{XHTML} link"
_MAX_LINK_CHARS: Final = MAX_LOC_CHARS + 100
"""Characters of an attribute that are looked at. No valid one is longer."""


def check_versions(links: Sequence[Element], page: CheckedLoc) -> tuple[frozenset[str], str, list[Located]]:
    """Return the versions that the links of an entry name, as `CheckedLoc.page`, and what is wrong with them.

    In between is the one that is for all other languages, and for none of its own; empty if there is none.
    """
    located, versions, by_code = list[Located](), set[str](), dict[str, str]()
    first: Element | None = None
    for link in links:
        attributes = (link.attributes.get(name, "")[:_MAX_LINK_CHARS] for name in ("rel", "hreflang", "href"))
        code, url, problems = _read_link(*attributes)
        located += [(problem, link) for problem in problems]
        if url:
            first = first or link
            versions.add(url)
            if by_code.setdefault(code, url) != url:
                located.append((("hreflang-duplicate", f"{by_code[code]} is {code}, too"), link))
    if first is not None and page.host and page.page not in versions:
        located.append((("hreflang-self-missing", "the versions of the page do not name the page itself"), first))
    default = by_code.pop(X_DEFAULT, "")
    return frozenset(versions), "" if default in by_code.values() else default, located


@lru_cache(4096)  # the pages of a cluster often follow each other, and have the same links
def _read_link(rel: str, code: str, href: str) -> tuple[str, str, Sequence[Problem]]:
    """Return the code and the page of a version, and what is wrong. The page is empty if the link names no version."""
    for name, value in (("rel", rel), ("hreflang", code), ("href", href)):
        if not value.strip():
            return "", "", [("hreflang-attributes", f"{name} is missing")]
    if rel.strip() != "alternate":
        return "", "", [("hreflang-attributes", f"rel is {quoted(rel)}")]
    problems, code, loc = list[Problem](), code.strip(), check_loc(href, is_page=False)
    lower = code.lower()
    fault = hreflang_fault(code)
    if fault == "region":
        problems.append(("hreflang-region", f"the region of {quoted(code)} is ignored"))
    elif fault == "code":
        problems.append(("hreflang-code", f"{quoted(code)} is not the code of a language"))
    if not loc.host:
        problems.append(("hreflang-url", f"{quoted(href)} is not an absolute URL"))
    return lower, loc.page if loc.host else "", problems
