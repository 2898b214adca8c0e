"""Pages as bytes: the one compact form in which every engine keeps them, beside their paths and routes. Pure.

    version    1 byte
    facts      2 bytes, the flags below
    type       1 byte: which of `MEDIA_TYPES`, unless it is spelled out below
    status     4 bytes
    counts     1 byte each: how many moments, how many contents, how many statements
    times      8 bytes each: first seen, last seen, Last-Modified, last read
    runs       24 bytes each: the moments, then the contents, then the statements
    texts      4 bytes of length, and UTF-8, each of those there are: type, canonical, the HTML's canonical, stated,
               obstacle, expires, the HTML's obstacle and expires, unread, contrary answers; numbers in decimal

Integers are little-endian. A page that was seen once and read takes 67 bytes.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from ..evidence.verdict import is_listable
from ..history import Run
from ..models import Page, UnconfirmedAnswer

FORMAT_VERSION: Final = 4
"""The first byte. A form that differs gets another, and this one is read for as long as a store may hold it."""

MEDIA_TYPES: Final = ("text/html", "application/xhtml+xml", "application/pdf", "", "text/plain", "application/json")
"""Media types of one byte. Pages that are kept name them by their place here: one may be added at the end alone."""

_NOINDEX: Final = 1
_PRIVATE: Final = 2
_HTML_NOINDEX: Final = 4
_LEARNED: Final = 8
_MODIFIED: Final = 16
_TEXT_FLAGS: Final = (
    _TYPE := 32,
    _CANONICAL := 64,
    _HTML_CANONICAL := 128,
    _STATED := 256,
    _OBSTACLE := 512,
    _EXPIRES := 1024,
    _HTML_OBSTACLE := 2048,
    _HTML_EXPIRES := 4096,
    _UNREAD := 8192,
    _CONTRARY := 16384,
)
_ANY_TEXT_FLAG: Final = sum(_TEXT_FLAGS)
_UNCONFIRMED: Final = 32768
_ALL_FLAGS: Final = _NOINDEX | _PRIVATE | _HTML_NOINDEX | _LEARNED | _MODIFIED | _UNCONFIRMED | _ANY_TEXT_FLAG

_MEDIA_TYPE_CODES: Final = {media_type: code for code, media_type in enumerate(MEDIA_TYPES)}
_HEAD: Final = struct.Struct("<BHBiBBB")
_FIXED: Final = struct.Struct(_HEAD.format + "qqqq")
_RUN: Final = struct.Struct("<qqq")
_LENGTH: Final = struct.Struct("<I")
_make: Final = tuple.__new__  # of a named tuple: in half the time that calling its class takes


class TooLargeError(ValueError):
    """A number of a page takes more room than it has."""


class PackedPage(NamedTuple):
    """A page as it is written: what engines look at, and the bytes."""

    path: str
    route: str
    learned: bool
    last_seen: int
    is_listable: bool
    data: bytes


def pack_page(page: Page) -> bytes:
    """A page as bytes, but for its path and route; ValueError where a number of it takes more room than it has."""
    return packed_page(page).data


def packed_page(page: Page) -> PackedPage:
    """A page ready to be written; ValueError as of `pack_page`."""
    (
        path, route, first_seen, last_seen, status, media_type, noindex, private, obstacle, expires_at, canonical,
        last_modified, moments, read_at, html_noindex, html_canonical, stated, html_obstacle, html_expires_at, unread,
        contents, statements, learned, doubtful, contrary,
    ) = page  # fmt: skip
    flags = 0 if last_modified is None else _MODIFIED
    if learned:
        flags |= _LEARNED
    if doubtful:
        flags |= _UNCONFIRMED
    if noindex:
        flags |= _NOINDEX
    if private:
        flags |= _PRIVATE
    if html_noindex:
        flags |= _HTML_NOINDEX
    code = _MEDIA_TYPE_CODES.get(media_type)
    texts = b""
    if (
        code is None
        or not (canonical is html_canonical is stated is None)
        or not (expires_at is html_expires_at is None)
        or obstacle
        or html_obstacle
        or unread
        or contrary
    ):
        spelled = (
            media_type if code is None else None, canonical, html_canonical, stated, obstacle or None,
            _parse_int(expires_at), html_obstacle or None, _parse_int(html_expires_at), unread or None,
            ",".join(f"{one.at}.{one.status}.{one.visitor}" for one in contrary) or None,
        )  # fmt: skip
        flags |= sum(flag for flag, text in zip(_TEXT_FLAGS, spelled, strict=True) if text is not None)
        texts = b"".join(_decode_text(text) for text in spelled if text is not None)
    times: tuple[int, ...] = (first_seen, last_seen, last_modified or 0, read_at)
    times = sum(moments + contents + statements, times)
    try:
        counts = len(moments), len(contents), len(statements)
        facts = _fixed_struct(len(times)).pack(FORMAT_VERSION, flags, code or 0, status, *counts, *times)
    except struct.error as error:
        raise TooLargeError(f"{path!r} cannot be kept: {error}") from None
    return _make(PackedPage, (path, route, learned, last_seen, is_listable(page), facts + texts if texts else facts))


@cache
def _fixed_struct(times: int) -> struct.Struct:
    """All but the texts, with so many times, those of the runs among them: they are packed at once."""
    return struct.Struct(_HEAD.format + "q" * times)


def unpack_page(path: str, route: str, data: bytes) -> Page:
    """The page that `pack_page` made bytes of; ValueError where these bytes are none."""
    try:
        (version, facts, code, status, moments, contents, statements, first_seen, last_seen, last_modified, read_at) = (
            _FIXED.unpack_from(data)
        )
        end = _FIXED.size + _RUN.size * (moments + contents + statements)
        runs = tuple([_make(Run, run) for run in _RUN.iter_unpack(data[_FIXED.size : end])])
        media_type = MEDIA_TYPES[code]
    except (struct.error, IndexError, TypeError) as error:
        raise ValueError(f"what is kept of {path!r} is no page: {error}") from None
    canonical = html_canonical = stated = unread = waits = None
    obstacle = html_obstacle = expires_at = html_expires_at = None
    if facts & _ANY_TEXT_FLAG:
        (
            spelled, canonical, html_canonical, stated, obstacle, expires_at, html_obstacle, html_expires_at, unread,
            waits,
        ) = _texts(facts, data[end:])  # fmt: skip
        media_type = media_type if spelled is None else spelled
        end = len(data)
    if version != FORMAT_VERSION or facts > _ALL_FLAGS or end != len(data) or not type(path) is type(route) is str:
        raise ValueError(f"what is kept of {path!r} is no page of form {FORMAT_VERSION}")
    return _make(
        Page,
        (
            path,
            route,
            first_seen,
            last_seen,
            status,
            media_type,
            facts & _NOINDEX != 0,
            facts & _PRIVATE != 0,
            obstacle or "",
            None if expires_at is None else int(expires_at),
            canonical,
            last_modified if facts & _MODIFIED else None,
            runs[:moments],
            read_at,
            facts & _HTML_NOINDEX != 0,
            html_canonical,
            stated,
            html_obstacle or "",
            None if html_expires_at is None else int(html_expires_at),
            unread or "",
            runs[moments : moments + contents],
            runs[moments + contents :],
            facts & _LEARNED != 0,
            facts & _UNCONFIRMED != 0,
            () if waits is None else _parse_unconfirmed(waits),
        ),
    )


def _parse_unconfirmed(text: str) -> tuple[UnconfirmedAnswer, ...]:
    """Answers that wait for confirmation, of their text."""
    rows = [[int(number) for number in one.split(".")] for one in text.split(",")]
    if any(len(row) != len(UnconfirmedAnswer._fields) for row in rows):
        raise ValueError("the answers of a page that wait for confirmation are no such answers")
    return tuple(UnconfirmedAnswer(*row) for row in rows)


def _parse_int(number: int | None) -> str | None:
    return None if number is None else str(number)


def _decode_text(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")  # half a surrogate pair of an app's would fail the whole batch
    return _LENGTH.pack(len(raw)) + raw


def _texts(facts: int, data: bytes) -> list[str | None]:
    """Those of the texts that are there, each in its place."""
    texts: list[str | None] = []
    at = 0
    for flag in _TEXT_FLAGS:
        if not facts & flag:
            texts.append(None)
            continue
        length = int.from_bytes(data[at : at + _LENGTH.size], "little")
        at += _LENGTH.size + length
        texts.append(data[at - length : at].decode())
    if at != len(data):
        raise ValueError("the texts of a page that is kept are not as long as they say")
    return texts
