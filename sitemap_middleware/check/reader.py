"""Reads a document piece by piece, in bounded memory, whatever its bytes are: decompressed, and as XML."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat
from xml.parsers.expat import errors

from .findings import Problem

MAX_BYTES: Final = 52_428_800
"""Bytes of a document before compression, "50 MB" (Sitemap 0.9, "Using Sitemap index files")."""
MAX_ELEMENTS_PER_ENTRY: Final = 20_000
MAX_DEPTH: Final = 32
MAX_NAMES: Final = 1_000
"""Different names of elements, attributes and prefixes. The parser keeps each name that it has met."""
MAX_TOKEN_BYTES: Final = 1_000_000
"""Bytes of one tag or comment. The parser keeps it until it is complete."""
MAX_VALUE_CHARS: Final = 10_000
"""Characters of a value that are kept. No valid value is longer."""
GZIP_MAGIC: Final = b"\x1f\x8b"

_PIECE_BYTES: Final = 65_536
_SEPARATOR: Final = " "
"""Between a namespace and a name. Neither can contain it."""
_TAIL_BYTES: Final = 100
_CODES: Final = {
    errors.XML_ERROR_UNBOUND_PREFIX: "xml-prefix-undeclared",
    errors.XML_ERROR_UNDEFINED_ENTITY: "xml-ampersand",
}
_BEGUN_ENTITY: Final = re.compile(rb"&[A-Za-z0-9_.:-]*\Z")


@dataclass(slots=True, eq=False)
class Element:
    """An element of an entry, with its children."""

    name: str
    """`namespace name`, or the name alone if it has no namespace."""
    attributes: dict[str, str]
    line: int
    column: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    @property
    def local_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(_SEPARATOR)[2]

    @property
    def namespace(self) -> str:
        """The namespace, or nothing."""
        return self.name.rpartition(_SEPARATOR)[0]


@dataclass(eq=False)
class Unreadable(Exception):
    """The rest of a document cannot be read: the problem says why, and the place where, if it is known."""

    problem: Problem
    line: int = 0
    column: int = 0


def pieces_of(stream: io.BufferedIOBase, end: Problem | None, *, is_declared_gzip: bool) -> Iterator[bytes]:
    """Yield what a stream contains, decompressed if it is gzip, whatever the document is named. Raises `Unreadable`.

    Args:
        stream: the stream.
        end: what is wrong if the stream ends before the document does.
        is_declared_gzip: whether the stream was compressed on its way, so that it may be gzip twice.
    """
    size = 0
    try:
        if is_declared_gzip:
            if not _is_gzip(stream):
                raise Unreadable(("fetch-gzip-broken", "Content-Encoding says gzip, and the body is not gzip"))
            stream = gzip.GzipFile(fileobj=stream, mode="rb")
        if _is_gzip(stream):
            stream = gzip.GzipFile(fileobj=stream, mode="rb")
        while piece := stream.read(_PIECE_BYTES):
            size += len(piece)
            if size > MAX_BYTES:
                text = f"the document has more than {MAX_BYTES:,} bytes; the rest was not read"
                raise Unreadable(("document-too-large", text))
            yield piece
    except EOFError:
        raise Unreadable(end or ("fetch-gzip-broken", "the compressed data ends early")) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Unreadable(("fetch-gzip-broken", f"the compressed data is damaged: {error}")) from None
    if end is not None:
        raise Unreadable(end)


def _is_gzip(stream: io.BufferedIOBase) -> bool:
    start = stream.read(len(GZIP_MAGIC))
    stream.seek(0)
    return start == GZIP_MAGIC


class XmlReader:
    """Reads a document, and reports what is wrong between its entries, with the line.

    DTDs are refused, so there are no entities, and nothing outside of the document is read.
    """

    def __init__(self, report: Callable[[Problem, int], None]) -> None:
        self.namespaces: dict[str, str] = {}
        self.encoding = ""
        self._report = report
        self._open: list[Element] = []
        self._complete: list[Element] = []
        """The root and its children that were read and not yielded yet."""
        self._names = set[str]()
        self._elements = 0
        self._has_declaration = False
        self._parser = parser = expat.ParserCreate("utf-8", namespace_separator=_SEPARATOR)
        parser.buffer_text = True
        parser.buffer_size = _PIECE_BYTES
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartDoctypeDeclHandler = self._doctype
        parser.ProcessingInstructionHandler = self._instruction
        parser.XmlDeclHandler = self._declaration

    def read(self, pieces: Iterable[bytes]) -> Iterator[Element]:
        """Yield the root element without children, and then each child once it is complete. Raises `Unreadable`."""
        fed, tail = 0, b""
        for piece in pieces:
            yield from self._parsed(piece, tail, fed)
            fed, tail = fed + len(piece), piece[-_TAIL_BYTES:]
            if fed - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES:
                raise self._refused(f"a tag or comment is longer than {MAX_TOKEN_BYTES:,} bytes")
        yield from self._parsed(b"", tail, fed, is_final=True)

    def _parsed(self, piece: bytes, tail: bytes, fed: int, *, is_final: bool = False) -> Iterator[Element]:
        refusal: Unreadable | None = None
        try:
            self._parser.Parse(piece, is_final)
        except Unreadable as error:
            refusal = error
        except expat.ExpatError as error:
            refusal = self._unreadable(error, tail + piece, self._parser.ErrorByteIndex - fed + len(tail))
        complete, self._complete = self._complete, []
        yield from complete
        if refusal is not None:
            raise refusal

    def _unreadable(self, error: expat.ExpatError, known: bytes, at: int) -> Unreadable:
        """Say what a mistake means, by its code, by the bytes that were read last, with its position `at`, and by the
        elements that are open.
        """
        text = expat.ErrorString(error.code)
        code = _CODES.get(text, "xml-not-well-formed")
        if text == errors.XML_ERROR_INVALID_TOKEN:
            if known[at : at + 1] >= b"\x80":
                code, text = "xml-encoding", f"the byte {known[at]:#04x} is not UTF-8"
            elif _BEGUN_ENTITY.search(known[:at]):
                code, text = "xml-ampersand", "a bare &, which is &amp; in XML"
        elif text == errors.XML_ERROR_MISPLACED_XML_PI:
            is_inside = self._has_declaration or self._names
            where = "inside the document" if is_inside else "after a blank, an empty line or a comment, and not first"
            code, text = "xml-leading-content", f"the XML declaration stands {where}"
        elif text == errors.XML_ERROR_TAG_MISMATCH:
            text = f"an end tag is not that of the open element {self._open[-1].local_name[:100]}"
        elif text == errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
            text = "something follows the end of the root element"
        elif text == errors.XML_ERROR_UNCLOSED_TOKEN:
            text = "the document ends inside a tag, a comment or an instruction"
        elif text == errors.XML_ERROR_NO_ELEMENTS:
            inside = f"inside the element {self._open[-1].local_name[:100]}" if self._open else "before any element"
            text = f"the document ends {inside}"
        return Unreadable((code, text), error.lineno, error.offset + 1)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, *self._position())
        self._names.update((name, *attributes))
        if len(self._names) + len(self.namespaces) > MAX_NAMES:
            raise self._refused(f"there are more than {MAX_NAMES:,} different names")
        if not self._open:
            self._complete.append(element)
        elif len(self._open) > 1:
            self._open[-1].children.append(element)
            self._elements += 1
            if self._elements > MAX_ELEMENTS_PER_ENTRY:
                raise self._refused(f"an entry has more than {MAX_ELEMENTS_PER_ENTRY:,} elements")
            if len(self._open) > MAX_DEPTH:
                raise self._refused(f"elements are nested more than {MAX_DEPTH} levels deep")
        self._open.append(element)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if len(self._open) == 1:
            self._complete.append(element)
            self._elements = 0

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if len(self._open) == 1:
            if not text.isspace():
                problem = "xml-stray-text", f"{text.strip()[:100]!r} belongs to no element"
                self._report(problem, self._parser.CurrentLineNumber)
        elif len(element.text) < MAX_VALUE_CHARS:
            element.text += text[:MAX_VALUE_CHARS]

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        self.namespaces[prefix or ""] = uri or ""

    def _doctype(self, name: str, *_: object) -> None:
        raise Unreadable(("xml-dtd", f"the document has a DTD: <!DOCTYPE {name[:100]}"), *self._position())

    def _instruction(self, target: str, _data: str) -> None:
        if target == "xml-stylesheet":
            problem = "xml-stylesheet", "the document names a stylesheet"
            self._report(problem, self._parser.CurrentLineNumber)

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self._has_declaration = True
        self.encoding = encoding or ""

    def _refused(self, text: str) -> Unreadable:
        return Unreadable(("xml-too-complex", f"{text}; the rest was not read"), *self._position())

    def _position(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
