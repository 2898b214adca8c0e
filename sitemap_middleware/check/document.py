"""Checks one document, piece by piece as it arrives: compression, size and encoding; its content by `entries`."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .database import DocumentRow
from .entries import Entries, Kind
from .findings import Finding, Place
from .run import Run
from .xml_reader import PIECE_BYTES, Unreadable, XmlReader

MAX_BYTES: Final = 52_428_800
"""Bytes of a document before compression, "50 MB" (Sitemap 0.9, "Using Sitemap index files")."""

MAX_LINE_BYTES: Final = 10_000
"""Bytes of a line of a text document that are kept."""
_HEAD_BYTES: Final = 1_024
"""Bytes by which it is decided what a document is."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
"""The bytes with which gzip begins."""
_GZIP: Final = zlib.MAX_WBITS | 16
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")
_URL_LINE: Final = re.compile(rb"https?://", re.IGNORECASE)
_UTF_8_NAMES: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


class Decompressor:
    """Passes on bytes, and decompresses them first if they are gzip, whatever the document is named.

    Args:
        is_declared: whether the response says that they are gzip, so that others are an error.
    """

    def __init__(self, *, is_declared: bool = False) -> None:
        self._is_declared = is_declared
        self._start: bytes | None = b""
        self._stream: zlib._Decompress | None = None
        self._has_member = False
        """Whether one gzip member has ended. Members may follow each other, and so may zeros (RFC 1952)."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes, in small pieces. Raises `Unreadable`."""
        if self._start is not None:
            data = self._start + data
            if len(data) < len(_GZIP_MAGIC):
                self._start = data
                return
            self._start = None
            if data.startswith(_GZIP_MAGIC):
                self._stream = zlib.decompressobj(_GZIP)
            elif self._is_declared:
                raise Unreadable(("fetch-gzip-broken", "Content-Encoding says gzip, and the body is not gzip"))
        if self._stream is None and not self._has_member:
            yield data
            return
        while data:
            if self._stream is None:
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._stream = zlib.decompressobj(_GZIP)
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Unreadable(("fetch-gzip-broken", f"the compressed data is damaged: {error}")) from None
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                data, self._stream, self._has_member = self._stream.unused_data, None, True
            if piece:
                yield piece

    def close(self) -> bytes:
        """Return what is left. Raises `Unreadable` if the data ends early."""
        if self._stream is not None:
            raise Unreadable(("fetch-gzip-broken", "the compressed data ends early"))
        return self._start or b""


