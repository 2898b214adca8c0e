"""WSGI bodies are observed as they pass, and the server notices nothing of that (PEP 3333)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sitemap_middleware.adapters.wsgi_body import ObservedIterator, observed_body
from sitemap_middleware.captured_response import MAX_HTML_BYTES


class Listener:
    """Keeps the events of a body."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_chunk(self, chunk: Any) -> None:
        self.events.append(chunk)

    def on_end(self) -> None:
        self.events.append("end")

    def on_skipped_body(self) -> None:
        self.events.append("skipped")

    def retract(self) -> None:
        self.events.append("retracted")


class FileWrapper:
    """A server's own wrapper of files."""

    def __init__(self, file: Any) -> None:
        self.filelike = file

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.filelike)


class OwnIteration(list[bytes]):
    """A list that runs code of the app when it is iterated over."""

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("only the server may iterate over it")


CHUNKS = [b"<p>", b"Tea"]
NO_FILES: dict[str, Any] = {}
FILES = {"wsgi.file_wrapper": FileWrapper}
UWSGI: dict[str, Any] = {"wsgi.file_wrapper": lambda file, *_: file}


class Plain:
    """A body without any method but those that a test gives it."""


class Reader(Plain):
    """A body that may be a file."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(CHUNKS)

    def read(self) -> bytes:
        raise AssertionError("only the server may read it")


class Wrapped(FileWrapper):
    """What a framework derives from the server's wrapper."""


@pytest.mark.parametrize(
    ("body", "environ", "events"),
    [
        (CHUNKS, NO_FILES, [*CHUNKS, "end"]),
        (tuple(CHUNKS), FILES, [*CHUNKS, "end"]),
        ([], NO_FILES, ["end"]),
        (OwnIteration(CHUNKS), NO_FILES, []),
        (b"<p>", NO_FILES, ["skipped"]),
        ("<p>", NO_FILES, ["skipped"]),
        (bytearray(b"<p>"), FILES, ["skipped"]),
        (memoryview(b"<p>"), NO_FILES, ["skipped"]),
        (FileWrapper(BytesIO(b"<p>")), FILES, [b"<p>", "end"]),
        (Wrapped(BytesIO(b"<p>")), FILES, [b"<p>", "end"]),
        (FileWrapper(Reader()), FILES, ["skipped"]),
        (BytesIO(b"<p>"), UWSGI, [b"<p>", "end"]),
        (Reader(), UWSGI, ["skipped"]),
        (FileWrapper(BytesIO(b"<p>")), UWSGI, [b"<p>", "end"]),
        (None, NO_FILES, []),
        (7, FILES, []),
        (Plain(), NO_FILES, []),
    ],
    ids=[
        "list",
        "tuple",
        "empty list",
        "list of the app's own",
        "bytes",
        "text",
        "bytearray",
        "memoryview",
        "wrapped file",
        "derived wrapper",
        "wrapped unknown file",
        "file for uWSGI",
        "unknown file for uWSGI",
        "wrapped file for uWSGI",
        "None",
        "number",
        "no body",
    ],
)
def test_body_that_the_server_may_recognise_by_its_type_stays_itself(body: Any, environ: Any, events: Any) -> None:
    listener = Listener()
    assert observed_body(body, listener, environ) is body
    assert listener.events == events


@pytest.mark.parametrize("body", [Reader(), FileWrapper(CHUNKS)], ids=["reader", "wrapper"])
def test_file_without_a_file_wrapper_is_a_body_like_others(body: Any) -> None:
    listener = Listener()
    assert list(observed_body(body, listener, NO_FILES)) == CHUNKS
    assert listener.events == [*CHUNKS, "end"]


@pytest.mark.parametrize("attribute", ["filelike", "file"])
@pytest.mark.parametrize(
    ("start", "size"), [(0, 10), (3, 10), (0, MAX_HTML_BYTES), (0, 2 * MAX_HTML_BYTES), (3, 2 * MAX_HTML_BYTES)]
)
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_file_is_read_from_its_position_without_moving_it(
    attribute: str, start: int, size: int, kind: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    path = tmp_path / "file"
    path.write_bytes(content)
    wrapper, listener = FileWrapper([]), Listener()
    with BytesIO(content) if kind == "memory" else path.open("rb") as file:
        del wrapper.filelike
        setattr(wrapper, attribute, file)
        file.seek(start)
        observed_body(wrapper, listener, FILES)
        assert file.tell() == start
    assert listener.events == [content[start : start + MAX_HTML_BYTES + 1], "end"]


def test_pipe_is_not_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"<p>")
    os.close(writing)
    listener = Listener()
    with os.fdopen(reading, "rb") as file:
        observed_body(FileWrapper(file), listener, FILES)
        assert file.read() == b"<p>"
    assert listener.events == ["skipped"]


