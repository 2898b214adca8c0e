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
    """One of `request_filter.IGNORE_REASONS`."""
    detail: str
    """What about the request is the reason, in words that follow "it"."""


class _Rule(NamedTuple):
    """Why a header with this name may make a request no evidence."""

    reason: IgnoreReason
    from_proxy: bool = False
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
    return None if is_certificate and _is_service_mesh_workload(value) else rule.reason


def ignore_reason_of_environ_key(key: str, value: str) -> IgnoreReason | None:
    """Why a request whose environ has this key, which is no header, does not count; None if it is no reason."""
    rule = _rule_for_environ_key(key) if len(key) <= MAX_NAME_CHARS else None
    return None if rule is None or not _applies(rule, value) else rule.reason


def printable(text: str) -> str:
    """A text that a client sent, shortened and safe to show."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text[:MAX_NAME_CHARS])


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_header(name: str) -> _Rule | None:
    name = name.lower().replace("_", "-")
    shown = printable(name)
    if name in _RANGE_HEADERS:
        return _Rule(IgnoreReason("range", f"asked for a part of the bytes by {shown}"))
    if name in PREFETCH_HEADERS or _HARMLESS_NAME.fullmatch(name):
        return None
    if name.endswith("method-override") or name == "x-http-method":
        return _Rule(IgnoreReason("method", f"replaced the method by {shown}"))
    if _IDENTITY_NAME.search(name):
        from_proxy = _ALWAYS_IDENTITY_NAME.search(name) is None
        return _Rule(IgnoreReason("credentials", f"carried {shown}"), from_proxy)
    if _PARTIAL_PAGE_NAME.fullmatch(name):
        return _Rule(IgnoreReason("partial", f"asked for a part of the page by {shown}"))
    return None


@lru_cache(MAX_CACHED_NAMES)
def _rule_for_environ_key(key: str) -> _Rule | None:
    is_identity = _IDENTITY_KEY.fullmatch(key) is not None
    return _Rule(IgnoreReason("credentials", f"carried {key}"), from_proxy=True) if is_identity else None


def _applies(rule: _Rule, value: str) -> bool:
    value = value.strip()
    return bool(value) and not (rule.from_proxy and value.lower() in _ANONYMOUS_VALUES)


def _is_service_mesh_workload(value: str) -> bool:
    """Whether an X-Forwarded-Client-Cert names a workload of a service mesh (Istio) and no visitor."""
    parts = [part.strip().lower() for part in re.split("[;,]", value)]
    known = all(part.startswith(("by=", "hash=", "uri=spiffe://")) or part in {"", 'subject=""'} for part in parts)
    return known and any(part.startswith("uri=") for part in parts)
