"""Checks the `<video:video>` elements of an entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..message import Finding
from ..message_collector import quoted
from ..rules import lastmod as lastmod_rules
from ..rules import video as rules
from ..sitemap_element_names import local_name
from ..xml_reader import Element
from .lastmod import check_lastmod
from .loc import CheckedLoc, check_loc

_REQUIRED: Final = ("thumbnail_loc", "title", "description")
_PLAYED: Final = ("content_loc", "player_loc")
_URLS: Final = ("thumbnail_loc", *_PLAYED)
_DATES: Final = ("publication_date", "expiration_date")
_OUTDATED: Final = frozenset({"price", "category", "gallery_loc"})
_MAX_CHARS: Final = {"description": 2_048, "uploader": 255}
_MAX_TAGS: Final = 32
_MAX_DURATION_SECONDS: Final = 28_800
_YES_OR_NO: Final = re.compile(r"yes|no", re.IGNORECASE)
_COUNTRIES: Final = re.compile(r"[a-z]{2}(?:\s+[a-z]{2})*", re.IGNORECASE)
_PLATFORMS: Final = re.compile(r"(?:web|mobile|tv)(?:\s+(?:web|mobile|tv))*", re.IGNORECASE)
_VALUES: Final = {
    "rating": re.compile(r"[0-4](?:\.\d*)?|5(?:\.0*)?|\.\d+", re.ASCII),
    "view_count": re.compile(r"\d+", re.ASCII),
    "family_friendly": _YES_OR_NO,
    "requires_subscription": _YES_OR_NO,
    "live": _YES_OR_NO,
    "restriction": _COUNTRIES,
    "platform": _PLATFORMS,
}
_EMPTY_ALLOWED: Final = ("restriction", "platform")
_KNOWN: Final = frozenset(
    {*_REQUIRED, *_PLAYED, *_DATES, *_VALUES, "duration", "uploader", "tag", "id", "content_segment_loc", "tvshow"}
)


def check_videos(elements: Sequence[Element], page: CheckedLoc, now: float) -> Iterator[tuple[Finding, Element]]:
    """Check the videos of an entry."""
    for element in elements:
        if local_name(element.name) == "video":
            yield from _check_video(element, page, now)
        else:
            yield (rules.UNKNOWN, f"there is no element {quoted(local_name(element.name))} in an entry"), element


def _check_video(video: Element, page: CheckedLoc, now: float) -> Iterator[tuple[Finding, Element]]:
    filled = {local_name(child.name) for child in video.children if child.text.strip()}
    for name in _REQUIRED:
        if name not in filled:
            yield (rules.INCOMPLETE, f"the video has no {name}"), video
    if not filled.intersection(_PLAYED):
        yield (rules.INCOMPLETE, "the video has neither content_loc nor player_loc"), video
    for child in video.children:
        yield from _check_part(local_name(child.name), child, child.text.strip(), page, now)
    tags = sum(local_name(child.name) == "tag" for child in video.children)
    if tags > _MAX_TAGS:
        yield (rules.TAGS, f"the video has {tags} tags"), video


def _check_part(name: str, part: Element, text: str, page: CheckedLoc, now: float) -> Iterator[tuple[Finding, Element]]:
    if name in _OUTDATED:
        yield (rules.OUTDATED, f"{name} is no longer read"), part
    elif name not in _KNOWN:
        yield (rules.UNKNOWN, f"there is no element {quoted(name)} of a video"), part
    if name == "player_loc" and part.attributes:
        yield (rules.OUTDATED, f"the attribute {next(iter(part.attributes))} of player_loc is no longer read"), part
    if name in _URLS and text:
        if not check_loc(text, is_page=False).host:
            yield (rules.URL_INVALID, f"{quoted(text)} is not an absolute URL"), part
        elif name in _PLAYED and text == page.url:
            yield (rules.URL_OF_PAGE, f"{name} is the URL of the page"), part
    if len(text) > _MAX_CHARS.get(name, len(text)):
        yield (rules.TOO_LONG, f"{name} has more than {_MAX_CHARS[name]:,} characters"), part
    if name == "duration" and not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_DURATION_SECONDS):
        yield (rules.DURATION, f"{quoted(text)} is not from 1 to {_MAX_DURATION_SECONDS:,} seconds"), part
    if name in _DATES:
        yield from _check_date(name, part, now)
    if name in _VALUES and not (_VALUES[name].fullmatch(text) or (name in _EMPTY_ALLOWED and not text)):
        yield (rules.VALUE, f"{quoted(text)} is not a value of {name}"), part
    elif name in _EMPTY_ALLOWED and part.attributes.get("relationship") not in ("allow", "deny"):
        yield (rules.VALUE, f"{name} needs the attribute relationship, allow or deny"), part


def _check_date(name: str, part: Element, now: float) -> Iterator[tuple[Finding, Element]]:
    date = check_lastmod(part.text, now)
    if date.earliest is None or (date.finding and date.finding[0] is lastmod_rules.NO_ZONE):
        yield (rules.DATE, f"{name} {quoted(date.text)} is not a date with a time zone"), part
    elif name == "expiration_date" and date.latest is not None and date.latest < now:
        yield (rules.EXPIRED, f"the video expired on {date.text}"), part
