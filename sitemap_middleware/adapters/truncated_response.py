"""Decides what counts of the response to a probe if its body was not read to its end."""

from __future__ import annotations

from typing import Final

from ..http.messages import Response

_ENDLESS_MEDIA_TYPES: Final = (
    "text/event-stream",
    "multipart/x-mixed-replace",
    "application/x-ndjson",
    "application/jsonl",
)


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
