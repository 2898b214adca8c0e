"""What the probes of both protocols have in common: how they call the app, and what counts of its response."""

from __future__ import annotations

from contextvars import Context
from typing import Any, Final

from ..request_response import AppTerminated, Response

_ENDLESS_MEDIA_TYPES: Final = (
    "text/event-stream",
    "multipart/x-mixed-replace",
    "application/x-ndjson",
    "application/jsonl",
)


def call_without_context(function: Any, *arguments: Any) -> None:
    """Call a function in an empty context, without the live request's context variables, such as its user."""
    Context().run(function, *arguments)


def as_exception(error: BaseException) -> Exception:
    """Return what the app raised, as an `Exception`: others would end the server or the task that waits for it."""
    return error if isinstance(error, Exception) else AppTerminated(f"the app raised {type(error).__name__}")


def wsgi_response(status: str, headers: list[tuple[str, str]], body: bytes = b"") -> Response:
    """Make a `Response` of a WSGI app's status line and headers."""
    return Response(int(status[:3]), [(name.lower(), value) for name, value in headers], body)


def is_endless(media_type: str) -> bool:
    """Whether responses of this media type have no end, so that only their headers are worth waiting for."""
    return media_type.startswith(_ENDLESS_MEDIA_TYPES)


def truncated_response(response: Response, *, too_long: bool, allowed: bool) -> Response | None:
    """Return what counts of a response whose body was not read to its end; None if nothing does.

    Text counts only if its beginning is enough (`ProbeRequest.allow_truncated`), since the rest may matter.
    Of other responses the status and the headers count.
    """
    if allowed and too_long:
        return response
    media_type = dict(response.headers).get("content-type", "").lower()
    if response.status == 0 or (
        not is_endless(media_type) and (not media_type or "text/" in media_type or "xml" in media_type)
    ):
        return None
    return Response(response.status, response.headers)
