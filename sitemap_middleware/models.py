"""What everything above passes around: plain, frozen values, and no behaviour but their own arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, NamedTuple, NewType, Protocol

from .history import History

Changefreq = Literal["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"]

CHANGEFREQS: Final[tuple[Changefreq, ...]] = (
    "always",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "yearly",
    "never",
)
"""The values of `<changefreq>` (Sitemap 0.9, "XML tag definitions")."""

Lastmod = date | Callable[[], date | str | None]
"""What a developer may give as lastmod: a date, a datetime (naive means UTC), or a callable that returns one."""

Headers = Sequence[tuple[str, str]]
"""Header fields as pairs, for one name may stand twice."""

RawHeaders = Sequence[tuple[str, str]] | Sequence[tuple[bytes, bytes]]
"""Header fields as an app gave them: WSGI's text or ASGI's bytes, names in any case."""

Context = AbstractContextManager[object] | AbstractAsyncContextManager[object]
"""What an app's own code expects to be run in: Flask's application context, Quart's."""


StoreKey = NewType("StoreKey", str)
"""The name of a site in a store: its base URL, or one name for all hosts of a development machine."""

BaseURL = NewType("BaseURL", str)
"""What every loc of a sitemap begins with: scheme, host and root path, without a slash at the end."""


@dataclass(frozen=True, slots=True)
class Site:
    """Scheme, host and root path: what a sitemap is about. Pages of one never show in another."""

    scheme: str
    host: str
    root: str = ""
    loopback: bool = False
    routed: str | None = None
    """The host as the URL map names it, where the app has routes of its own for just this one."""

    base_url: BaseURL = field(init=False, compare=False)
    """What every loc of this site begins with; ASCII, without a slash at the end."""
    store_key: StoreKey = field(init=False, compare=False)
    """The name of this site in a store. A development machine has many names and is one site a port."""

    def __post_init__(self) -> None:
        base = BaseURL(f"{self.scheme}://{self.host}{self.root}")
        _, colon, port = self.host.rpartition(":")
        port = port if colon and port.isdigit() else self.scheme
        object.__setattr__(self, "base_url", base)
        object.__setattr__(
            self, "store_key", StoreKey(f"loopback:{port}/{self.routed or ''}{self.root}" if self.loopback else base)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """What `@sitemap(values=...)` was given; one and the same for all routes of its view."""

    source: Any
    """An iterable, sync or async, or a callable that returns one."""
    place: str
    """Where that was written."""


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """What the decorator says of a route. None everywhere means: nothing was said."""

    priority: float | None = None
    changefreq: Changefreq | Literal["auto"] | None = None
    lastmod: Lastmod | None = None
    exclude: bool | None = None
    learn: bool | None = None
    values: Provider | None = None


class PathBuilder(Protocol):
    """The app's own router, asked about one route with parameters. Paths are decoded, below the root."""

    @property
    def names(self) -> Collection[str]:
        """The parameters that it needs."""

    def build(self, params: Mapping[str, Any]) -> str:
        """The path of these parameters, which leads back to the route; an exception that says why there is none."""

    def matches(self, path: str) -> bool:
        """Whether the app hands this path to the route."""

    def context(self) -> Context | None:
        """A new context of the app it is a route of, where the app's code expects one."""


class HiddenReason(NamedTuple):
    """Why a route is not listed before a response shows that it is a page."""

    text: str
    """In words that follow "it"."""
    is_declared: bool = False
    """Whether the route declares a response that is not a page, such as JSON or a redirect."""


class Route(NamedTuple):
    """One rule of the app's URL map that answers GET. A tuple, since a map may have tens of thousands of them."""

    path: str
    """The decoded path of a static route; the template, as the framework writes it, of any other."""
    endpoint: str
    static: bool = True
    host: str | None = None
    """The one host it answers on; None for the site's own."""
    settings: RouteSettings = RouteSettings()
    hidden: HiddenReason | None = None
    """Why it is not listed before a response shows that it is a page."""
    internal: str | None = None
    """Why it is not listed even when seen: the framework's own pages, not the site's."""
    modified: int | None = None
    """POSIX seconds: the modification time of the file behind it, where it serves one."""
    not_learned_reason: str | None = None
    """Why its pages are not learned, although what its view belongs to says so; in words that follow "it"."""
    shadowed_by: str | None = None
    """The route that takes its GET requests, because the app comes to that one first. Then it answers none itself."""
    builder: PathBuilder | None = None
    """Where its mark has values: what makes paths of them. Not looked at where routes are compared."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Route) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in zip(self._fields[:-1], self, strict=False))
        return f"Route({', '.join(said)})"


class UnconfirmedAnswer(NamedTuple):
    """An answer that may have to do with the visitor alone, and so counts only once it is confirmed."""

    at: int
    """POSIX seconds."""
    status: int
    visitor: int
    """32 bits of the User-Agent, or of the language: nothing else is kept of who asked."""


class Page(NamedTuple):
    """All that is known of one URL, folded from its observations."""

    path: str
    route: str
    first_seen: int
    last_seen: int
    """When the latest evidence was seen, which is what follows down to `modified`."""
    status: int
    media_type: str = ""
    noindex: bool = False
    private: bool = False
    obstacle: str = ""
    expires: int | None = None
    canonical: str | None = None
    modified: int | None = None
    last_modified_history: History = ()
    """Every Last-Modified it bore of late, and when it bore it."""
    read_at: int = 0
    """When its HTML was last read, which is what follows down to `unread_reason`; 0 for never."""
    html_noindex: bool = False
    html_canonical: str | None = None
    stated_date: str | None = None
    html_obstacle: str = ""
    html_expires: int | None = None
    unread_reason: str = ""
    """Why its content, or all of its HTML, could not be read, in words that follow "it"; empty if it was."""
    content_history: History = ()
    """Every digest of its content of late, and when it was seen."""
    stated_date_history: History = ()
    """Every date that it stated of late, in POSIX seconds, and when it stated it."""
    learned: bool = False
    """Whether it is known from traffic alone. Such pages have a cap, and are forgotten in time."""
    is_unconfirmed: bool = False
    """Whether even its latest evidence may have to do with the visitor alone: nothing better was ever seen."""
    unconfirmed_answers: tuple[UnconfirmedAnswer, ...] = ()
    """What it answered since its latest evidence that may have to do with the visitor alone."""


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How many pages learned from traffic are kept at most: strangers can make up any number of paths."""

    site: int = 1_000_000
    route: int = 100_000
    """Of one route or pattern, so that no one of them crowds out the others."""


class MergeResult(NamedTuple):
    """What came of a batch of observations."""

    changed: int
    """Pages that are new, or of which there is news."""
    refused: int
    """New pages for which the caps leave no room."""
    new_paths: tuple[str, ...] = ()
    """The paths of pages whose first content was seen, and had not been seen twice before."""
    new: tuple[str, ...] = ()
    """The paths of those that say something else than before, likewise."""
    conflicting: tuple[str, ...] = ()
    """The paths of good pages that were seen to answer something else, which our own request can settle."""


class SitemapUrl(NamedTuple):
    """One `<url>`: texts as they are written, not yet XML-escaped."""

    loc: str
    lastmod: str | None = None
    changefreq: Changefreq | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a URL is listed or not, and where its lastmod comes from, and its changefreq where that is inferred.

    `str()` of it is for people.
    """

    path: str
    loc: str | None
    listed: bool
    reason: str
    entry: SitemapUrl | None = None
    lastmod_source: str | None = None
    route: Route | None = None
    page: Page | None = None
    changefreq_source: str | None = None
    skipped: tuple[str, ...] = ()
    """Items of its route's values that were left out, and why: how many, and the first few."""
    ignored: str | None = None
    """Which requests did not count as evidence since the process began, if that may be why nothing is known."""

    note: str | None = None
    """What else keeps crawlers from the entry."""

    def __str__(self) -> str:
        lines = [f"{self.path} is {'listed' if self.listed else 'not listed'}: {self.reason}"]
        if self.loc:
            lines.append(f"loc: {self.loc}")
        if self.lastmod_source:
            lastmod = self.entry.lastmod if self.entry and self.entry.lastmod else "none"
            lines.append(f"lastmod: {lastmod} ({self.lastmod_source})")
        if self.changefreq_source:
            word = self.entry.changefreq if self.entry and self.entry.changefreq else "none"
            lines.append(f"changefreq: {word} ({self.changefreq_source})")
        if self.route:
            lines.append(f"route: {self.route.path} ({self.route.endpoint})")
        lines += [f"values: {skipped}" for skipped in self.skipped]
        if self.ignored:
            lines.append(f"ignored: {self.ignored}")
        if self.note:
            lines.append(f"note: {self.note}")
        return "\n".join(lines)
