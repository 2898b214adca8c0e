"""What adapters and core say to each other: a request in neither protocol's words, and a response for either."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Protocol

from .models import Context, Headers
from .request_filter.reasons import IgnoreReason

CONDITIONAL_HEADERS: Final = frozenset({"accept-encoding", "if-none-match", "if-modified-since"})
"""The request headers that are looked at where a document is asked for."""

FORWARDING_HEADERS: Final = frozenset(
    {
        "cf-visitor",
        "cloudfront-forwarded-proto",
        "forwarded",
        "front-end-https",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-proto",
        "x-forwarded-protocol",
        "x-forwarded-scheme",
        "x-forwarded-server",
        "x-forwarded-ssl",
        "x-real-ip",
        "x-scheme",
        "x-script-name",
        "x-url-scheme",
    }
)
"""The request headers by which a proxy describes the connection: scheme, host, port, prefix and client. Requests of our
own repeat those of the live request, so that an app which reads them answers alike. None of them names a user."""

ADDRESS_HEADERS: Final = frozenset(
    {
        "ali-cdn-real-ip",
        "cdn-src-ip",
        "cf-connecting-ip",
        "client-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "incap-client-ip",
        "proxy-client-ip",
        "true-client-ip",
        "wl-proxy-client-ip",
        "x-appengine-user-ip",
        "x-azure-clientip",
        "x-azure-socketip",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
        "x-forwarded-for",
        "x-nf-client-connection-ip",
        "x-original-forwarded-for",
        "x-originating-ip",
        "x-real-ip",
        "x-remote-addr",
        "x-remote-ip",
        "x-sucuri-clientip",
        "x-vercel-forwarded-for",
    }
)
"""The request headers by which a proxy tells the visitor's address. Requests of our own name a neutral one in them."""

SCHEME_HEADERS: Final = (
    FORWARDING_HEADERS
    - ADDRESS_HEADERS
    - {
        "x-forwarded-host",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "x-script-name",
    }
)
"""Those of them that a request of our own leaves out if it has another scheme than the live request."""

PROXY_HEADERS: Final = FORWARDING_HEADERS | ADDRESS_HEADERS | {"via", "x-original-host"}
PROXY_PREFIXES: Final = ("x-forwarded-", "cf-")
"""By which a proxy tells whom it asks for: then the Host may be its own name for the app."""

INTERNAL_USER_AGENT: Final = "sitemap-middleware"
"""The User-Agent of requests of our own, made to the app within the process."""

INTERNAL_ACCEPT: Final = "text/html,application/xhtml+xml,*/*;q=0.8"
"""The Accept header of requests of our own. Some apps answer */* alone with JSON."""

WAIT_SECONDS_KEY: Final = "sitemap_middleware.patience"
"""The key of an environ or a scope by which our own command line sets `Request.wait_seconds`. No client can send it."""

SYNC_SERVER_WAIT_SECONDS: Final = 2.0
"""`Request.wait_seconds`, in seconds, of a server that has one thread."""

TEST_CLIENT_WAIT_SECONDS: Final = 10.0
"""`Request.wait_seconds`, in seconds, of a framework's test client."""

PROBE_TIMEOUT_SECONDS: Final = 5.0
"""How long the app may take to answer one of them."""

WRONG_HOST_STATUSES: Final = frozenset({400, 421})
"""Statuses of an app that does not answer on the Host of the request."""

MAX_PROBE_BYTES: Final = 1024 * 1024
"""How long an answer to one of them may be."""

GENERATING_HEADER: Final = ("X-Sitemap-Status", "generating")
"""The header of a 503 response to a request for a document that is being generated: it is worth asking again."""

RequestKey = tuple[Any, ...]
"""Method, query, scheme, Host, root and path: all of a request that tells which page it is for."""


class AppTerminated(Exception):
    """The app raised what is no `Exception`: it, or the server that runs it, was told to end."""


