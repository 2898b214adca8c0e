"""Every form a WSGI app can take, valid or not. Each instance records what happens to it."""

from __future__ import annotations

import collections
import io
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from werkzeug.wsgi import ClosingIterator

HTML = [("Content-Type", "text/html; charset=utf-8"), ("X-Own", "1")]
PARTS = (b"<!doctype html><title>A page</title>", b"<p>Words of it.")

App = Callable[..., Any]


class Stop(BaseException):
    """As a server raises, or a worker that is told to end."""


class Fault(Exception):
    """The app's own."""


class Shape:
    """An app that fails when it is told to, and writes down what it does."""

    def __init__(self, record: list[Any], parts: tuple[bytes, ...] = PARTS) -> None:
        self.record = record
        self.parts = parts
        self.fails = False

    def say(self, what: str) -> None:
        self.record.append(("the app", what))

    def may_fail(self) -> None:
        if self.fails:
            raise Fault("half-way")

    def headers(self) -> list[tuple[str, str]]:
        return list(HTML)

    def chunks(self) -> Iterator[bytes]:
        try:
            yield self.parts[0]
            self.may_fail()
            yield from self.parts[1:]
        finally:
            self.say("ends")


class Repeatable:
    """A body of no known type, that is iterated over by other objects."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __iter__(self) -> Iterator[bytes]:
        self.shape.say("is iterated over")
        return self.shape.chunks()


class Closed(Repeatable):
    def close(self) -> None:
        self.shape.say("is closed")


class FailsToClose(Repeatable):
    def close(self) -> None:
        self.shape.say("is closed")
        raise Fault("cannot be closed")


class FailsToBegin(Closed):
    def __iter__(self) -> Iterator[bytes]:
        raise Fault("cannot be iterated over")


class Sized(Closed):
    def __len__(self) -> int:
        return len(self.shape.parts)


class One(Closed):
    """A body of one chunk, as a server can tell beforehand: wsgiref then adds the length."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"".join(self.shape.chunks())

    def __len__(self) -> int:
        return 1


class Sequence(Sized):
    def __getitem__(self, key: Any) -> Any:
        return self.shape.parts[key]


class OldSequence:
    """Iterable by the protocol that was there before `__iter__`."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __getitem__(self, index: int) -> bytes:
        return self.shape.parts[index]


class Single:
    """A body that is its own iterator."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.left = list(shape.parts)

    def __iter__(self) -> Single:
        self.shape.say("is iterated over")
        return self

    def __next__(self) -> bytes:
        if not self.left:
            raise StopIteration
        if len(self.left) == 1:
            self.shape.may_fail()
        return self.left.pop(0)

    def close(self) -> None:
        self.shape.say("is closed")


class Falsy(Closed):
    def __bool__(self) -> bool:
        return False