def generator(*chunks: Any) -> Iterator[Any]:
    for chunk in chunks:
        if isinstance(chunk, BaseException):
            raise chunk
        yield chunk


class MakesIterator:
    """A body that makes an iterator."""

    def __init__(self, *chunks: Any) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[Any]:
        return generator(*self.chunks)


class OwnIterator:
    """A body that is its own iterator."""

    def __init__(self, *chunks: Any) -> None:
        self._chunks = generator(*chunks)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)


KINDS: dict[str, Callable[..., Any]] = {"generator": generator, "iterable": MakesIterator, "iterator": OwnIterator}
EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


@EACH_KIND
def test_chunks_and_the_end_are_observed_once(make: Callable[..., Any]) -> None:
    listener = Listener()
    chunks = iter(observed_body(make(*CHUNKS), listener, NO_FILES))
    assert next(chunks) is CHUNKS[0]
    assert listener.events == CHUNKS[:1]
    assert list(chunks) == CHUNKS[1:]
    assert listener.events == [*CHUNKS, "end"]


@EACH_KIND
@pytest.mark.parametrize("error", [ValueError("the app's own"), SystemExit(), GeneratorExit()], ids=repr)
def test_error_of_the_body_is_raised_and_retracts_it(make: Callable[..., Any], error: BaseException) -> None:
    listener = Listener()
    chunks = iter(observed_body(make(b"<p>", error), listener, NO_FILES))
    next(chunks)
    with pytest.raises(type(error)):
        next(chunks)
    assert listener.events == [b"<p>", "retracted"]


def test_error_before_the_first_chunk_retracts_the_response() -> None:
    class Body:
        def __iter__(self) -> Iterator[bytes]:
            raise SystemExit

    listener = Listener()
    with pytest.raises(SystemExit):
        iter(observed_body(Body(), listener, NO_FILES))
    assert listener.events == ["retracted"]


def test_second_iteration_is_not_observed() -> None:
    listener = Listener()
    body = observed_body(MakesIterator(*CHUNKS), listener, NO_FILES)
    next(iter(body))
    assert not isinstance(again := iter(body), ObservedIterator)
    assert list(again) == CHUNKS
    assert listener.events == [CHUNKS[0], "skipped"]


def test_iterator_is_wrapped_as_itself() -> None:
    body = observed_body(OwnIterator(*CHUNKS), Listener(), NO_FILES)
    assert iter(body) is body
    chunks = iter(observed_body(MakesIterator(*CHUNKS), Listener(), NO_FILES))
    assert iter(chunks) is chunks


@EACH_KIND
def test_closing_closes_the_apps_body(make: Callable[..., Any]) -> None:
    body: Any = make(*CHUNKS)
    closed: list[bool] = []
    if make is not generator:
        body.close = lambda: closed.append(True)
    observed = observed_body(body, Listener(), NO_FILES)
    next(iter(observed))
    observed.close()
    if make is generator:
        assert list(body) == [], "a closed generator is at its end"
    else:
        assert closed == [True]


class Container(MakesIterator):
    """A body with all methods that Python looks up in its type."""

    def __len__(self) -> int:
        return len(self.chunks)

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return self.chunks[key]

    def __contains__(self, item: object) -> bool:
        return item in self.chunks


def test_wrapped_body_has_the_methods_and_attributes_of_the_apps() -> None:
    body = Container(*CHUNKS)
    observed = observed_body(body, Listener(), NO_FILES)
    assert (len(observed), bool(observed), observed[1], b"Tea" in observed, b"x" in observed) == (
        *(2, False, b"Tea"),
        *(True, False),
    )
    observed.note = "kept"
    assert (body.note, observed.note) == ("kept", "kept")  # type: ignore[attr-defined] # set through the wrapper
    del observed.note
    assert not hasattr(body, "note")
    assert not hasattr(observed, "note")


@pytest.mark.parametrize("body", [MakesIterator(*CHUNKS), OwnIterator(*CHUNKS), generator(*CHUNKS)])
def test_wrapped_body_has_no_method_that_the_apps_has_not(body: Any) -> None:
    observed = observed_body(body, Listener(), NO_FILES)
    names = ("__next__", "__len__", "__bool__", "__getitem__", "__contains__")
    assert [hasattr(type(observed), name) for name in names] == [hasattr(type(body), name) for name in names]
    assert not hasattr(observed, "read")
