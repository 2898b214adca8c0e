"""Observations: one raw response, read. Where a page's HTML was sampled, that is read with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Final

from ..dates import plausible
from ..history import MOVING
from ..lately import Lately
from ..location import same_page, same_path
from ..model import Observation, Reading, Sighting
from . import html
from .headers import Told

MOST: Final = 4096
"""Readings remembered at most, by a digest of the bytes they are of; half as many always are."""

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})

_PASSING: Final = frozenset({304, 408, 425, 429})
"""Statuses that, beside 1xx and 5xx, say nothing of the page: no news, or trouble that passes."""


TEACHING: Final = frozenset(range(200, 500)) - _PASSING
"""Statuses of answers that say anything of their page."""


class Reader:
    """Reads sightings. Bodies whose bytes were read of late are not parsed again."""

    def __init__(self) -> None:
        self._readings = Lately[bytes, tuple[Reading | None]](MOST)

    def read(
        self,
        sighting: Sighting,
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
        if sighting.status not in TEACHING:
            return None
        told = Told(sighting.headers)
        at = int(sighting.at)
        target = told.last("location")
        if 300 <= sighting.status < 400 and target and same_path(loc, target):
            return None
        reading = None if sighting.body is None else self._reading(sighting.body, told.charset)
        if reading is not None and sighting.moves:
            reading = replace(reading, digest=MOVING)
        own = partial(same_page, sighting.site, loc, asked=sighting.host)
        if reading is not None and reading.canonical is not None and own(reading.canonical):
            reading = replace(reading, canonical=None)
        return Observation(
            path=path,
            route=route,
            at=at,
            status=sighting.status,
            media_type=told.media_type,
            noindex=told.noindex,
            private=told.private,
            canonical=next((link[:2048] for link in told.canonical if not own(link)), None),
            modified=plausible(told.all("last-modified"), at),
            reading=reading,
            learned=learned,
            enumerable=enumerable,
            probed=sighting.probed,
        )

    def digest(self, sighting: Sighting) -> int | None:
        """The digest of what a sampled page says; None where it is no HTML that can be read."""
        told = Told(sighting.headers)
        plain = told.media_type in HTML and not told.last("content-encoding") and sighting.body is not None
        reading = self._reading(sighting.body or b"", told.charset) if plain else None
        return None if reading is None else reading.digest

    def _reading(self, body: bytes, charset: str | None) -> Reading | None:
        key = blake2b(body, digest_size=16, key=(charset or "").encode()).digest()
        known = self._readings.get(key)
        if known is None:
            known = (html.read(body, charset),)
            self._readings.put(key, known)
        return known[0]
