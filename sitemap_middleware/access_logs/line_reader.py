"""Reads the lines of a log: decompressed, with known bytes only, in pieces of limited size.

A log may be of any size, and so may its lines; memory stays the same.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from ..exceptions import SitemapError
from .log_formats_as_sql import FIELDS_DIRECTIVE

MAX_LINE_BYTES: Final = 128 * 1024
"""Bytes of a line. A longer one counts as broken; servers accept no request that makes one."""

PIECE_BYTES: Final = 8 * 1024 * 1024
"""Bytes after which a piece ends. Python sees all its lines if they are all different visits, so it bounds memory."""

HEAD_BYTES: Final = 256 * 1024
"""Bytes of the beginning of a log, by which its format is detected and it is recognised."""

DIGEST_BYTES: Final = 16

FIELD_SEPARATOR: Final = "\x01"
"""A character that no line has, once written as a piece."""

COPIED_BYTES: Final = 2 * 1024 * 1024
"""Bytes read at once."""
_WINDOW_BYTES: Final = MAX_LINE_BYTES // 2
_REPLACEMENT: Final = 0x7F
"""Stands for every control character, except the tab. A path that has it cannot be written."""
_CLEAN: Final = bytes(_REPLACEMENT if byte < 0x20 and byte not in b"\t\n" else byte for byte in range(256))
_DIRECTIVE: Final = re.compile(rb"^" + re.escape(FIELDS_DIRECTIVE.encode()) + rb"[^\n]*", re.MULTILINE)

_COMPRESSIONS: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_UNSUPPORTED: Final = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip", b"\xff\xfe": "UTF-16"}


class LogReadError(SitemapError):
    """A log cannot be read, or not to its end."""


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[tuple[Callable[[int], bytes], IO[bytes]]]:
    """Open a log: a function that reads decompressed bytes, and the file itself, whose position shows the progress.

    Whether it is compressed with gzip or zstd is seen from its content.

    Raises:
        LogReadError: it cannot be opened, or is compressed in another way. The function raises it as well.
    """
    with contextlib.ExitStack() as stack:
        try:
            file: BufferedReader = stack.enter_context(path.open("rb"))
            head = file.peek(8)[:8]
        except OSError as error:
            raise LogReadError(f"{path} cannot be read: {error.strerror}") from error
        if other := next((name for magic, name in _UNSUPPORTED.items() if head.startswith(magic)), None):
            raise LogReadError(f"{path} is {other}: give it plain, or compressed with gzip or zstd")
        compression = next((name for magic, name in _COMPRESSIONS.items() if head.startswith(magic)), "")
        stream: Any = file
        faults: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
        if compression == "gzip":
            stream = stack.enter_context(gzip.GzipFile(fileobj=file))
        elif compression:
            zstd = _import_zstd(path)
            stream, faults = stack.enter_context(zstd.ZstdFile(file)), (*faults, zstd.ZstdError)

        is_begin = True

        def read(size: int) -> bytes:
            nonlocal is_begin
            try:
                data: bytes = stream.read(size)
            except faults as error:
                raise LogReadError(f"{path} is damaged or not complete: {error}") from error
            if is_begin:
                data, is_begin = data.removeprefix(codecs.BOM_UTF8), False
            return data

        yield read, file


def _import_zstd(path: Path) -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            return import_module(name)
    raise SitemapError(f'{path} is compressed with zstd: pip install "sitemap-middleware[logs]"')


class Piece(NamedTuple):
    """A run of whole lines of a log."""

    start: int
    end: int
    """Its position among the decompressed bytes of the log."""
    digest: bytes
    """Of all bytes of the log up to the end."""
    directive: str
    """The line that names the fields of its lines; empty if there was none."""
    broken: int
    """How many lines were left out for their length."""


class LineReader:
    """Writes a log as pieces, one after the other, into one file."""

    def __init__(self, read: Callable[[int], bytes], piece_file: Path, *, has_directives: bool) -> None:
        """Read the log from its begin.

        Args:
            read: as `open_log` provides it.
            piece_file: is overwritten with each piece.
            has_directives: whether lines name the fields. A piece ends where another one does.
        """
        self._read = read
        self._piece_file = piece_file
        self._has_directives = has_directives
        self._offset = 0
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._broken = 0
        self._directive = ""
        self.unfinished: bool = False
        """Whether the log ended in the middle of a line, which is left out: the server may be writing it."""

    def pieces(self, cuts: Sequence[int] = (), skip: int = 0) -> Iterator[Piece]:
        """Yield pieces, which the file has until the next one is taken.

        Args:
            cuts: positions at which a piece ends besides, in order; all are ends of lines.
            skip: the position up to which the file is left empty.

        Raises:
            LogReadError: the log cannot be read any further. The lines before were yielded.
        """
        start, size, fault = 0, 0, None
        blocks = self._blocks(sorted(cuts))
        while True:
            with self._piece_file.open("wb") as out:
                is_over = True
                try:
                    for block in blocks:
                        if block is None:
                            if self._offset > start:
                                is_over = False
                                break
                            continue
                        size += len(block)
                        if self._offset > skip:
                            out.write(self._clean(block))
                        if size >= PIECE_BYTES:
                            is_over = False
                            break
                except LogReadError as error:
                    fault = error
            if self._offset > start:
                yield Piece(start, self._offset, self._hash.copy().digest(), self._directive, self._broken)
                self._broken = 0
            start, size = self._offset, 0
            if fault is not None:
                raise fault
            if is_over:
                return

    def _blocks(self, cuts: list[int]) -> Iterator[bytes | None]:
        """Yield whole lines, and None where a piece has to end."""
        rest, dropped, dropped_bytes = b"", None, 0
        while data := self._read(COPIED_BYTES):
            if dropped is not None:
                end = data.find(b"\n") + 1
                part, data = (data[:end], data[end:]) if end else (data, b"")
                dropped.update(part)
                dropped_bytes += len(part)
                if not end:
                    continue
                self._hash, dropped = dropped, None
                self._offset += dropped_bytes
                self._broken += 1
            data = rest + data
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            if end:
                yield from self._cut(data[:end], cuts)
            if len(rest) > MAX_LINE_BYTES:
                dropped, dropped_bytes = self._hash.copy(), len(rest)
                dropped.update(rest)
                rest = b""
        self.unfinished = bool(rest) or dropped is not None

    def _cut(self, block: bytes, cuts: list[int]) -> Iterator[bytes | None]:
        while cuts and cuts[0] <= self._offset + len(block):
            size = max(0, cuts.pop(0) - self._offset)
            yield from self._cut_at_directives(block[:size])
            yield None
            block = block[size:]
        yield from self._cut_at_directives(block)

    def _cut_at_directives(self, block: bytes) -> Iterator[bytes | None]:
        begin = 0
        for match in _DIRECTIVE.finditer(block) if self._has_directives else ():
            directive = match[0].decode("latin-1").strip()
            if directive != self._directive:
                if match.start() > begin:
                    yield self._advance(block[begin : match.start()])
                yield None
                self._directive, begin = directive, match.start()
        if block[begin:]:
            yield self._advance(block[begin:])

    def _advance(self, block: bytes) -> bytes:
        self._hash.update(block)
        self._offset += len(block)
        return block

    def _clean(self, block: bytes) -> bytes:
        """Lines without control characters and bytes that are not UTF-8, and without those that are too long."""
        block, long_lines = _without_long_lines(block.replace(b"\r\n", b"\n").translate(_CLEAN))
        self._broken += long_lines
        try:
            block.decode()
        except UnicodeDecodeError:
            return block.decode("utf-8", "replace").encode()
        return block


def _without_long_lines(block: bytes) -> tuple[bytes, int]:
    """Remove lines that are too long; return how many they were."""
    removed, position = 0, 0
    while position < len(block):
        # A line that is too long spans at least one of these windows.
        newline = block.find(b"\n", position, position + _WINDOW_BYTES)
        if newline < 0:
            begin, end = block.rfind(b"\n", 0, position) + 1, block.find(b"\n", position) + 1 or len(block)
            if end - begin > MAX_LINE_BYTES:
                block, position = block[:begin] + block[end:], begin
                removed += 1
                continue
        position += _WINDOW_BYTES
    return block, removed


def read_head(read: Callable[[int], bytes]) -> bytes:
    """The first `HEAD_BYTES` of a log, or those before it is damaged."""
    head = b""
    try:
        while len(head) < HEAD_BYTES and (data := read(min(COPIED_BYTES, HEAD_BYTES - len(head)))):
            head += data
    except LogReadError:
        if not head:
            raise
    return head
