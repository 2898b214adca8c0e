"""Decides whether a request counts as evidence: whether an anonymous crawler could have sent it for a whole page.

Names of headers are matched by the words in them, not against a list of names: proxies, single
sign-on products and frameworks invent new names all the time. A request that is
ignored by mistake costs one observation. A request that counts by mistake may
publish one person's page.

Each name is matched once and then cached. Clients can invent names, so the caches are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from werkzeug.http import parse_accept_header

from ..evidence.observations import HTML_TYPES

MAX_CACHED_NAMES: Final = 2000
"""Names whose rules are remembered."""

MAX_NAME_CHARS: Final = 100
"""Characters of a header's name, or of a value that is shown, that are read."""

PREFETCH_HEADERS: Final = frozenset({"sec-purpose", "purpose", "x-sec-purpose", "x-purpose", "x-moz"})
"""Headers of a browser that loads a whole page ahead of time."""

_RANGE_HEADERS: Final = frozenset({"range", "if-range", "request-range", "x-range"})


class IgnoreReason(NamedTuple):
    """Why a request does not count as evidence."""

    reason: str
    """One of `IGNORE_REASONS`."""
    detail: str
    """What about the request is the reason, in words that follow "it"."""


_Rule = tuple[IgnoreReason, bool]
"""Why a header of some name may make a request no evidence, and whether proxies send it for all visitors, with a value
that may say that nobody is signed in."""

IGNORE_REASONS: Final = {
    "method": "with another method than GET",
    "query": "with a query string",
    "range": "for a range of bytes",
    "credentials": "with credentials",
    "partial": "for a part of a page",
    "accept": "that want something else than HTML",
    "host": "for a Host that is not the site's own",
    "monitor": "of a health check or an uptime monitor",
}
"""The reasons, and how requests ignored for each are described."""

COOKIE: Final = IgnoreReason("credentials", "carried cookie")
"""Of a request with a Cookie header: the most frequent reason by far."""

FOREIGN_HOST: Final = IgnoreReason("host", "was for a Host that is not the site's own")

MAX_ACCEPT_CHARS: Final = 512
"""Characters of the longest Accept header that is parsed. No crawler sends a longer one."""

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
"""The value of a parameter. Werkzeug before 2.3 takes a comma in it for the end of the media type."""

MAX_AGENT_CHARS: Final = 300
"""Characters of a User-Agent that are searched."""

_MONITOR_WORDS: Final = (
    *("googlehc/", "google-hc", "kube-probe", "envoy/hc", "consul health", "load balancer agent"),
    *("alwayson", "uptime", "pingdom", "statuscake", "site24x7", "newrelicpinger", "freshping", "hetrixtools"),
    *("updown.io", "check_http", "nagios", "icinga", "zabbix", "cloudflare-traffic-manager", "jetmon"),
)
_MONITOR_PREFIXES: Final = ("prometheus/", "monit/", "haproxy", "render/", "checkly", "gatus")
_MONITOR_PATTERN: Final = re.compile(r"health[-_ ]?(?:check|probe)|blackbox[-_ ]exporter|datadog/?[ ]?synthetics")
"""Parts of the User-Agents of load balancers, orchestrators and uptime monitors, in lower case. They request the same
path day and night, whether it is a page or not."""


def ignore_reason_of_line(method: str, *, query: bool) -> IgnoreReason | None:
    """Why a request with this method, and perhaps a query string, does not count; None if it does."""
    if method != "GET":
        return IgnoreReason("method", "was no GET")
    return IgnoreReason("query", "had a query string") if query else None


def ignore_reason_of_headers(headers: Iterable[tuple[str, str]]) -> IgnoreReason | None:
    """Why a request with these headers, whose names are in lower case, does not count; None if they are no reason."""
    accept = agent = destination = ""
    is_prefetch = has_host = False
    for name, value in headers:
        if name == "accept":
            accept = f"{accept},{value}" if accept else value
        elif name == "user-agent":
            agent = f"{agent},{value}" if agent else value
        elif name == "sec-fetch-dest":
            destination = value
        elif name == "cookie":
            if value:
                return COOKIE
        elif name in PREFETCH_HEADERS:
            is_prefetch = True
        elif name == "host":
            if has_host:
                return IgnoreReason("host", "named two hosts")
            has_host = True
        elif (reason := ignore_reason_of_header(name, value)) is not None:
            return reason
    if destination and destination != "document" and not is_prefetch:
        shown = printable(destination)
        return IgnoreReason("partial", f"was sent by a page for a part of it: Sec-Fetch-Dest is {shown!r}")
    if agent and _is_monitor(agent[:MAX_AGENT_CHARS].lower()):
        return IgnoreReason("monitor", "was of a health check or an uptime monitor, by its User-Agent")
    return ignore_reason_of_accept(accept) if accept else None


