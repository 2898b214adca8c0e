"""Reads the XML of a sitemap piece by piece, in fixed memory, whatever its bytes are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from xml.parsers import expat
from xml.parsers.expat import errors

from .findings import Finding

MAX_DEPTH: Final = 32
MAX_ELEMENTS_PER_ENTRY: Final = 20_000
MAX_NAMES: Final = 1_000
"""Different names of elements, attributes, prefixes and namespaces. The parser keeps each name that it has met."""
MAX_NAME_CHARS: Final = 100_000
"""Characters of these names together."""
MAX_TOKEN_BYTES: Final = 1_000_000
"""Bytes of one tag or comment. The parser keeps it until it is complete."""
MAX_VALUE_CHARS: Final = 10_000
"""Characters of a value that are kept. No valid value is longer."""
MAX_ENTRY_CHARS: Final = 1_000_000
"""Characters of all values of an entry that are kept."""
PIECE_BYTES: Final = 65_536

SEPARATOR: Final = " "
"""Between a namespace and a name. Neither can contain it."""

_INVALID_TOKEN: Final = errors.codes[errors.XML_ERROR_INVALID_TOKEN]
_MISPLACED_DECLARATION: Final = errors.codes[errors.XML_ERROR_MISPLACED_XML_PI]
_NO_ELEMENTS: Final = errors.codes[errors.XML_ERROR_NO_ELEMENTS]
_UNCLOSED_TOKEN: Final = errors.codes[errors.XML_ERROR_UNCLOSED_TOKEN]
_UNBOUND_PREFIX: Final = errors.codes[errors.XML_ERROR_UNBOUND_PREFIX]
_UNDEFINED_ENTITY: Final = errors.codes[errors.XML_ERROR_UNDEFINED_ENTITY]
_TAIL_BYTES: Final = 100
"""Bytes before a mistake that say what it is."""
_BEGUN_ENTITY: Final = re.compile(rb"&[A-Za-z0-9_.:-]*\Z")


class Element:
    """An element of an entry, with its children."""

    __slots__ = ("attributes", "children", "column", "line", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str], line: int, column: int) -> None:
        self.name: str = name
        """`namespace name`, or the name alone if it has no namespace."""
        self.attributes: dict[str, str] = attributes
        self.line: int = line
        self.column: int = column
        self.text: str = ""
        self.children: list[Element] = []

    @property
    def local_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(SEPARATOR)[2]

    @property
    def namespace(self) -> str:
        """The namespace, or nothing."""
        return self.name.rpartition(SEPARATOR)[0]


class Unreadable(Exception):
    """The rest of a document cannot be read: the finding says why, and the place where, if it is known."""

    def __init__(self, finding: Finding, line: int = 0, column: int = 0) -> None:
        super().__init__(finding[1])
        self.finding = finding
        self.line = line
        self.column = column


class XmlReader:
    """A push parser: it takes bytes, and passes on each entry.

    Args:
        on_root: called with the root element, before its children are read.
        on_entry: called with each complete child of the root.
        on_stray_text: called with text between the entries, and its line.
        on_instruction: called with the name of each processing instruction, and its line.
        on_encoding: called with the encoding that the document declares.

    DTDs are refused, so there are no entities, and nothing outside of the document is read.
    """

    def __init__(
        self,
        *,
        on_root: Callable[[Element], None],
        on_entry: Callable[[Element], None],
        on_stray_text: Callable[[str, int], None],
        on_instruction: Callable[[str, int], None],
        on_encoding: Callable[[str], None],
    ) -> None:
        self._on_root = on_root
        self._on_entry = on_entry
        self._on_stray_text = on_stray_text
        self._on_instruction = on_instruction
        self._on_encoding = on_encoding
        self._open: list[Element] = []
        self._names = set[str]()
        self._elements = self._chars = 0
        self._fed_bytes = 0
        self._tail = b""
        self._has_declaration = False
        self.namespaces: dict[str, str] = {}
        """The namespaces that were declared, by prefix."""
        self._parser = parser = expat.ParserCreate("utf-8", namespace_separator=SEPARATOR)
        parser.buffer_text = True
        parser.buffer_size = PIECE_BYTES
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartDoctypeDeclHandler = self._doctype
        parser.ProcessingInstructionHandler = self._instruction
        parser.XmlDeclHandler = self._declaration

    def feed(self, data: bytes) -> None:
        """Read a piece of the document. Raises `Unreadable`."""
        for begin in range(0, len(data), PIECE_BYTES):
            piece = data[begin : begin + PIECE_BYTES]
            self._fed_bytes += len(piece)
            self._parse(piece, final=False)
            if self._fed_bytes - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES:
                raise self._refused(f"a tag or comment is longer than {MAX_TOKEN_BYTES:,} bytes")

    def close(self) -> None:
        """Say that the document is complete. Raises `Unreadable`."""
        self._parse(b"", final=True)

    def _parse(self, piece: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(piece, final)
        except expat.ExpatError as error:
            raise self._unreadable(error, piece) from None
        self._tail = piece[-_TAIL_BYTES:]

    def _unreadable(self, error: expat.ExpatError, piece: bytes) -> Unreadable:
        """Say what a mistake means: by its code, by the bytes before it, and by the elements that are open."""
        code, text = "xml-not-well-formed", expat.ErrorString(error.code)
        if error.code == _INVALID_TOKEN:
            known = self._tail + piece
            at = self._parser.ErrorByteIndex - (self._fed_bytes - len(known))
            if known[at : at + 1] >= b"\x80":
                code, text = "xml-encoding", f"the byte {known[at]:#04x} is not UTF-8"
            elif _BEGUN_ENTITY.search(known[:at]):
                code, text = "xml-ampersand", "a bare &, which is &amp; in XML"
        elif error.code == _MISPLACED_DECLARATION:
            code = "xml-leading-content"
            is_inside = self._has_declaration or self._names
            where = "inside the document" if is_inside else "after a blank or an empty line, and not first"
            text = f"the XML declaration stands {where}"
        elif error.code == _UNBOUND_PREFIX:
            code = "xml-prefix-undeclared"
        elif error.code == _UNDEFINED_ENTITY:
            code = "xml-ampersand"
        elif error.code == _UNCLOSED_TOKEN:
            text = "the document ends inside a tag, a comment or an instruction"
        elif error.code == _NO_ELEMENTS:
            inside = f"inside the element {self._open[-1].local_name[:100]}" if self._open else "before any element"
            text = f"the document ends {inside}"
        return Unreadable((code, text), error.lineno, error.offset + 1)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parser = self._parser
        element = Element(name, attributes, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
        names = self._names
        if name not in names or (attributes and not names.issuperset(attributes)):
            self._add_names(name, *attributes)
        opened = self._open
        if not opened:
            self._on_root(element)
        elif len(opened) > 1:
            opened[-1].children.append(element)
            self._elements += 1
            if self._elements > MAX_ELEMENTS_PER_ENTRY:
                raise self._refused(f"an entry has more than {MAX_ELEMENTS_PER_ENTRY:,} elements")
            if len(opened) > MAX_DEPTH:
                raise self._refused(f"elements are nested more than {MAX_DEPTH} levels deep")
        opened.append(element)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if len(self._open) == 1:
            self._on_entry(element)
            self._elements = self._chars = 0

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if len(self._open) == 1:
            if not text.isspace():
                self._on_stray_text(text.strip()[:MAX_VALUE_CHARS], self._parser.CurrentLineNumber)
            return
        if len(element.text) < MAX_VALUE_CHARS and self._chars < MAX_ENTRY_CHARS:
            element.text = element.text + text[:MAX_VALUE_CHARS] if element.text else text[:MAX_VALUE_CHARS]
            self._chars += len(text)

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        prefix, uri = prefix or "", uri or ""
        self.namespaces[prefix] = uri
        if not self._names.issuperset((prefix, uri)):
            self._add_names(prefix, uri)

    def _add_names(self, *names: str) -> None:
        self._names.update(names)
        if len(self._names) > MAX_NAMES:
            raise self._refused(f"there are more than {MAX_NAMES:,} different names")
        if sum(map(len, self._names)) > MAX_NAME_CHARS:
            raise self._refused(f"the names have more than {MAX_NAME_CHARS:,} characters")

    def _doctype(self, name: str, *_: object) -> None:
        raise Unreadable(("xml-dtd", f"the document has a DTD: <!DOCTYPE {name[:100]}"), *self._position())

    def _instruction(self, target: str, _data: str) -> None:
        self._on_instruction(target, self._parser.CurrentLineNumber)

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self._has_declaration = True
        if encoding is not None:
            self._on_encoding(encoding)

    def _refused(self, text: str) -> Unreadable:
        return Unreadable(("xml-too-complex", f"{text}; the rest was not read"), *self._position())

    def _position(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
