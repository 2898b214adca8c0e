"""A page's response: as captured (`CapturedResponse`), and as parsed (`Observation`, `HtmlFacts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .models import RawHeaders, Site


class CapturedResponse:
    """One response as it passed. Created on the request path, parsed later on the background thread."""

    __slots__ = (
        "at",
        "body",
        "headers",
        "host",
        "is_foreign_host",
        "is_probe",
        "is_truncated",
        "is_volatile",
        "page_key",
        "path",
        "site",
        "status",
        "visitor",
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
        foreign: bool = False,
        cut: bool = False,
    ) -> None:
        self.site = site
        self.path = path
        self.page_key: tuple[str, str] = (site.store_key, path)
        """Identifies the page among those of all sites."""
        self.at = at
        self.status = status
        self.headers = headers
        self.body = body
        """The body, if it was sampled."""
        self.is_truncated = cut
        """Whether `body` is only the beginning of a longer body."""
        self.is_volatile = False
        """Whether the content differed a few seconds earlier, without an edit."""
        self.is_probe = is_probe
        """Whether the prober sent the request. Such a request states no language, device or account."""
        self.host = host
        """The request's Host as sent. Any client can choose it, so it is compared but never published."""
        self.is_foreign_host = foreign
        """Whether `host` is not the site's own."""
        self.visitor = 0
        """`UnconfirmedAnswer.visitor`, if the answer may depend on the visitor; else 0."""


@dataclass(frozen=True, slots=True)
class HtmlFacts:
    """What one reading of a page's HTML says."""

    digest: int | None
    """A signed 64-bit digest of the content (see `content_digest`), or `history.VOLATILE`. None if the content could
    not be read completely: the digest of a part would change with what surrounds it."""
    noindex: bool = False
    canonical: str | None = None
    """The canonical URL it names, if that is another page."""
    stated_date: str | None = None
    """When the page says it was modified: a W3C date, or a W3C datetime in UTC."""
    obstacle: str = ""
    """Why the page cannot be listed, as a phrase that follows "it": an instant refresh to another page."""
    expires_at: int | None = None
    """The unavailable_after of its robots meta tag, in POSIX seconds."""
    unread_reason: str = ""
    """Why its content was not read completely, as a phrase that follows "it"; empty if it was."""
    has_head: bool = True
    """Whether its head was read. If not, all fields but `unread_reason` are meaningless."""


class Observation(NamedTuple):
    """What one response says about its page, parsed and checked."""

    path: str
    """Percent-encoded, without the site's root path. Identifies the page within its site."""
    route: str
    """The route or pattern that it belongs to."""
    at: int
    """POSIX seconds."""
    status: int
    media_type: str = ""
    noindex: bool = False
    private: bool = False
    obstacle: str = ""
    """Why a page with such headers cannot be listed, as a phrase that follows "it"."""
    expires_at: int | None = None
    """The unavailable_after of its X-Robots-Tag, in POSIX seconds."""
    canonical: str | None = None
    """The canonical URL that its Link header names, if that is another page."""
    last_modified: int | None = None
    """A plausible Last-Modified, in POSIX seconds; see `dates.parse_last_modified`."""
    html: HtmlFacts | None = None
    """What its HTML says, if the body was sampled."""
    learned: bool = False
    """Whether the page is known from traffic only: its route has parameters, so a client may have invented the path."""
    may_be_provided: bool = False
    """Whether its route's `values` may name it. If so, evidence against listing it is stored, too."""
    is_probe: bool = False
    """Whether the prober sent the request."""
    denies_access: bool = False
    """Whether it denies access: a status such as 401 or 403, or a redirect to a login page."""
    visitor: int = 0
    """As `CapturedResponse.visitor`."""
    merged_at: int = 0
    """When it is merged, by the store's clock; 0 if unknown. Later evidence comes from a clock that is ahead."""
