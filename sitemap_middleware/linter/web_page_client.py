"""Requests listed pages and robots.txt from the web, for `listed_pages_check`."""

from __future__ import annotations

from typing import Final

from ..captured_response import MAX_HTML_BYTES
from .checks.listed_page import PageResponse
from .listed_pages_check import RobotsText
from .web_client import Failure, PoliteClient

_NOT_REQUESTED: Final = frozenset({Failure.ROBOTS, Failure.LOCAL})
"""Failures that say nothing about the page."""


class WebPages:
    """The pages of the web, requested politely.

    Args:
        client: requests them.
    """

    def __init__(self, client: PoliteClient) -> None:
        self._client = client

    async def page(self, url: str) -> PageResponse | None:
        """Request a page, and follow redirects. None if robots.txt forbids it to this program."""
        fetched = await self._client.get(url, max_bytes=MAX_HTML_BYTES + 1)
        answer = fetched.answer
        if answer.failure in _NOT_REQUESTED:
            return None
        return PageResponse(
            answer.url,
            answer.status,
            [(name, value) for name, value in answer.headers.multi_items() if name != "content-encoding"],
            fetched.body,
            fetched.is_complete,
            answer.redirects,
            answer.reason,
            answer.failure is Failure.REDIRECTS,
        )

    async def robots_txt(self, url: str) -> RobotsText | None:
        """Request the robots.txt of the host of a URL, once. None if there is no response."""
        answer = await self._client.robots_txt(url)
        if not answer.status:
            return None
        text = answer.file.text if answer.file else ""
        return RobotsText(answer.url, answer.status, text, is_too_large=answer.is_too_large)
