"""Reads the lines of logs: plain, or compressed with gzip or zstd; from files or standard input.

A log may be of any size, and so may its lines; memory stays the same.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from ..exceptions import SitemapError
from .log_formats import Hit, LineParser

MAX_LINE_BYTES: Final = 64 * 1024
"""Bytes of a line. Servers accept no request that makes a longer one."""

_BUFFER_BYTES: Final = 1024 * 1024

_UNSUPPORTED: Final = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip", b"\xff\xfe": "UTF-16"}


class LogReadError(SitemapError):
    """A log cannot be read, or not to its end."""


def read_hits(log: str, lines: Counter[str]) -> Iterator[Hit]:
    """Yield the requests of a log.

    Args:
        log: the path of a file; `-` is standard input.
        lines: counts the lines: `read`, `unreadable`, and those that are `too long`.

    Raises:
        LogReadError: it cannot be read, or not to its end, or no line has a known format.
    """
    parser, has_hits = LineParser(), False
    with contextlib.ExitStack() as stack:
        faults: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
        try:
            stream, more_faults = _open(log, stack)
            faults += more_faults
            for line in _lines(stream, lines):
                if line.startswith("#"):
                    parser.read_directive(line)
                    continue
                lines["read"] += 1
                hit = parser.parse(line)
                if hit is None:
                    lines["unreadable"] += 1
                else:
                    has_hits = True
                    yield hit
        except faults as error:
            reason = getattr(error, "strerror", None) or f"it is damaged or not complete ({error})"
            raise LogReadError(f"{log} cannot be read: {reason}") from error
    if not has_hits:
        raise LogReadError(
            f"{log} has no line in a known format: the combined format, JSON lines, or those of an AWS load balancer or"
            " CloudFront"
        )


def _open(log: str, stack: contextlib.ExitStack) -> tuple[io.BufferedReader, tuple[type[Exception], ...]]:
    """The bytes of a log, decompressed as its content shows, and what reading them may raise."""
    file = _buffered(sys.stdin.buffer) if log == "-" else stack.enter_context(open(log, "rb"))  # noqa: PTH123, SIM115
    head = file.peek(8)[:8]
    if other := next((name for magic, name in _UNSUPPORTED.items() if head.startswith(magic)), None):
        raise LogReadError(f"{log} is {other}: give it plain, or compressed with gzip or zstd")
    if head.startswith(b"\x1f\x8b"):
        return _buffered(stack.enter_context(gzip.GzipFile(fileobj=file))), ()
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        zstd = _import_zstd(log)
        return _buffered(stack.enter_context(zstd.ZstdFile(file))), (zstd.ZstdError,)
    return file, ()


def _buffered(stream: Any) -> io.BufferedReader:
    return io.BufferedReader(stream, _BUFFER_BYTES)


def _import_zstd(log: str) -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            return import_module(name)
    raise LogReadError(f'{log} is compressed with zstd: pip install "sitemap-middleware[logs]"')


def _lines(stream: io.BufferedReader, lines: Counter[str]) -> Iterator[str]:
    """The lines that are neither blank nor too long, without NUL characters: logrotate's copytruncate leaves such."""
    is_rest_of_long_line = False
    while data := stream.readline(MAX_LINE_BYTES):
        is_end = len(data) < MAX_LINE_BYTES or data.endswith(b"\n")
        if b"\0" in data:
            data = data.replace(b"\0", b"")
            if not data and not is_end:
                continue  # the line begins after the NULs
        if is_rest_of_long_line or not is_end:
            lines["too long"] += not is_rest_of_long_line
            is_rest_of_long_line = not is_end
        elif not data.isspace() and data:
            yield data.decode("utf-8", "replace")
