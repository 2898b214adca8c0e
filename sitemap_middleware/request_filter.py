"""Which requests count as evidence: those that an anonymous crawler could have sent for a whole page.

Everything here works on header names and values alone. A name is judged once and
remembered, so that a request whose names are all known costs one look-up for
each. Strangers can invent names, so what is remembered is bounded.

The judgement is by words within a name, not by a list of names: proxies, single
sign-on products and frameworks invent new names all the time. A request that is
refused by mistake costs one observation. A request that counts by mistake may
publish one person's page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from .bounded_cache import BoundedCache
from .uptime_monitors import is_monitor

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
"""Why a request does not count, and how several of them are described."""

MAX_CACHED_NAMES: Final = 2000
"""Names that are remembered. If there are more, all are judged anew."""

MAX_NAME_CHARS: Final = 100
"""Characters of a name that are looked at."""

MAX_ACCEPT_CHARS: Final = 512
"""Characters of the longest Accept header that is parsed. No crawler sends a longer one."""


class IgnoreReason(NamedTuple):
    """Why a request does not count as evidence."""

    reason: str
    """One of `IGNORE_REASONS`."""
    detail: str
    """What it was about the request, in words that follow "it"."""


class HeaderRule(NamedTuple):
    """What the name of a header says against a request."""

    reason: IgnoreReason
    from_proxy: bool
    """Whether proxies send it for everybody, with a value that says that nobody is signed in."""


_HARMLESS_NAME: Final = re.compile(
    r"""
    sec-(?!.*(?:session|credential|cookie|token)).*     # set by the browser itself: Sec-CH-UA, Sec-WebSocket-Key
    | .*user-(?:agent|ip|addr|address|country|geo)
    | .*anonymous-consumer
    | signature(?:-.*)?                                 # crawlers sign their requests: Signature-Agent
    | (?:.*-)?(?:cache|surrogate|routing|sharding)-key
    | x-vercel-oidc-token | x-nf-account-id | ms-aspnetcore-token | l5d-.*   # of the deployment, not of the visitor
    | x-appengine-auth-domain
    | (?:.*-)?(?:origin|cdn|cloudfront|g2o)-(?:verify|secret|token|key|auth|auth-data|auth-sign)
    | (?:.*-)?(?:ssl|tls)-session(?:-.*)?               # the connection's
    """,
    re.VERBOSE,
)
"""Names that contain one of the words below, and yet say nothing of who asks."""

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
"""Names by which scripts ask for a part of a page, or for its data."""

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
"""Words in names of headers about who asks, or about what one is allowed to see."""

_ALWAYS_IDENTITY_NAME: Final = re.compile(
    r"cookie|authorization|token|key|secret|passw|jwt|assertion|credential|bypass|preview"
)
"""Such a header counts whatever it says. Any other may say that nobody is signed in."""

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
"""What proxies say of a visitor who is not signed in: HAProxy `""` and 0, Apache (null), nginx NONE."""

_RANGE_HEADERS: Final = frozenset({"range", "if-range", "request-range", "x-range"})
_PREFETCH_HEADERS: Final = frozenset({"sec-purpose", "purpose", "x-sec-purpose", "x-purpose", "x-moz"})
"""Headers that say that a whole page is loaded ahead of time."""

HOST_HEADERS: Final = frozenset({"forwarded", "x-forwarded-host", "x-host", "x-original-host"})
"""Headers that may name another host than Host does."""

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
"""Keys of an environ, but for headers, about who asks. Others are the server's, or the machine's own variables."""

_SIGNED_IN_REASON: Final = IgnoreReason("credentials", "came from a visitor who is signed in")
_CLIENT_CERTIFICATE_REASON: Final = IgnoreReason("credentials", "came with a client certificate")
_METHOD_REASON: Final = IgnoreReason("method", "was no GET")
_QUERY_REASON: Final = IgnoreReason("query", "had a query string")
_MONITOR_REASON: Final = IgnoreReason("monitor", "was of a health check or an uptime monitor, by its User-Agent")
FOREIGN_HOST_REASON: Final = IgnoreReason("host", "was for a Host that is not the site's own")
_ACCEPTS_HTML: Final = IgnoreReason("", "")
"""Stands for no refusal, in a memory where None means that nothing is known."""

MOST_VALUES: Final = 1000
"""Harmless values of headers that are remembered of each kind. If there are more, all are judged anew."""


def ignore_reason_of_line(method: str, *, query: bool) -> IgnoreReason | None:
    """Why a request with this method, and maybe a query string, does not count; None if it does."""
    if method != "GET":
        return _METHOD_REASON
    return _QUERY_REASON if query else None


def rule_for_header(name: str) -> HeaderRule | None:
    """What a header's name, in whatever case, says against a request; None if it says nothing."""
    name = name[:MAX_NAME_CHARS].lower().replace("_", "-")
    if name in _RANGE_HEADERS:
        return HeaderRule(
            IgnoreReason("range", f"asked for a part of the bytes by {_printable(name)}"), from_proxy=False
        )
    if name in _PREFETCH_HEADERS or _HARMLESS_NAME.fullmatch(name):
        return None
    if name.endswith("method-override") or name == "x-http-method":
        return HeaderRule(IgnoreReason("method", f"replaced the method by {_printable(name)}"), from_proxy=False)
    if _IDENTITY_NAME.search(name):
        return HeaderRule(
            IgnoreReason("credentials", f"carried {_printable(name)}"),
            from_proxy=_ALWAYS_IDENTITY_NAME.search(name) is None,
        )
    if _PARTIAL_PAGE_NAME.fullmatch(name):
        return HeaderRule(
            IgnoreReason("partial", f"asked for a part of the page by {_printable(name)}"), from_proxy=False
        )
    return None


