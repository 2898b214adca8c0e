"""A page's response as captured, before it is parsed into an `evidence.observations.Observation`."""

from __future__ import annotations

from typing import Final

from .models import RawHeaders, RoutingHeaders, Site

_TRANSIENT_STATUSES: Final = frozenset({304, 408, 425, 429})
"""Statuses below 500 that say nothing about the page: not modified, or a problem that passes."""

OBSERVED_STATUSES: Final = frozenset(range(200, 500)) - _TRANSIENT_STATUSES
"""Statuses of responses that say something about their page."""

MAX_HTML_BYTES: Final = 640 * 1024
"""A larger body is not read completely. A body of this size takes about 50 ms."""
KEPT_BODY_BYTES: Final = 256 * 1024
"""Bytes kept of a larger body."""


class CapturedResponse:
    """One response as it passed. Created on the request path, parsed later on the background thread."""

    __slots__ = (
        "at",
        "body",
        "buffer_key",
        "file_path",
        "headers",
        "host",
        "is_foreign_host",
        "is_probe",
        "is_readable",
        "is_truncated",
        "is_volatile",
        "page_key",
        "path",
        "routing_headers",
        "site",
        "status",
    )

    def __init__(
        self,
        site: Site,
        path: str,
        *,
        at: float,
        status: int,
        headers: RawHeaders = (),
        body: bytes | None = None,
        is_probe: bool = False,
        host: str | bytes = "",
        is_foreign_host: bool = False,
        is_truncated: bool = False,
    ) -> None:
        self.site: Site = site
        self.path: str = path
        self.page_key: tuple[str, str] = (site.store_key, path)
        """Identifies the page among those of all sites."""
        self.buffer_key: tuple[str, ...] = self.page_key
        """Identifies the response among those that wait in the buffer. `ResponseBuffer.record` sets it."""
        self.at: float = at
        self.status: int = status
        self.headers: RawHeaders = headers
        self.body: bytes | None = body
        """The body, if it was sampled."""
        self.file_path: str | None = None
        """The file that the server sends as the body, if it is to be read."""
        self.is_truncated: bool = is_truncated
        """Whether `body` is only the beginning of a longer body."""
        self.is_readable: bool = True
        """Whether the body could be read, if it had been sampled. Not so if the server sends it in a way of its own."""
        self.is_volatile: bool = False
        """Whether the content differed a few seconds earlier, without an edit."""
        self.is_probe: bool = is_probe
        """Whether the prober sent the request. Such a request states no language, device or account."""
        self.host: str | bytes = host
        """The request's Host as sent. Any client can choose it, so it is compared but never published."""
        self.is_foreign_host: bool = is_foreign_host
        """Whether `host` is not the site's own."""
        self.routing_headers: RoutingHeaders = ()
        """The request's headers that an app may believe to state the requested URL."""

    @property
    def has_other_host(self) -> bool:
        """Whether `host` is not literally the site's host. An app may answer ``www.`` or another port with 404."""
        host = self.host
        return self.is_foreign_host or (host if isinstance(host, str) else host.decode("latin-1")) not in {
            "",
            self.site.host,
        }
