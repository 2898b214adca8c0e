"""Observes Django's responses as they pass, and makes a Django response of the middleware's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import Context
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse

from ..adapters.wsgi import ObservedBody, observed_body
from ..http.messages import Response

if TYPE_CHECKING:
    from ..adapters.asgi import ASGIExchange
    from ..adapters.wsgi import WSGIExchange
    from ..http.messages import Request
    from ..observe.tracker import PassingResponse


def observe_response(answer: Any, exchange: ASGIExchange | WSGIExchange | None) -> None:
    """Observe a response of the project, which is returned to Django unchanged, if the page of the request is tracked.

    The request is None if it could not be read.
    """
    if exchange is None or exchange.page is None:
        return
    with exchange.adapter.service.log_fault.guard("a response could not be observed"):
        passing = exchange.passing = exchange.page.started(answer.status_code, list(answer.items()), exchange)
        if passing is None:
            return
        if not answer.streaming:
            passing.on_chunk(answer.content)
            passing.on_end()
        elif (file := getattr(answer, "file_to_stream", None)) is not None:
            observed_body(file, passing, type(file))  # the server may send it in a faster way
        elif answer.is_async:
            answer.streaming_content = _observed_parts(answer.streaming_content, passing)
        else:
            answer.streaming_content = ObservedBody(iter(answer.streaming_content), passing)


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
    if getattr(answer, "is_async", False):
        return answer
    body = b"".join(answer)
    if answer.streaming:
        answer.streaming_content = [body]
    headers = [(name.lower(), value) for name, value in answer.items()]
    headers += [("set-cookie", cookie.OutputString()) for cookie in answer.cookies.values()]
    held = Response(answer.status_code, headers, body)
    amended = Context().run(app.service.sitemap_handler.amended, own, held)
    if amended is None:
        return answer
    response: Any = http_response(amended)
    response._resource_closers += answer._resource_closers  # what the project's response has open
    return response


def http_response(response: Response) -> HttpResponse:
    """Make Django's response of one of the middleware itself."""
    answer = HttpResponse(response.body, status=response.status)
    del answer["Content-Type"]
    for name, value in response.headers:
        if name == "set-cookie":  # Django keeps them apart
            answer.cookies.load(value)
        else:
            answer[name] = value
    return answer
