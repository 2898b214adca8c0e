"""Observations: one raw response, read. Where a page's HTML was sampled, that is read with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Final

from ..bounded_cache import BoundedCache
from ..dates import parse_last_modified
from ..history import VOLATILE
from ..observations import CapturedResponse, HtmlFacts, Observation
from ..urls import is_page_url, is_same_page, is_same_path
from . import html_parser
from .body_decoding import decode_body, undecodable_reason
from .confirmation import denies_access
from .response_headers import ResponseHeaders

MAX_CACHED_HTML: Final = 4096
"""Readings remembered at most, by a digest of the bytes they are of; half as many always are."""

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})

_TRANSIENT_STATUSES: Final = frozenset({304, 408, 425, 429})
"""Statuses that, beside 1xx and 5xx, say nothing of the page: no news, or trouble that passes."""


OBSERVED_STATUSES: Final = frozenset(range(200, 500)) - _TRANSIENT_STATUSES
"""Statuses of answers that say anything of their page."""


class ResponseParser:
    """Reads sightings. Bodies whose bytes were read of late are not parsed again."""

    def __init__(self) -> None:
        self._html_cache = BoundedCache[bytes, html_parser.HtmlMetadata](MAX_CACHED_HTML)

    def parse(
        self,
        sighting: CapturedResponse,
        path: str,
        route: str,
        loc: str,
        *,
        learned: bool = False,
        enumerable: bool = False,
    ) -> Observation | None:
        """What a raw response says of the page at `loc`; None where it says nothing.

        A redirect that only changes scheme or host, to the canonical ones as a rule,
        says nothing of the page, and neither does a status of passing trouble.
        """
        if sighting.status not in OBSERVED_STATUSES:
            return None
        told = ResponseHeaders(sighting.headers)
        at = int(sighting.at)
        target = told.get_last("location")
        if 300 <= sighting.status < 400 and target and is_same_path(loc, target):
            return None
        own = partial(is_same_page, sighting.site, loc, asked=sighting.host)
        reading = self._html_facts(sighting, told, loc, own)
        if reading is not None and sighting.is_volatile:
            reading = replace(reading, digest=VOLATILE)
        tags = told.robots
        return Observation(
            path=path,
            route=route,
            at=at,
            status=sighting.status,
            media_type=told.media_type,
            noindex=tags.noindex,
            private=told.private,
            obstacle=told.obstacle or _refresh_obstacle(own, told.refresh),
            expires=tags.expires_at,
            canonical=_canonical_elsewhere(told, loc, own),
            modified=parse_last_modified(told.get_all("last-modified"), at),
            html=reading,
            learned=learned,
            enumerable=enumerable,
            probed=sighting.is_probe,
            forbids=denies_access(sighting.status, loc, target),
            visitor=sighting.visitor,
        )

    def digest(self, sighting: CapturedResponse) -> int | None:
        """The digest of what a sampled page says; None where it is no HTML that can be read."""
        told = ResponseHeaders(sighting.headers)
        if sighting.body is None or told.media_type not in HTML_TYPES or undecodable_reason(told.codings):
            return None
        return self._html_metadata(sighting.body, told, cut=sighting.is_truncated).digest

    def _html_facts(
        self, sighting: CapturedResponse, told: ResponseHeaders, loc: str, own: Callable[[str], bool]
    ) -> HtmlFacts | None:
        """What the HTML of a page says; None if there is none, or its body was not sampled."""
        if sighting.status != 200 or told.media_type not in HTML_TYPES:  # our own requests have a body, whatever it is
            return None
        if unread := undecodable_reason(told.codings):
            return HtmlFacts(None, unread_reason=unread, has_head=False)
        if sighting.body is None:
            return None
        said = self._html_metadata(sighting.body, told, cut=sighting.is_truncated)
        # Search engines ignore canonical links that contradict each other.
        canonical = said.canonicals[0] if len(said.canonicals) == 1 else None
        return HtmlFacts(
            said.digest,
            said.robots.noindex,
            None if canonical is None or own(canonical) or not is_page_url(loc, canonical) else canonical,
            said.stated_date,
            _refresh_obstacle(own, said.refresh),
            said.robots.expires_at,
            said.unread_reason,
        )

    def _html_metadata(self, body: bytes, told: ResponseHeaders, *, cut: bool) -> html_parser.HtmlMetadata:
        """What a body says. One whose bytes were read of late is not read again."""
        codings, charset = told.codings, told.charset
        how = repr((charset, codings, cut)).encode()
        key = blake2b(body, digest_size=16, key=blake2b(how, digest_size=16).digest()).digest()
        known = self._html_cache.get(key)
        if known is None:
            whole = not cut
            if codings:
                body, whole = decode_body(body, codings, html_parser.MAX_HTML_BYTES)
            known = html_parser.parse_html(body, charset, cut=not whole)
            self._html_cache.put(key, known)
        return known


def _canonical_elsewhere(told: ResponseHeaders, loc: str, own: Callable[[str], bool]) -> str | None:
    """The other page that a Link header names as canonical. A link with an anchor may be about something else."""
    for target, anchor in told.canonical:
        if (anchor is None or own(anchor)) and not own(target) and is_page_url(loc, target):
            return target[:2048]
    return None


def _refresh_obstacle(own: Callable[[str], bool], target: str | None) -> str:
    """The obstacle that a refresh to this URL is, if it is not the page's own."""
    return "" if target is None or own(target) else f"leads to another page at once: {target}"
