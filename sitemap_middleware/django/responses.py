"""Observes Django's responses as they pass, and makes a Django response of the middleware's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from contextvars import Context
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from django.http import HttpResponse, StreamingHttpResponse

from ..adapters.event_loop_and_threads import thread_limiter
from ..adapters.wsgi_body import ObservedIterator, observed_body
from ..http.messages import Response

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase

    from ..adapters.asgi_exchange import ASGIExchange
    from ..adapters.wsgi_exchange import WSGIExchange
    from ..http.messages import Request
    from ..observe.passing_response import PassingResponse


def observe_response(answer: Any, exchange: ASGIExchange | WSGIExchange) -> None:
    """Observe a response of the project, which is returned to Django unchanged.

    Args:
        answer: the response.
        exchange: the request, as an adapter reads it. Nothing is observed if its page is not tracked.
    """
    try:
        if exchange.page is None:
            return
        passing = exchange.passing = exchange.page.started(answer.status_code, list(answer.items()), exchange)
        if passing is None:
            return
        if not answer.streaming:
            passing.on_chunk(answer.content)
            passing.on_end()
        elif (file := getattr(answer, "file_to_stream", None)) is not None:
            observed_body(file, passing, {"wsgi.file_wrapper": type(file)})  # the server may send it in a faster way
        elif answer.is_async:
            answer.streaming_content = _observed_parts(answer.streaming_content, passing)
        else:
            answer.streaming_content = ObservedIterator(iter(answer.streaming_content), passing)
    except Exception as error:
        exchange.adapter.service.log_fault("a response could not be observed", error)


async def _observed_parts(parts: AsyncIterator[bytes], passing: PassingResponse) -> AsyncIterator[bytes]:
    try:
        async for part in parts:
            passing.on_chunk(part)
            yield part
    except BaseException:
        passing.retract()
        raise
    passing.on_end()


def amended_response(answer: Any, app: Any, own: Request) -> Any:
    """The project's response for robots.txt: as it is, with a line more, or replaced. See `SitemapHandler.amended`."""
    if answer.streaming:
        body = b"".join(answer.streaming_content)
        answer.streaming_content = [body]
    else:
        body = answer.content
    return _in_place_of(answer, Context().run(_amended, answer, body, app, own))


async def amended_response_async(answer: Any, app: Any, own: Request) -> Any:
    """The same in async mode."""
    if not answer.streaming:
        body = answer.content
    else:
        parts = answer.streaming_content
        body = b"".join([part async for part in parts] if answer.is_async else parts)
        answer.streaming_content = _in_one_part(body) if answer.is_async else [body]
    return _in_place_of(
        answer, await run_sync(Context().run, _amended, answer, body, app, own, limiter=thread_limiter())
    )


def _amended(answer: Any, body: bytes, app: Any, own: Request) -> Response | None:
    """What to send in place of a response of the project; None if that is sent as it is."""
    headers = [(name.lower(), value) for name, value in answer.items()]
    headers += [("set-cookie", cookie.OutputString()) for cookie in answer.cookies.values()]
    found: Response | None = app.service.sitemap_handler.amended(own, Response(answer.status_code, headers, body))
    return found


def _in_place_of(answer: Any, amended: Response | None) -> Any:
    """The response to send: the project's, or the amended one, which closes what the project's has open."""
    if amended is None:
        return answer
    response: Any = http_response(amended, is_async=False)
    response._resource_closers += answer._resource_closers
    return response


async def _in_one_part(body: bytes) -> AsyncIterator[bytes]:
    yield body


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
        if name == "set-cookie":  # Django keeps them apart
            answer.cookies.load(value)
        else:
            answer[name] = value
    return answer


async def _parts(parts: Any) -> AsyncIterator[bytes]:
    """A long document part by part. Other requests run in between."""
    with closing(parts):
        for part in parts:
            yield part
            await asyncio.sleep(0)
