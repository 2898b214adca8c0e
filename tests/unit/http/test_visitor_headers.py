"""Which requests count as evidence: tables of what browsers, crawlers, proxies and scripts send, by either protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters.asgi import ASGIExchange
from sitemap_middleware.adapters.wsgi import WSGIExchange
from sitemap_middleware.http.request_filter import (
    IGNORE_REASONS,
    MAX_ACCEPT_CHARS,
    MAX_AGENT_CHARS,
    IgnoreReason,
    ignore_reason_of_header,
)

from ...support.sample_sites import Page, SampleSite
from ...support.wire import BOTH, ENVIRON, SCOPE, Headers, RequestSpec


async def asgi_app(scope: Any, receive: Any, send: Any) -> None: ...


def wsgi_app(environ: Any, start_response: Any) -> Any: ...


ON_ASGI: Any = SitemapMiddleware(asgi_app, store="memory://")
ON_WSGI: Any = SitemapMiddleware(wsgi_app, store="memory://")

CHROME = """
host: example.com
connection: keep-alive
cache-control: max-age=0
sec-ch-ua: "Chromium";v="141", "Not?A_Brand";v="8"
sec-ch-ua-mobile: ?0
sec-ch-ua-platform: "Linux"
upgrade-insecure-requests: 1
user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36
accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7
sec-fetch-site: none
sec-fetch-mode: navigate
sec-fetch-user: ?1
sec-fetch-dest: document
accept-encoding: gzip, deflate, br, zstd
accept-language: de-DE,de;q=0.9,en;q=0.8
priority: u=0, i
dnt: 1
sec-gpc: 1
save-data: on
referer: https://www.google.com/
te: trailers
"""
PROXIES = {
    "nginx": "x-real-ip: 192.0.2.1\nx-forwarded-for: 192.0.2.1\nx-forwarded-proto: https\nx-forwarded-host: example.com\nx-forwarded-port: 443\nx-request-id: 6f1c\nx-forwarded-prefix: /app\nx-forwarded-user-agent: x",
    "nginx, certificates optional": "x-ssl-client-verify: NONE\nx-client-verify: NONE\nx-ssl-client-s-dn: ",
    "Apache": "x-forwarded-server: example.com\nvia: 1.1 example.com\nx-remote-user: (null)\nx-forwarded-user: (null)\nx-ssl-client-verify: NONE",
    "HAProxy, its own recipe": 'x-ssl: 1\nx-ssl-session_id: 6f1c\nx-ssl-client-verify: 0\nx-ssl-client-dn: ""\nx-ssl-client-cn: ""\nx-ssl-issuer: ""\nx-ssl-client-notbefore: ""\nx-haproxy-current-date: x',
    "Cloudflare": 'cf-connecting-ip: 192.0.2.1\ncf-ipcountry: DE\ncf-ray: 8f\ncf-visitor: {"scheme":"https"}\ncdn-loop: cloudflare\ncf-ew-via: 15\ncf-worker: x\ncf-warp-tag-id: x\ntrue-client-ip: 192.0.2.1\ncf-verified-bot-category: x\ncf-cert-presented: false\ncf-cert-verified: false',
    "AWS ALB": "x-amzn-trace-id: Root=1-67\nx-amzn-tls-version: TLSv1.3\nx-amzn-tls-cipher-suite: TLS_AES\nx-forwarded-for: 192.0.2.1",
    "CloudFront": "x-amz-cf-id: x\ncloudfront-viewer-country: DE\ncloudfront-is-mobile-viewer: false\ncloudfront-viewer-address: x\ncloudfront-viewer-tls: x\ncloudfront-viewer-ja3-fingerprint: x\ncloudfront-forwarded-proto: https\nx-origin-verify: s3cret\nx-amz-date: x",
    "Lambda": 'x-amzn-requestid: x\nx-amzn-lambda-context: {}\nx-amzn-request-context: {"identity":null}',
    "GCP": "x-cloud-trace-context: x/1;o=1\ntraceparent: 00-1\nx-client-geo-location: DE\nforwarded: for=192.0.2.1",
    "App Engine": "x-appengine-country: DE\nx-appengine-user-ip: 192.0.2.1\nx-appengine-https: on\nx-appengine-request-log-id: x\nx-appengine-default-version-hostname: x\nx-appengine-auth-domain: gmail.com\nx-appengine-user-is-admin: 0\nx-proxyuser-ip: 192.0.2.1",
    "Azure": "x-arr-log-id: x\nx-arr-ssl: 2048|256|CN=x\nx-site-deployment-id: x\nwas-default-hostname: x\nx-original-url: /\ndisguised-host: x\nclient-ip: 192.0.2.1\nmax-forwards: 10\nx-appservice-proto: https\nx-forwarded-tlsversion: 1.3\nx-azure-ref: x\nx-azure-clientip: x\nx-azure-fdid: x\nx-waws-unencoded-url: /",
    "Fly": "fly-client-ip: 192.0.2.1\nfly-region: fra\nfly-request-id: x\nfly-forwarded-port: 443\nfly-traceparent: x\nx-request-start: t=1",
    "Heroku": "connect-time: 0\ntotal-route-time: 0\nx-request-start: 1\nvia: 1.1 vegur\nx-heroku-queue-wait-time: 1",
    "Vercel": "x-vercel-id: fra1::x\nx-vercel-deployment-url: x\nx-vercel-forwarded-for: x\nx-vercel-ip-country: DE\nx-vercel-ja4-digest: x\nx-vercel-proxy-signature: Bearer x\nx-vercel-oidc-token: x\nx-vercel-proxied-for: x",
    "Netlify": "x-nf-client-connection-ip: x\nx-nf-account-id: x\nx-nf-request-id: x\nx-country: DE\nx-language: de",
    "Render, Railway, DigitalOcean": "rndr-id: x\nx-railway-edge: x\nx-railway-request-id: x\ndo-connecting-ip: x",
    "Fastly, Akamai": "fastly-client-ip: x\nfastly-ssl: 1\nfastly-ff: x\nx-varnish: 1\nx-timer: x\nsurrogate-capability: key=1\nakamai-origin-hop: 1\nx-akamai-edgescape: x\nx-akamai-g2o-auth-data: x\nx-cache-key: x",
    "Traefik": "x-forwarded-server: x\nx-real-ip: x",
    "Istio": 'x-envoy-attempt-count: 1\nx-envoy-external-address: x\nx-envoy-peer-metadata-id: x\nx-envoy-peer-metadata: x\nx-envoy-decorator-operation: x\nx-envoy-internal: true\nx-b3-traceid: x\nx-forwarded-client-cert: By=spiffe://cluster.local/ns/a/sa/b;Hash=ab;Subject="";URI=spiffe://cluster.local/ns/c/sa/gateway, By=spiffe://cluster.local/ns/a/sa/c;Hash=cd;URI=spiffe://cluster.local/ns/a/sa/b',
    "Linkerd": "l5d-client-id: default.ns.serviceaccount.identity.linkerd.cluster.local\nl5d-dst-canonical: x",
    "Kong": "x-anonymous-consumer: true\nx-consumer-username: anonymous\nx-kong-request-id: x",
    "IIS": "ms-aspnetcore-token: x",
}
CRAWLERS = {
    "Googlebot": 'accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\nfrom: googlebot(at)googlebot.com\nuser-agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)\naccept-encoding: gzip, deflate, br\namp-cache-transform: google;v="1..8"\nif-modified-since: Tue, 14 Nov 2023 22:13:20 GMT',
    "Bingbot": "accept: */*\nfrom: bingbot(at)microsoft.com\nuser-agent: Mozilla/5.0 (compatible; bingbot/2.0)\npragma: no-cache\ncache-control: no-cache",
    "curl": "accept: */*\nuser-agent: curl/8.5.0",
    "wget": "accept: */*\naccept-encoding: identity\nuser-agent: Wget/1.21",
    "Go": "user-agent: Go-http-client/1.1\naccept-encoding: gzip",
    "Node's fetch": "accept: */*\naccept-language: *\nsec-fetch-mode: cors\nuser-agent: node",
    "Java": "accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\nuser-agent: Java/1.8",
    "a crawler that signs its requests": 'signature-agent: "https://bot.example"\nsignature-input: sig=()\nsignature: sig=:x:',
    "old WebKit": "accept: application/xml,application/xhtml+xml,text/html;q=0.9,text/plain;q=0.8,image/png,*/*;q=0.5",
    "no header": "",
    "an empty Accept": "accept: ",
    "any text": "accept: text/*",
    "HTML and JSON alike": "accept: text/html, application/json",
    "a page loaded ahead of time": CHROME.replace("document", "empty")
    + "sec-purpose: prefetch;prerender\npurpose: prefetch",
    "a preview": "x-purpose: preview",
    "X-Moz": "x-moz: prefetch",
    "XHTML": "accept: application/xhtml+xml",
    "an author": "x-author: x\nx-authority: x\nx-forwarded-authority: x",
    "an empty cookie": "cookie: ",
    "what says that nobody is known": "x-ssl-verify: NONE\nx-ssl-dn: (null)\nx-role: anonymous\nx-logged-in: 0\nx-internal: false",
    "a variant, for everybody": "x-country: DE\nx-lang: de\nx-currency: eur\nx-tenant: a\nx-org-id: 5\nx-theme: dark\nx-variant: b",
    "names that only hold such a word": "x-mailer: a\nx-scoped: a\nx-internals: a\nx-subset: a\nx-rolesy: a\nx-spinning: 1"
    "\nx-stafford: a\nx-signal: a\nx-hostname: a\nx-filename: a\nx-server-name: a\nx-draftsman: a\nx-tls-fingerprint: ja3",
    "a WebSocket key": "sec-websocket-key: x\nsec-websocket-version: 13",
}
ANONYMOUS = {
    "Chrome": CHROME,
    **CRAWLERS,
    **{f"behind {name}": CHROME + sent for name, sent in PROXIES.items()},
}

CREDENTIALS = {
    "a=b": "cookie COOKIE",
    "Basic YQ==": "authorization proxy-authorization",
    "none": "x-api-key",
    "1": """
        x-apikey api_key apikey x-access-token x-csrf-token x-xsrf x-session-id session cf-access-jwt-assertion
        cf-access-client-id x-forwarded-access-token x-authenticated-userid x-authentik-uid x-amzn-oidc-identity
        x-amzn-oidc-data x-amzn-oidc-accesstoken x-amzn-mtls-clientcert x-goog-authenticated-user-id
        x-goog-iap-jwt-assertion x-appengine-user-is-admin x-ms-client-principal x-ms-token-aad-access-token
        x-iis-windowsauthtoken x-arr-clientcert x-ssl-client-cert x-ssl-cert x-client-id client-cert
        x-forwarded-tls-client-cert x-forwarded-tls-client-cert-info cf-cert-presented oidc_claim_sub
        x-consumer-id x-signed-in x-account-id x-member x-customer x-device-id x-admin x-uid x-password x-secret
        x-msisdn x-wp-nonce dpop x-vercel-protection-bypass x-preview shib-session-id sec-session-id
        x-ssl-serial x-tls-serial x-ssl-fingerprint x-ssl-sha1 x-ssl-pem x-spiffe-id x-sub x-permission
        x-permissions x-ticket x-cas-ticket x-vouch-success x-phpsessid x-sid sid x-sess x-logged-in x-loggedin
        is-logged-in x-staff x-is-staff x-internal x-is-internal x-employee x-employee-id x-student-id
        x-patient-id x-otp x-pin x-signature x-hub-signature-256 x-hmac x-sig x-draft x-editor x-paid x-premium
        x-access-level x-phone
    """,
    "0": "x-auth-token",
    "ada": """
        tailscale-user-login cf-access-authenticated-user-email x-forwarded-email x-forwarded-user
        x-forwarded-preferred-username x-forwarded-groups x-remote-user remote-user remote_user remote-groups
        x-remote-group x-auth-request-user x-webauth-user x-vouch-user x-goog-authenticated-user-email
        x-appengine-user-email x-ms-client-principal-name x-saml-name x-sso-name x-pomerium-claim-name
        x-consumer-username x-credential-identifier x-login x-principal x-identity x-roles x-impersonate eppn
        x-ldap-name x-mail mail x-nickname x-nameid x-role x-hasura-role x-scope x-scopes
    """,
    "Ada": """
        tailscale-user-name tailscale-name remote-name x-ssl-cn x-cn x-name x-display-name x-displayname
        x-givenname x-first-name
    """,
    "CN=Ada": """
        x-amzn-mtls-clientcert-subject x-ssl-client-s-dn ssl-client-subject-dn x-client-dn x-tls-client-subject
        x-mtls-subject x-ssl-dn x-ssl-s-dn x-forwarded-dn x-dn x-distinguished-name x-ldap-dn
    """,
    "SUCCESS": """
        x-ssl-client-verify x-client-verify x-ssl-verified x-ssl-verify x-tls-verify ssl-verified
        x-client-verified x-verified
    """,
    'Hash=ab;Subject="CN=Ada";URI=spiffe://cluster.local/ns/a/sa/b': "x-forwarded-client-cert",
    "By=spiffe://cluster.local/ns/a/sa/b;Hash=ab": "x-forwarded-client-cert",
}
PARTIAL = {
    "1": """
        hx-request hx-boosted hx-target fx-request turbo-frame turbo-request-id x-turbo-request-id x-turbolinks
        turbolinks-referrer x-up-version x-up-target x-up-mode x-inertia x-inertia-partial-data
        x-inertia-version datastar-request x-datastar x-requested-by x-pjax x-pjax-container x-fetch
        x-fetch-mode x-livewire x-alpine-request x-ic-request x-barba x-swup-fragment x-partial x-render-partial
        x-fragment x-frame x-ajax x-is-ajax x-microsoftajax x-unicorn x-nextjs-data next-router-state-tree rsc
        x-sveltekit-invalidated wicket-ajax service-worker-navigation-preload
    """,
    "XMLHttpRequest": "x-requested-with",
    "fetch": "x-requested-with",
    "partial/ajax": "faces-request",
    "empty": "sec-fetch-dest",
    "iframe": "sec-fetch-dest",
    "serviceworker": "sec-fetch-dest",
}
OTHERS = {
    "range": "range: bytes=0-1\nif-range: x\nrequest-range: bytes=0-1",
    "method": "x-http-method-override: DELETE\nx-method-override: PUT\nx-http-method: PUT",
}
ACCEPTS = [
    'application/activity+json, application/ld+json; profile="https://www.w3.org/ns/activitystreams", text/html;q=0.1',
    'application/ld+json; profile="a, text/html;q=1"',
    "text/event-stream",
    "text/event-stream, text/html, application/json",
    "text/html;q=0",
    "application/json",
    "application/json, text/plain, */*",
    "image/avif,image/webp,image/*,*/*;q=0.8",
    "text/css,*/*;q=0.1",
    "text/markdown, text/html;q=0.9",
    "application/rss+xml, application/xml;q=0.9, */*;q=0.1",
    "nonsense",
    "text/html," + "a/b," * MAX_ACCEPT_CHARS,
]  # fmt: skip


MONITORS = [
    "kube-probe/1.29",
    "Amazon-Route53-Health-Check-Service (ref 1-2; report http://amzn.to/1vsZADi)",
    "Envoy/HC",
    "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    "GoogleStackdriverMonitoring-UptimeChecks(https://cloud.google.com/monitoring)",
    "Blackbox Exporter/0.24.0",
    "Prometheus/2.48.0",
    "check_http/v2.3.3 (nagios-plugins 2.3.3)",
    "KUBE-PROBE/1.30" + "x" * MAX_AGENT_CHARS,
]


def fields(text: str) -> Headers:
    pairs = (line.partition(":") for line in text.strip().splitlines())
    return [(name, value.strip()) for name, _, value in pairs]


def header_lines(names_by_value: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for value, names in names_by_value.items() for name in names.split()]


LINES = [
    *(("credentials", line) for line in header_lines(CREDENTIALS)),
    *(("partial", line) for line in header_lines(PARTIAL)),
    *((reason, line) for reason, lines in OTHERS.items() for line in lines.splitlines()),
    *(("accept", f"accept: {accept}") for accept in ACCEPTS),
    *(("monitor", f"user-agent: {agent}") for agent in MONITORS),
]


def of_scope(headers: Any) -> IgnoreReason | None:
    async def reason() -> IgnoreReason | None:
        scope = {**SCOPE, "path": "/", "headers": headers}
        return ASGIExchange(ON_ASGI, scope, ON_ASGI).request().ignore_reason()

    return asyncio.run(reason())


def of_environ(environ: dict[str, Any]) -> IgnoreReason | None:
    exchange = WSGIExchange(ON_WSGI, environ, lambda *_: bool)
    return exchange.request().ignore_reason()


def refusals(headers: Headers) -> list[IgnoreReason | None]:
    """The outcomes under both protocols, each twice, because the outcome for a name is cached."""
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    environ: dict[str, Any] = ENVIRON | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers}
    matches = [
        reason_found
        for _ in range(2)
        for reason_found in (
            of_scope(pairs),
            of_scope([list(pair) for pair in pairs]),  # as some servers send them
            of_environ(environ),
        )
    ]
    assert len({match and match.reason for match in matches}) == 1, matches
    return matches


@pytest.mark.parametrize("sent", ANONYMOUS.values(), ids=ANONYMOUS.keys())
def test_requests_of_browsers_and_crawlers_count_behind_any_proxy(sent: str) -> None:
    assert refusals(fields(sent))[0] is None


@pytest.mark.parametrize("browser", [CHROME, ""], ids=["Chrome", "bare"])
@pytest.mark.parametrize(("reason", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_one_header_too_much_keeps_a_request_from_counting(reason: str, line: str, browser: str) -> None:
    name = line.partition(":")[0].lower()
    remaining = [pair for pair in fields(browser) if pair[0] != name]
    for reason_found in refusals([*remaining, *fields(line)]):
        assert reason_found is not None
        assert reason_found.reason == reason
        assert reason_found.detail


@given(st.text(max_size=300), st.text(max_size=30))
def test_no_header_raises_and_what_is_shown_is_printable(name: str, value: str) -> None:
    found = ignore_reason_of_header(name, value)
    assert found is None or (found.reason in IGNORE_REASONS and found.detail.isprintable())
    environ = {f"HTTP_{name}": value}
    of_environ(environ)
    of_scope([(name.encode(), value.encode())])


# By the whole way


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("line", header_lines(CREDENTIALS)[::8])
def test_no_page_is_learned_from_identified_visitors(protocol: str, line: str) -> None:
    sample = SampleSite(protocol, {"/p/{slug}": Page()}, learn="/p/{slug}", verify=False)
    sample.request(RequestSpec("/p/private", headers=fields(line)))
    sample.visit("/p/public")
    assert sample.locs() == ["http://testserver/p/public"]


@BOTH
def test_ignored_requests_are_counted_by_reason_and_explained(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()}, base_url="https://testserver", verify=False)
    assert "did not count" not in str(sample.app.explain("/"))
    sample.request("/", method="HEAD")
    sample.request("/", query="a=b")
    sample.request("/", host="testserver")
    sample.request("/", host="stranger")
    sample.request(RequestSpec("/", headers=[("x-api-key", "1")]))
    sample.request(RequestSpec("/about", headers=[("x-api-key", "1")]))
    sample.request(RequestSpec("/" + "x" * 300, headers=[("x-api-key", "1")]))
    sample.app.flush()
    counts = {name: count for name, count in sample.app.stats().items() if name.startswith("ignored_") and count}
    assert counts == {"ignored_method": 1, "ignored_query": 1, "ignored_host": 1, "ignored_credentials": 3}
    explanation = str(sample.app.explain("/about"))
    assert (
        "6 did not count as evidence: 1 with another method than GET, 1 with a query string, 3 with credentials"
        in explanation
    )
    assert "the last of them for this page carried x-api-key" in explanation
    assert "for this page was for a Host" in str(sample.app.explain("/"))
    assert "this page" not in str(sample.app.explain("/" + "x" * 300))


@BOTH
@pytest.mark.parametrize("agent", ["kube-probe/1.29", "curl/8.5.0"])
@pytest.mark.parametrize("verify", [False, True])
def test_a_health_check_that_is_polled_does_not_list_itself(protocol: str, agent: str, verify: bool) -> None:
    ok = Page(body=b"ok")
    sample = SampleSite(protocol, {"/": Page(), "/healthz": ok, "/api/health": ok, "/up": ok}, verify=verify)
    for path in ("/healthz", "/api/health", "/up"):
        sample.request(RequestSpec(path, headers=[("user-agent", agent)]))
        sample.clock.pass_(10)
        sample.request(RequestSpec(path, headers=[("user-agent", agent)]))
    sample.app.flush()
    assert sample.locs() == ["http://testserver/"]
    assert "the option include lists it" in sample.app.explain("/healthz").reason