def _printable(text: str) -> str:
    """What a stranger sent, as it may be shown."""
    return "".join(one if one.isascii() and one.isprintable() else "?" for one in text[:MAX_NAME_CHARS])


def _applies(rule: HeaderRule, name: str, value: str) -> bool:
    """Whether a header means what its name says, given its value."""
    value = value.strip()
    if not value or (rule.from_proxy and value.lower() in _ANONYMOUS_VALUES):
        return False
    return not (name.lower().replace("_", "-").endswith("forwarded-client-cert") and _is_service_mesh_workload(value))


def _is_service_mesh_workload(value: str) -> bool:
    """Whether an X-Forwarded-Client-Cert names a workload of a service mesh (Istio) and no visitor."""
    parts = [part.strip().lower() for part in re.split("[;,]", value)]
    known = all(part.startswith(("by=", "hash=", "uri=spiffe://")) or part in {"", 'subject=""'} for part in parts)
    return known and any(part.startswith("uri=") for part in parts)


class _HeaderRules:
    """What is known of names: those that are harmless, and the rules of all others."""

    def __init__(self) -> None:
        self.harmless: set[Any] = set()
        self._rules: dict[Any, HeaderRule] = {}

    def find(self, name: Any, header: str) -> HeaderRule | None:
        """The rule of a name, which is a header's in this spelling."""
        known = self._rules.get(name)
        if known is None:
            known = rule_for_header(header)
            self.add(name, known)
        return known

    def add(self, name: Any, rule: HeaderRule | None) -> None:
        if len(self.harmless) + len(self._rules) >= MAX_CACHED_NAMES:
            self.harmless.clear()
            self._rules.clear()
        if len(name) <= MAX_NAME_CHARS:
            if rule is None:
                self.harmless.add(name)
            else:
                self._rules[name] = rule


def _remember(fine: set[Any], value: Any, length: int) -> None:
    """Remember a value, or a header, that does not speak against a request, if it is not too long."""
    if len(fine) >= MOST_VALUES:
        fine.clear()
    if length <= MAX_ACCEPT_CHARS:
        fine.add(value)


# ASGI

_scope_rules: Final = _HeaderRules()
_fine_fields: Final[set[tuple[bytes, bytes]]] = set()
"""Headers whose value decides, and does not speak against the request: Accept, User-Agent, Sec-Fetch-Dest."""
_HOST_NAMES: Final = frozenset(name.encode() for name in HOST_HEADERS)


def ignore_reason_of_headers(
    headers: Sequence[tuple[bytes, bytes]], of_hosts: Callable[[], IgnoreReason | None] | None = None
) -> IgnoreReason | None:
    """Why a request with these headers of an ASGI scope does not count; None if it does.

    Args:
        headers: the request's.
        of_hosts: called if a header may name another host than Host does, and nothing else speaks against the request.
    """
    harmless, fine = _scope_rules.harmless, _fine_fields
    try:
        for field in reversed(headers):  # browsers send Cookie last
            if field[0] not in harmless:
                if field[0] == b"cookie" and field[1]:
                    return COOKIE
                if field not in fine:
                    return _refusal_of_fields(headers, of_hosts)
    except TypeError:  # the pairs may be lists (ASGI, "HTTP Connection Scope"), which have no hash
        return _refusal_of_fields([(name, value) for name, value in headers], of_hosts)
    return None


