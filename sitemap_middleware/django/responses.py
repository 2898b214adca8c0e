"""Observes Django's responses as they pass, and makes a Django response of the middleware's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, StreamingHttpResponse

from ..adapters.wsgi_body import ObservedIterator, observed_body

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase

    from ..observation.observer import Observer
    from ..observation.tracked_page import TrackedPage
    from ..request_response import Response


def observe_response(answer: Any, own: Any, page: TrackedPage) -> None:
    """Observe a response of the project, which is returned to Django unchanged.

    Args:
        answer: the response.
        own: the request, as an adapter reads it.
        page: the page that was requested.
    """
    try:
        own.tracked_page = page
        observer = own.observer = page.on_response_start(answer.status_code, list(answer.items()), own)
        if observer is None or observer.chunks is None:
            return
        if not answer.streaming:
            observer.on_chunk(answer.content)
            observer.on_end()
        elif (file := getattr(answer, "file_to_stream", None)) is not None:
            observed_body(file, observer, {"wsgi.file_wrapper": type(file)})  # the server may send it in a faster way
        elif answer.is_async:
            answer.streaming_content = _observed_parts(answer.streaming_content, observer)
        else:
            answer.streaming_content = ObservedIterator(iter(answer.streaming_content), observer)
    except Exception as error:
        own.adapter.service.log_fault("a response could not be observed", error)


async def _observed_parts(parts: AsyncIterator[bytes], observer: Observer) -> AsyncIterator[bytes]:
    try:
        async for part in parts:
            observer.on_chunk(part)
            yield part
    except BaseException:
        observer.retract()
        raise
    observer.on_end()


def http_response(response: Response, *, is_async: bool) -> HttpResponseBase:
    """Make Django's response of one of the middleware itself."""
    answer: HttpResponseBase
    if response.parts is None:
        answer = HttpResponse(response.body, status=response.status)
    else:
        parts: Any = _parts(response.parts) if is_async else response.parts
        answer = StreamingHttpResponse(parts, status=response.status)
    del answer["Content-Type"]
    for name, value in response.headers:
        answer[name] = value
    return answer


async def _parts(parts: Any) -> AsyncIterator[bytes]:
    """A long document part by part. Other requests run in between."""
    with closing(parts):
        for part in parts:
            yield part
            await asyncio.sleep(0)