def ignore_reason_of_accept(accept: str) -> IgnoreReason | None:
    """Why a request with this Accept header does not count; None if it wants HTML at least as much as anything else.

    At the same quality, a type that is named is wanted more than HTML that only a
    wildcard covers: `application/json, */*` wants JSON.
    """
    if len(accept) <= MAX_ACCEPT_CHARS and _prefers_html(accept):
        return None
    return IgnoreReason("accept", f"asked for {printable(accept)!r}, not for HTML")


def ignore_reason_of_environ(environ: Mapping[str, Any], original: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its environ holds besides the headers it came with; None if nothing does.

    `original` is a copy from before the app, which may have changed it: some apps put the user into it.
    """
    items = [(key, value) for key, value in original.items() if not str(key).startswith("HTTP_")]
    items += [(key, "removed by the app") for key in original if key not in environ]
    items += [(key, value) for key, value in environ.items() if original.get(key) is not value]
    reasons = (_ignore_reason_of_item(key, value) for key, value in items)
    return next((reason for reason in reasons if reason is not None), None)


def _ignore_reason_of_item(key: Any, value: Any) -> IgnoreReason | None:
    if not isinstance(key, str):
        return None
    if key.startswith("HTTP_"):
        return ignore_reason_of_header(key[5:], str(value))
    if isinstance(value, str):
        return ignore_reason_of_environ_key(key, value)
    reason = ignore_reason_of_environ_key(key, "an object")
    return reason if reason is not None and is_authenticated_user(value) else None


def ignore_reason_of_scope(scope: Mapping[str, Any]) -> IgnoreReason | None:
    """Why a request does not count, by what its scope holds besides headers; None if that is not a reason.

    Apps, and middleware outside this one, put the user who is signed in into the scope.
    """
    if "user" in scope and is_authenticated_user(scope["user"]):
        return IgnoreReason("credentials", "came from a visitor who is signed in")
    tls = (scope.get("extensions") or {}).get("tls") or {}
    if tls.get("client_cert_chain") or tls.get("client_cert_name"):
        return IgnoreReason("credentials", "came with a client certificate")
    return None


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # raised by the app's own code: the page is taken to be private
        return True


@lru_cache(500)
def _is_monitor(agent: str) -> bool:
    is_named = agent.startswith(_MONITOR_PREFIXES) or any(word in agent for word in _MONITOR_WORDS)
    return is_named or _MONITOR_PATTERN.search(agent) is not None


@lru_cache(500)
def _prefers_html(accept: str) -> bool:
    html = any_type = any_text = -1.0
    others = -1.0, False
    for value, quality in parse_accept_header(_QUOTED.sub("x", accept)):
        media_type = value.partition(";")[0].strip().lower()
        if media_type in HTML_TYPES:
            html = max(html, quality)
        elif media_type in {"*/*", "*"}:
            any_type = max(any_type, quality)
        elif media_type == "text/*":
            any_text = max(any_text, quality)
        elif media_type == "text/event-stream":  # sent by scripts, which accept HTML for errors only
            return False
        elif media_type and "=" not in media_type:  # old versions of Werkzeug yield parameters and empty elements too
            others = max(others, (quality, True))
    wildcard = any_text if any_text >= 0 else any_type
    quality = html if html >= 0 else wildcard
    if quality < 0:
        return others[0] < 0  # a header that names no type means the same as no header
    return quality > 0 and (quality, html >= 0) >= others and quality >= max(any_text, any_type)


# Names of headers and environ keys: which identify the visitor, or request only part of a page


_HARMLESS_NAME: Final = re.compile(
    r"""
    sec-(?!.*(?:session|credential|cookie|token)).*     # set by the browser itself: Sec-CH-UA, Sec-WebSocket-Key
    | .*user-(?:agent|ip|addr|address|country|geo)
    | .*anonymous-consumer
    | signature(?:-.*)?                                 # crawlers sign their requests: Signature-Agent
    | (?:.*-)?(?:cache|surrogate|routing|sharding)-key
    | x-vercel-oidc-token | x-nf-account-id | ms-aspnetcore-token | l5d-.*   # of the deployment
    | x-appengine-auth-domain
    | (?:.*-)?(?:origin|cdn|cloudfront|g2o)-(?:verify|secret|token|key|auth|auth-data|auth-sign)
    | (?:.*-)?(?:ssl|tls)-session(?:-.*)?               # of the connection
    """,
    re.VERBOSE,
)
"""Names that match a pattern below, but do not identify the visitor."""

_PARTIAL_PAGE_NAME: Final = re.compile(
    r"""
    (?:x-)?(?:hx|fx|ic|up|turbo|turbolinks|hotwire|inertia|datastar|livewire|unpoly|htmx|pjax|alpine|alpinejs|barba|swup
        |spf|rsc|fetch|ajax|xhr|component|stimulus|unicorn|reactor|jquery|microsoftajax|mootools|prototype|wicket|faces
        |remix|sveltekit|nextjs|nuxt|next|astro|island|islands|qwik|october|winter|snicco|splade|phoenix|liveview|gwt
        |service-worker)(?:-.*)?
    | (?:.*-)?(?:requested-with|requested-by|request-type|partials?|fragments?|ajax|xhr|pjax|frame|turbo)(?:-.*)?
    """,
    re.VERBOSE,
)
"""Names of headers by which scripts request part of a page, or its data."""

_IDENTITY_NAME: Final = re.compile(
    r"""
    cookie | credential | auth(?!or(?:s|ed|ity|ities)?(?:-|$)) | token | key | user | session | jwt | jws(?![a-z])
    | assertion | identity | e-?mail | log-?in | sign-?in | signed-in | passw | passphrase | passcode | passport
    | secret | account | principal | claim | subject | saml | oidc | openid | bearer | member | customer | consumer
    | kerberos | krb5 | gssapi | spnego | ntlm | ldap | shib | mellon | csrf | xsrf | nonce | impersonat | whoami | dpop
    | msisdn | imsi | subscriber | calling-line | uidh | persistent-id | bypass | preview
    | (?<![a-z])(?:sso|upn|eppn|iap|admin|groups|entitlements?|person|profile-id|actor|e?mail|role|scope|permission
        |privileges?|staff|employee|otp|totp|pin|hmac|sig|paid|premium|draft|editor|paywall|spiffe|vouch|cas|cac|edipi
        |ticket|access-level|clearance)s?(?![a-z])
    | (?<![a-z])(?:(?:display|given|family|full|first|last|sur|nick|common|distinguished|real)-?name|name-?id)(?![a-z])
    | (?<![a-z])(?:php|asp|j|py|cf|net-)?sess?-?id(?![a-z]) | ^(?:x-)?s?sid$ | (?<![a-z])sess(?![a-z]) | logged-?in
    | ^(?:x-)?(?:is-)?internal$ | ^(?:x-)?(?:sub|dn|cn|name|phone|badge|imei)$
    | ^x-(?:[a-z]+-)?signed-by | ^x-(?:hub-|request-|body-)?signature
    | (?<![a-z])(?:student|patient|employee|person|party|dod|badge)-?id(?![a-z])
    | (?<![a-z])(?:client|device|visitor|viewer|employee|advertising|installation)-?id(?![a-z])
    | (?:ssl|tls)-client(?!-(?:hello|cipher|protocol|version|ja\d|ip|port)) | mtls | cert(?!ain)
    | (?:^|-)(?:ssl|tls|forwarded|ldap|x509)-(?:(?:client|peer|s|i)-)?(?:dn|cn|serial|pem|sha\d*|verif[a-z]*)(?![a-z])
    | (?:^|-)ssl-fingerprint
    | ^(?:x-)?(?:client-)?verified$
    | client-(?:verif|s?-?dn|i-dn|subject|issuer|serial|san|cn) | (?:ssl|tls)-(?:issuer|subject)
    | ^(?:x-)?uid(?![a-z]) | ^(?:x-)?remote-(?!addr|ip|host|port|proto|scheme)
    | ^(?:x-)?(?:cf-access|tailscale|pomerium)-
    """,
    re.VERBOSE,
)
"""Words in the names of headers about the visitor, or about what the visitor may see."""

_ALWAYS_IDENTITY_NAME: Final = re.compile(
    r"cookie|authorization|token|key|secret|passw|jwt|assertion|credential|bypass|preview"
)
"""Headers that count whatever their value is. The value of others may say that nobody is signed in."""

_ANONYMOUS_VALUES: Final = frozenset({
    "-", '""', "''", "0", "none", "null", "(null)", "nil", "false", "off", "no", "anonymous", "guest", "undefined",
    "unauthenticated", "visitor", "public",
})  # fmt: skip
"""What proxies send for a visitor who is not signed in: HAProxy `""` and 0, Apache (null), nginx NONE."""

_IDENTITY_KEY: Final = re.compile(
    r"""
    (?:REDIRECT_)?(?:
        REMOTE_(?!ADDR|PORT|HOST) .* | AUTH_(?:TYPE|USER|PASSWORD|NAME) | AUTHENTICATE_ .* | AUTHORIZE_ .* | LOGON_USER
        | HTTPS_(?:DN|CC) | (?:SSL|TLS|HTTPS)_?CLIENT_(?!HELLO|CIPHER|PROTOCOL|VERSION|IP|PORT) .*
        | CLIENT_?CERT .* | CERT_(?:COOKIE|FLAGS|ISSUER|SERIALNUMBER|SUBJECT)
        | OIDC_(?:CLAIM|access|id_token|refresh|user) .* | MELLON_ .* | GSS_(?:NAME|CRED|SESSION) .*
        | Shib[-_](?:Session|Identity|Authentication) .*
    )
    | (?=.*[.]) .* (?:identity|credentials|remote_user|principal|claims|[.](?:current_)?user)(?![a-z]) .*
    """,
    re.VERBOSE,
)
"""Keys of an environ, other than headers, about the visitor. The rest are the server's or environment variables."""


def ignore_reason_of_header(name: str, value: str) -> IgnoreReason | None:
    """Why a request with this header does not count; None if it is no reason. The name may be that of an environ."""
    rule = _rule_for_header(name[:MAX_NAME_CHARS])
    if rule is None or not _applies(rule, value):
        return None
    is_certificate = name.lower().replace("_", "-").endswith("forwarded-client-cert")
    return None if is_certificate and _is_service_mesh_workload(value) else rule[0]


def ignore_reason_of_environ_key(key: str, value: str) -> IgnoreReason | None:
    """Why a request whose environ has this key, which is no header, does not count; None if it is no reason."""
    rule = _rule_for_environ_key(key) if len(key) <= MAX_NAME_CHARS else None
    return None if rule is None or not _applies(rule, value) else rule[0]


def printable(text: str) -> str:
    """A text that a client sent, shortened and safe to show."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text[:MAX_NAME_CHARS])


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_header(name: str) -> _Rule | None:
    name = name.lower().replace("_", "-")
    shown = printable(name)
    if name in _RANGE_HEADERS:
        return IgnoreReason("range", f"asked for a part of the bytes by {shown}"), False
    if name in PREFETCH_HEADERS or _HARMLESS_NAME.fullmatch(name):
        return None
    if name.endswith("method-override") or name == "x-http-method":
        return IgnoreReason("method", f"replaced the method by {shown}"), False
    if _IDENTITY_NAME.search(name):
        from_proxy = _ALWAYS_IDENTITY_NAME.search(name) is None
        return IgnoreReason("credentials", f"carried {shown}"), from_proxy
    if _PARTIAL_PAGE_NAME.fullmatch(name):
        return IgnoreReason("partial", f"asked for a part of the page by {shown}"), False
    return None


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_environ_key(key: str) -> _Rule | None:
    is_identity = _IDENTITY_KEY.fullmatch(key) is not None
    return (IgnoreReason("credentials", f"carried {key}"), True) if is_identity else None


def _applies(rule: _Rule, value: str) -> bool:
    value = value.strip()
    return bool(value) and not (rule[1] and value.lower() in _ANONYMOUS_VALUES)


def _is_service_mesh_workload(value: str) -> bool:
    """Whether an X-Forwarded-Client-Cert names a workload of a service mesh (Istio) and no visitor."""
    parts = [part.strip().lower() for part in re.split("[;,]", value)]
    known = all(part.startswith(("by=", "hash=", "uri=spiffe://")) or part in {"", 'subject=""'} for part in parts)
    return known and any(part.startswith("uri=") for part in parts)
