"""The part of a request that both adapters share, and what their in-process requests to the app have in common."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Future
from typing import Final

from ..observation.observer import Observer, TrackedPage
from ..request_response import PROBE_TIMEOUT_SECONDS, PROXY_HEADERS, PROXY_PREFIXES, AppTerminated, RequestKey, Response

SHUTDOWN_GRACE_SECONDS: Final = 1.0
"""Seconds beyond `PROBE_TIMEOUT_SECONDS` for an app that was cancelled to stop."""

_ENDLESS_MEDIA_TYPES: Final = (
    "text/event-stream",
    "multipart/x-mixed-replace",
    "application/x-ndjson",
    "application/jsonl",
)


class BaseRequest:
    """A request as `http.Request`, and the observation of its response."""

    __slots__ = ("key", "observer", "tracked_page")

    key: RequestKey
    """Path, Host, scheme, root, method and query, each as the protocol gives it."""
    tracked_page: TrackedPage | None
    """The page that the request is for; None if the response is not observed."""
    observer: Observer | None
    """The observer of the response; None before the response starts, and if nothing of it was recorded."""

    @property
    def method(self) -> str:
        method: str = self.key[4]
        return method

    @property
    def scheme(self) -> str:
        scheme: str = self.key[2]
        return scheme

    def retract(self) -> None:
        """Discard what was recorded of the response: it fails before its end."""
        if self.observer is not None:
            self.observer.retract()

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
    """Return what the app raised, as an `Exception`: others would end the server or the task that waits for it."""
    return error if isinstance(error, Exception) else AppTerminated(f"the app raised {type(error).__name__}")


def wsgi_response(status: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
    """Make a `Response` of a WSGI app's status line and headers."""
    return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)


def is_endless(media_type: str) -> bool:
    """Whether responses of this media type have no end, so that only their headers are worth waiting for."""
    return media_type.startswith(_ENDLESS_MEDIA_TYPES)


def truncated_response(response: Response, *, too_long: bool, cut: bool) -> Response | None:
    """Return what counts of a response whose body was not read to its end; None if nothing does.

    Text counts only if its beginning is enough (`cut`), since the rest may matter.
    Of other responses the status and the headers count.
    """
    if cut and too_long:
        return response
    media_type = dict(response.headers).get("content-type", "").lower()
    if response.status == 0 or (
        not is_endless(media_type) and (not media_type or "text/" in media_type or "xml" in media_type)
    ):
        return None
    return Response(response.status, response.headers)


def is_proxy_header(name: str) -> bool:
    """Whether proxies set a header of this name."""
    name = name.lower()
    return name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES)
