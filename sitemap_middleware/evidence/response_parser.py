"""Parses a captured response into an observation, and the HTML of a sampled body with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit

from ..http.captured_response import MAX_HTML_BYTES, OBSERVED_STATUSES, CapturedResponse
from ..http.urls import is_page_url, is_same_page, is_same_path
from ..util import BoundedCache
from . import html_facts
from .body_decoding import decode_body, undecodable_reason
from .dates import parse_last_modified
from .delisting_confirmation import denies_access
from .observations import HTML_TYPES, INDEXABLE_TYPES, HtmlFacts, Observation, canonical_refusal, refresh_refusal
from .response_headers import ResponseHeaders

MAX_CACHED_HTML: Final = 4096
"""Parsed bodies cached at most; half as many are always kept."""

UNREADABLE_FILE_REASON: Final = "was sent as a file that could not be read"

_MAX_URL_CHARS: Final = 2048


class ResponseParser:
    """Parses captured responses. Bodies are cached by a digest of their bytes, so an unchanged page is parsed once."""

    def __init__(self, listed_types: frozenset[str] = INDEXABLE_TYPES) -> None:
        """`listed_types` are the media types that the site lists."""
        self._listed_types = listed_types
        self._html_cache = BoundedCache[bytes, HtmlFacts](MAX_CACHED_HTML)

    def parse(
        self,
        captured: CapturedResponse,
        path: str,
        route: str,
        loc: str,
        *,
        learned: bool = False,
        may_be_provided: bool = False,
    ) -> Observation | None:
        """What a response says about the page at `loc`, or None if it says nothing.

        A transient status says nothing. Neither does a redirect to the same path on another scheme or host, which is
        usually a redirect to the canonical ones.
        """
        if captured.status not in OBSERVED_STATUSES:
            return None
        headers = ResponseHeaders(captured.headers)
        at = int(captured.at)
        target = headers.get_last("location")
        if 300 <= captured.status < 400 and target and is_same_path(loc, target):
            return None
        is_own_url = partial(is_same_page, captured.site, loc, request_host=captured.host)
        media_type = headers.media_type
        html = self._html_facts(captured, headers, media_type, loc, is_own_url)
        refresh = headers.instant_refresh
        if refresh is not None and is_own_url(refresh):
            refresh = None
        return Observation(
            path=path,
            route=route,
            at=at,
            status=captured.status,
            media_type=media_type,
            refusal=headers.refusal
            or refresh_refusal(refresh)
            or canonical_refusal(_canonical_elsewhere(headers, loc, is_own_url)),
            expires_at=headers.robots.expires_at,
            last_modified=parse_last_modified(headers.get_all("last-modified"), at),
            html=html,
            learned=learned,
            may_be_provided=may_be_provided,
            is_probe=captured.is_probe,
            denies_access=denies_access(captured.status, loc, target),
            listed_types=self._listed_types,
            is_unread=(html is None and captured.status == 200 and media_type in HTML_TYPES and captured.is_readable),
        )

    def _html_facts(
        self,
        captured: CapturedResponse,
        headers: ResponseHeaders,
        media_type: str,
        loc: str,
        is_own_url: Callable[[str], bool],
    ) -> HtmlFacts | None:
        """What the page's HTML says; None if the response is no HTML page, or its body was not sampled or is broken."""
        if captured.status != 200 or media_type not in HTML_TYPES:  # probes keep bodies of any type
            return None
        undecodable = undecodable_reason(headers.codings)
        if captured.body is None or headers.has_other_body:
            is_file = headers.has_other_body or not captured.is_readable
            reason = undecodable or UNREADABLE_FILE_REASON
            return HtmlFacts(None, unread_reason=reason, has_head=False) if is_file else None
        facts = self._parse_html(captured.body, headers, urlsplit(loc).path, is_truncated=captured.is_truncated)
        if not facts.has_head:
            return HtmlFacts(None, unread_reason=undecodable, has_head=False) if undecodable else None
        if undecodable:
            facts = facts._replace(unread_reason=undecodable)
        canonical, refresh = facts.canonical, facts.instant_refresh
        if canonical is not None and (is_own_url(canonical) or not is_page_url(loc, canonical)):
            canonical = None
        if refresh is not None and is_own_url(refresh):
            refresh = None
        return facts._replace(canonical=canonical, instant_refresh=refresh)

    def _parse_html(self, body: bytes, headers: ResponseHeaders, path: str = "", *, is_truncated: bool) -> HtmlFacts:
        codings, charset, is_xml = headers.codings, headers.charset, headers.media_type != "text/html"
        # The same bytes mean something else with another charset, coding, type, length or path.
        context = repr((charset, codings, is_truncated, is_xml, path)).encode()
        key = blake2b(body, digest_size=16, key=blake2b(context, digest_size=16).digest()).digest()
        facts = self._html_cache.get(key)
        if facts is None:
            is_complete = not is_truncated
            if codings:
                body, is_complete = decode_body(body, codings, MAX_HTML_BYTES)
            facts = html_facts.parse_html(body, charset, path=path, is_truncated=not is_complete, is_xml=is_xml)
            if codings and not is_complete:
                is_cut = not is_truncated and len(body) < MAX_HTML_BYTES
                is_read = html_facts.has_whole_head if is_cut else html_facts.is_text
                if not (facts.noindex or is_read(body, charset)):
                    facts = facts._replace(has_head=False)
                elif is_cut:
                    facts = facts._replace(unread_reason=f"is not whole as {', '.join(codings)[:20]}")
            self._html_cache.put(key, facts)
        return facts


def _canonical_elsewhere(headers: ResponseHeaders, loc: str, is_own_url: Callable[[str], bool]) -> str | None:
    """The other page that a Link header names as canonical (RFC 6596).

    A link with an anchor is about the anchor's page (RFC 8288, section 3.2), which may not be this one.
    """
    for target, anchor in headers.canonical:
        if (anchor is None or is_own_url(anchor)) and not is_own_url(target) and is_page_url(loc, target):
            return target[:_MAX_URL_CHARS]
    return None
