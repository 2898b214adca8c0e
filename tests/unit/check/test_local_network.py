"""Which addresses are connected to. The names are those of a resolver of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence

import pytest

from sitemap_middleware.check.responses import Failure, Response
from sitemap_middleware.check.runner import Result, Settings, check_sitemap
from sitemap_middleware.check.web_client import PoliteClient, resolve
from sitemap_middleware.check.web_source import WebSource

from .web_site import Reply, Time, WebSite, index, served, xml

NAME = "files.example.com"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served() as site:
        site.default = Reply(200, b"found")
        yield site


class Resolver:
    """Answers with one list of addresses after the other, and then with the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = [*answers]

    async def __call__(self, host: str) -> Sequence[str]:
        if not self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def request(url: str, resolver: Resolver, *, admitted: str = "", allow_local: bool = False) -> Response:
    async def run() -> Response:
        time = Time()
        client = PoliteClient(
            obey_robots=False, allow_local=allow_local, clock=time, sleep=time.sleep, resolve=resolver
        )
        async with client:
            if admitted:
                await client.admit(admitted)
            return await client.get(url, max_bytes=100)

    return asyncio.run(run())


def by_name(site: WebSite) -> str:
    return f"{site.origin.replace('127.0.0.1', NAME)}/a"


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["64:ff9b::7f00:1"], ["fe80::1%2"], ["169.254.169.254"]],
    ids=str,
)
def test_name_of_a_local_address_is_not_connected_to(site: WebSite, addresses: Sequence[str]) -> None:
    answer = request(by_name(site), Resolver(addresses))
    assert (answer.failure, site.requests) == (Failure.LOCAL, [])
    assert NAME in answer.reason


def test_local_address_in_the_url_is_not_connected_to(site: WebSite) -> None:
    answer = request(f"{site.origin}/a", Resolver(["127.0.0.1"]))
    assert (answer.failure, site.requests) == (Failure.LOCAL, [])


def test_redirect_to_a_local_name_is_not_followed(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy stands for the web: it answers for a host that has no address here."""
    monkeypatch.setenv("http_proxy", site.origin)
    monkeypatch.setenv("no_proxy", NAME)
    site.add("http://www.example.com/", Reply(302, headers={"Location": by_name(site)}))
    answer = request("http://www.example.com/", Resolver(["127.0.0.1"]))
    assert (answer.failure, site.requests) == (Failure.LOCAL, ["http://www.example.com/"])


def test_index_on_the_web_that_names_a_local_document(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", site.origin)
    monkeypatch.setenv("no_proxy", NAME)
    url = "http://www.example.com/sitemap.xml"
    site.add(url, xml(index(by_name(site))))

    async def run() -> Result:
        time, resolver = Time(), Resolver(["8.8.8.8"], ["127.0.0.1"])
        async with PoliteClient(obey_robots=False, clock=time, sleep=time.sleep, resolve=resolver) as client:
            return await check_sitemap(WebSource(url, client), Settings())

    messages = [(message.code, message.url) for message in asyncio.run(run()).messages]
    assert ("fetch-failed", by_name(site)) in messages
    assert {*site.requests} == {url, "http://www.example.com/robots.txt"}


def test_proxy_without_a_scheme(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", site.origin.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "")
    assert request("http://www.example.com/a", Resolver()).status == 200
    assert site.requests == ["http://www.example.com/a"]


def test_host_that_the_user_named_may_be_local(site: WebSite) -> None:
    url = f"{site.origin.replace('127.0.0.1', 'localhost')}/a"
    assert request(url, Resolver(["127.0.0.1"])).failure is Failure.LOCAL
    assert request(url, Resolver(["127.0.0.1"]), admitted=url).status == 200


@pytest.mark.parametrize("first", [["8.8.8.8"], ["8.8.8.8", "127.0.0.1"]], ids=str)
def test_name_that_becomes_local_is_not_connected_to(site: WebSite, first: Sequence[str]) -> None:
    answer = request(by_name(site), Resolver(first, ["127.0.0.1"]), admitted=by_name(site))
    assert (answer.failure, site.requests) == (Failure.LOCAL, [])


def test_name_without_an_address() -> None:
    answer = request(f"http://{NAME}/", Resolver(), admitted=f"http://{NAME}/")
    assert answer.failure is Failure.CONNECTION
    assert "no address" in answer.reason


def test_resolver_of_the_system() -> None:
    assert asyncio.run(resolve("127.0.0.1")) == ["127.0.0.1"]
