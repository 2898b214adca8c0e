"""The request headers by which proxies say whose request they forward, and how it reached them."""

from __future__ import annotations

from typing import Final

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
"""The request headers by which a proxy describes the connection: scheme, host, port, prefix and client. Requests of
the middleware itself repeat them, so that an app that reads them answers alike. None of them names a user."""

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
"""The request headers by which a proxy states the visitor's address. The middleware's own requests replace it."""

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
"""Those about the scheme. The middleware's own requests omit them if their scheme is another one."""

PROXY_HEADERS: Final = FORWARDING_HEADERS | ADDRESS_HEADERS | {"via", "x-original-host"}
_PREFIXES: Final = ("x-forwarded", "cf-")
"""Headers that show that a proxy forwards the request. Then the Host may be the proxy's internal name of the app."""


def is_proxy_header(name: str) -> bool:
    """Whether proxies set a header of this name. Some write its hyphens as underscores."""
    name = name.lower().replace("_", "-")
    return name in PROXY_HEADERS or name.startswith(_PREFIXES)
