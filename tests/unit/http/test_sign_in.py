"""Visitors who are identified apart from their headers: by the environ, the scope, or the framework's user."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.http.request_filter import ignore_reason_of_environ

from ...support.wire import ENVIRON, SCOPE

USERS = {
    "REMOTE_USER": "ada",
    "REMOTE_GROUPS": "staff",
    "AUTH_TYPE": "Basic",
    "LOGON_USER": "ada",
    "SSL_CLIENT_VERIFY": "SUCCESS",
    "HTTPS_DN": "CN=Ada",
    "CERT_SUBJECT": "CN=Ada",
    "OIDC_CLAIM_sub": "1",
    "MELLON_NAME_ID": "ada",
    "Shib-Session-ID": "x",
    "repoze.who.identity": {"repoze.who.userid": "ada"},
    "wsgiorg.user": "ada",
    "myauth.current_user": object(),
}
MACHINES = {
    "REMOTE_USER": "",
    "SSL_CLIENT_VERIFY": "NONE",
    "SSL_SESSION_ID": "6f1c",
    "SSL_CLIENT_PROTOCOL": "x",
    "REMOTE_PORT": "50000",
    "REMOTE_HOST": "example.net",
    "CERT_FLAGS": "0",
    "repoze.who.identity": None,
    "beaker.session": object(),
    "USER": "www-data",
    "OIDC_CLIENT_SECRET": "x",
    "SSL_CERT_FILE": "/x",
    ("an", "object"): "x",
}


@pytest.mark.parametrize("key", USERS)
def test_environ_key_that_names_a_user_disqualifies_a_request(key: str) -> None:
    environ = ENVIRON | {key: USERS[key]}
    for _ in range(2):
        refusal = ignore_reason_of_environ(environ, environ)
        assert refusal is not None
        assert refusal.reason == "credentials"
    assert ignore_reason_of_environ(ENVIRON, {**ENVIRON, key: "ada"}) is not None, "the app has taken it out"


def test_machine_and_anonymous_keys_do_not_disqualify() -> None:
    environ = ENVIRON | MACHINES
    for _ in range(2):
        assert ignore_reason_of_environ(environ, environ) is None


class User:
    def __init__(self, *, is_authenticated: bool) -> None:
        self.is_authenticated = is_authenticated


SCOPES = {
    "a user set outside": {"user": User(is_authenticated=True)},
    "a certificate": {"extensions": {"tls": {"client_cert_chain": ["MII"]}}},
    "the name of one": {"extensions": {"tls": {"client_cert_name": "CN=Ada"}}},
}
NOBODIES = {
    "nobody": {"user": User(is_authenticated=False)},
    "TLS": {"extensions": {"tls": {"client_cert_chain": [], "client_cert_name": None, "tls_version": 772}}},
    "TLS without details": {"extensions": {"tls": None}},
}


def answered(scope: dict[str, Any], set_by_the_app: Any = None) -> list[bool]:
    """Whether a page is listed once it was asked for: first as it is not yet known, and then as it is."""
    response = {"status": 200}

    async def app(scope: Any, _: Any, send: Any) -> None:
        if set_by_the_app is not None:
            scope["user"] = set_by_the_app
        await send(
            {"type": "http.response.start", "status": response["status"], "headers": [(b"content-type", b"text/html")]}
        )
        await send({"type": "http.response.body", "body": b"<p>"})

    async def receive() -> Any: ...
    async def send(_: Any) -> None: ...

    outcomes = []
    for known in (False, True):
        site: Any = SitemapMiddleware(
            app, store="memory://", base_url="https://example.com", include="/", list_unseen=False, verify=False
        )
        if known:
            asyncio.run(site(dict(SCOPE, path="/"), receive, send)) if set_by_the_app is None else None
        response["status"] = 404
        asyncio.run(site(dict(SCOPE, path="/", **scope), receive, send))
        response["status"] = 200
        outcomes.append(site.explain("/").listed)
    return outcomes


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES.keys())
def test_scope_that_names_a_visitor_is_not_evidence(scope: dict[str, Any]) -> None:
    assert answered(scope) == [True, True]


@pytest.mark.parametrize("scope", NOBODIES.values(), ids=NOBODIES.keys())
def test_anonymous_scope_is_evidence(scope: dict[str, Any]) -> None:
    assert answered(scope) == [False, False]


def test_user_signed_in_by_the_app_is_noticed_at_the_response() -> None:
    assert answered({}, User(is_authenticated=True)) == [True, True]
    assert answered({}, User(is_authenticated=False)) == [False, False]
