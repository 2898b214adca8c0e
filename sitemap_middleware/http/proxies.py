"""The request headers by which proxies say whose request they forward, how it reached them, and for which host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from .request_filter import MAX_CACHED_NAMES, MAX_NAME_CHARS

ADDRESS_HEADERS: Final = frozenset({
    "ali-cdn-real-ip", "cdn-src-ip", "cf-connecting-ip", "client-ip", "fastly-client-ip", "fly-client-ip",
    "incap-client-ip", "proxy-client-ip", "true-client-ip", "wl-proxy-client-ip", "x-appengine-user-ip",
    "x-azure-clientip", "x-azure-socketip", "x-client-ip", "x-cluster-client-ip", "x-envoy-external-address",
    "x-forwarded-for", "x-nf-client-connection-ip", "x-original-forwarded-for", "x-originating-ip", "x-real-ip",
    "x-remote-addr", "x-remote-ip", "x-sucuri-clientip", "x-vercel-forwarded-for",
})  # fmt: skip
"""The headers by which a proxy states the visitor's address. The middleware's own requests state another one."""

SCHEME_HEADERS: Final = frozenset({
    "cf-visitor", "cloudfront-forwarded-proto", "front-end-https", "x-forwarded-proto", "x-forwarded-protocol",
    "x-forwarded-scheme", "x-forwarded-ssl", "x-scheme", "x-url-scheme",
})  # fmt: skip
"""Those by which it states the scheme. The middleware's own requests repeat them."""

PROXY_HEADERS: Final = (
    ADDRESS_HEADERS | SCHEME_HEADERS | {"forwarded", "via", "x-forwarded-host", "x-original-host", "x-script-name"}
)
_PREFIXES: Final = ("x-forwarded", "cf-")
"""Headers that show that a proxy forwards the request. Then the Host may be the proxy's internal name of the app."""

_HOST_HEADERS: Final = frozenset({"forwarded", "x-forwarded-host", "x-host", "x-original-host"})
"""Headers that may name another host than Host does."""

_HOST_PARAMETER: Final = re.compile(r'\bhost\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;,\s]*))', re.IGNORECASE)
"""The parameter of a Forwarded header (RFC 7239) that names the Host."""

_ROUTING_NAME: Final = re.compile(
    r"""
    ^forwarded$ | ^x-forwarded-(?!for(?:-|$)|server$) | ^front-end-https$ | ^cf-visitor$ | (?:^|-)forwarded-proto
    | ^(?:x-)?(?:ms-|waws-|iis-|http-|envoy-|accel-|proxy-|arr-)?(?:original|rewrite|rewritten|replaced|override|real
        |raw|request|unencoded|destination|script|mount|base|root|app|context|path|url|public|external)-?
        (?:ur[il]|path|prefix|name|host|port|scheme|proto|protocol|info|root)$
    | ^x-host-override$
    | ^(?:x-)?(?:scheme|proto|protocol|prefix|path|ur[il]|basepath|https)$
    | ^x-(?:tenant|workspace|site|shop|store|brand|org(?:ani[sz]ation)?|(?:sub)?domain|vhost)
        (?:-?(?:id|name|code|slug|domain))?$
    """,
    re.VERBOSE,
)
"""Names of headers about the URL under which the client, or a proxy before this one, requested the page, and about the
site that it stands for: an app of several sites answers with the pages of another one."""


def is_proxy_header(name: str) -> bool:
    """Whether proxies set a header of this name. Some write its hyphens as underscores."""
    name = name.lower().replace("_", "-")
    return name in PROXY_HEADERS or name.startswith(_PREFIXES)


def forwarded_hosts(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The public hosts that a proxy, or a client that claims to be one, states."""
    hosts: list[str] = []
    for name, value in headers:
        if name == "forwarded":
            hosts += [quoted or bare for quoted, bare in _HOST_PARAMETER.findall(value)]
        elif name in _HOST_HEADERS:
            hosts += [host.strip() for host in value.split(",")]
    return hosts


def is_routing_header(name: str) -> bool:
    """Whether apps may believe a header of this name, in any case, to state the URL that was requested."""
    return len(name) <= MAX_NAME_CHARS and _is_routing_header(name)


def is_of_site(name: str, value: str, scheme: str, host: str, path: str) -> bool:
    """Whether a routing header states what is so anyway, as proxies do each time: the scheme, host or port of the site,
    or the decoded path of the request.
    """
    name = name.lower().replace("_", "-")
    if name.endswith(("-uri", "-url")) and unquote(value) == path:
        return True
    value = value.strip().lower()
    port = host.partition(":")[2] or ("443" if scheme == "https" else "80")
    parts, hosts = {part.strip() for part in value.split(",")}, {host, f"{host}:{port}"}
    if name == "forwarded":
        pairs = [pair.partition("=") for pair in re.split("[;,]", value)]
        stated = [(key.strip(), text.strip(' "')) for key, _, text in pairs]
        return all(
            key in ("for", "by") or (key == "host" and text in hosts) or (key == "proto" and text == scheme)
            for key, text in stated
        )
    if name.endswith("-host"):
        return parts <= hosts
    if name.endswith("-port"):
        return parts == {port}
    words = {f'{{"scheme":"{scheme}"}}', "on" if scheme == "https" else "off"}
    return name in SCHEME_HEADERS and (value in words or parts == {scheme})


@lru_cache(MAX_CACHED_NAMES)
def _is_routing_header(name: str) -> bool:
    return _ROUTING_NAME.search(name.lower().replace("_", "-")) is not None