def _refusal_of_fields(
    headers: Iterable[tuple[bytes, bytes]], of_hosts: Callable[[], IgnoreReason | None] | None
) -> IgnoreReason | None:
    """As `ignore_reason_of_headers`, of headers of which not all are known to be harmless."""
    harmless, accept, destination, agent, ahead, hosts = _scope_rules.harmless, b"", b"", b"", False, False
    for name, value in headers:
        if name in harmless:
            continue
        if name == b"accept":
            accept = accept + b"," + value if accept else value
        elif name == b"user-agent":
            agent = value
        elif name == b"sec-fetch-dest":
            destination = value
        elif name in _HOST_NAMES:
            hosts = True
        else:
            text = name.decode("latin-1")
            if text.lower() in _PREFETCH_HEADERS:
                ahead = True
                continue
            rule = _scope_rules.find(name, text)
            if rule is not None and _applies(rule, text, value.decode("latin-1")):
                return rule.reason
    if destination and destination != b"document" and not ahead:
        return _ignore_reason_of_destination(destination.decode("latin-1"))
    if agent and is_monitor(agent):
        return _MONITOR_REASON
    if accept and (refusal := ignore_reason_of_accept(accept.decode("latin-1"))):
        return refusal
    for field in ((b"accept", accept), (b"user-agent", agent), (b"sec-fetch-dest", b"document")):
        _remember(_fine_fields, field, len(field[1]))
    return of_hosts() if hosts and of_hosts is not None else None


def ignore_reason_of_scope(scope: Mapping[str, Any]) -> IgnoreReason | None:
    """Why what else an ASGI scope says speaks against a request; None if nothing does.

    An app that signs visitors in puts the user into the scope, before us or within.
    """
    if "user" in scope and is_authenticated_user(scope["user"]):
        return _SIGNED_IN_REASON
    extensions = scope.get("extensions")
    if extensions and "tls" in extensions:
        tls = extensions["tls"] or {}
        if tls.get("client_cert_chain") or tls.get("client_cert_name"):
            return _CLIENT_CERTIFICATE_REASON
    return None


def is_authenticated_user(user: Any) -> bool:
    """Whether a user, as frameworks put it into a scope or an environ, is a person who is signed in."""
    try:
        return bool(getattr(user, "is_authenticated", user))
    except Exception:  # of the app's own code: what it cannot tell is taken to be private
        return True


# WSGI

_environ_rules: Final = _HeaderRules()
_KEYS_READ_BY_VALUE: Final = frozenset({"HTTP_ACCEPT", "HTTP_SEC_FETCH_DEST"})
_KEYS_READ_FIRST: Final = tuple(f"HTTP_{name.upper().replace('-', '_')}" for name in _PREFETCH_HEADERS)
_fine_agents: Final[set[str]] = set()
_fine_accepts: Final[set[str]] = set()
"""Values of User-Agent and Accept that do not speak against a request."""
_HOST_KEYS: Final = frozenset(f"HTTP_{name.upper().replace('-', '_')}" for name in HOST_HEADERS)


def ignore_reason_of_environ(
    environ: dict[str, Any],
    names: list[Any] | None,
    accept: str,
    of_hosts: Callable[[], IgnoreReason | None] | None = None,
) -> IgnoreReason | None:
    """Why a request of this environ does not count; None if it does.

    Args:
        environ: as it is now. The app may have changed it meanwhile: some put the user into it.
        names: its keys when the request came; None if no app has had it yet.
        accept: its Accept header when the request came.
        of_hosts: called if a header may name another host than Host does, and nothing else speaks against the request.
    """
    harmless, hosts, get = _environ_rules.harmless, False, environ.get
    if names is None:
        are_harmless = harmless.issuperset(environ)
    else:
        # A key that was added stands last, so that two looks tell whether the app has changed the keys.
        are_harmless = harmless.issuperset(names) and (
            (len(environ) == len(names) and next(reversed(environ), None) == names[-1]) or harmless.issuperset(environ)
        )
    if not are_harmless:
        for key in {*(names or ()), *environ}.difference(harmless):
            if key in _HOST_KEYS:
                hosts = True
            elif refusal := _ignore_reason_of_key(key, get(key, "taken out by the app")):
                return refusal
    destination = get("HTTP_SEC_FETCH_DEST", "document")
    if destination != "document" and destination and not any(name in environ for name in _KEYS_READ_FIRST):
        return _ignore_reason_of_destination(destination)
    agent = get("HTTP_USER_AGENT", "")
    if agent not in _fine_agents:
        if agent and is_monitor(agent):
            return _MONITOR_REASON
        _remember(_fine_agents, agent, len(agent))
    if accept not in _fine_accepts:
        if accept and (refusal := ignore_reason_of_accept(accept)):
            return refusal
        _remember(_fine_accepts, accept, len(accept))
    return of_hosts() if hosts and of_hosts is not None else None


