"""Packs pages into bytes, the form in which every engine stores them beside path and route. Pure.

| field | bytes |
|---|---|
| version | 1: `FORMAT_VERSION`, or `MARKED_VERSION` if there is a second digest |
| flags | 2, below |
| media type | 1: its index in `MEDIA_TYPES`, unless it is among the texts |
| status | 2 |
| fractions | 1 each: of last seen, of HTML read at |
| counts | 1 each: runs of the Last-Modified, content and stated date histories |
| times | 8 each: first seen, last seen, Last-Modified, HTML read at |
| runs | 24 each, in the order of the counts |
| texts | 4 for the length, then UTF-8, for each text that its flag announces |

Integers are little-endian. A page that was seen and read once takes 67 bytes.

If the version is `MARKED_VERSION`, the eight bytes of HTML read at hold two values: that time in the low four, and the
second digest in the high four.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from ..dates import check_w3c
from ..evidence.page_verdict import is_listable
from ..models import Page, UnconfirmedAnswer
from ..value_history import Run

FORMAT_VERSION: Final = 1
"""The first byte of a page without a second digest. A change of the format takes a new number."""

MARKED_VERSION: Final = 2
"""The first byte of a page with a second digest. HTML that is read after February 2106 gets none."""

_VERSIONS: Final = (FORMAT_VERSION, MARKED_VERSION)

MEDIA_TYPES: Final = ("text/html", "application/xhtml+xml", "application/pdf", "", "text/plain", "application/json")
"""Media types stored as one byte, their index. Add new ones at the end only."""

_NOINDEX: Final = 1 << 0
_PRIVATE: Final = 1 << 1
_HTML_NOINDEX: Final = 1 << 2
_LEARNED: Final = 1 << 3
_LAST_MODIFIED: Final = 1 << 4
_TEXT_FLAGS: Final = (
    _MEDIA_TYPE := 1 << 5,
    _CANONICAL := 1 << 6,
    _HTML_CANONICAL := 1 << 7,
    _STATED_DATE := 1 << 8,
    _OBSTACLE := 1 << 9,
    _EXPIRES := 1 << 10,
    _HTML_OBSTACLE := 1 << 11,
    _HTML_EXPIRES := 1 << 12,
    _UNREAD_REASON := 1 << 13,
    _UNCONFIRMED_ANSWERS := 1 << 14,
)
"""In the order of the texts."""
_ANY_TEXT: Final = sum(_TEXT_FLAGS)
_UNCONFIRMED: Final = 1 << 15

_MEDIA_TYPE_CODES: Final = {media_type: code for code, media_type in enumerate(MEDIA_TYPES)}
_HEAD: Final = struct.Struct("<BHBhBBBBB")
_FIXED: Final = struct.Struct(_HEAD.format + "qqqq")
_RUN: Final = struct.Struct("<qqq")
_LENGTH: Final = struct.Struct("<I")
_MARK_SHIFT: Final = 32
_LOW_BITS: Final = (1 << _MARK_SHIFT) - 1
_make: Final = tuple.__new__  # builds a named tuple in half the time of calling its class


class TooLargeError(ValueError):
    """A number of a page does not fit into its field."""


class PackedPage(NamedTuple):
    """A page to be stored: the columns that engines query, and the packed rest."""

    path: str
    route: str
    learned: bool
    last_seen: int
    is_listable: bool
    data: bytes


def packed_page(page: Page) -> PackedPage:
    """The page as it is stored. Raises `TooLargeError`."""
    (
        path, route, first_seen, last_seen, status, media_type, noindex, private, obstacle, expires_at, canonical,
        last_modified, last_seen_fraction, last_modified_runs, read_at, html_noindex, html_canonical, stated_date,
        html_obstacle, html_expires_at, unread_reason, mark, read_fraction, content_runs, stated_date_runs, learned,
        is_unconfirmed, unconfirmed_answers,
    ) = page  # fmt: skip
    flags = 0 if last_modified is None else _LAST_MODIFIED
    if learned:
        flags |= _LEARNED
    if is_unconfirmed:
        flags |= _UNCONFIRMED
    if noindex:
        flags |= _NOINDEX
    if private:
        flags |= _PRIVATE
    if html_noindex:
        flags |= _HTML_NOINDEX
    media_type_code = _MEDIA_TYPE_CODES.get(media_type)
    packed_texts = b""
    if (  # most pages have no texts
        media_type_code is None
        or not (canonical is html_canonical is stated_date is None)
        or not (expires_at is html_expires_at is None)
        or obstacle
        or html_obstacle
        or unread_reason
        or unconfirmed_answers
    ):
        texts = (
            media_type if media_type_code is None else None, canonical, html_canonical, stated_date, obstacle or None,
            None if expires_at is None else str(expires_at), html_obstacle or None,
            None if html_expires_at is None else str(html_expires_at), unread_reason or None,
            ",".join(f"{answer.at}.{answer.status}" for answer in unconfirmed_answers) or None,
        )  # fmt: skip
        flags |= sum(flag for flag, text in zip(_TEXT_FLAGS, texts, strict=True) if text is not None)
        packed_texts = b"".join(_pack_text(text) for text in texts if text is not None)
    version = FORMAT_VERSION
    if mark and 0 <= read_at <= _LOW_BITS:
        version = MARKED_VERSION
        read_at |= mark << _MARK_SHIFT
    times: tuple[int, ...] = (first_seen, last_seen, last_modified or 0, read_at)
    times = sum(last_modified_runs + content_runs + stated_date_runs, times)
    try:
        numbers = last_seen_fraction, read_fraction, len(last_modified_runs), len(content_runs), len(stated_date_runs)
        data = _fixed_struct(len(times)).pack(version, flags, media_type_code or 0, status, *numbers, *times)
    except struct.error as error:
        raise TooLargeError(f"page {path!r} cannot be stored: {error}") from None
    if packed_texts:
        data += packed_texts
    return _make(PackedPage, (path, route, learned, last_seen, is_listable(page), data))


@cache
def _fixed_struct(times: int) -> struct.Struct:
    """Everything before the texts, with so many times, including those of the runs: packed in one call."""
    return struct.Struct(_HEAD.format + "q" * times)


def unpack_page(path: str, route: str, data: bytes) -> Page:
    """The page of a path and a route from its packed form. Raises ValueError if the data is damaged."""
    try:
        (
            version, flags, media_type_code, status, last_seen_fraction, read_fraction,
            last_modified_count, content_count, stated_date_count,
            first_seen, last_seen, last_modified, read_at,
        ) = _FIXED.unpack_from(data)  # fmt: skip
        content_end = last_modified_count + content_count
        end = _FIXED.size + _RUN.size * (content_end + stated_date_count)
        runs = tuple([_make(Run, run) for run in _RUN.iter_unpack(data[_FIXED.size : end])])
        media_type = MEDIA_TYPES[media_type_code]
    except (struct.error, IndexError, TypeError) as error:
        raise ValueError(f"the stored page {path!r} cannot be read: {error}") from None
    canonical = html_canonical = stated_date = obstacle = expires_at = html_obstacle = html_expires_at = None
    unread_reason = unconfirmed_answers = None
    if flags & _ANY_TEXT:
        (
            media_type_text, canonical, html_canonical, stated_date, obstacle, expires_at, html_obstacle,
            html_expires_at, unread_reason, unconfirmed_answers,
        ) = _unpack_texts(flags, data[end:])  # fmt: skip
        media_type = media_type if media_type_text is None else media_type_text
        if stated_date is not None:
            check_w3c([stated_date])
        end = len(data)
    mark = 0
    if version == MARKED_VERSION:
        mark, read_at = read_at >> _MARK_SHIFT, read_at & _LOW_BITS
    if version not in _VERSIONS or end != len(data) or not type(path) is type(route) is str:
        raise ValueError(f"the stored page {path!r} cannot be read: it is not of format {_VERSIONS}")
    return _make(
        Page,
        (
            path,
            route,
            first_seen,
            last_seen,
            status,
            media_type,
            flags & _NOINDEX != 0,
            flags & _PRIVATE != 0,
            obstacle or "",
            None if expires_at is None else int(expires_at),
            canonical,
            last_modified if flags & _LAST_MODIFIED else None,
            last_seen_fraction,
            runs[:last_modified_count],
            read_at,
            flags & _HTML_NOINDEX != 0,
            html_canonical,
            stated_date,
            html_obstacle or "",
            None if html_expires_at is None else int(html_expires_at),
            unread_reason or "",
            mark,
            read_fraction,
            runs[last_modified_count:content_end],
            runs[content_end:],
            flags & _LEARNED != 0,
            flags & _UNCONFIRMED != 0,
            () if unconfirmed_answers is None else _parse_unconfirmed(unconfirmed_answers),
        ),
    )


def unpack_block(rows: Iterable[tuple[str, str, bytes]]) -> list[Page]:
    """The pages of rows of path, route and packed form, in their order. Raises ValueError if one is damaged."""
    return [unpack_page(*row) for row in rows]


def _parse_unconfirmed(text: str) -> tuple[UnconfirmedAnswer, ...]:
    answers = [[int(number) for number in answer.split(".")] for answer in text.split(",")]
    if any(len(answer) != len(UnconfirmedAnswer._fields) for answer in answers):
        raise ValueError("the unconfirmed answers of a stored page are damaged")
    return tuple(UnconfirmedAnswer(*answer) for answer in answers)


def _pack_text(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # an app's lone surrogate would fail the whole batch
    return _LENGTH.pack(len(data)) + data


def _unpack_texts(flags: int, data: bytes) -> list[str | None]:
    """The text of each of `_TEXT_FLAGS`, None if its flag is not set."""
    texts: list[str | None] = []
    end = 0
    for flag in _TEXT_FLAGS:
        if not flags & flag:
            texts.append(None)
            continue
        start = end + _LENGTH.size
        end = start + int.from_bytes(data[end:start], "little")
        texts.append(data[start:end].decode())
    if end != len(data):
        raise ValueError("the texts of a stored page have wrong lengths")
    return texts