class OwnList(list[bytes]):
    """A list that gives other things than it holds."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(PARTS)


class Buffers(bytes):
    """Bytes of an own type."""

    __slots__ = ()


def returning(body: Callable[[Shape], Any]) -> Callable[[Shape], App]:
    """A function that starts the response, and returns a body."""

    def make(shape: Shape) -> App:
        def app(_: Any, start_response: Any) -> Any:
            start_response("200 OK", shape.headers())
            return body(shape)

        return app

    return make


def at_hand(shape: Shape) -> list[bytes]:
    shape.may_fail()
    return list(shape.parts)


def generator(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", shape.headers())
        yield from shape.chunks()

    return app


def late_generator(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> Iterator[bytes]:
        yield b""
        start_response("200 OK", shape.headers())
        yield b""
        yield from shape.chunks()

    return app


def class_(shape: Shape) -> App:
    """As in PEP 3333, "The Application/Framework Side"."""

    class AppClass:
        def __init__(self, environ: Any, start_response: Any) -> None:
            self.environ = environ
            self.start = start_response

        def __iter__(self) -> Iterator[bytes]:
            self.start("200 OK", shape.headers())
            yield from shape.chunks()

    return AppClass


def class_that_iterates(shape: Shape) -> App:
    class AppClass(Single):
        def __init__(self, _: Any, start_response: Any) -> None:
            super().__init__(shape)
            self.start = start_response

        def __next__(self) -> bytes:
            if len(self.left) == len(shape.parts):
                self.start("200 OK", shape.headers())
            return super().__next__()

    return AppClass


def instance(shape: Shape) -> App:
    class Instance:
        def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
            return class_(shape)(environ, start_response)  # type: ignore[no-any-return]

    return Instance()


def writing(body: Callable[[Shape], Any]) -> Callable[[Shape], App]:
    def make(shape: Shape) -> App:
        def app(_: Any, start_response: Any) -> Any:
            write = start_response("200 OK", shape.headers())
            for part in shape.parts:
                shape.say(f"wrote {write(part)}")
                shape.may_fail()
            return body(shape)

        return app

    return make


def writing_late(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> Iterator[bytes]:
        write = start_response("200 OK", shape.headers())
        yield shape.parts[0]
        write(shape.parts[1])
        yield b"<p>And more."

    return app


def writing_by_name(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", shape.headers())(data=shape.parts[0])
        return []

    return app


def writing_no_bytes(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", shape.headers())("text")
        return []

    return app


def starting(*arguments: Any, **named: Any) -> Callable[[Shape], App]:
    """The very arguments of `start_response` that are given here; a function is called for an argument."""

    def make(shape: Shape) -> App:
        def app(_: Any, start_response: Any) -> list[bytes]:
            start_response(
                *(value(shape) if callable(value) else value for value in arguments),
                **{name: argument(shape) if callable(argument) else argument for name, argument in named.items()},
            )
            return at_hand(shape)

        return app

    return make


def error(_: Shape) -> Any:
    try:
        failing("at once")(Shape([]))(None, None)
    except Fault:
        return sys.exc_info()


def starting_again(*, named: bool, sent: bool, times: int = 2, again: bool = False) -> Callable[[Shape], App]:
    """A response that begins, fails, and is started again with the error."""

    def make(shape: Shape) -> App:
        def app(_: Any, start_response: Any) -> list[bytes]:
            write = start_response("200 OK", shape.headers())
            if sent:
                write(shape.parts[0])
            for _ in range(1, times):
                status = "200 Fine" if again else "500 Oops"
                if named:
                    start_response(status, shape.headers(), exc_info=error(shape))
                else:
                    start_response(status, shape.headers(), error(shape))
            return [b"Oops."]

        return app

    return make


def starting_twice_without_reason(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", shape.headers())
        start_response("404 Not Found", shape.headers())
        return [b"never"]

    return app


def refused_and_caught(shape: Shape) -> App:
    """Starts wrongly, catches what the server says, and goes on."""

    def app(_: Any, start_response: Any) -> list[bytes]:
        for status, headers in ((200, shape.headers()), ("200 OK", None), ("200 OK", shape.headers())):
            try:
                start_response(status, headers)
            except Exception as refusal:
                shape.say(f"caught {type(refusal).__name__}")
        return [*shape.parts]

    return app


def failing(when: str, kind: type[BaseException] = Fault) -> Callable[[Shape], App]:
    def make(shape: Shape) -> App:
        def app(_: Any, start_response: Any) -> Any:
            if when == "at once":
                raise kind("the app's own")
            start_response("200 OK", shape.headers())
            if when == "after the start":
                raise kind("the app's own")
            return body()

        def body() -> Iterator[bytes]:
            if when == "in the first chunk":
                raise kind("the app's own")
            yield b"<p>One"
            raise kind("the app's own")

        return app

    return make


def file_wrapper(shape: Shape) -> App:
    def app(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", shape.headers())
        return environ["wsgi.file_wrapper"](io.BytesIO(b"".join(shape.parts)), 8192)

    return app


def without_start(_: Shape) -> App:
    def app(_: Any, __: Any) -> list[bytes]:
        return [b"never started"]

    return app


def changes_environ(shape: Shape) -> App:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        wrapper = environ.pop("wsgi.file_wrapper")
        environ.clear()
        environ["wsgi.file_wrapper"] = wrapper
        start_response("200 OK", shape.headers())
        return [*shape.parts]

    return app


def not_modified(shape: Shape) -> App:
    def app(_: Any, start_response: Any) -> Iterator[bytes]:
        start_response("304 Not Modified", [("ETag", '"1"')])
        yield b""

    return app


def keeps_headers(shape: Shape) -> App:
    """One list for all responses, which it changes afterwards."""
    headers = shape.headers()

    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers)
        headers.append(("X-Later", str(len(headers))))
        return [*shape.parts]

    return app


START: tuple[Any, ...] = ("200 OK", Shape.headers)

VALID: dict[str, Callable[[Shape], App]] = {
    "a list": returning(at_hand),
    "a list of one": returning(lambda shape: [b"".join(shape.parts)]),
    "a list of none": returning(lambda _: []),
    "a tuple": returning(lambda shape: shape.parts),
    "a list of an own kind": returning(lambda _: OwnList([b"other"])),
    "generator function": generator,
    "a generator": returning(Shape.chunks),
    "class": class_,
    "class that iterates": class_that_iterates,
    "instance": instance,
    "an iterable": returning(Repeatable),
    "an iterable to be closed": returning(Closed),
    "an iterable of a length": returning(Sized),
    "an iterable of one": returning(One),
    "an iterable that is a sequence": returning(Sequence),
    "an iterable that is false": returning(Falsy),
    "an iterator": returning(Single),
    "a map": returning(lambda shape: map(bytes, shape.parts)),
    "a chain": returning(lambda shape: itertools.chain(shape.chunks(), [b"<p>The end."])),
    "a deque": returning(lambda shape: collections.deque(shape.parts)),
    "keys": returning(lambda shape: dict.fromkeys(shape.parts)),
    "a view of keys": returning(lambda shape: dict.fromkeys(shape.parts).keys()),
    "a file": returning(lambda shape: io.BytesIO(b"".join(shape.parts))),
    "the server's file wrapper": file_wrapper,
    "Werkzeug's ClosingIterator": returning(lambda shape: ClosingIterator(shape.chunks(), lambda: shape.say("closed"))),
    "write() alone": writing(lambda _: []),
    "write() and a list": writing(lambda _: [b"<p>And more."]),
    "write() and a generator": writing(lambda _: (part for part in (b"<p>And more.",))),
    "write() within a generator": writing_late,
    "exc_info=None by its place": starting(*START, None),
    "exc_info by its place": starting(*START, error),
    "started again by place": starting_again(named=False, sent=False),
    "started again three times": starting_again(named=False, sent=False, times=4),
    "started again and fine": starting_again(named=False, sent=False, again=True),
    "not modified": not_modified,
    "headers that are kept": keeps_headers,
}
"""Apps in which `wsgiref.validate` finds no fault."""

WRONG: dict[str, Callable[[Shape], App]] = {
    "generator function that begins with nothing": late_generator,
    "exc_info=None by its name": starting(*START, exc_info=None),
    "exc_info by its name": starting(*START, exc_info=error),
    "all by name": starting(status="200 OK", headers=Shape.headers),
    "headers by name": starting("200 OK", headers=Shape.headers, exc_info=None),
    "names of PEP 3333": starting(status="200 OK", response_headers=Shape.headers),
    "too little": starting("200 OK"),
    "nothing": starting(),
    "too much": starting(*START, None, None),
    "an unknown name": starting(*START, reason="none"),
    "exc_info is false": starting(*START, ()),
    "started again by name": starting_again(named=True, sent=False),
    "started again after a part": starting_again(named=False, sent=True),
    "started again after a part by name": starting_again(named=True, sent=True),
    "started twice": starting_twice_without_reason,
    "refused and caught": refused_and_caught,
    "never started": without_start,
    "write() of no bytes": writing_no_bytes,
    "write() by name": writing_by_name,
    "bytes": returning(lambda shape: b"".join(shape.parts)),
    "text": returning(lambda _: "text"),
    "nothing at all": returning(lambda _: None),
    "a number": returning(lambda _: 5),
    "numbers": returning(lambda _: iter([1, 2])),
    "a list of text": returning(lambda _: ["text"]),
    "a list of None": returning(lambda _: [None]),
    "buffers": returning(lambda shape: iter([Buffers(shape.parts[0]), bytearray(shape.parts[1])])),
    "a sequence of old": returning(OldSequence),
    "a body that cannot be closed": returning(FailsToClose),
    "a body that cannot be iterated over": returning(FailsToBegin),
    "environ is emptied": changes_environ,
    "status is a number": starting(200, Shape.headers),
    "status is bytes": starting(b"200 OK", Shape.headers),
    "status is no status": starting("Fine", Shape.headers),
    "headers are a tuple": starting("200 OK", lambda _: tuple(HTML)),
    "headers are an iterator": starting("200 OK", lambda _: iter(HTML)),
    "headers are None": starting("200 OK", lambda _: None),
    "headers are a dict": starting("200 OK", lambda _: dict(HTML)),
    "pairs are iterators": starting("200 OK", lambda _: [iter(pair) for pair in HTML]),
    "pairs are lists": starting("200 OK", lambda _: [[*pair] for pair in HTML]),
    "values are no text": starting("200 OK", lambda _: [*HTML, ("X-None", None), ("X-Number", 1), ("X-Bytes", b"1")]),
    **{
        f"fails {when} with {kind.__name__}": failing(when, kind)
        for when in ("at once", "after the start", "in the first chunk", "in the second")
        for kind in (Fault, Stop, StopIteration)
    },
}
"""Apps that are wrong in some way, with which servers do what they do."""
