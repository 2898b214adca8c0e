"""HTTP responses for documents (RFC 9110): ETag, 304, gzip, HEAD. Pure, for both protocols."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from email.utils import formatdate
from typing import Final, NamedTuple, overload

from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header, parse_date, parse_etags

from ..models import Headers
from ..request_response import Conditions, Response
from ..routing.route_table import RouteTable
from ..stores.base import MAX_CLOCK_LEAD_SECONDS
from .chunked_document import PART_BYTES, Document

HeaderFields = list[tuple[str, str]]

MAX_SINGLE_PART_BYTES: Final = 256 * 1024
"""Size of the longest body that is sent in one piece; longer ones are sent in parts."""

FRESH_SECONDS: Final = 1.0
"""Seconds for which a document is served without reading the store."""

REVALIDATE_SECONDS: Final = FRESH_SECONDS / 2
"""The age in seconds at which one request brings the document up to date, so that not all do at the same moment."""

_CONTENT_TYPE: Final = ("Content-Type", "application/xml; charset=utf-8")
_MAX_NEGOTIATED: Final = 16
"""`Conditions` for which the response is remembered: most clients send the same ones."""
_MAX_CACHED_HEADER_CHARS: Final = 256
"""Maximum length of their values together, to be remembered."""
MAX_NEGOTIATED_BYTES: Final = _MAX_NEGOTIATED * _MAX_CACHED_HEADER_CHARS
"""What those that are remembered for a document take in memory, at most."""
_MAX_IF_NONE_MATCH_CHARS: Final = 4096
"""Maximum length of If-None-Match; a longer one is ignored. Older versions of Werkzeug parse it in quadratic time."""
_BODY_HEADERS: Final = frozenset(
    {"content-length", "content-encoding", "etag", "content-md5", "digest", "content-digest", "repr-digest"}
)
_COMMON_HEADERS: Final = (("X-Robots-Tag", "noindex"), ("X-Content-Type-Options", "nosniff"))


class Freshness(NamedTuple):
    """When a document was up to date, and until when it may be served without another check."""

    generation: int
    """How many times this process had flushed when it began to read the store."""
    since: float
    """POSIX seconds."""
    valid_until: float
    """POSIX seconds."""


Checked = tuple[int, float, float]
"""A generation, and the POSIX seconds between which a document of it needs no further check."""

_NEVER: Final = -1, 0.0, 0.0


class CachedDocument:
    """A document in memory: the responses to requests for it, and whether it is up to date.

    There are six responses to GET and HEAD (plain, gzipped or 304); each is made once.
    """

    table: RouteTable
    """The routes when it was last brought up to date."""

    def __init__(
        self,
        document: Document,
        since: int | None,
        max_age: int,
        digests: tuple[bytes, ...] = (),
        now: float = math.inf,
        *,
        is_index: bool = False,
    ) -> None:
        """Make no response yet.

        Args:
            document: the document.
            since: POSIX seconds since when it is this document; None if that is not known.
            max_age: seconds for which clients may cache it.
            digests: those of its chunks.
            now: POSIX seconds. A document has no Last-Modified as long as that lies in the near future. One of a worker
                whose clock is far ahead is sent, as that worker sends it.
            is_index: whether its entries are documents.
        """
        self._document = document
        is_future = since is not None and 0 < since - now <= MAX_CLOCK_LEAD_SECONDS + 1
        self._since = None if is_future else since
        self.dated_from: int | None = since if is_future else None
        """The POSIX second from which on it has a Last-Modified, if it has none yet."""
        self._max_age = max_age
        self.digests: tuple[bytes, ...] = digests
        """The digests of its chunks."""
        self.is_index: bool = is_index
        """Whether its entries are documents."""
        self.freshness: Freshness | None = None
        """None if the next request must bring it up to date."""
        self.is_superseded: bool = False
        """Whether it is known to have other pages by now. It has not been assembled again since."""
        self._revalidating = False
        self.checked: Checked = _NEVER
        """When `is_current` was last found true."""
        self._responses: dict[tuple[str, bool, bool], Response] = {}
        self.negotiated: dict[Conditions, Response] = {}
        """Those of `_responses` that earlier requests got."""

    def with_date(self) -> CachedDocument:
        """The same document, with the Last-Modified that lay in the future before."""
        return CachedDocument(self._document, self.dated_from, self._max_age, self.digests, is_index=self.is_index)

    def mark_fresh(self, freshness: Freshness | None, table: RouteTable) -> None:
        """Note that the document is up to date."""
        self.is_superseded = False
        self.freshness = freshness
        self.table = table
        self._revalidating = False
        self.checked = _NEVER

    def expire(self) -> None:
        """Note that the document is not up to date, or that another one has taken its place."""
        self.freshness = None
        self.checked = _NEVER

    def fresh_until(self, now: float, generation: int, *, may_refresh: bool = True) -> float:
        """The time until which it may be served as it is; 0 if the request must bring it up to date.

        Before it expires, one call returns 0 to refresh it early: one of those that may refresh it. To others the
        document is then no longer fresh.
        """
        freshness = self.freshness
        if (
            freshness is None
            or freshness.generation != generation
            or not freshness.since <= now < freshness.valid_until
        ):
            return 0.0
        revalidate_at = freshness.since + REVALIDATE_SECONDS
        if now < revalidate_at:
            return min(revalidate_at, freshness.valid_until)
        if not may_refresh:
            return 0.0
        if self._revalidating:
            return freshness.valid_until
        self._revalidating = True
        return 0.0

    @property
    def memory_size(self) -> int:
        """The maximum number of bytes that the document, all bodies and the values of headers take in memory."""
        document = self._document
        gzipped_size = document.gzipped_size if document.gzipped_size <= MAX_SINGLE_PART_BYTES else 0
        plain_size = document.size if document.size <= PART_BYTES else 0
        return document.gzipped_size + gzipped_size + plain_size + MAX_NEGOTIATED_BYTES

    @overload
    def response_to(self, conditions: Conditions) -> Response: ...

    @overload
    def response_to(self, conditions: Conditions, *, inflates: bool) -> Response | None: ...

    def response_to(self, conditions: Conditions, *, inflates: bool = True) -> Response | None:
        """The response to a request.

        Args:
            conditions: the request's; its method is GET or HEAD.
            inflates: whether it may take a millisecond to inflate a document; if not, None is returned instead.
        """
        response = self.negotiated.get(conditions)
        if response is not None:
            return response
        method, coding, tags, moment = conditions
        document, since = self._document, self._since
        gzip = accepts_gzip(coding or "")
        unchanged = _is_not_modified(tags, moment, _etag_header(document.etag, gzip=gzip), since)
        response = self._responses.get((method, gzip, unchanged))
        if response is None:
            is_plain_body = method == "GET" and not gzip and not unchanged
            if is_plain_body and not inflates and PART_BYTES < document.size <= MAX_SINGLE_PART_BYTES:
                return None
            response = _make_response(
                method, gzip=gzip, unchanged=unchanged, document=document, since=since, max_age=self._max_age
            )
            response = replace(response, encoded=encode_headers(response.headers))
            if response.parts is not None or (is_plain_body and document.size > PART_BYTES):
                return response
            self._responses[method, gzip, unchanged] = response
        if len(coding or "") + len(tags or "") + len(moment or "") <= _MAX_CACHED_HEADER_CHARS:
            if len(self.negotiated) >= _MAX_NEGOTIATED:
                self.negotiated.clear()
            self.negotiated[conditions] = response
        return response


def encode_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers in ASGI's form."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]


def _etag_header(etag: str, *, gzip: bool) -> str:
    return f'"{etag}-gzip"' if gzip else f'"{etag}"'


def _make_response(
    method: str, *, gzip: bool, unchanged: bool, document: Document, since: int | None, max_age: int
) -> Response:
    fields = [
        ("ETag", _etag_header(document.etag, gzip=gzip)),
        ("Cache-Control", f"public, max-age={max_age}"),
        ("Vary", "Accept-Encoding"),
        *_COMMON_HEADERS,
    ]
    if since is not None:
        fields.append(("Last-Modified", formatdate(since, usegmt=True)))
    if unchanged:
        return Response(304, fields)
    size = document.gzipped_size if gzip else document.size
    if gzip:
        fields.append(("Content-Encoding", "gzip"))
    fields += [_CONTENT_TYPE, ("Content-Length", str(size))]
    if method == "HEAD":
        return Response(200, fields)
    parts = document.gzipped() if gzip else document.plain()
    return (
        Response(200, fields, b"".join(parts)) if size <= MAX_SINGLE_PART_BYTES else Response(200, fields, parts=parts)
    )


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
    if not accept_encoding:
        return False
    accepted: dict[str, float] = {}
    for coding, quality in parse_accept_header(accept_encoding, Accept):
        accepted[coding.lower()] = max(quality, accepted.get(coding.lower(), 0))
    wanted = max(accepted.get("gzip", accepted.get("*", 0)), accepted.get("x-gzip", 0))
    return wanted > 0 and wanted >= accepted.get("identity", 0)


def _is_not_modified(if_none_match: str | None, if_modified_since: str | None, tag: str, since: int | None) -> bool:
    """Whether the client has this representation: by ETag, or by date if it sends no ETag (section 13.2.2)."""
    if if_none_match is not None:
        return len(if_none_match) <= _MAX_IF_NONE_MATCH_CHARS and parse_etags(if_none_match).contains_weak(
            tag.strip('"')
        )
    if since is None or if_modified_since is None:
        return False
    moment = parse_date(if_modified_since)
    return moment is not None and moment.timestamp() >= since