class AsyncCollector(Protocol):
    """Takes all that an async iterable gives, for those who cannot await."""

    def __call__(self, source: Any, context: Context | None, queue: Any, seconds: float) -> Generator[list[Any]]:
        """What a source gives, in batches: an async iterable, or an awaitable of any iterable.

        One task takes it all, within the context, and hands it over by the
        `values.BatchQueue` given. `ValuesTimeout` where it gives nothing for so many seconds,
        and `ValuesError` for whatever else goes wrong.
        """


class Request(Protocol):
    """A request in neither protocol's words. Adapters make it; nothing is computed until it is read."""

    @property
    def key(self) -> RequestKey:
        """What tells it from requests for anything else."""

    @property
    def method(self) -> str: ...

    @property
    def scheme(self) -> str: ...

    @property
    def root(self) -> str:
        """ASGI's root_path, WSGI's SCRIPT_NAME, decoded: where the app is mounted."""

    @property
    def path(self) -> str:
        """The decoded path below the root, as the app's router sees it."""

    @property
    def has_query(self) -> bool:
        """Whether there is a query string."""

    @property
    def host(self) -> str:
        """Its Host; empty if there is none."""

    def ignore_reason(self) -> IgnoreReason | None:
        """Why its headers, or what else it says of the visitor, keep it from being evidence; None if nothing does."""

    def visitor(self, status: int) -> int:
        """A hash that tells visitors apart, if a response of this status may depend on the visitor; see `UnconfirmedAnswer`."""  # noqa: E501

    @property
    def conditional_headers(self) -> Mapping[str, str]:
        """Those of `CONDITIONAL_HEADERS` that were sent, by lower-case name."""

    @property
    def is_forwarded(self) -> bool:
        """Whether a proxy says that it forwards this request, by a header such as X-Forwarded-For."""

    @property
    def has_dynamic_root(self) -> bool:
        """Whether parameters of the path made the root: then a stranger can make up any number of roots."""

    def fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Response | None:
        """What the app answers when a crawler asks this host for another path, below the same root.

        None if it does not answer in time, or answers without end. It may take that time.

        Args:
            path: decoded, below the root.
            scheme: instead of this request's.
            host: instead of this request's Host, and of the public host that its headers tell.
            keep_host: whether this request's own Host is sent all the same.
            cut: whether the beginning of a body that is too long is good enough.
        """

    def start_fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Future[Response | None]:
        """Begin what `ask` does; the future is done when the app has answered or failed.

        It may never be done: nothing can stop a thread on which the app hangs.
        Without `wait_seconds` this returns at once; with it, as soon as it can.
        """

    @property
    def wait_seconds(self) -> float | None:
        """Seconds that the request can spend on requests of our own, if it has to make them itself.

        None if they can be made after it, by `behind`.
        """

    @property
    def runs_probes_inline(self) -> bool:
        """Whether requests of our own run on the thread of this one, and so see what the app keeps by thread."""

    @property
    def max_hanging_requests(self) -> int:
        """Requests of our own that may hang at one time without harm to the app."""

    def detached(self) -> Request:
        """A request like this one, for use when this is long over; called while it is not, and where the app runs."""

    def run_in_background(self, job: Callable[[], None]) -> None:
        """Have a job done, on a thread of which `ask` can be called.

        Called on the thread of `handle`, or, of a lasting one, on any. Raises
        RuntimeError where what the app runs on is no more.
        """

    @property
    def async_collector(self) -> AsyncCollector | None:
        """What takes from async iterables on the app's own event loop; None where the app has none."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of ours, ready to be sent by either adapter."""

    status: int
    headers: Headers
    body: bytes = b""
    parts: Generator[bytes] | None = None
    """A long body, each part of it made as it is taken; `body` is then empty. Whoever takes them closes them."""
    encoded: Sequence[tuple[bytes, bytes]] = ()
    """The headers as ASGI has them, where the response is one that is given again and again."""
