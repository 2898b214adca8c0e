"""A page's response as captured, before it is parsed into an `evidence.observations.Observation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..models import Headers, RawHeaders, Site

_TRANSIENT_STATUSES: Final = frozenset({304, 408, 425, 429})
"""Statuses below 500 that say nothing about the page: not modified, or a problem that passes."""

OBSERVED_STATUSES: Final = frozenset(range(200, 500)) - _TRANSIENT_STATUSES
"""Statuses of responses that say something about their page."""

MAX_HTML_BYTES: Final = 640 * 1024
"""A larger body is not read completely. A body of this size takes about 50 ms."""
KEPT_BODY_BYTES: Final = 256 * 1024
"""Bytes kept of a larger body."""


@dataclass(slots=True, eq=False)
class CapturedResponse:
    """One response as it passed. Created on the request path, parsed later on the background thread."""

    site: Site
    path: str
    """Decoded, below the root."""
    at: float
    """When it began, in POSIX seconds."""
    status: int
    headers: RawHeaders = ()
    body: bytes | None = None
    """The body, if it was sampled."""
    is_truncated: bool = False
    """Whether `body` is only the beginning of a longer body."""
    is_readable: bool = True
    """Whether the body could be read, if it had been sampled. Not so if the server sends it in a way of its own."""
    is_probe: bool = False
    """Whether the middleware itself sent the request. Such a request states no language, device or account."""
    host: str = ""
    """The request's Host as sent. Any client can choose it, so it is compared but never published."""
    is_foreign_host: bool = False
    """Whether `host` is not the site's own."""
    routing_headers: Headers = ()
    """The request's headers by which an app may believe that another URL was requested."""

    @property
    def page_key(self) -> tuple[str, str]:
        """Identifies the page among those of all sites. Responses for a foreign Host may not count, so they have one
        apart.
        """
        key = self.site.store_key
        return f"foreign:{key}" if self.is_foreign_host else key, self.path

    @property
    def is_doubtful(self) -> bool:
        """Whether the request named another Host, even ``www.`` or another port, or stated another URL by a header.

        The app may have answered for that.
        """
        has_other_host = self.is_foreign_host or self.host not in {"", self.site.host}
        return not self.is_probe and (has_other_host or bool(self.routing_headers))
