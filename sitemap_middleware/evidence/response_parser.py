"""Parses a captured response into an observation, and the HTML of a sampled body with it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from ..http.messages import MAX_HTML_BYTES, OBSERVED_STATUSES, CapturedResponse
from ..http.site_urls import is_same_page, own_paths
from ..http.urls import is_page_url, is_same_path, path_digest
from .dates import parse_last_modified
from .html_facts import HtmlFacts, is_text, parse_html
from .images_and_versions import NOTHING, Wanted, facts
from .observations import (
    CANONICAL_REFUSAL,
    HTML_TYPES,
    INDEXABLE_TYPES,
    NOINDEX_META_REFUSAL,
    REFRESH_REFUSAL,
    Observation,
)
from .response_headers import MAX_URL_CHARS, ResponseHeaders

UNREADABLE_FILE_REASON: Final = "was sent as a file that could not be read"

_BROTLI_PIECE_BYTES: Final = 64
"""Bytes that are decoded at a time, because the library decodes all that it is given, however large that becomes."""

_SIGN_IN_URL: Final = re.compile(
    r"""
    (?<![a-z])(?:log|sign)[-_]?(?:in|on|up)(?![a-z])
    | (?<![a-z])(?:auth|oauth2?|sso|oidc|saml2?|idp|cas|accounts?|sessions?|authenticat\w*|authoriz\w*|identity|register
        |registration|password|passwd|2fa|mfa|otp|captcha|denied|forbidden|paywall|subscribe)(?![a-z])
    | [?&](?:next|redirect\w*|return\w*|continue|goto|dest\w*|back\w*|url|from|service|target)=
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Part of a redirect's target that shows a login page, or that carries the page to return to after the login."""