def _ignore_reason_of_key(key: Any, value: Any) -> IgnoreReason | None:
    """What one item of an environ says against a request."""
    if not isinstance(key, str):
        return None
    if key.startswith("HTTP_") and key not in _KEYS_READ_BY_VALUE:
        rule = _environ_rules.find(key, key.removeprefix("HTTP_"))
        return rule.reason if rule is not None and _applies(rule, key, str(value)) else None
    if key.startswith("HTTP_") or not _IDENTITY_KEY.fullmatch(key):
        _environ_rules.add(key, None)
        return None
    refusal = IgnoreReason("credentials", f"carried {key}")
    stands = (
        _applies(HeaderRule(refusal, from_proxy=True), key, value)
        if isinstance(value, str)
        else is_authenticated_user(value)
    )
    return refusal if stands else None


COOKIE: Final = IgnoreReason("credentials", "carried cookie")
"""Of a request with a Cookie header: the most frequent refusal by far."""


# Visitors


def visitor_fingerprint(status: int, agent: str, language: str) -> int:
    """32 bits that tell visitors apart, if an answer of this status may depend on the visitor.

    By the User-Agent; of redirects by the language that is preferred, if one is
    stated, since all visitors of one language are redirected alike.
    """
    told = agent
    if 300 <= status < 400:
        told = language.partition(",")[0].partition(";")[0].partition("-")[0].strip().lower() or agent
    return crc32(told.encode("utf-8", "replace"))


# Accept

_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})

_accept_cache: Final = BoundedCache[str, IgnoreReason](500)
"""What was said of the Accept headers that came lately."""


def ignore_reason_of_accept(accept: str) -> IgnoreReason | None:
    """Why a request with this Accept header does not count; None if it wants HTML at least as much as anything else.

    A type that is named outright is wanted more than HTML that only a wildcard
    takes in, at the same quality: `application/json, */*` wants JSON.
    """
    known = _accept_cache.get(accept)
    if known is None:
        known = (
            _ACCEPTS_HTML
            if _prefers_html(accept)
            else IgnoreReason("accept", f"asked for {_printable(accept)!r}, not for HTML")
        )
        if len(accept) <= MAX_ACCEPT_CHARS:
            _accept_cache.put(accept, known)
    return None if known is _ACCEPTS_HTML else known


def _prefers_html(accept: str) -> bool:
    if len(accept) > MAX_ACCEPT_CHARS:
        return False
    from werkzeug.http import parse_accept_header

    html = any_type = any_text = -1.0
    others = -1.0, False
    for value, quality in parse_accept_header(accept):
        media_type = value.partition(";")[0].strip().lower()
        if media_type in _HTML_TYPES:
            html = max(html, quality)
        elif media_type in {"*/*", "*"}:
            any_type = max(any_type, quality)
        elif media_type == "text/*":
            any_text = max(any_text, quality)
        elif media_type == "text/event-stream":  # by a script, and names HTML beside it for errors alone
            return False
        elif media_type:  # old versions of Werkzeug give a nameless one for each empty element
            others = max(others, (quality, True))
    wildcard = any_text if any_text >= 0 else any_type
    quality = html if html >= 0 else wildcard
    if quality < 0:
        return others[0] < 0  # a header that names nothing is as good as none
    return quality > 0 and (quality, html >= 0) >= others and quality >= max(any_text, any_type)


def _ignore_reason_of_destination(destination: str) -> IgnoreReason:
    return IgnoreReason(
        "partial", f"was sent by a page for a part of it: Sec-Fetch-Dest is {_printable(destination)!r}"
    )
