"""WSGI bodies, sampled as they pass: the server takes the app's own chunks, and closes the app's own body."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Mapping
from functools import cache
from types import GeneratorType
from typing import Any, Final, Protocol

from ..evidence.html_parser import MAX_HTML_BYTES


class BodyListener(Protocol):
    """Whoever is told of a body as it passes."""

    def on_chunk(self, chunk: Any) -> None:
        """A part of it passes."""

    def on_end(self) -> None:
        """It has passed as a whole."""

    def on_skipped_body(self) -> None:
        """What has passed is not all of it."""

    def retract(self) -> None:
        """It fails before its end."""


def observed_body(body: Any, passing: BodyListener, environ: Mapping[str, Any]) -> Any:
    """A body in whose place the server is given one that tells of what passes; or the same object.

    Servers look at the length of a list, and send files by themselves that they
    recognise by type, so these stay the objects they are. A file on the disk or in
    memory is read here, which does not move its place.

    Args:
        body: what the app returned.
        passing: is told of each chunk.
        environ: the request's, with the server's ``wsgi.file_wrapper``.
    """
    kind = type(body)
    if kind is GeneratorType:
        return ObservedGenerator(body, passing)
    if issubclass(kind, list | tuple):
        if kind.__iter__ in _LIST_ITERATORS:  # or to iterate over it is the app's own code, which runs but once
            for chunk in body:
                passing.on_chunk(chunk)
            passing.on_end()
        return body
    if _is_server_file(body, environ.get("wsgi.file_wrapper")):
        content = _content(body)
        if content is None:
            passing.on_skipped_body()
        else:
            passing.on_chunk(content)
            passing.on_end()
        return body
    if not hasattr(kind, "__iter__"):
        return body
    return _body_class(tuple(name for name in _FORWARDED_METHODS if hasattr(kind, name)))(body, passing)


_LIST_ITERATORS: Final = (list.__iter__, tuple.__iter__)


def _is_server_file(body: Any, file_wrapper: Any) -> bool:
    """Whether the server may recognise the body, and send it in a way of its own."""
    if isinstance(body, bytes | bytearray | memoryview | str):
        return True
    if isinstance(file_wrapper, type):
        return isinstance(body, file_wrapper)
    # uWSGI's is a function that returns the file itself, by whose identity it is recognised.
    return file_wrapper is not None and any(hasattr(body, name) for name in ("read", "fileno", "filelike"))


def _content(body: Any) -> bytes | None:
    """What a server sends of a file, as far as it is sampled; None if it cannot be read without moving the file."""
    if not _PREAD:  # pragma: no cover (Windows)
        return None
    with contextlib.suppress(Exception):
        file = next(one for one in (body, *(getattr(body, name, None) for name in _FILES)) if type(one) in _READABLE)
        if type(file) is io.BytesIO:
            start = file.tell()
            return file.getvalue()[start : start + MAX_HTML_BYTES + 1]
        number = file.fileno()
        if stat.S_ISREG(os.fstat(number).st_mode):  # of anything else, what is read is gone
            return os.pread(number, MAX_HTML_BYTES + 1, file.tell())
    return None


_PREAD: Final = hasattr(os, "pread")
_FILES: Final = ("filelike", "file")
"""Where servers' file wrappers keep the app's file."""
_READABLE: Final = (io.BufferedReader, io.FileIO, io.BufferedRandom, io.BytesIO)
"""Files, to ask which for their place runs no code of the app's."""


class ObservedIterator:
    """One iteration, which tells of what passes."""

    __slots__ = ("_sitemap_body", "_sitemap_passing")

    def __init__(self, body: Any, passing: BodyListener) -> None:
        self._sitemap_body = body
        self._sitemap_passing = passing

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self._sitemap_body)
        except StopIteration:
            self._sitemap_passing.on_end()
            raise
        except BaseException:
            self._sitemap_passing.retract()
            raise
        self._sitemap_passing.on_chunk(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sitemap_body, name)


class ObservedGenerator(ObservedIterator):
    """A generator, as which most bodies pass that are made bit by bit."""

    __slots__ = ("close",)

    def __init__(self, body: Any, passing: BodyListener) -> None:
        self._sitemap_body = body
        self._sitemap_passing = passing
        self.close = body.close


class ObservedBody:
    """A body that tells of what passes. All but its iteration is the app's own: `close`, a length, any attribute."""

    __slots__ = ("_sitemap_begun", "_sitemap_body", "_sitemap_passing")

    _sitemap_body: Any
    _sitemap_passing: BodyListener
    _sitemap_begun: bool
    """Whether an iteration has begun: of a second one, the app's own is given."""

    def __init__(self, body: Any, passing: BodyListener) -> None:
        object.__setattr__(self, "_sitemap_body", body)
        object.__setattr__(self, "_sitemap_passing", passing)
        object.__setattr__(self, "_sitemap_begun", False)

    def __iter__(self) -> Any:
        body, passing = self._sitemap_body, self._sitemap_passing
        try:
            chunks = iter(body)
        except BaseException:
            passing.retract()
            raise
        if chunks is body:
            return self
        if self._sitemap_begun:
            passing.on_skipped_body()  # who asks twice may have taken a part of the first
            return chunks
        object.__setattr__(self, "_sitemap_begun", True)
        return ObservedIterator(chunks, passing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sitemap_body, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._sitemap_body, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._sitemap_body, name)


_FORWARDED_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "__next__": ObservedIterator.__next__,
    "__len__": lambda self: len(self._sitemap_body),
    "__bool__": lambda self: bool(self._sitemap_body),
    "__getitem__": lambda self, key: self._sitemap_body[key],
    "__contains__": lambda self, item: item in self._sitemap_body,
}
"""Methods that Python looks up in the type, so that the body's type must have them if the app's has them."""


@cache
def _body_class(names: tuple[str, ...]) -> Callable[[Any, BodyListener], Any]:
    """The class of bodies that have these of `_FORWARDED_METHODS`."""
    return type("Watched", (ObservedBody,), {"__slots__": (), **{name: _FORWARDED_METHODS[name] for name in names}})
