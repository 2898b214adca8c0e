"""HTTP responses for documents: ETag, 304, gzip, HEAD, and the text of errors."""

from __future__ import annotations

import gzip
import random
from email.utils import formatdate

import pytest

from sitemap_middleware.rendering.chunked_document import PART_BYTES, Document, compress_chunk, urlset
from sitemap_middleware.rendering.responses import (
    MAX_NEGOTIATED_BYTES,
    MAX_SINGLE_PART_BYTES,
    CachedDocument,
    accepts_gzip,
    encode_headers,
    error_response,
    text_response,
    with_body,
)
from sitemap_middleware.request_response import Conditions, Response

SINCE = 1_750_000_000
DATE = formatdate(SINCE, usegmt=True)
MAX_AGE = 300


def document(size: int = 0) -> Document:
    """A document whose entries take `size` bytes, which no compression makes shorter."""
    return urlset([compress_chunk(random.Random(size).randbytes(size), 1, "2025-06-15")])


def body_of(response: Response) -> bytes:
    return response.body if response.parts is None else b"".join(response.parts)


def conditions(
    method: str = "GET",
    *,
    accept_encoding: str | None = None,
    if_none_match: str | None = None,
    if_modified_since: str | None = None,
) -> Conditions:
    return method, accept_encoding, if_none_match, if_modified_since


def response_to(method: str = "GET", since: int | None = SINCE, size: int = 0, **headers: str) -> Response:
    return CachedDocument(document(size), since, MAX_AGE).response_to(conditions(method, **headers))


def headers_of(response: Response) -> dict[str, str]:
    assert len({name.lower() for name, _ in response.headers}) == len(response.headers)
    return dict(response.headers)


ETAG = document().etag
PLAIN = b"".join(document().plain())


def test_plain_response() -> None:
    response = response_to()
    assert response.status == 200
    assert headers_of(response) == {
        "ETag": f'"{ETAG}"',
        "Cache-Control": "public, max-age=300",
        "Vary": "Accept-Encoding",
        "X-Robots-Tag": "noindex",
        "X-Content-Type-Options": "nosniff",
        "Last-Modified": DATE,
        "Content-Type": "application/xml; charset=utf-8",
        "Content-Length": str(len(PLAIN)),
    }
    assert response.body == PLAIN


def test_gzipped_response_has_an_etag_of_its_own() -> None:
    response = response_to(accept_encoding="gzip")
    headers = headers_of(response)
    assert (headers["ETag"], headers["Content-Encoding"]) == (f'"{ETAG}-gzip"', "gzip")
    assert headers["Content-Length"] == str(len(response.body))
    assert gzip.decompress(response.body) == PLAIN


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_head_has_the_headers_of_get_and_no_body(coding: str) -> None:
    head, get = response_to("HEAD", accept_encoding=coding), response_to(accept_encoding=coding)
    assert (head.status, head.headers, head.body, head.parts) == (200, get.headers, b"", None)


def test_document_of_unknown_age_has_no_last_modified() -> None:
    assert "Last-Modified" not in headers_of(response_to(since=None))


