"""Rules on the names of headers and environ keys: which identify the visitor, or request only part of a page.

Names are matched by the words in them, not against a list of names: proxies, single
sign-on products and frameworks invent new names all the time. A request that is
ignored by mistake costs one observation. A request that counts by mistake may
publish one person's page.

Each name is matched once and then cached. Clients can invent names, so the caches are bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from .reasons import MAX_NAME_CHARS, IgnoreReason, printable

MAX_CACHED_NAMES: Final = 2000
"""Names whose rules are remembered."""

HOST_HEADERS: Final = frozenset({"forwarded", "x-forwarded-host", "x-host", "x-original-host"})
"""Headers that may name another host than Host does."""

PREFETCH_HEADERS: Final = frozenset({"sec-purpose", "purpose", "x-sec-purpose", "x-purpose", "x-moz"})
"""Headers of a browser that loads a whole page ahead of time."""

_RANGE_HEADERS: Final = frozenset({"range", "if-range", "request-range", "x-range"})


class HeaderRule(NamedTuple):
    """Why a header with this name may make a request no evidence."""

    reason: IgnoreReason
    from_proxy: bool
    """Whether proxies send it for all visitors, with a value that may say that nobody is signed in."""


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

_ANONYMOUS_VALUES: Final = frozenset(
    {
        "-",
        '""',
        "''",
        "0",
        "none",
        "null",
        "(null)",
        "nil",
        "false",
        "off",
        "no",
        "anonymous",
        "guest",
        "undefined",
        "unauthenticated",
        "visitor",
        "public",
    }
)
"""What proxies send for a visitor who is not signed in: HAProxy `""` and 0, Apache (null), nginx NONE."""

_ROUTING_NAME: Final = re.compile(
    r"""
    ^forwarded$ | ^x-forwarded-(?!for(?:-|$)) | ^front-end-https$ | ^cf-visitor$ | (?:^|-)forwarded-proto
    | ^(?:x-)?(?:ms-|waws-|iis-|http-|envoy-|accel-|proxy-|arr-)?(?:original|rewrite|rewritten|replaced|override|real
        |raw|request|unencoded|destination|script|mount|base|root|app|context|path|url|public|external)-?
        (?:ur[il]|path|prefix|name|host|port|scheme|proto|protocol|info|root)$
    | ^(?:x-)?(?:scheme|proto|protocol|prefix|path|ur[il]|basepath|https)$
    | ^x-(?:tenant|workspace|site|shop|store|brand|org(?:ani[sz]ation)?)(?:-?(?:id|name|code|slug|domain))?$
    """,
    re.VERBOSE,
)
"""Names of headers about the URL under which the client, or a proxy before this one, requested the page, and about the
site that it stands for: an app of several sites answers with the pages of another one."""

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


def rule_for_header(name: str) -> HeaderRule | None:
    """The rule for a header's name, in any case; None if the name is harmless."""
    return _rule_for_header(name[:MAX_NAME_CHARS])


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_header(name: str) -> HeaderRule | None:
    name = name.lower().replace("_", "-")
    if name in _RANGE_HEADERS:
        return HeaderRule(
            IgnoreReason("range", f"asked for a part of the bytes by {printable(name)}"), from_proxy=False
        )
    if name in PREFETCH_HEADERS or _HARMLESS_NAME.fullmatch(name):
        return None
    if name.endswith("method-override") or name == "x-http-method":
        return HeaderRule(IgnoreReason("method", f"replaced the method by {printable(name)}"), from_proxy=False)
    if _IDENTITY_NAME.search(name):
        return HeaderRule(
            IgnoreReason("credentials", f"carried {printable(name)}"),
            from_proxy=_ALWAYS_IDENTITY_NAME.search(name) is None,
        )
    if _PARTIAL_PAGE_NAME.fullmatch(name):
        return HeaderRule(
            IgnoreReason("partial", f"asked for a part of the page by {printable(name)}"), from_proxy=False
        )
    return None


def is_routing_header(name: str) -> bool:
    """Whether apps may believe a header of this name, in any case, to state the URL that was requested."""
    return len(name) <= MAX_NAME_CHARS and _is_routing_header(name)


@lru_cache(MAX_CACHED_NAMES)
def _is_routing_header(name: str) -> bool:
    return _ROUTING_NAME.search(name.lower().replace("_", "-")) is not None


def rule_for_environ_key(key: str) -> HeaderRule | None:
    """The rule for a key of an environ that is not a header; None if the key is harmless."""
    return _rule_for_environ_key(key) if len(key) <= MAX_NAME_CHARS else None


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_environ_key(key: str) -> HeaderRule | None:
    if not _IDENTITY_KEY.fullmatch(key):
        return None
    return HeaderRule(IgnoreReason("credentials", f"carried {key}"), from_proxy=True)


def rule_applies(rule: HeaderRule, name: str, value: str) -> bool:
    """Whether a header counts against a request, given its value."""
    value = value.strip()
    if not value or (rule.from_proxy and value.lower() in _ANONYMOUS_VALUES):
        return False
    return not (name.lower().replace("_", "-").endswith("forwarded-client-cert") and _is_service_mesh_workload(value))


def _is_service_mesh_workload(value: str) -> bool:
    """Whether an X-Forwarded-Client-Cert names a workload of a service mesh (Istio) and no visitor."""
    parts = [part.strip().lower() for part in re.split("[;,]", value)]
    known = all(part.startswith(("by=", "hash=", "uri=spiffe://")) or part in {"", 'subject=""'} for part in parts)
    return known and any(part.startswith("uri=") for part in parts)
