"""Checks one document, piece by piece as it arrives: its size and encoding, and its content by `entries_check`."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

from .decompression import GZIP_MAGIC
from .entries_check import DocumentContent
from .message import Place
from .rules import Rule, fetch, size_and_index, xml
from .run_context import Run
from .sitemap_element_names import Kind
from .temporary_url_database import DocumentRow
from .xml_reader import Unreadable, XmlReader

MAX_BYTES: Final = 52_428_800
"""Bytes of a document before compression, "50 MB" (Sitemap 0.9, "Using Sitemap index files")."""

MAX_LINE_BYTES: Final = 10_000
"""Bytes of a line of a text document that are kept."""
_HEAD_BYTES: Final = 1_024
"""Bytes by which it is decided what a document is."""
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")
_URL_LINE: Final = re.compile(rb"https?://", re.IGNORECASE)
_UTF_8_NAMES: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})


class DocumentCheck:
    """Checks a document piece by piece.

    Args:
        run: what the documents of one run share.
        document: the document, which messages name.
        location: the URL that it is served at, if it is known.
    """

    def __init__(self, run: Run, document: DocumentRow, location: str | None) -> None:
        self._run = run
        self._report = run.report
        self._document = document
        self._content = DocumentContent(run, document, location)
        self._bytes = 0
        self._head: bytes | None = b""
        self._declared_encoding = ""
        self._has_stylesheet = False
        self._stray_text = False
        self._is_refused = False
        self._take: Callable[[bytes], None] = self._ignore
        self._finish: Callable[[], None] = self._nothing
        self._line = b""
        self._line_number = 0

    @property
    def kind(self) -> Kind | None:
        """What the document is, once it is known."""
        return self._content.kind

    @property
    def is_refused(self) -> bool:
        """Whether further bytes are not read."""
        return self._is_refused

    def feed(self, data: bytes) -> None:
        """Check a piece of the document, decompressed, unless it is refused."""
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            self.refuse(
                size_and_index.TOO_LARGE,
                f"the document has more than {MAX_BYTES:,} bytes; the rest was not read",
            )
            return
        if self._head is None:
            self._guarded(self._take, data)
            return
        self._head += data
        if self._head.isspace():
            self._head = self._head[:1]  # however many blanks there are, they are a mistake of one kind
        if len(self._head) >= _HEAD_BYTES:
            self._begin()

    def close(self) -> None:
        """Check what only the whole document shows, once all of it was fed."""
        if not self._is_refused and self._head is not None:
            self._begin()
        if not self._is_refused:
            self._guarded(lambda _: self._finish(), b"")
        if not self._is_refused:
            if self._declared_encoding:
                self._add(xml.ENCODING_DECLARED, f"the declared encoding is {self._declared_encoding}")
            self._content.close()
            self._run.documents.completed()

    def refuse(self, rule: Rule, text: str) -> None:
        """Report why the document is not read any further."""
        self._add(rule, text)
        self._is_refused = True

    def _add(self, rule: Rule, text: str, line: int = 0, column: int = 0) -> None:
        self._report.add(rule, self._document.url, text, Place(self._document.url, line, column))

    def _guarded(self, take: Callable[[bytes], None], data: bytes) -> None:
        try:
            take(data)
        except Unreadable as error:
            self._add(error.rule, error.text, error.line, error.column)
            self._is_refused = True

    def _begin(self) -> None:
        """Decide what the document is, and check its head."""
        head, self._head = self._head or b"", None
        if head.startswith(codecs.BOM_UTF8):
            self._add(xml.BOM, "the document starts with a byte order mark")
            head = head.removeprefix(codecs.BOM_UTF8)
        text = head.lstrip()
        if not text:
            self.refuse(size_and_index.EMPTY, "the document has no content")
        elif head.startswith(GZIP_MAGIC):
            self.refuse(fetch.GZIP_TWICE, "the decompressed document is gzip again")
        elif head.startswith(_UTF_16):
            self.refuse(xml.ENCODING, "the document is UTF-16")
        elif _HTML.match(text):
            self.refuse(fetch.HTML, "the document is an HTML page")
        elif _URL_LINE.match(text):
            self._content.begin(Kind.TEXT)
            self._take, self._finish = self._take_lines, self._finish_lines
        elif text.startswith(b"<"):
            reader = XmlReader(
                on_root=self._content.root,
                on_entry=self._content.entry,
                on_stray_text=self._text,
                on_instruction=self._instruction,
                on_encoding=self._encoding,
            )
            self._content.namespaces = reader.namespaces
            self._take, self._finish = reader.feed, reader.close
        elif b"<?xml" in text:
            self.refuse(xml.LEADING_CONTENT, "text stands before the XML declaration")
        else:
            self.refuse(xml.ROOT, "the document is neither XML nor a list of URLs")
        if not self._is_refused:
            self._guarded(self._take, head)

    def _text(self, text: str, line: int) -> None:
        if not self._stray_text:  # once: what prints it prints more
            self._stray_text = True
            self._add(xml.STRAY_TEXT, f"{text[:100]!r} belongs to no element", line)

    def _instruction(self, target: str, line: int) -> None:
        if target == "xml-stylesheet" and not self._has_stylesheet:
            self._has_stylesheet = True
            self._add(xml.STYLESHEET, "the document names a stylesheet", line)

    def _encoding(self, encoding: str) -> None:
        if encoding.lower() not in _UTF_8_NAMES:
            self._declared_encoding = encoding[:100]

    # Text

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
            raise Unreadable(xml.ENCODING, "the line is not UTF-8", self._line_number, 0) from None
        if text:
            self._content.line(text, self._line_number)

    def _ignore(self, _data: bytes) -> None:
        """Take nothing: it is not decided what the document is."""

    def _nothing(self) -> None:
        """Finish nothing."""
