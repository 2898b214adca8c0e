"""Captured responses, parsed into observations."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.response_parser import denies_access, parse_response
from sitemap_middleware.http.messages import MAX_HTML_BYTES, CapturedResponse
from sitemap_middleware.models import Site

SITE = Site("https", "example.com")
LOC = "https://example.com/page"
NOW = 1_750_000_000
HTML = ("content-type", "text/html; charset=utf-8")
BODY = b"<!doctype html><title>A page</title><main><p>What a reader sees."


def captured(status: int = 200, *headers: tuple[str, str], body: bytes | None = None, **more: Any) -> CapturedResponse:
    return CapturedResponse(
        SITE, "/page", at=NOW + 0.75, status=status, headers=[HTML, *headers], body=body, host="example.com", **more
    )


def parse(response: CapturedResponse, **more: Any) -> Observation | None:
    return parse_response(response, "/page", "/page", LOC, **more)


def observation(status: int = 200, *headers: tuple[str, str], body: bytes | None = None, **more: Any) -> Observation:
    observed = parse(captured(status, *headers, body=body, **more))
    assert observed is not None
    return observed


@pytest.mark.parametrize(
    ("target", "signs_in"),
    [
        ("/login", True),
        ("https://login.microsoftonline.com/x", True),
        ("https://example.com/auth/realms/x", True),
        ("/welcome?return_to=/p/1", True),
        ("/access-denied", True),
        ("/de/p/1", False),
        ("https://m.example.com/other", False),
        ("/authors/ada", False),
        ("/sessions/2", False),
        ("", False),
    ],
)
def test_redirect_to_sign_in_denies_access(target: str, *, signs_in: bool) -> None:
    assert denies_access(302, "https://example.com/sessions/1", target) is signs_in
    assert observation(302, ("location", target)).denies_access is (signs_in or "essions" in target)
    assert not denies_access(200, LOC, target)


# HTML


@pytest.mark.parametrize(
    ("body", "is_read", "noindex"),
    [
        (BODY, True, False),
        (b"<meta name=robots content=noindex>\0", True, True),
        (b"\0<meta name=robots content=noindex>", True, True),
        (b"\x02" + BODY, False, False),
        (b"", False, False),
    ],
)
def test_head_of_text_counts_though_its_coding_is_unknown(body: bytes, *, is_read: bool, noindex: bool) -> None:
    html = observation(200, ("content-encoding", "mystery"), body=body)
    assert (html.digest, html.is_read, html.is_unread, bool(html.refusal)) == (None, is_read, False, noindex)
    assert html.unread_reason == "is compressed with 'mystery', for which no decoder is installed"
    assert not observation(200, ("content-encoding", "mystery")).unread_reason, "it was not sampled"


def test_head_of_text_counts_though_it_is_not_compressed_as_its_header_says() -> None:
    html = observation(200, ("content-encoding", "gzip"), body=b"<link rel=canonical href=/other>" + BODY)
    assert (html.digest, html.is_read) == (None, True)
    assert html.refusal == "its canonical URL is another: /other"


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_noindex_in_the_readable_part_of_a_cut_body_counts(coding: str, compress: Callable[[bytes], bytes]) -> None:
    noise = random.Random(0)
    start, end = (b" ".join(b"%x" % noise.getrandbits(32) for _ in range(100)) for _ in range(2))
    page = b"<!doctype html><title>" + start + b"</title><meta name=robots content=noindex><main>" + end
    body, found = compress(page), []
    for size in range(4, len(body), 7):  # fewer bytes could be text
        decoded = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body[:size])
        html = observation(200, ("content-encoding", coding), body=body[:size])
        assert html.is_read is bool(html.refusal) is (b"noindex>" in decoded), "a noindex may follow"
        assert html.digest is None
        found.append(html.is_read)
    assert {*found} == {False, True}


def test_a_body_that_is_too_large_is_not_called_cut() -> None:
    html = observation(200, ("content-encoding", "gzip"), body=gzip.compress(BODY + b"x" * MAX_HTML_BYTES))
    assert html.unread_reason == "is larger than 640 kB"


@pytest.mark.parametrize("body", [b"", gzip.compress(BODY, mtime=0)[:11], b"\0\1\2\3"])
def test_broken_body_leaves_the_html_unknown(body: bytes) -> None:
    assert observation(200, ("content-encoding", "gzip"), body=body).is_unread