def first_installed(*names: str) -> Any:
    """Import the first of some modules that is installed; None if none is."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


_zstd: Any = first_installed("compression.zstd", "backports.zstd")
_brotli: Any = first_installed("brotli", "brotlicffi")


def parse_response(
    captured: CapturedResponse,
    path: str,
    route: str,
    loc: str,
    *,
    learned: bool = False,
    may_be_provided: bool = False,
    listed_types: frozenset[str] = INDEXABLE_TYPES,
    wanted: Wanted = NOTHING,
) -> Observation | None:
    """What a response says about the page at `loc`, or None if it says nothing.

    A transient status says nothing. Neither does a redirect to the same path on another scheme or host, which is
    usually a redirect to the canonical ones.
    """
    if captured.status not in OBSERVED_STATUSES:
        return None
    headers = ResponseHeaders(captured.headers)
    at, target = int(captured.at), headers.get_last("location")
    if 300 <= captured.status < 400 and target and is_same_path(loc, target):
        return None
    is_own_url = partial(is_same_page, captured.site, loc, request_host=captured.host)
    observation = Observation(
        path=path,
        route=route,
        at=at,
        status=captured.status,
        media_type=headers.media_type,
        refusal=_refusal(headers.refusal, headers.instant_refresh, headers.canonicals, loc, is_own_url),
        expires_at=headers.robots.expires_at,
        last_modified=parse_last_modified(headers.get_all("last-modified"), at),
        learned=learned,
        may_be_provided=may_be_provided,
        is_probe=captured.is_probe,
        denies_access=denies_access(captured.status, loc, target),
        listed_types=listed_types,
    )
    if captured.status != 200 or headers.media_type not in HTML_TYPES:  # probes keep bodies of any type
        return observation
    undecodable = undecodable_reason(headers.codings)
    if captured.body is None or headers.has_other_body:
        is_file = headers.has_other_body or not captured.is_readable
        return observation._replace(unread_reason=undecodable or UNREADABLE_FILE_REASON) if is_file else observation
    own_path = urlsplit(loc).path
    html = _read_html(captured, headers, own_path, wanted)
    if html is None:
        return observation._replace(unread_reason=undecodable)
    said = NOINDEX_META_REFUSAL if html.noindex else ""
    if html.is_api_documentation:
        said = said or "it is the documentation of an API"
    html_refusal = _refusal(said, html.instant_refresh, [html.canonical] if html.canonical else [], loc, is_own_url)
    links = dict.fromkeys(map(path_digest, own_paths(captured.site, loc, html.links, captured.host)))
    links.pop(path_digest(own_path), None)
    ends = [end for end in (observation.expires_at, html.expires_at) if end is not None]
    shown = ""
    with suppress(Exception):  # as in `parse_html`
        shown = facts(html.images, html.versions, captured.site, loc, wanted)
    return observation._replace(
        refusal=observation.refusal or html_refusal,
        expires_at=min(ends, default=None),
        is_read=True,
        unread_reason=undecodable or html.unread_reason,
        digest=html.digest,
        without_path=html.without_path,
        stated_date=html.stated_date,
        links=" ".join(links),
        shown=shown,
    )


def _read_html(captured: CapturedResponse, headers: ResponseHeaders, path: str, wanted: Wanted) -> HtmlFacts | None:
    """What a sampled body says; None if its head cannot be read: it may be cut, or bytes in some content coding."""
    sample, codings, charset = captured.body or b"", headers.codings, headers.charset
    body, is_complete = sample, not captured.is_truncated
    if codings:
        body, is_complete = decode_body(sample, codings, MAX_HTML_BYTES)
    is_xml = headers.media_type != "text/html"
    html = parse_html(body, charset, path=path, is_truncated=not is_complete, is_xml=is_xml, wanted=wanted)
    if is_complete or not codings or html.noindex:
        return html
    is_cut = body != sample and len(body) < MAX_HTML_BYTES and not captured.is_truncated
    return None if is_cut or not is_text(body, charset) else html


def _refusal(
    said: str, refresh: str | None, canonicals: Iterable[str], loc: str, is_own_url: Callable[[str], bool]
) -> str:
    """Why a page is not listed: what it says itself, an instant refresh, or another canonical URL; else empty."""
    if said:
        return said
    if refresh is not None and not is_own_url(refresh):
        return f"{REFRESH_REFUSAL}{refresh}"
    for canonical in canonicals:
        if not is_own_url(canonical) and is_page_url(loc, canonical):
            return f"{CANONICAL_REFUSAL}{canonical[:MAX_URL_CHARS]}"
    return ""


def denies_access(status: int, loc: str, target: str | None) -> bool:
    """Whether an answer keeps anonymous visitors out: a refusal, or a redirect to a login page.

    Words such as "account" in the URL of the requested page do not count: `/account` may redirect to `/account/`.
    """
    if 300 <= status < 400:
        return not _sign_in_words(target or "") <= _sign_in_words(loc)
    return status in {401, 402, 403, 407, 511}


def _sign_in_words(url: str) -> set[str]:
    return {match[0].lower() for match in _SIGN_IN_URL.finditer(url)}


# Bodies that the app compressed: decoded up to a length, so that a small body cannot expand without bound


def undecodable_reason(codings: Sequence[str]) -> str:
    """Why a body with these codings cannot be decoded, such as "is compressed with …"; empty if it can."""
    installed = {"gzip": zlib, "deflate": zlib, "zstd": _zstd, "br": _brotli}
    missing = next((coding for coding in codings if installed.get(coding) is None), None)
    return "" if missing is None else f"is compressed with {missing[:20]!r}, for which no decoder is installed"


def decode_body(body: bytes, codings: Sequence[str], limit: int) -> tuple[bytes, bool]:
    """The decoded bytes up to the limit or the end of a cut body, and whether they are complete.

    A coding that is unknown, or of which nothing can be decoded, is passed over, as browsers do with unknown ones: some
    apps name a charset there, or "none".
    """
    is_complete = True
    for coding in reversed(codings):
        try:
            decoded, has_ended = _decoded(body, coding, limit + 1)
        except Exception:  # each decoder raises its own errors
            decoded, has_ended = b"", False
        is_complete = is_complete and has_ended and len(decoded) <= limit
        body = (decoded if decoded or has_ended else body)[:limit]
    return body, is_complete


def _decoded(body: bytes, coding: str, limit: int) -> tuple[bytes, bool]:
    """The decoded bytes up to the limit, and whether the compressed stream has ended."""
    if coding == "br":
        decompressor, decoded = _brotli.Decompressor(), b""
        for start in range(0, len(body), _BROTLI_PIECE_BYTES):
            decoded += decompressor.process(body[start : start + _BROTLI_PIECE_BYTES])
            if len(decoded) >= limit:
                break
        return decoded[:limit], decompressor.is_finished()
    if coding == "zstd":
        stream = _zstd.ZstdDecompressor()
    elif coding == "gzip":
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    elif coding == "deflate":
        # The zlib format, or the raw deflate stream that some servers send (RFC 9110, section 8.4.1.2).
        is_raw = len(body) < 2 or body[0] & 15 != 8 or (body[0] << 8 | body[1]) % 31 != 0
        stream = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS)
    else:
        raise LookupError(coding)
    return stream.decompress(body, limit), stream.eof
