"""The requests of IndexNow, and what an engine's answers mean."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from email.message import Message
from http.client import HTTPException
from typing import Any, Final, Literal, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from werkzeug.http import parse_date

from ..http.messages import PROBE_USER_AGENT

DEFAULT_ENDPOINT: Final = "https://api.indexnow.org/indexnow"
"""One is enough: Bing, Yandex, Naver, Seznam and Yep tell each other."""

TIMEOUT_SECONDS: Final = 10.0
"""Seconds for a connection, for each part of an answer, and for the whole of its body."""

MAX_ANSWER_BYTES: Final = 4096

MAX_RETRY_AFTER_SECONDS: Final = 24 * 60 * 60

Outcome = Literal["received", "wait", "invalid", "limited", "burnt", "failed"]
"""Taken; not taken yet, as the key is not checked; not valid; too many; the key is refused for ever; no real answer."""


class Answer(NamedTuple):
    """A response."""

    status: int
    """0 if there was none."""
    body: bytes
    """Its beginning; why there is no response, if there is none."""
    retry_after: str = ""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an answer: what is sent to one server is not for another one."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener: Final = build_opener(_NoRedirect)


def request(url: str, method: str = "GET", body: bytes | None = None) -> Answer:
    """Request a URL that a setting names. It never raises, and takes some multiple of `TIMEOUT_SECONDS` at most."""
    headers = {"User-Agent": PROBE_USER_AGENT, "Cache-Control": "no-cache"}
    if body is not None:
        headers["Content-Type"] = "application/json; charset=utf-8"
    try:
        try:
            response: Any = _opener.open(Request(url, body, headers, method=method), timeout=TIMEOUT_SECONDS)  # noqa: S310 # settings are http(s)
        except HTTPError as error:
            response = error
        with response:
            return Answer(response.status, _beginning(response), _field(response.headers, "Retry-After"))
    except (OSError, HTTPException, ValueError) as error:
        return Answer(0, str(error).encode("utf-8", "replace"))


def _field(headers: Message, name: str) -> str:
    return str(headers.get(name, ""))


def _beginning(response: Any) -> bytes:
    """The first bytes of a body. A server that sends one at a time is not awaited."""
    body, end = b"", time.monotonic() + TIMEOUT_SECONDS
    while len(body) < MAX_ANSWER_BYTES and time.monotonic() < end:
        piece = response.read1(MAX_ANSWER_BYTES - len(body))
        if not piece:
            break
        body += piece
    return body


def notify(endpoint: str, host: str, key: str, key_url: str, urls: Sequence[str]) -> Answer:
    """Send up to 10,000 URLs of one host."""
    message = {"host": host, "key": key, "keyLocation": key_url, "urlList": list(urls)}
    return request(endpoint, "POST", json.dumps(message).encode())


def outcome_of(answer: Answer) -> Outcome:
    """What an engine's answer means."""
    if answer.status == 200:
        return "received"
    if answer.status == 202:
        return "wait"
    if answer.status in (400, 422):
        return "invalid"
    if answer.status == 429:
        return "limited"
    if answer.status == 403:  # engines fetch the file of a key once, and keep what they got
        return "wait" if b"SiteVerificationNotCompleted" in answer.body else "burnt"
    return "failed"


def retry_after_seconds(answer: Answer, now: int) -> int:
    """How long an answer asks to wait, as a number or a date; 0 if it does not ask."""
    if answer.retry_after.strip().isdecimal():
        seconds = int(answer.retry_after[:9])
    else:
        date = parse_date(answer.retry_after)
        seconds = 0 if date is None else int(date.timestamp()) - now
    return min(max(seconds, 0), MAX_RETRY_AFTER_SECONDS)
