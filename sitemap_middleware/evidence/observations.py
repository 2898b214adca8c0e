"""What a response says about its page, parsed and checked: `Observation`."""

from __future__ import annotations

from typing import Final, NamedTuple

INDEXABLE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Media types listed by default. Plain text is left out: it is mostly robots.txt and health checks."""

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
"""Media types of pages that say things about themselves: in robots meta tags, for instance."""

MAX_DELAY_SECONDS: Final = 6 * 60 * 60
"""For how long a response may wait for the store and still show when the page had its content."""

_CONCLUSIVE_STATUSES: Final = frozenset({300, 301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410, 451})
"""Statuses other than 2xx that describe the page rather than the request."""

NOINDEX_HEADER_REFUSAL: Final = "its X-Robots-Tag says noindex"
NOINDEX_META_REFUSAL: Final = "its robots meta tag says noindex"
CANONICAL_REFUSAL: Final = "its canonical URL is another: "
REFRESH_REFUSAL: Final = "it leads to another page at once: "
"""How refusals begin that end with the URL: of its canonical link (RFC 6596), or of an instant refresh, which search
engines treat as a redirect."""


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
    refusal: str = ""
    """Why the page is not to be listed, such as "its X-Robots-Tag says noindex"; empty if it may be."""
    expires_at: int | None = None
    """Its unavailable_after, in POSIX seconds."""
    last_modified: int | None = None
    """A plausible Last-Modified, in POSIX seconds; see `dates.parse_last_modified`."""
    is_read: bool = False
    """Whether the head of its HTML was read. If not, the HTML may say more."""
    unread_reason: str = ""
    """Why its HTML was not read completely, such as "nests too many elements"; empty if it was, or not sampled."""
    digest: int | None = None
    """A signed 64-bit digest of the content (see `content_digest`), or `value_history.VOLATILE`; None if unknown."""
    without_path: int = 0
    """A digest of the content without the words of the page's own path; 0 if unknown."""
    stated_date: str | None = None
    """When the page says it was modified: a W3C date, or a W3C datetime in UTC."""
    links: str = ""
    """The `path_digest` of each path of its own site that it links to, with blanks between them."""
    shown: str = ""
    """Its images and its versions in other languages, if options ask for them (see `images_and_versions`)."""
    learned: bool = False
    """Whether the page is known from traffic only: its route has parameters, so a client may have invented the path."""
    may_be_provided: bool = False
    """Whether its route's `values` may name it. If so, evidence against listing it is stored, too."""
    is_probe: bool = False
    """Whether the prober sent the request."""
    denies_access: bool = False
    """Whether it denies access: a status such as 401 or 403, or a redirect to a login page."""
    is_unusual: bool = False
    """Whether the app may have answered for another page or site, so that its content is not that of the page."""
    listed_types: frozenset[str] = INDEXABLE_TYPES
    """The media types that the site lists: an answer of one of them is good."""

    @property
    def may_be_listed(self) -> bool:
        """Whether an answer, as far as it was read, lets its page be listed."""
        is_good = self.status == 200 and self.media_type in self.listed_types
        return is_good and not self.refusal and self.expires_at is None

    @property
    def is_unread(self) -> bool:
        """Whether it is an HTML page whose head could have been read, and was not: the HTML may say noindex."""
        return self.status == 200 and self.media_type in HTML_TYPES and not (self.is_read or self.unread_reason)

    def undated(self) -> Observation:
        """The observation without its content and its dates."""
        return self._replace(digest=None, stated_date=None, last_modified=None)


def is_conclusive(status: int) -> bool:
    """Whether a status describes the page whatever the request was.

    Any request can be written so that it gets another 4xx (400, 406, 422 ...). These count only while nothing better
    is known, as for a route that needs a query.
    """
    return 200 <= status < 300 or status in _CONCLUSIVE_STATUSES


def at_merge(observation: Observation, now: int) -> Observation:
    """The observation as it is merged at a time of the store: none is later than that.

    If it is dated long before, the worker's clock is behind the store's, or the store could not be reached. A worker
    whose clock is months behind would show new content at a time when the page had another, and the page would seem to
    alternate for months. So such an observation decides whether the page is listed, but has no content and no dates.
    """
    if observation.at >= now - MAX_DELAY_SECONDS:
        return observation._replace(at=min(observation.at, now))
    return observation.undated()


def refusal_kind(refusal: str) -> str:
    """The refusal without the URL that it names."""
    starts = [start for start in (CANONICAL_REFUSAL, REFRESH_REFUSAL) if refusal.startswith(start)]
    return starts[0].removesuffix(": ") if starts else refusal
