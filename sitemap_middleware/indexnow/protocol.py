"""The requests of IndexNow, and what an engine's answers mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from http.client import HTTPException
from typing import Any, Final, Literal, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..http.messages import PROBE_USER_AGENT
from ..util import resolve, run_in_background

DEFAULT_ENDPOINT: Final = "https://api.indexnow.org/indexnow"
"""One is enough: Bing, Yandex, Naver, Seznam and Yep tell each other."""

TIMEOUT_SECONDS: Final = 10.0
"""Seconds for a request in all, however slowly its answer comes."""

MAX_ANSWER_BYTES: Final = 4096

Outcome = Literal["received", "wait", "invalid", "limited", "burnt", "failed"]
"""Taken; not taken yet, as the key is not checked; not valid; too many; the key is refused for ever; none of these."""

_OUTCOMES: Final[dict[int, Outcome]] = {200: "received", 202: "wait", 400: "invalid", 422: "invalid", 429: "limited"}


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
    """Request a URL that a setting names. It never raises, and takes `TIMEOUT_SECONDS` at most."""
    answer = Future[Answer]()  # no timeout of a socket is for all of a request
    run_in_background(partial(resolve, answer, partial(_request, url, method, body)))
    try:
        return answer.result(TIMEOUT_SECONDS)
    except TimeoutError:
        return Answer(0, f"it takes longer than {TIMEOUT_SECONDS:g} seconds".encode())


def _request(url: str, method: str, body: bytes | None) -> Answer:
    headers = {"User-Agent": PROBE_USER_AGENT, "Cache-Control": "no-cache"}
    if body is not None:
        headers["Content-Type"] = "application/json; charset=utf-8"
    try:
        try:
            response: Any = _opener.open(Request(url, body, headers, method=method), timeout=2 * TIMEOUT_SECONDS)  # noqa: S310 # http(s)
        except HTTPError as error:
            response = error
        with response:
            return Answer(
                response.status, response.read(MAX_ANSWER_BYTES), str(response.headers.get("Retry-After", ""))
            )
    except (OSError, HTTPException, ValueError) as error:
        return Answer(0, str(error).encode("utf-8", "replace"))


def notify(endpoint: str, host: str, key: str, key_url: str, urls: Sequence[str]) -> Answer:
    """Send up to 10,000 URLs of one host."""
    message = {"host": host, "key": key, "keyLocation": key_url, "urlList": list(urls)}
    return request(endpoint, "POST", json.dumps(message).encode())


def outcome_of(answer: Answer) -> Outcome:
    """What an engine's answer means."""
    if answer.status == 403 and answer.body.lstrip().startswith(b"{"):  # else it is a proxy's, or a firewall's
        return "wait" if b"SiteVerificationNotCompleted" in answer.body else "burnt"
    return _OUTCOMES.get(answer.status, "failed")