@pytest.mark.parametrize(
    ("sent", "unchanged"),
    [
        ({"if_none_match": f'"{ETAG}"'}, True),
        ({"if_none_match": f'W/"{ETAG}"'}, True),
        ({"if_none_match": f'"other", "{ETAG}"'}, True),
        ({"if_none_match": "*"}, True),
        ({"if_none_match": f'"{ETAG}-gzip"'}, False),
        ({"if_none_match": f'"{ETAG}-gzip"', "accept_encoding": "gzip"}, True),
        ({"if_none_match": f'"{ETAG}"', "accept_encoding": "gzip"}, False),
        ({"if_none_match": '"other"'}, False),
        ({"if_none_match": ""}, False),
        ({"if_none_match": '"other"', "if_modified_since": DATE}, False),  # RFC 9110, section 13.2.2
        ({"if_modified_since": DATE}, True),
        ({"if_modified_since": formatdate(SINCE + 1, usegmt=True)}, True),
        ({"if_modified_since": formatdate(SINCE - 1, usegmt=True)}, False),
        ({"if_modified_since": "yesterday"}, False),
        ({"if_modified_since": ""}, False),
        ({"if_none_match": f'"{ETAG}"' + ", " * 300}, True),
        ({"if_none_match": f'"{"x" * (4096 - len(ETAG) - 6)}", "{ETAG}"'}, True),
        ({"if_none_match": f'"{"x" * (4097 - len(ETAG) - 6)}", "{ETAG}"'}, False),
    ],
)
def test_client_that_has_the_document_gets_304(sent: dict[str, str], *, unchanged: bool) -> None:
    for method in ("GET", "HEAD"):
        response = response_to(method, **sent)
        assert response.status == (304 if unchanged else 200)
        if unchanged:
            headers = headers_of(response)
            assert response.body == b""
            assert not {"Content-Type", "Content-Length", "Content-Encoding"} & set(headers)
            assert {"ETag", "Cache-Control", "Vary", "Last-Modified"} <= set(headers)


def test_headers_that_clients_invent_are_not_all_remembered() -> None:
    cached = CachedDocument(document(), SINCE, MAX_AGE)
    invented = [conditions(accept_encoding="gzip", if_none_match=f'"{number}"') for number in range(1000)]
    assert {id(cached.response_to(asked)) for asked in invented} == {
        id(cached.response_to(conditions(accept_encoding="gzip")))
    }
    assert 0 < len(cached.negotiated) <= 256


