"""HTTP: a document and the request for it, into the whole response (RFC 9110). One pure function for both protocols."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate
from typing import Final

from .chunks import Document
from .model import Response

Fields = list[tuple[str, str]]

WHOLE: Final = 256 * 1024
"""Bytes of the longest body that is sent in one piece."""

_TYPE: Final = ("Content-Type", "application/xml; charset=utf-8")
_LONGEST: Final = 4096
"""Characters of If-None-Match that are looked at; more get the whole document. Older Werkzeugs take their square."""
_OF_THE_BYTES: Final = frozenset({"content-length", "etag", "content-md5", "digest", "content-digest", "repr-digest"})
_COMMON: Final = (("X-Robots-Tag", "noindex"), ("X-Content-Type-Options", "nosniff"))


def serve(
    method: str,
    headers: Mapping[str, str],
    *,
    document: Document,
    since: int | None,
    max_age: int,
) -> Response:
    """Answer a GET or HEAD for a document.

    Args:
        method: GET or HEAD.
        headers: the request's, by lower-case name.
        document: what is asked for.
        since: POSIX seconds since when it is this document; None where that is not known.
        max_age: seconds for which it may be kept without asking again.
    """
    gzip = accepts_gzip(headers.get("accept-encoding", ""))
    tag = f'"{document.etag}-gzip"' if gzip else f'"{document.etag}"'
    fields = [
        ("ETag", tag),
        ("Cache-Control", f"public, max-age={max_age}"),
        ("Vary", "Accept-Encoding"),
        *_COMMON,
    ]
    if since is not None:
        fields.append(("Last-Modified", formatdate(since, usegmt=True)))
    if _unchanged(headers, tag, since):
        return Response(304, fields)
    size = document.packed_size if gzip else document.size
    if gzip:
        fields.append(("Content-Encoding", "gzip"))
    fields += [_TYPE, ("Content-Length", str(size))]
    if method == "HEAD":
        return Response(200, fields)
    parts = document.gzipped() if gzip else document.plain()
    return Response(200, fields, b"".join(parts)) if size <= WHOLE else Response(200, fields, parts=parts)


def refuse(method: str, status: int, reason: str, retry_after: int | None = None) -> Response:
    """One line of plain text that says why there is no document."""
    retry = [] if retry_after is None else [("Retry-After", str(retry_after))]
    return text(method, status, f"{reason}\n", [("Cache-Control", "no-store"), *_COMMON, *retry])


def text(method: str, status: int, content: str, fields: Fields) -> Response:
    """Plain text."""
    body = content.encode()
    fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *fields]
    return Response(status, fields, b"" if method == "HEAD" else body)


def amended(method: str, answer: Response, body: bytes) -> Response:
    """The app's answer with another body: what speaks of the bytes goes, all else stays."""
    kept = [(name, value) for name, value in answer.headers if name not in _OF_THE_BYTES]
    return Response(answer.status, [*kept, ("content-length", str(len(body)))], b"" if method == "HEAD" else body)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether a client wants gzip rather than the bytes as they are (RFC 9110, section 12.5.3)."""
    if not accept_encoding:
        return False
    from werkzeug.datastructures import Accept
    from werkzeug.http import parse_accept_header

    accepted: dict[str, float] = {}
    for coding, quality in parse_accept_header(accept_encoding, Accept):
        accepted[coding.lower()] = max(quality, accepted.get(coding.lower(), 0))
    wanted = max(accepted.get("gzip", accepted.get("*", 0)), accepted.get("x-gzip", 0))
    return wanted > 0 and wanted >= accepted.get("identity", 0)


def _unchanged(headers: Mapping[str, str], tag: str, since: int | None) -> bool:
    """Whether the client has just this: by its ETag, or, only where it sends none, by its date (section 13.2.2)."""
    from werkzeug.http import parse_date, parse_etags

    if "if-none-match" in headers:
        if len(headers["if-none-match"]) > _LONGEST:
            return False
        return parse_etags(headers["if-none-match"]).contains_weak(tag.strip('"'))
    if since is None or "if-modified-since" not in headers:
        return False
    moment = parse_date(headers["if-modified-since"])
    return moment is not None and moment.timestamp() >= since
