"""What a request asks for, as far as both protocols tell it in one form; and how the app is asked in its place."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Future
from typing import Final

from ..http import PROBE_TIMEOUT_SECONDS, PROXY_HEADERS, PROXY_PREFIXES, AppTerminated, RequestKey, Response

SHUTDOWN_GRACE_SECONDS: Final = 1.0
"""Seconds beyond `PROBE_TIMEOUT_SECONDS` in which an app that was told to stop can do so."""

_ENDLESS_MEDIA_TYPES: Final = (
    "text/event-stream",
    "multipart/x-mixed-replace",
    "application/x-ndjson",
    "application/jsonl",
)


class BaseRequest:
    """A request by its question: the part of `exchange.Request` that the adapters have in common."""

    __slots__ = ("key",)

    key: RequestKey
    """Path, host, scheme, root, method and query, each as the protocol gives it."""

    @property
    def method(self) -> str:
        method: str = self.key[4]
        return method

    @property
    def has_query(self) -> bool:
        return bool(self.key[5])

    @property
    def scheme(self) -> str:
        scheme: str = self.key[2]
        return scheme

    def fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Response | None:
        try:
            return self.start_fetch(path, scheme=scheme, host=host, keep_host=keep_host, cut=cut).result(
                PROBE_TIMEOUT_SECONDS + SHUTDOWN_GRACE_SECONDS
            )
        except TimeoutError:
            return None

    @abstractmethod
    def start_fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Future[Response | None]: ...


def as_exception(error: BaseException) -> Exception:
    """What the app raised, as an error that ends neither a server nor a task that waits for the answer."""
    return error if isinstance(error, Exception) else AppTerminated(f"the app raised {type(error).__name__}")


def wsgi_response(status: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
    """The response that a WSGI app started in these words."""
    return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)


def is_endless(media_type: str) -> bool:
    """Whether responses of this media type have no end, so that only their headers are worth waiting for."""
    return media_type.startswith(_ENDLESS_MEDIA_TYPES)


def truncated_response(answer: Response, *, too_long: bool, cut: bool) -> Response | None:
    """What remains of an answer whose body was not read to its end; None if that says nothing.

    Of text, nothing, unless its beginning is good enough: what comes later may decide.
    Of anything else, the status and the headers.
    """
    if cut and too_long:
        return answer
    media_type = dict(answer.headers).get("content-type", "").lower()
    if answer.status == 0 or (
        not is_endless(media_type) and (not media_type or "text/" in media_type or "xml" in media_type)
    ):
        return None
    return Response(answer.status, answer.headers)


def is_proxy_header(name: str) -> bool:
    """Whether a header of this name is a proxy's."""
    name = name.lower()
    return name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES)
