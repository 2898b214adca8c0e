"""Sites, routes, pages and sitemap entries: immutable values that all layers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NewType

from .evidence.value_history import History
from .protocol.value_checks import Changefreq

if TYPE_CHECKING:
    from .protocol.extensions import Extensions, News, Video

Lastmod = date | Callable[[], date | str | None]
"""What a developer may give as lastmod: a date, a datetime (naive means UTC), or a callable that returns one."""

Headers = Sequence[tuple[str, str]]
"""Header fields as pairs, because a name such as Set-Cookie may occur twice."""

RawHeaders = Sequence[tuple[str, str]] | Sequence[tuple[bytes, bytes]]
"""Header fields as the app sent them: text in WSGI, bytes in ASGI; names in any case."""

Context = AbstractContextManager[object] | AbstractAsyncContextManager[object]
"""A context that the app's own code needs to run in, such as Flask's or Quart's application context."""


StoreKey = NewType("StoreKey", str)
"""The name of a site in a store: its base URL, or one name for all hosts of a development machine."""

BaseURL = NewType("BaseURL", str)
"""What every loc of a sitemap begins with: scheme, host and root path, without a slash at the end."""


@dataclass(frozen=True, slots=True)
class Site:
    """Scheme, host and root path. Each site has a sitemap with its own pages only."""

    scheme: str
    host: str
    root: str = ""
    loopback: bool = False
    routed: str | None = None
    """The host as the routes write it, if the app routes this host by itself."""
    asked_as: str | None = field(default=None, compare=False)
    """The Host by which the app is asked for its pages, if it may not know `host`."""

    base_url: BaseURL = field(init=False, compare=False)
    """The beginning of every loc of this site: ASCII, no trailing slash."""
    store_key: StoreKey = field(init=False, compare=False)
    """The name of this site in a store. All loopback hosts, such as localhost and 127.0.0.1, share one per port."""

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
    """The argument of `@sitemap(values=...)`. All routes of a view share one instance."""

    source: Any
    """An iterable, sync or async, or a callable that returns one."""
    place: str
    """Where it was declared, for messages."""
    section: str | None = None
    """The name of its section, if it is given by the option `sections` rather than to a route."""
    takes_base_url: bool = False
    """Whether it is called with the base URL of the site whose pages are wanted."""
    any_route: bool = False
    """Whether its items may be pages of any route, as those of Django's `Sitemap` classes. Until they were read, its
    routes match no path.
    """


class Version(NamedTuple):
    """A page as one of several that are the same in other languages."""

    group: str
    """What is equal for all versions of a page, in 20 hexadecimal digits."""
    code: str
    """Its language, as hreflang writes it."""
    default: str = ""
    """The path, in an entry the URL, of what is for all other languages, if a `Sitemap` of Django's names it."""
    rank: int = 0
    """Of two versions in one language, the lower one counts."""


I18N: Final = "i18n_patterns"
"""The name of the parameter that stands for the language of Django's `i18n_patterns`."""


class RouteSettings(NamedTuple):
    """The arguments of `@sitemap`; None for those not given."""

    priority: float | None = None
    changefreq: Changefreq | Literal["auto"] | None = None
    lastmod: Lastmod | None = None
    exclude: bool | None = None
    learn: bool | None = None
    values: Provider | None = None
    section: str | None = None
    extensions: Extensions | None = None
    """The arguments `images`, `videos`, `news` and `alternates`, if any of them is given."""
    language_parameter: str | None = None
    """Pages that differ only in this parameter are versions of each other: `alternates`, if that is text."""
    version: Version | None = None
    """What a `Sitemap` of Django's says of the page of a static route."""


NO_SETTINGS: Final = RouteSettings()
"""The settings of an undecorated object. Compared by identity."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathBuilder:
    """Builds and matches paths of one route, by the app's own router. Paths are decoded, without the root path."""

    names: frozenset[str]
    """The names of the required parameters."""
    optional: frozenset[str] = frozenset()
    """Those of other parameters that may be given."""
    prefix: str = ""
    """What its paths begin with, if the app is mounted."""
    write: Callable[[Mapping[str, Any]], str]
    """Makes the path for parameters, without the prefix; an exception if it cannot."""
    leads_here: Callable[[str], bool]
    """Whether a path, without the prefix, leads to the route."""
    is_checked: bool = True
    """Whether parameters that are not the route's, and a path that does not lead to it, are refused."""
    context: Callable[[], Context | None] = lambda: None
    """Makes an application context, if the app needs one."""

    def build(self, params: Mapping[str, Any]) -> str:
        """The path for some parameters. Raises an exception, mostly `ValueError`, if they do not fit the route."""
        if not self.is_checked:
            return self.prefix + self.write(params)
        if missing := self.names - params.keys():
            raise ValueError(f"the route's {', '.join(sorted(missing))} is missing")
        if unknown := params.keys() - self.names - self.optional:
            names = ", ".join(sorted(map(str, unknown)))
            raise ValueError(
                f"the route has no parameter {names}: select only its parameters, lastmod, priority and changefreq"
            )
        path = self.write(params)
        if not self.leads_here(path):
            raise ValueError(f"{self.prefix}{path} is not routed to it")
        return self.prefix + path

    def matches(self, path: str) -> bool:
        """Whether a path is one of the route's."""
        return path.startswith(self.prefix) and self.leads_here(path[len(self.prefix) :])

    def except_taken(self, is_free: Callable[[str], bool]) -> PathBuilder:
        """The same for those paths that are free. `is_free` is given them with the prefix."""
        return replace(self, leads_here=lambda path: self.leads_here(path) and is_free(self.prefix + path))