class Document:
    """Checks a document piece by piece. What ends the check is raised inside as `Unreadable`, and reported.

    Args:
        run: what the documents of one run share.
        row: the document, which messages name.
        location: the URL that it is served at, if it is known.
    """

    def __init__(self, run: Run, row: DocumentRow, location: str | None) -> None:
        self._run = run
        self._row = row
        self._entries = Entries(run, row, location)
        self._decompressor = Decompressor()
        self._is_over = False
        self._bytes = 0
        self._head: bytes | None = b""
        """The first bytes, until it is decided what the document is."""
        self._take: Callable[[bytes], None] = self._decide_later
        self._finish: Callable[[], None] = self._begin
        self._declared_encoding = ""
        self._once = set[str]()
        self._line = b""
        self._line_number = 0

    @property
    def kind(self) -> Kind | None:
        """What the document is, once it is known."""
        return self._entries.kind

    def feed(self, data: bytes) -> bool:
        """Check a piece of the document, which may be compressed. Return whether further ones are taken."""
        if not self._is_over:
            with self._reporting():
                for piece in self._decompressor.feed(data):
                    self._feed(piece)
        return not self._is_over

    def close(self) -> None:
        """Check what only the whole document shows, once all of it was fed."""
        if self._is_over:
            return
        with self._reporting():
            self._feed(self._decompressor.close())
            self._finish()
            if self._declared_encoding:
                self._add(("xml-encoding-declared", f"the declared encoding is {self._declared_encoding}"))
            self._entries.close()
            self._run.documents.completed()

    def refuse(self, finding: Finding, line: int = 0, column: int = 0) -> None:
        """Report why the document is not read any further."""
        self._add(finding, line, column)
        self._is_over = True

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report why the rest of the document cannot be read, if what is done here finds so."""
        try:
            yield
        except Unreadable as error:
            self.refuse(error.finding, error.line, error.column)

    def _add(self, finding: Finding, line: int = 0, column: int = 0) -> None:
        self._run.report.add(finding, self._row.url, Place(self._row.url, line, column))

    def _add_once(self, finding: Finding, line: int) -> None:
        """Report the first of several findings of one code: what makes one such mistake makes more."""
        if finding[0] not in self._once:
            self._once.add(finding[0])
            self._add(finding, line)

    def _feed(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            text = f"the document has more than {MAX_BYTES:,} bytes; the rest was not read"
            raise Unreadable(("document-too-large", text))
        self._take(data)

    def _decide_later(self, data: bytes) -> None:
        self._head = (self._head or b"") + data
        if self._head.isspace():
            self._head = self._head[:1]  # however many blanks there are, they are a mistake of one kind
        if len(self._head) >= _HEAD_BYTES:
            self._decide()

    def _begin(self) -> None:
        """Finish a document that is shorter than its head could be."""
        self._decide()
        self._finish()

    def _decide(self) -> None:
        """Decide what the document is, and check its head."""
        head, self._head = self._head or b"", None
        if head.startswith(codecs.BOM_UTF8):
            self._add(("xml-bom", "the document starts with a byte order mark"))
            head = head.removeprefix(codecs.BOM_UTF8)
        text = head.lstrip()
        if not text:
            raise Unreadable(("document-empty", "the document has no content"))
        if head.startswith(_GZIP_MAGIC):
            raise Unreadable(("fetch-gzip-twice", "the decompressed document is gzip again"))
        if head.startswith(_UTF_16):
            raise Unreadable(("xml-encoding", "the document is UTF-16"))
        if _HTML.match(text):
            raise Unreadable(("fetch-html", "the document is an HTML page"))
        if _URL_LINE.match(text):
            self._entries.begin(Kind.TEXT)
            self._take, self._finish = self._take_lines, self._finish_lines
        elif text.startswith(b"<"):
            reader = XmlReader(
                on_root=self._entries.root,
                on_entry=self._entries.entry,
                on_stray_text=self._stray_text,
                on_instruction=self._instruction,
                on_encoding=self._encoding,
            )
            self._entries.namespaces = reader.namespaces
            self._take, self._finish = reader.feed, reader.close
        elif b"<?xml" in text:
            raise Unreadable(("xml-leading-content", "text stands before the XML declaration"))
        else:
            raise Unreadable(("xml-root", "the document is neither XML nor a list of URLs"))
        self._take(head)

    def _stray_text(self, text: str, line: int) -> None:
        self._add_once(("xml-stray-text", f"{text[:100]!r} belongs to no element"), line)

    def _instruction(self, target: str, line: int) -> None:
        if target == "xml-stylesheet":
            self._add_once(("xml-stylesheet", "the document names a stylesheet"), line)

    def _encoding(self, encoding: str) -> None:
        if encoding.lower() not in _UTF_8_NAMES:
            self._declared_encoding = encoding[:100]

    def _take_lines(self, data: bytes) -> None:
        lines = (self._line + data).split(b"\n")
        self._line = lines.pop()[: MAX_LINE_BYTES + 1]
        for line in lines:
            self._take_line(line)

    def _finish_lines(self) -> None:
        self._take_line(self._line)

    def _take_line(self, line: bytes) -> None:
        self._line_number += 1
        try:
            text = line[: MAX_LINE_BYTES + 1].decode().strip()
        except UnicodeDecodeError:
            raise Unreadable(("xml-encoding", "the line is not UTF-8"), self._line_number) from None
        if text:
            self._entries.line(text, self._line_number)
