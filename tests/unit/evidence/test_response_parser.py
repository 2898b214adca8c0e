"""Captured responses, parsed into observations."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from sitemap_middleware.evidence.observations import Observation, refused_canonical
from sitemap_middleware.evidence.response_parser import ResponseParser
from sitemap_middleware.evidence.value_history import VOLATILE
from sitemap_middleware.http.captured_response import MAX_HTML_BYTES, OBSERVED_STATUSES, CapturedResponse
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


def parse(response: CapturedResponse, loc: str = LOC, **more: Any) -> Observation | None:
    return ResponseParser().parse(response, "/page", "/page", loc, **more)


def observation(status: int = 200, *headers: tuple[str, str], body: bytes | None = None, **more: Any) -> Observation:
    observed = parse(captured(status, *headers, body=body, **more))
    assert observed is not None
    return observed


def test_observation_states_the_page_and_the_whole_second() -> None:
    observed = observation(204)
    assert (observed.path, observed.route, observed.at, observed.status) == ("/page", "/page", NOW, 204)
    assert observed.media_type == "text/html"
    assert observed.html is None


@pytest.mark.parametrize("status", [100, 101, 199, 304, 408, 425, 429, 500, 502, 503, 599, 600])
def test_transient_statuses_say_nothing(status: int) -> None:
    assert parse(captured(status)) is None


@pytest.mark.parametrize("status", sorted(OBSERVED_STATUSES))
def test_every_other_status_is_observed(status: int) -> None:
    assert observation(status).status == status


@pytest.mark.parametrize(
    ("status", "target", "says_nothing"),
    [
        *((status, "http://www.example.com/page", True) for status in (300, 301, 302, 303, 307, 308, 399)),
        (301, "/page", True),
        (301, "/page/", False),
        (301, "/other", False),
        (301, "", False),
        (201, "/page", False),
        (299, "/page", False),
        (400, "/page", False),
        (401, "/page", False),
    ],
)
def test_redirect_to_the_same_path_on_another_host_says_nothing(
    status: int, target: str, *, says_nothing: bool
) -> None:
    assert (parse(captured(status, ("location", target))) is None) is says_nothing


@pytest.mark.parametrize(
    ("status", "target", "denied"),
    [(302, "/login?next=/page", True), (302, "/de/page", False), (403, "", True), (200, "/login", False)],
)
def test_observation_says_whether_access_was_denied(status: int, target: str, *, denied: bool) -> None:
    assert observation(status, ("location", target)).denies_access is denied


def test_probe_and_route_settings_are_passed_on() -> None:
    response = captured(302, ("location", "/de"), is_probe=True)
    observed = parse(response, learned=True, may_be_provided=True)
    assert observed is not None
    assert (observed.is_probe, observed.learned, observed.may_be_provided) == (True, True, True)
    plain = observation(302)
    assert (plain.is_probe, plain.learned, plain.may_be_provided) == (False, False, False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Sun, 15 Jun 2025 15:06:39 GMT", NOW - 1),
        ("Sun, 15 Jun 2025 18:06:41 GMT", None),  # later than the response
        ("yesterday", None),
    ],
)
def test_last_modified_is_compared_with_the_time_of_the_response(value: str, expected: int | None) -> None:
    assert observation(200, ("last-modified", value)).last_modified == expected


@pytest.mark.parametrize(
    ("link", "canonical"),
    [
        ('</other>; rel="canonical"', "/other"),
        ('</page>; rel="canonical"', None),
        ('</other>; rel="canonical"; anchor="/page"', "/other"),
        ('</other>; rel="canonical"; anchor="https://example.com/page"', "/other"),
        ('</other>; rel="canonical"; anchor="/third"', None),
        ('</other>; rel="canonical"; anchor="/third", </fourth>; rel="canonical"', "/fourth"),
        ('<mailto:a@example.com>; rel="canonical"', None),
    ],
)
def test_link_header_names_the_canonical_page(link: str, canonical: str | None) -> None:
    refusal = f"its canonical URL is another: {canonical}" if canonical else ""
    assert observation(200, ("link", link)).refusal == refusal


def test_long_canonical_is_cut() -> None:
    target = refused_canonical(observation(200, ("link", f'</{"x" * 3000}>; rel="canonical"')).refusal)
    assert target is not None
    assert len(target) == 2048


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([("x-robots-tag", "nofollow"), ("x-robots-tag", "noindex")], "its X-Robots-Tag says noindex"),
        ([("cache-control", "private"), ("x-robots-tag",), ("x-robots-tag", 7)], "its Cache-Control says private"),
        ([("refresh", "0; url=/other")], "it leads to another page at once: /other"),
        ([("refresh", "0; url=/page")], ""),
    ],
)
def test_headers_refuse_to_be_listed(headers: list[Any], refusal: str) -> None:
    assert observation(200, *headers).refusal == refusal


def test_headers_say_until_when_a_page_is_available() -> None:
    until = observation(200, ("x-robots-tag", "unavailable_after: 2025-06-16T00:00:00Z"))
    assert until.expires_at == 1_750_032_000


# HTML


def test_html_of_a_sampled_page_is_read() -> None:
    html = observation(body=BODY).html
    assert html is not None
    assert html.digest is not None
    assert (html.noindex, html.canonical, html.instant_refresh) == (False, None, None)


@pytest.mark.parametrize(
    ("status", "media_type", "is_read"),
    [
        (200, "text/html", True),
        (200, "application/xhtml+xml", True),
        (200, "application/pdf", False),
        (200, "application/json", False),
        (404, "text/html", False),
        (206, "text/html", False),
    ],
)
def test_html_is_read_of_good_answers_only(status: int, media_type: str, *, is_read: bool) -> None:
    response = CapturedResponse(
        SITE, "/page", at=NOW, status=status, headers=[("content-type", media_type)], body=BODY, is_probe=True
    )
    observed = parse(response)
    assert observed is not None
    assert (observed.html is not None) is is_read


def test_unsampled_body_leaves_the_html_unknown() -> None:
    assert observation(body=None).html is None


@pytest.mark.parametrize(
    ("body", "has_head", "noindex"),
    [
        (BODY, True, False),
        (b"Words alone", True, False),
        (b"<meta name=robots content=noindex>\0", True, True),
        (b"\0<meta name=robots content=noindex>", True, True),
        (b"\x02" + BODY, False, False),
        (b"\xff" + BODY, False, False),
        (b"", False, False),
    ],
)
def test_head_of_text_counts_though_its_coding_is_unknown(body: bytes, *, has_head: bool, noindex: bool) -> None:
    html = observation(200, ("content-encoding", "mystery"), body=body).html
    assert html is not None
    assert (html.digest, html.has_head, html.noindex) == (None, has_head, noindex)
    assert html.unread_reason == "is compressed with 'mystery', for which no decoder is installed"


def test_unknown_coding_of_a_body_that_was_not_sampled_says_nothing() -> None:
    assert observation(200, ("content-encoding", "none")).html is None


def test_head_of_text_counts_though_it_is_not_compressed_as_its_header_says() -> None:
    html = observation(200, ("content-encoding", "gzip"), body=b"<link rel=canonical href=/other>" + BODY).html
    assert html is not None
    assert (html.digest, html.canonical, html.has_head) == (None, "/other", True)


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_noindex_in_the_readable_part_of_a_cut_body_counts(coding: str, compress: Callable[[bytes], bytes]) -> None:
    noise = random.Random(0)
    start, end = (b" ".join(b"%x" % noise.getrandbits(32) for _ in range(100)) for _ in range(2))
    page = b"<!doctype html><title>" + start + b"</title><meta name=robots content=noindex><main>" + end
    body, found = compress(page), []
    for size in range(4, len(body)):  # fewer bytes could be text
        decoded = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body[:size])
        html = observation(200, ("content-encoding", coding), body=body[:size]).html
        if b"noindex>" in decoded:
            assert html is not None
            assert html.noindex
        else:
            assert html is None, "a noindex may follow"
        found.append(html is not None)
        if html is not None:
            assert (html.digest, html.unread_reason) == (None, f"is not whole as {coding}")
    assert {*found} == {False, True}


@pytest.mark.parametrize(
    ("page", "has_head"),
    [
        (BODY, True),
        (b"<!doctype html><head><title>x</title></head><body>", False),
        (b"<title>A page", False),
        (b"<title>A page</title><link rel=canonical href=/other><meta name=", False),
        (b"<frameset><frame>", False),
        (b"A page", True),
    ],
)
def test_a_cut_body_is_read_if_its_head_has_ended(page: bytes, *, has_head: bool) -> None:
    body = gzip.compress(page)[:-8]
    html = observation(200, ("content-encoding", "gzip"), body=body).html
    assert (html is not None and html.has_head) is has_head


def test_a_body_that_is_too_large_is_not_called_cut() -> None:
    body = gzip.compress(BODY + b"x" * MAX_HTML_BYTES)
    html = observation(200, ("content-encoding", "gzip"), body=body).html
    assert html is not None
    assert html.unread_reason == "is larger than 640 kB"


@pytest.mark.parametrize("body", [b"", gzip.compress(BODY, mtime=0)[:11], b"\0\1\2\3"])
def test_broken_body_leaves_the_html_unknown(body: bytes) -> None:
    assert observation(200, ("content-encoding", "gzip"), body=body).html is None


def test_volatile_response_has_a_volatile_digest() -> None:
    response = captured(body=BODY)
    response.is_volatile = True
    observed = parse(response)
    assert observed is not None
    assert observed.html is not None
    assert observed.html.digest == VOLATILE


@pytest.mark.parametrize(
    ("head", "canonical"),
    [
        ('<link rel="canonical" href="/other">', "/other"),
        ('<link rel="canonical" href="/page">', None),
        ('<link rel="canonical" href="/other"><link rel="canonical" href="/third">', None),
        ('<link rel="canonical" href="javascript:x">', None),
    ],
)
def test_html_names_the_canonical_page(head: str, canonical: str | None) -> None:
    html = observation(body=f"<!doctype html>{head}".encode() + BODY).html
    assert html is not None
    assert html.canonical == canonical


def test_unchanged_body_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds what a body says, by its bytes and by what decides how they are read."""
    from sitemap_middleware.evidence import html_facts

    parsed: list[bytes] = []
    real = html_facts.parse_html

    def counting(body: bytes, *arguments: Any, **more: Any) -> Any:
        parsed.append(body)
        return real(body, *arguments, **more)

    monkeypatch.setattr(html_facts, "parse_html", counting)
    parser = ResponseParser()

    def parse_again(*headers: tuple[str, str], body: bytes = BODY, **more: Any) -> int:
        response = CapturedResponse(SITE, "/page", at=NOW, status=200, headers=[*headers], body=body, **more)
        assert parser.parse(response, "/page", "/page", LOC) is not None
        return len(parsed)

    assert parse_again(HTML) == 1
    assert parse_again(HTML) == 1
    assert parse_again(HTML, body=BODY + b" ") == 2
    assert parse_again(("content-type", "text/html; charset=latin-1")) == 3
    assert parse_again(HTML, is_truncated=True) == 4
    assert parse_again(HTML, ("content-encoding", "gzip"), body=gzip.compress(BODY, mtime=0)) == 5
    assert parsed[-1] == BODY
    assert parse_again(HTML) == 5


def test_digest_is_that_of_the_observation() -> None:
    html = observation(body=BODY).html
    assert html is not None
    assert ResponseParser().digest(captured(body=BODY)) == html.digest
    assert ResponseParser().digest(captured(body=None)) is None
    assert ResponseParser().digest(captured(200, ("content-encoding", "mystery"), body=BODY)) is None


@pytest.mark.parametrize("body", [b"", BODY, None])
def test_body_that_the_server_replaces_by_a_file_is_not_read(body: bytes | None) -> None:
    html = observation(200, ("X-Accel-Redirect", "/internal"), body=body).html
    assert html is not None
    assert (html.digest, html.has_head) == (None, False)
    assert html.unread_reason == "was sent as a file that could not be read"
    assert ResponseParser().digest(captured(200, ("X-Sendfile", "/x"), body=body)) is None
    assert observation(404, ("X-Sendfile", "/x"), body=body).html is None
