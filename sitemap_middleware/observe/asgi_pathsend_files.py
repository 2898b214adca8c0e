"""Reads the beginning of files that an ASGI server sends by their path (`http.response.pathsend`)."""

from __future__ import annotations

import os
import stat
from typing import Final

from ..http.captured_response import KEPT_BODY_BYTES, MAX_HTML_BYTES, CapturedResponse

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_sent_file(response: CapturedResponse) -> None:
    """Set the body of a response to the file that the server sent; None if the file cannot be read."""
    response.body, response.is_truncated = None, False
    try:
        body = _beginning(str(response.file_path))
    except (OSError, ValueError):  # it has gone, or nobody could open it
        return
    if len(body) > MAX_HTML_BYTES:
        body, response.is_truncated = body[:KEPT_BODY_BYTES], True
    response.body = body


def _beginning(path: str) -> bytes:
    """The first bytes of a regular file. Anything else may block, or change by being read."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        return file.read(MAX_HTML_BYTES + 1)