class HiddenReason(NamedTuple):
    """Why a route is not listed before a response shows that it is a page."""

    text: str
    """In words that follow "it"."""
    is_declared: bool = False
    """Whether the route declares a response that is not a page, such as JSON or a redirect."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the app that answers GET."""

    path: str
    """The decoded path of a static route; the framework's path template of any other."""
    endpoint: str
    static: bool = True
    host: str | None = None
    """The host it answers on; None for all hosts that no route names; ``*`` for all.

    ``*.example.com`` stands for all subdomains that settings name by this pattern, and that no other route names.
    """
    settings: RouteSettings = NO_SETTINGS
    hidden: HiddenReason | None = None
    """Why it is not listed before a response shows that it is a page."""
    internal: str | None = None
    """Why it is never listed: it is the framework's own page, such as FastAPI's `/docs`."""
    last_modified: int | None = None
    """The modification time of the file it serves, in POSIX seconds."""
    not_learned_reason: str | None = None
    """Why its pages are not learned although its blueprint or router opts in, such as "it is a catch-all, so …"."""
    defaults: tuple[tuple[str, str], ...] = ()
    """Parameters of its view that are not in its path, and their values."""
    builder: PathBuilder | None = field(default=None, compare=False, repr=False)
    """Builds the paths of its provider's items, if it has a provider."""

    def answers_on(self, host: str | None) -> bool:
        """Whether requests for a host may get here. None stands for a host that no route names."""
        return self.host in (host, "*")


class Page(NamedTuple):
    """Everything known about one URL, merged from its observations."""

    path: str
    route: str
    first_seen: int
    last_seen: int
    """When the deciding evidence was seen."""
    status: int
    media_type: str = ""
    refusal: str = ""
    """Why it is not to be listed, such as "its X-Robots-Tag says noindex"; empty if it may be."""
    expires_at: int | None = None
    """Its unavailable_after, in POSIX seconds."""
    last_modified: int | None = None
    last_modified_history: History = ()
    """The latest values of its Last-Modified, in POSIX seconds, and when each was sent."""
    read_at: int = 0
    """When its HTML was last read; 0 if never."""
    unread_reason: str = ""
    """Why its HTML was not read completely, such as "nests too many elements"; empty if it was."""
    without_path: int = 0
    """A digest of the content last read without the words of the page's own path; 0 if unknown."""
    content_history: History = ()
    """The latest digests of its content, and when each was seen."""
    stated_date: str | None = None
    stated_date_history: History = ()
    """The latest dates that it stated, in POSIX seconds, and when each was stated."""
    learned: bool = False
    """Whether it is known from traffic only. Learned pages are limited in number, and are forgotten in time."""
    unconfirmed_at: int = 0
    """When it was first answered, since the deciding evidence, what may concern one visitor only; 0 if it was not."""
    unconfirmed_status: int = 0
    links: str = ""
    """The `path_digest` of each path of its own site that it links to, in 8 characters, with blanks between them."""
    shown: str = ""
    """Its images and its versions in other languages, if options ask for them (see `images_and_versions`)."""


class PageLimits(NamedTuple):
    """The maximum number of learned pages. Without it, a client that invents paths could fill the store."""

    site: int = 1_000_000
    route: int = 100_000
    """Per route or pattern, so that one of them cannot use up the limit of the site."""


class SitemapUrl(NamedTuple):
    """One `<url>` element, its texts not yet XML-escaped."""

    loc: str
    lastmod: str | None = None
    changefreq: Changefreq | None = None
    priority: float | None = None
    images: Sequence[str] = ()
    """The URLs of images on the page."""
    videos: Sequence[Video] = ()
    news: News | None = None
    alternates: Sequence[tuple[str, str]] = ()
    """The versions of the page in other languages and the page itself: codes and URLs."""
    version: Version | None = None
    """Neither is written as it is: the links to those versions are that are listed."""
