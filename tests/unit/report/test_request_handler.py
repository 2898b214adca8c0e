"""Who may read the report: nobody in production unless `authorize` says so, and this machine in debug mode."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from sitemap_middleware.report.request_handler import ReportRequest

from ...support.sample_sites import Page, SampleSite
from ...support.wire import BOTH, DRIVERS, Answer, RequestSpec

REPORT = "/internal/report"


def site(protocol: str, *, debug: bool = False, **options: Any) -> SampleSite:
    sample = SampleSite(protocol, {"/": Page()}, base_url="https://shop.example", report=REPORT, **options)
    sample.bare.debug = debug
    return sample


def request(sample: SampleSite, path: str = REPORT, host: str = "localhost", **more: Any) -> Answer:
    return sample.request(path, host=host, **more)


def from_app(sample: SampleSite, path: str = REPORT, **more: Any) -> Answer:
    return DRIVERS[sample.protocol](sample.bare, RequestSpec(path, **more))


@BOTH
class TestWithoutAuthorize:
    def test_it_is_shown_in_debug_mode_on_this_machine(self, protocol: str) -> None:
        answer = request(site(protocol, debug=True))
        assert answer.status == 200
        assert "What the sitemap lists" in answer.text

    def test_in_production_its_path_is_the_apps_own(self, protocol: str) -> None:
        sample = site(protocol)
        for path in (REPORT, f"{REPORT}/", f"{REPORT}/pages", f"{REPORT}/style.css"):
            assert request(sample, path) == from_app(sample, path, host="localhost")
            assert request(sample, path).status == 404

    def test_in_production_the_log_tells_this_machine_once_why(
        self, protocol: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        sample = site(protocol)
        request(sample, "/")
        request(sample, host="shop.example")
        request(sample, headers=[("x-forwarded-for", "127.0.0.1")])
        assert caplog.messages == []
        request(sample)
        request(sample, f"{REPORT}/pages")
        assert caplog.messages == [
            "the report is not shown: the app is not in debug mode, and the option authorize is not set"
        ]

    @pytest.mark.parametrize(
        ("status", "hosts"),
        [
            (200, ["localhost:8000", "LOCALHOST", "127.0.0.1:5000", "[::1]", "[::1]:8000"]),
            (404, ["shop.example", "", "127.0.0.1.attacker.example", "testserver", "shop.localhost", "[::2]"]),
        ],
    )
    def test_the_host_is_a_name_of_this_machine(self, status: int, hosts: list[str], protocol: str) -> None:
        sample = site(protocol, debug=True)
        assert {host: request(sample, host=host).status for host in hosts} == dict.fromkeys(hosts, status)

    @pytest.mark.parametrize(
        "header",
        [
            *("x-forwarded-for", "forwarded", "x-real-ip", "via", "cf-connecting-ip"),
            *("X_Forwarded_For", "X_Real-IP", "X-Forwarded", "X-Forwarded-By", "CF_Ray"),
        ],
    )
    def test_what_a_proxy_forwards_is_refused(self, protocol: str, header: str) -> None:
        assert request(site(protocol, debug=True), headers=[(header, "127.0.0.1")]).status == 404

    @pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
    def test_another_method_is_the_apps_own(self, protocol: str, method: str) -> None:
        sample = site(protocol, debug=True)
        assert request(sample, method=method).status == from_app(sample, method=method).status


@BOTH
class TestAuthorize:
    def test_it_alone_decides(self, protocol: str) -> None:
        def allow(request: ReportRequest) -> bool:
            return request.headers.get("X-Key") == "open"

        sample = site(protocol, debug=True, authorize=allow)
        assert request(sample).status == 404
        assert request(sample, headers=[("x-key", "open"), ("x-key", "open")]).status == 404, "they are joined"
        assert request(sample, host="shop.example", headers=[("x-key", "open"), ("via", "proxy")]).status == 200

    def test_it_is_given_the_path_and_the_request_of_the_protocol(self, protocol: str) -> None:
        asked: list[ReportRequest] = []
        sample = site(protocol, authorize=lambda request: bool(asked.append(request)))
        request(sample, f"{REPORT}/pages")
        assert [item.path for item in asked] == [f"{REPORT}/pages"]
        assert asked[0].headers["HOST"] == "localhost"
        assert (asked[0].environ is None, asked[0].scope is None) == (protocol == "asgi", protocol == "wsgi")

    def test_an_error_in_it_refuses_and_is_logged_once(self, protocol: str, caplog: pytest.LogCaptureFixture) -> None:
        def fail(request: ReportRequest) -> bool:
            raise LookupError("no such user")

        async def fail_async(request: ReportRequest) -> bool:
            return fail(request)

        sample = site(protocol, authorize=fail if protocol == "wsgi" else fail_async)
        assert request(sample).status == request(sample).status == 404
        messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        (message,) = messages
        assert message.startswith("authorize failed, so the report is not shown: LookupError('no such user')")
        assert ("with app.request_context(dict(request.environ))" in message) == (protocol == "wsgi")

    def test_it_may_ask_a_browser_for_a_password(self, protocol: str) -> None:
        def allow(request: ReportRequest) -> Any:
            asks = 401, [("WWW-Authenticate", 'Basic realm="report"')]
            return request.headers.get("Authorization") == "Basic b3Blbg==" or asks

        sample = site(protocol, authorize=allow)
        refused = request(sample)
        assert (refused.status, refused.header("www-authenticate")) == (401, 'Basic realm="report"')
        assert refused.header("cache-control") == "no-store"
        assert request(sample, headers=[("authorization", "Basic b3Blbg==")]).status == 200

    @pytest.mark.parametrize("answer", [(), (200, []), (999, []), (401, [("one",)]), (True, True)])
    def test_another_tuple_refuses(self, protocol: str, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
        assert request(site(protocol, authorize=lambda _: answer)).status == 404
        assert "authorize failed, so the report is not shown" in caplog.text


def test_authorize_without_a_report_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    SampleSite("wsgi", {"/": Page()}, base_url="https://shop.example", authorize=lambda _: True)
    assert caplog.messages == ["authorize has no effect without the option report: give report a path"]


async def ask(request: ReportRequest) -> bool:
    return request.path.endswith("/pages")


class Pending:
    def __await__(self) -> Any:
        yield


def test_an_asgi_app_may_have_an_async_authorize() -> None:
    sample = site("asgi", authorize=ask)
    assert request(sample).status == 404
    assert request(sample, f"{REPORT}/pages").status == 200


@pytest.mark.parametrize("authorize", [ask, lambda _: Pending()])
def test_a_wsgi_app_refuses_what_it_cannot_await(authorize: Any, caplog: pytest.LogCaptureFixture) -> None:
    sample = site("wsgi", authorize=authorize)
    for _ in range(2):
        assert request(sample, f"{REPORT}/pages").status == 404
    assert caplog.text.count("which a WSGI app cannot await; give a plain function") == 1


@BOTH
def test_a_route_of_the_app_at_its_path_wins_with_one_warning(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    sample = SampleSite(protocol, {REPORT: Page()}, report=REPORT, authorize=lambda _: True)
    assert b"A page." in request(sample).body
    assert b"A page." in request(sample).body
    assert caplog.text.count(f"the app itself has a route for {REPORT}") == 1
    assert request(sample, f"{REPORT}/pages").status == 200


@BOTH
def test_its_path_is_never_listed_nor_observed(protocol: str) -> None:
    sample = SampleSite(protocol, {REPORT: Page(), f"{REPORT}/pages": Page(), "/": Page()}, report=REPORT, robots=False)
    sample.visit("/", REPORT, f"{REPORT}/pages")
    assert sample.app.stats()["seen"] == 1
    assert sample.locs(host="localhost") == ["http://localhost/"]
    assert sample.app.explain(f"{REPORT}/pages").reason == "it is the sitemap's report"


@BOTH
def test_every_response_is_neither_stored_nor_indexed(protocol: str) -> None:
    sample = site(protocol, debug=True)
    for path in (REPORT, f"{REPORT}/", f"{REPORT}/pages", f"{REPORT}/none", f"{REPORT}/style.css"):
        answer = request(sample, path)
        assert answer.header("cache-control") == "no-store"
        assert answer.header("x-robots-tag") == "noindex, nofollow"
        assert (answer.header("content-security-policy") or "").startswith("default-src 'none'; style-src 'self'; ")


def status_from(protocol: str, server: Any, client: Any, version: str) -> int:
    """The status of the report if the server has this address, and the client that one."""
    app: Any = site(protocol, debug=True).app

    def wsgi(environ: Any, start_response: Any) -> Any:
        changed = {"SERVER_NAME": server, "REMOTE_ADDR": client, "SERVER_PROTOCOL": f"HTTP/{version}"}
        return app({**environ, **changed}, start_response)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        changed = {"server": server and (server, 80), "client": client and (client, 1), "http_version": version}
        await app({**scope, **changed}, receive, send)

    return DRIVERS[protocol](wsgi if protocol == "wsgi" else asgi, RequestSpec(REPORT, host="localhost")).status


@BOTH
@pytest.mark.parametrize(
    ("server", "client", "version", "status"),
    [
        ("127.0.0.1", "127.0.0.1", "1.1", 200),
        ("::1", "::1", "2", 200),
        ("localhost", "127.8.8.8", "1.1", 200),
        ("0.0.0.0", "127.0.0.1", "1.1", 404),
        ("127.0.0.1", "192.168.0.9", "1.1", 404),
        ("127.0.0.1", None, "1.1", 404),
        ("127.0.0.1", "testclient", "1.1", 404),
        (None, None, "1.1", 404),
        ("127.0.0.1", "127.0.0.1", "1.0", 404),  # that of a proxy
        ("127.0.0.1", "127.0.0.1", "0.9", 404),
    ],
)
def test_only_loopback_addresses_without_a_proxy_are_this_machine(
    server: Any, client: Any, version: str, status: int, protocol: str
) -> None:
    assert status_from(protocol, server, client, version) == status


def test_the_middleware_gives_the_error_of_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = site("wsgi", debug=True)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("sitemap_middleware.report.")]:
        if not name.endswith(".request_handler"):
            monkeypatch.delitem(sys.modules, name)
    answer = request(sample)
    assert answer.status == 501
    assert 'the report needs the extra "report": pip install "sitemap-middleware[report]"' in answer.text