def test_date_of_the_client_says_nothing_if_the_age_is_unknown() -> None:
    assert response_to(since=None, if_modified_since=DATE).status == 200


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("x-gzip", True),
        ("GZIP", True),
        ("*", True),
        ("deflate, gzip;q=0.5", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("gzip;q=0.5, identity;q=0.5", True),
        ("gzip;q=0, gzip;q=0.3", True),
        ("gzip;q=0.4, identity;q=0.5", False),
        ("gzip;q=0", False),
        ("*;q=0", False),
        ("*, gzip;q=0", False),
        ("identity", False),
        ("deflate, br", False),
        ("", False),
    ],
)
def test_gzip_is_sent_to_those_who_prefer_it(header: str, *, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted
    assert ("Content-Encoding" in headers_of(response_to(accept_encoding=header))) is accepted


# Long documents


@pytest.mark.parametrize(
    ("size", "is_streamed"),
    [(PART_BYTES, False), (MAX_SINGLE_PART_BYTES - 1000, False), (2 * MAX_SINGLE_PART_BYTES, True)],
)
def test_long_document_is_sent_in_parts(size: int, *, is_streamed: bool) -> None:
    response = response_to(size=size)
    assert (response.parts is not None) is is_streamed
    assert body_of(response) == b"".join(document(size).plain())
    assert int(headers_of(response)["Content-Length"]) == document(size).size


def test_body_of_exactly_the_limit_is_sent_in_one_piece() -> None:
    frame = document().size
    lines = b"x" * (MAX_SINGLE_PART_BYTES - frame)
    exact = CachedDocument(urlset([compress_chunk(lines, 1, None)]), None, 0).response_to(conditions())
    assert (len(exact.body), exact.parts) == (MAX_SINGLE_PART_BYTES, None)
    longer = CachedDocument(urlset([compress_chunk(lines + b"x", 1, None)]), None, 0).response_to(conditions())
    assert longer.parts is not None
    assert len(body_of(longer)) == MAX_SINGLE_PART_BYTES + 1


@pytest.mark.parametrize(
    ("method", "size", "coding", "is_ready"),
    [
        ("GET", 0, "", True),
        ("GET", 2 * PART_BYTES, "", False),
        ("GET", 2 * PART_BYTES, "gzip", True),
        ("HEAD", 2 * PART_BYTES, "", True),
        ("GET", 2 * MAX_SINGLE_PART_BYTES, "", True),  # inflated part by part while it is sent
    ],
)
def test_document_that_takes_time_to_inflate_is_not_inflated_on_the_event_loop(
    method: str, size: int, coding: str, *, is_ready: bool
) -> None:
    cached = CachedDocument(document(size), SINCE, MAX_AGE)
    response = cached.response_to(conditions(method, accept_encoding=coding), inflates=False)
    assert (response is not None) is is_ready
    assert cached.response_to(conditions(method, accept_encoding=coding)).status == 200


def test_unchanged_long_document_needs_no_inflating() -> None:
    cached = CachedDocument(document(2 * PART_BYTES), SINCE, MAX_AGE)
    tag = f'"{document(2 * PART_BYTES).etag}"'
    unchanged = cached.response_to(conditions(if_none_match=tag), inflates=False)
    assert unchanged is not None
    assert unchanged.status == 304


@pytest.mark.parametrize(
    ("size", "method", "coding", "is_kept"),
    [
        (0, "GET", "", True),
        (0, "GET", "gzip", True),
        (0, "HEAD", "", True),
        (2 * PART_BYTES, "GET", "", False),
        (2 * PART_BYTES, "GET", "gzip", True),
        (2 * PART_BYTES, "HEAD", "", True),
        (4 * MAX_SINGLE_PART_BYTES, "GET", "", False),
    ],
)
def test_small_bodies_are_made_once(size: int, method: str, coding: str, *, is_kept: bool) -> None:
    cached = CachedDocument(document(size), SINCE, MAX_AGE)
    asked = conditions(method, accept_encoding=coding)
    assert (cached.response_to(asked) is cached.response_to(asked)) is is_kept


def test_size_counts_the_document_and_the_bodies_that_are_kept() -> None:
    small, middle, large = document(), document(2 * PART_BYTES), document(4 * MAX_SINGLE_PART_BYTES)
    assert CachedDocument(small, None, 0).memory_size - MAX_NEGOTIATED_BYTES == small.size + 2 * small.gzipped_size
    assert CachedDocument(middle, None, 0).memory_size - MAX_NEGOTIATED_BYTES == 2 * middle.gzipped_size
    assert large.gzipped_size > MAX_SINGLE_PART_BYTES
    assert CachedDocument(large, None, 0).memory_size - MAX_NEGOTIATED_BYTES == large.gzipped_size


def test_headers_are_ready_for_asgi() -> None:
    response = response_to()
    assert response.encoded == encode_headers(response.headers)
    assert encode_headers([("Content-Type", "text/plain"), ("X", "é")]) == [
        (b"content-type", b"text/plain"),
        (b"x", b"\xe9"),
    ]


# Text


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_error_is_a_line_of_text_that_nobody_stores(method: str) -> None:
    response = error_response(method, 503, "the store fails", [("Retry-After", "30")])
    assert response.status == 503
    assert response.body == (b"" if method == "HEAD" else b"the store fails\n")
    assert headers_of(response) == {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": "16",
        "Cache-Control": "no-store",
        "X-Robots-Tag": "noindex",
        "X-Content-Type-Options": "nosniff",
        "Retry-After": "30",
    }


def test_length_of_text_is_that_of_its_bytes() -> None:
    response = text_response("HEAD", 200, "é", [])
    assert (headers_of(response)["Content-Length"], response.body) == ("2", b"")
    assert text_response("GET", 200, "é", []).body == "é".encode()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_changed_body_drops_the_headers_that_described_the_old_one(method: str) -> None:
    old = [
        ("content-type", "text/plain"),
        ("content-length", "3"),
        ("content-encoding", "gzip"),
        ("etag", '"x"'),
        ("content-md5", "x"),
        ("digest", "x"),
        ("content-digest", "x"),
        ("repr-digest", "x"),
        ("cache-control", "max-age=9"),
    ]
    response = with_body(method, Response(203, old, b"old"), b"longer")
    assert response.status == 203
    assert response.headers == [
        ("content-type", "text/plain"),
        ("cache-control", "max-age=9"),
        ("content-length", "6"),
    ]
    assert response.body == (b"" if method == "HEAD" else b"longer")
