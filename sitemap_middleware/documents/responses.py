"""HTTP responses (RFC 9110) for documents: ETag, 304, gzip, HEAD. Pure, for both protocols."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Final

from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header
from werkzeug.sansio.http import is_resource_modified

from ..http.messages import NOINDEX_HEADER, Request, Response
from .xml import Document

HeaderFields = list[tuple[str, str]]

_BODY_HEADERS: Final = frozenset(
    {"content-length", "content-encoding", "etag", "content-md5", "digest", "content-digest", "repr-digest"}
)
_COMMON_HEADERS: Final = (NOINDEX_HEADER, ("X-Content-Type-Options", "nosniff"))


def document_response(
    document: Document,
    request: Request,
    now: float,
    max_age: int,
    cache_tag: str | None,
    *,
    media_type: str,
) -> Response:
    """The response to a GET or HEAD for a document, which clients may cache for `max_age` seconds.

    CDNs purge it by the `cache_tag`: Cloudflare and Google read `Cache-Tag`, Fastly reads `Surrogate-Key`.

    A document that is dated later than `now`, in POSIX seconds, as it replaced another in that one's second, has no
    Last-Modified until then.
    """
    sent = dict(request.headers)
    as_gzip = accepts_gzip(sent.get("accept-encoding", ""))
    tag = f"{document.etag}-gzip" if as_gzip else document.etag
    since = document.since if document.since <= now else None
    fields = [
        ("ETag", f'"{tag}"'),
        ("Cache-Control", f"public, max-age={max_age}"),
        ("Vary", "Accept-Encoding"),
        *_COMMON_HEADERS,
    ]
    if cache_tag is not None:
        fields += [("Cache-Tag", cache_tag), ("Surrogate-Key", cache_tag)]
    if since is not None:
        fields.append(("Last-Modified", formatdate(since, usegmt=True)))
    if not is_resource_modified(
        http_if_none_match=sent.get("if-none-match"),
        http_if_modified_since=sent.get("if-modified-since"),
        etag=tag,
        last_modified=None if since is None else datetime.fromtimestamp(since, UTC),
    ):
        return Response(304, fields)
    size = document.gzipped_size if as_gzip else document.size
    if as_gzip:
        fields.append(("Content-Encoding", "gzip"))
    fields += [("Content-Type", f"{media_type}; charset=utf-8"), ("Content-Length", str(size))]
    if request.method == "HEAD":
        return Response(200, fields)
    if as_gzip:
        return Response(200, fields, document.gzipped)
    return Response(200, fields, gzip.decompress(document.gzipped))


def error_response(method: str, status: int, reason: str, fields: Iterable[tuple[str, str]] = ()) -> Response:
    """One line of plain text that says why there is no document."""
    return text_response(method, status, f"{reason}\n", [("Cache-Control", "no-store"), *_COMMON_HEADERS, *fields])


def text_response(method: str, status: int, content: str, fields: HeaderFields) -> Response:
    """Plain text."""
    body = content.encode()
    fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *fields]
    return Response(status, fields, b"" if method == "HEAD" else body)


def with_body(method: str, answer: Response, body: bytes) -> Response:
    """The app's response with another body, and without the headers that describe the old one."""
    headers = [(name, value) for name, value in answer.headers if name not in _BODY_HEADERS]
    return Response(answer.status, [*headers, ("content-length", str(len(body)))], b"" if method == "HEAD" else body)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client accepts gzip, and does not prefer the plain bytes (RFC 9110, section 12.5.3)."""
    accepted = parse_accept_header(accept_encoding, Accept)
    return 0 < accepted.quality("gzip") >= accepted.quality("identity")
