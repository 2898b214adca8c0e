"""Observes WSGI bodies as they pass: the server gets the app's own chunks, and closes the app's own body."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Mapping
from functools import cache
from types import GeneratorType
from typing import Any, Final, Protocol

from ..http.captured_response import MAX_HTML_BYTES


class BodyListener(Protocol):
    """Gets the events of a body."""

    def on_chunk(self, chunk: Any) -> None:
        """Called with each part of the body."""

    def on_end(self) -> None:
        """Called when the whole body has passed."""

    def on_skipped_body(self) -> None:
        """Called if a part of the body does not pass here."""

    def retract(self) -> None:
        """Called if the body fails before its end."""


def observed_body(body: Any, listener: BodyListener, environ: Mapping[str, Any]) -> Any:
    """Wrap a body so that a listener gets its events, or read it here and return the same object.

    Lists and files are not wrapped: servers use the length of a list, and recognise
    files by their type to send them in a faster way. A file is read here without
    moving its position.

    Args:
        body: what the app returned.
        listener: gets the events.
        environ: the request's, with the server's ``wsgi.file_wrapper``.
    """
    kind = type(body)
    if kind is GeneratorType:
        return ObservedGenerator(body, listener)
    if issubclass(kind, list | tuple):
        if kind.__iter__ in _LIST_ITERATORS:  # any other iterator is the app's code, which may run only once
            for chunk in body:
                listener.on_chunk(chunk)
            listener.on_end()
        return body
    if _is_server_file(body, environ.get("wsgi.file_wrapper")):
        content = _content(body)
        if content is None:
            listener.on_skipped_body()
        else:
            listener.on_chunk(content)
            listener.on_end()
        return body
    if not hasattr(kind, "__iter__"):
        return body
    return _body_class(tuple(name for name in _FORWARDED_METHODS if hasattr(kind, name)))(body, listener)


_LIST_ITERATORS: Final = (list.__iter__, tuple.__iter__)


def _is_server_file(body: Any, file_wrapper: Any) -> bool:
    """Whether the server may recognise the body by its type, and send it in another way than by iterating."""
    if isinstance(body, bytes | bytearray | memoryview | str):
        return True
    if isinstance(file_wrapper, type):
        return isinstance(body, file_wrapper)
    # uWSGI's wrapper is a function that returns the file itself, which uWSGI recognises by its identity.
    return file_wrapper is not None and any(hasattr(body, name) for name in ("read", "fileno", "filelike"))


def _content(body: Any) -> bytes | None:
    """The first bytes of a file that the server sends; None if they cannot be read without moving its position."""
    if not _PREAD:  # pragma: no cover (Windows)
        return None
    with contextlib.suppress(Exception):
        candidates = (body, *(getattr(body, name, None) for name in _FILE_ATTRIBUTES))
        file = next(candidate for candidate in candidates if type(candidate) in _READABLE_TYPES)
        if type(file) is io.BytesIO:
            start = file.tell()
            return file.getvalue()[start : start + MAX_HTML_BYTES + 1]
        number = file.fileno()
        if stat.S_ISREG(os.fstat(number).st_mode):  # reading anything else consumes it
            return os.pread(number, MAX_HTML_BYTES + 1, file.tell())
    return None


_PREAD: Final = hasattr(os, "pread")
_FILE_ATTRIBUTES: Final = ("filelike", "file")
"""Attributes in which servers' file wrappers keep the app's file."""
_READABLE_TYPES: Final = (io.BufferedReader, io.FileIO, io.BufferedRandom, io.BytesIO)
"""Types of files whose position can be read without running the app's code."""


class ObservedIterator:
    """An iterator over a body, which passes the events on."""

    __slots__ = ("_sitemap_body", "_sitemap_listener")

    def __init__(self, body: Any, listener: BodyListener) -> None:
        self._sitemap_body = body
        self._sitemap_listener = listener

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self._sitemap_body)
        except StopIteration:
            self._sitemap_listener.on_end()
            raise
        except BaseException:
            self._sitemap_listener.retract()
            raise
        self._sitemap_listener.on_chunk(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sitemap_body, name)


class ObservedGenerator(ObservedIterator):
    """A body that is a generator, as most streamed bodies are."""

    __slots__ = ("close",)

    def __init__(self, body: Any, listener: BodyListener) -> None:
        self._sitemap_body = body
        self._sitemap_listener = listener
        self.close: Any = body.close


class ObservedBody:
    """A wrapped body. All but its iteration is the app's own: `close`, a length, any attribute."""

    __slots__ = ("_sitemap_body", "_sitemap_has_begun", "_sitemap_listener")

    _sitemap_body: Any
    _sitemap_listener: BodyListener
    _sitemap_has_begun: bool
    """Whether an iteration has begun. A second one is not observed."""

    def __init__(self, body: Any, listener: BodyListener) -> None:
        object.__setattr__(self, "_sitemap_body", body)
        object.__setattr__(self, "_sitemap_listener", listener)
        object.__setattr__(self, "_sitemap_has_begun", False)

    def __iter__(self) -> Any:
        body, listener = self._sitemap_body, self._sitemap_listener
        try:
            chunks = iter(body)
        except BaseException:
            listener.retract()
            raise
        if chunks is body:
            return self
        if self._sitemap_has_begun:
            listener.on_skipped_body()  # part of the first iteration may have been sent
            return chunks
        object.__setattr__(self, "_sitemap_has_begun", True)
        return ObservedIterator(chunks, listener)

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
"""Methods that Python looks up in the type: the wrapper's type must have those that the body's type has."""


@cache
def _body_class(names: tuple[str, ...]) -> Callable[[Any, BodyListener], Any]:
    """The class of wrapped bodies that have these of `_FORWARDED_METHODS`."""
    return type(
        "ObservedBody", (ObservedBody,), {"__slots__": (), **{name: _FORWARDED_METHODS[name] for name in names}}
    )
