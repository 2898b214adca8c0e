"""What a response says about its page, as parsed: `Observation`, and of its HTML `HtmlFacts`."""

from __future__ import annotations

from typing import Final, NamedTuple

INDEXABLE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Media types listed by default. Plain text is left out: it is mostly robots.txt and health checks."""

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
"""Media types of pages that say things about themselves: in robots meta tags, for instance."""

MAX_DELAY_SECONDS: Final = 6 * 60 * 60
"""For how long a response may wait for the store and still show when the page had its content."""


class HtmlFacts(NamedTuple):
    """What one reading of a page's HTML says. Its URLs are absolute or relative to the page, as the HTML has them."""

    digest: int | None
    """A signed 64-bit digest of the content (see `content_digest`), or `value_history.VOLATILE`.

    None if the content could not be read completely: the digest of a part would change with what surrounds it.
    """
    noindex: bool = False
    canonical: str | None = None
    """The canonical URL it names; None if it names several. Of an `Observation`: None if that is the page itself."""
    stated_date: str | None = None
    """When the page says it was modified: a W3C date, or a W3C datetime in UTC."""
    instant_refresh: str | None = None
    """The target of an instant refresh. Of an `Observation`: None if that is the page itself."""
    expires_at: int | None = None
    """The unavailable_after of its robots meta tag, in POSIX seconds."""
    unread_reason: str = ""
    """Why its content was not read completely, such as "has more than 50,000 tags"; empty if it was."""
    has_head: bool = True
    """Whether its head was read. If not, all fields but `unread_reason` are meaningless."""
    without_path: int = 0
    """A digest of the content without the words of the page's own path; 0 if unknown."""

    @property
    def refusal(self) -> str:
        """Why the HTML of an `Observation` does not let its page be listed; empty if it does."""
        if self.noindex:
            return "its robots meta tag says noindex"
        return refresh_refusal(self.instant_refresh) or canonical_refusal(self.canonical)


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
    """Why its headers do not let the page be listed, such as "its X-Robots-Tag says noindex"; empty if they do."""
    expires_at: int | None = None
    """The unavailable_after of its X-Robots-Tag, in POSIX seconds."""
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
    is_unusual: bool = False
    """Whether the request carried headers that this site's requests usually do not, and that the app may believe."""
    listed_types: frozenset[str] = INDEXABLE_TYPES
    """The media types that the site lists: an answer of one of them is good."""
    is_unread: bool = False
    """Whether it is an HTML page whose head could have been read, and was not: the HTML may say noindex."""


_CANONICAL_REFUSAL: Final = "its canonical URL is another: "
_REFRESH_REFUSAL: Final = "it leads to another page at once: "


def refresh_refusal(target: str | None) -> str:
    """Why a page with an instant refresh, which search engines treat as a redirect, is not listed; empty if it is."""
    return "" if target is None else f"{_REFRESH_REFUSAL}{target}"


def canonical_refusal(canonical: str | None) -> str:
    """Why a page that names another URL as canonical (RFC 6596) is not listed; empty if it is."""
    return "" if canonical is None else f"{_CANONICAL_REFUSAL}{canonical}"


def refusal_kind(refusal: str) -> str:
    """The refusal without the URL that it names."""
    starts = [start for start in (_CANONICAL_REFUSAL, _REFRESH_REFUSAL) if refusal.startswith(start)]
    return starts[0].removesuffix(": ") if starts else refusal


def refused_canonical(refusal: str) -> str | None:
    """The other URL that a page with this refusal names as canonical; None if that is not the reason."""
    return refusal.removeprefix(_CANONICAL_REFUSAL) if refusal.startswith(_CANONICAL_REFUSAL) else None


def at_merge(observation: Observation, now: int) -> Observation:
    """The observation as it is merged at a time: none is later than that.

    If it is dated long before, the worker's clock is behind the store's, or the store could not be reached. A worker
    whose clock is months behind would show new content at a time when the page had another, and the page would seem to
    alternate for months. So such an observation decides whether the page is listed, but has no content and no dates.

    Args:
        observation: what a response says.
        now: the store's time, in POSIX seconds.
    """
    if observation.at >= now - MAX_DELAY_SECONDS:
        return observation._replace(at=min(observation.at, now))
    html = observation.html
    if html is not None:
        html = html._replace(digest=None, stated_date=None)
    return observation._replace(html=html, last_modified=None)
