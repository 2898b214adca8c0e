"""What a page's response says: as it passed (`CapturedResponse`), and parsed (`Observation`, `HtmlFacts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .models import RawHeaders, Site


class CapturedResponse:
    """One response as it went by, raw: made on the request path, read later, off it."""

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
        probed: bool = False,
        host: str | bytes = "",
        foreign: bool = False,
        cut: bool = False,
    ) -> None:
        self.site = site
        self.path = path
        self.page_key: tuple[str, str] = (site.store_key, path)
        """The page it is of, among those of all sites."""
        self.at = at
        self.status = status
        self.headers = headers
        self.body = body
        """The body, where it was sampled."""
        self.is_truncated = cut
        """Whether that is the beginning of a longer body."""
        self.is_volatile = False
        """Whether the page was seen to say something else a few seconds before."""
        self.is_probe = probed
        """Whether this is the answer to a request of our own, which has no language, no device and no account."""
        self.host = host
        """The request's Host as it came. It is hostile: it is compared, and never published."""
        self.is_foreign_host = foreign
        """Whether that is not the site's own."""
        self.visitor = 0
        """A short hash that tells visitors apart, if what was answered may depend on the visitor; see `UnconfirmedAnswer`."""  # noqa: E501


@dataclass(frozen=True, slots=True)
class HtmlFacts:
    """What a page's HTML says."""

    digest: int | None
    """64 bits, signed: a sum over what a reader sees, words, and the targets of links and images, of the main content.
    Or `history.VOLATILE`. None if the content could not be read as a whole."""
    noindex: bool = False
    canonical: str | None = None
    """The URL it names as canonical; in an observation, only where that is not its own."""
    stated_date: str | None = None
    """When the page says it was modified, as a W3C date or datetime in UTC."""
    obstacle: str = ""
    """Why the page can never be listed, in words that follow "it": an instant refresh to another page."""
    expires: int | None = None
    """POSIX seconds: when its robots meta says that it leaves search engines."""
    unread_reason: str = ""
    """Why its content was not read, in words that follow "it"."""
    has_head: bool = True
    """Whether its head was read. If not, all this says is why."""


class Observation(NamedTuple):
    """What one response says of its page, parsed and checked."""

    path: str
    """Percent-encoded, below the site's root: the page's name in its site."""
    route: str
    """The route or pattern it belongs to."""
    at: int
    """POSIX seconds."""
    status: int
    media_type: str = ""
    noindex: bool = False
    private: bool = False
    obstacle: str = ""
    """Why a page with such headers can never be listed, in words that follow "it"."""
    expires: int | None = None
    """POSIX seconds: when an X-Robots-Tag says that it leaves search engines."""
    canonical: str | None = None
    """The URL the page names as canonical, where that is not its own."""
    modified: int | None = None
    """A Last-Modified that can be true by itself: parsed, after 1990, not in the future."""
    html: HtmlFacts | None = None
    """What its HTML says, where the body was sampled."""
    learned: bool = False
    """Whether only traffic speaks of it: its route has parameters, so that a stranger may have made up its path."""
    enumerable: bool = False
    """Whether its route's values name it, or may: that it is not to be listed is then worth knowing, too."""
    probed: bool = False
    """Whether this is the answer to a request of our own."""
    forbids: bool = False
    """Whether it keeps a stranger out: 401, 403 and the like, or a redirect to a page for signing in."""
    visitor: int = 0
    """As `CapturedResponse.visitor`."""
    merged_at: int = 0
    """When it is merged into its page, by the store's clock: evidence later than that is false. 0: not known."""
