"""What everything above passes around: plain, frozen values, and no behaviour but their own arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, NamedTuple, Protocol

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


@dataclass(frozen=True, slots=True)
class Site:
    """Scheme, host and root path: what a sitemap is about. Pages of one never show in another."""

    scheme: str
    host: str
    root: str = ""
    loopback: bool = False
    routed: str | None = None
    """The host as the URL map names it, where the app has routes of its own for just this one."""

    base_url: str = field(init=False, compare=False)
    """What every loc of this site begins with; ASCII, without a slash at the end."""
    store_key: str = field(init=False, compare=False)
    """The name of this site in a store. A development machine has many names and is one site a port."""

    def __post_init__(self) -> None:
        base = f"{self.scheme}://{self.host}{self.root}"
        _, colon, port = self.host.rpartition(":")
        port = port if colon and port.isdigit() else self.scheme
        object.__setattr__(self, "base_url", base)
        object.__setattr__(
            self, "store_key", f"loopback:{port}/{self.routed or ''}{self.root}" if self.loopback else base
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


class Route(NamedTuple):
    """One rule of the app's URL map that answers GET. A tuple, since a map may have tens of thousands of them."""

    path: str
    """The decoded path of a static route; the template, as the framework writes it, of any other."""
    endpoint: str
    static: bool = True
    host: str | None = None
    """The one host it answers on; None for the site's own."""
    settings: RouteSettings = RouteSettings()
    hidden: str | None = None
    """Why it is not listed before it was seen, where the URL map says so (a declared JSON response, say)."""
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
        self.page_key = (site.store_key, path)
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
    stated: str | None = None
    """When the page says it was modified, as a W3C date or datetime in UTC."""
    obstacle: str = ""
    """Why the page can never be listed, in words that follow "it": an instant refresh to another page."""
    expires: int | None = None
    """POSIX seconds: when its robots meta says that it leaves search engines."""
    unread: str = ""
    """Why its content was not read, in words that follow "it"."""
    head: bool = True
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
    reading: HtmlFacts | None = None
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
    moments: History = ()
    """Every Last-Modified it bore of late, and when it bore it."""
    read_at: int = 0
    """When its HTML was last read, which is what follows down to `unread`; 0 for never."""
    html_noindex: bool = False
    html_canonical: str | None = None
    stated: str | None = None
    html_obstacle: str = ""
    html_expires: int | None = None
    unread: str = ""
    """Why its content, or all of its HTML, could not be read, in words that follow "it"; empty if it was."""
    contents: History = ()
    """Every digest of its content of late, and when it was seen."""
    statements: History = ()
    """Every date that it stated of late, in POSIX seconds, and when it stated it."""
    learned: bool = False
    """Whether it is known from traffic alone. Such pages have a cap, and are forgotten in time."""
    doubtful: bool = False
    """Whether even its latest evidence may have to do with the visitor alone: nothing better was ever seen."""
    contrary: tuple[UnconfirmedAnswer, ...] = ()
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


class Verdict(NamedTuple):
    """Listed, or not, and the reason in words."""

    listed: bool
    reason: str
    unverified: bool = False
    """Whether the app is to be asked for it: nothing was seen of it yet."""


class LastmodResult(NamedTuple):
    """A lastmod as it will be written, and what it rests on; no text where there is nothing to rest on."""

    text: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ChangefreqResult:
    """A changefreq that was inferred, and what it rests on; no word where nothing can be told, and why."""

    word: Changefreq | None
    source: str


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
