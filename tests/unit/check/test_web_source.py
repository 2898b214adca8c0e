"""What the response of a server shows: each case gives exactly one code."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sitemap_middleware.check import web_client
from sitemap_middleware.check.clients import Failure, Response
from sitemap_middleware.check.findings import FAMILIES
from sitemap_middleware.check.run_check import sitemap_urls
from sitemap_middleware.check.run_state import CheckSettings
from sitemap_middleware.check.web_client import WebClient
from sitemap_middleware.exceptions import SitemapError

from .web_site import Reply, Time, WebSite, check_url, codes, index, served, urlset, xml

PATH = "/sitemap.xml"
HTML = Reply(200, b"<!doctype html><title>Sign in</title>", {"Content-Type": "text/html"})


@pytest.fixture
def site() -> Iterator[WebSite]:
    with served() as site:
        yield site


def good(site: WebSite) -> Reply:
    return xml(urlset(f"{site.origin}/"))


def redirect(target: str) -> Reply:
    return Reply(302, headers={"Location": target})


def in_a_circle(site: WebSite) -> None:
    site.add(PATH, redirect("/a.xml"))
    site.add("/a.xml", redirect(PATH))


def with_many_redirects(site: WebSite) -> None:
    site.add(PATH, redirect("/0"))
    for number in range(20):
        site.add(f"/{number}", redirect(f"/{number + 1}"))


def redirected(site: WebSite) -> None:
    site.add(PATH, redirect("/a.xml"))
    site.add("/a.xml", good(site))


def to_a_login_page(site: WebSite) -> None:
    site.add(PATH, redirect("/login?next=/sitemap.xml"))
    site.add("/login?next=/sitemap.xml", HTML)


def forbidden_by_robots(site: WebSite) -> None:
    site.add("/robots.txt", Reply(200, b"User-agent: *\nDisallow: /sitemap.xml\n"))
    site.add(PATH, good(site))


def for_browsers_only(site: WebSite) -> None:
    site.add(PATH, Reply(403))
    site.browser_replies[PATH] = good(site)


def cut_off(site: WebSite) -> None:
    body = good(site).body
    site.add(PATH, Reply(200, body[:-20], {"Content-Type": "application/xml"}, len(body)))


def encoded(coding: str, change: Callable[[bytes], bytes]) -> Callable[[WebSite], None]:
    def add(site: WebSite) -> None:
        headers = {"Content-Type": "application/xml", "Content-Encoding": coding}
        site.add(PATH, Reply(200, change(good(site).body), headers))

    return add


FAULTY: dict[str, tuple[str, Callable[[WebSite], None]]] = {
    "missing": ("fetch-status", lambda _: None),
    "overloaded all the time": ("fetch-status", lambda site: site.add(PATH, Reply(503))),
    "401": ("fetch-login", lambda site: site.add(PATH, Reply(401))),
    "redirect to a login page": ("fetch-login", to_a_login_page),
    "redirect": ("fetch-redirect", redirected),
    "redirects in a circle": ("fetch-redirect-loop", in_a_circle),
    "many redirects": ("fetch-redirect-loop", with_many_redirects),
    "redirect to what is no URL": ("fetch-failed", lambda site: site.add(PATH, redirect("ftp://example.com/"))),
    "redirect to no name": ("fetch-failed", lambda site: site.add(PATH, redirect("http://xn--a.example/"))),
    "forbidden by robots.txt": ("fetch-robots", forbidden_by_robots),
    "robots.txt fails": ("fetch-robots", lambda site: site.add("/robots.txt", Reply(500))),
    "for browsers only": ("fetch-user-agent", for_browsers_only),
    "HTML": ("fetch-html", lambda site: site.add(PATH, HTML)),
    "cut off": ("fetch-failed", cut_off),
    "a type of pages": (
        "fetch-content-type",
        lambda site: site.add(PATH, Reply(200, good(site).body, {"Content-Type": "text/html"})),
    ),
    "no type": ("fetch-content-type", lambda site: site.add(PATH, Reply(200, good(site).body))),
    "not asked for": ("fetch-content-encoding", encoded("br", lambda body: body)),
    "damaged": ("fetch-gzip-broken", encoded("gzip", lambda body: gzip.compress(body)[:-6])),
    "not gzip": ("fetch-gzip-broken", encoded("gzip", lambda body: body)),
    "compressed three times": (
        "fetch-gzip-twice",
        encoded("gzip", lambda body: gzip.compress(gzip.compress(gzip.compress(body)))),
    ),
}


@pytest.mark.parametrize("case", [*FAULTY])
def test_faulty_response_gives_exactly_its_code(site: WebSite, case: str) -> None:
    code, make = FAULTY[case]
    make(site)
    assert codes(check_url(f"{site.origin}{PATH}")) == [code]


def test_each_rule_of_responses_has_a_faulty_one() -> None:
    codes = {rule.code for rule in FAMILIES[0].rules}
    assert codes == {code for code, _ in FAULTY.values()} | {"fetch-timeout"}


@pytest.mark.parametrize("change", [lambda body: body, gzip.compress], ids=["plain file", "compressed file"])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_good_response_gives_no_message(site: WebSite, change: Callable[[bytes], bytes], coding: str) -> None:
    compress: Callable[[bytes], bytes] = gzip.compress if coding else bytes
    encoded(coding, lambda body: compress(change(body)))(site)
    assert check_url(f"{site.origin}{PATH}").findings == []


def test_host_without_server() -> None:
    with served() as site:
        origin = site.origin
    (finding,) = check_url(f"{origin}{PATH}").findings
    assert finding.code == "fetch-failed"
    assert finding.text.lower() == f"could not connect to {origin.removeprefix('http://')}: connection refused"


def test_server_whose_headers_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "TIMEOUT_SECONDS", 0.1)
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        connection.sendall(b"HTTP/1.1 200 OK\r\n")
                        while not is_over.wait(0.01):
                            connection.sendall(b"X-Slow: 1\r\n")

        thread = threading.Thread(target=send)
        thread.start()
        try:
            assert codes(check_url(f"http://127.0.0.1:{server.getsockname()[1]}{PATH}")) == ["fetch-timeout"]
        finally:
            is_over.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_document_that_never_ends(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "DEADLINE_SECONDS", 0.05)
    site.add(PATH, good(site)._replace(length=10_000, seconds=5))
    assert codes(check_url(f"{site.origin}{PATH}")) == ["fetch-timeout"]


def test_overload_is_waited_for(site: WebSite) -> None:
    site.add(PATH, Reply(503, headers={"Retry-After": "7"}), Reply(429), good(site))
    assert check_url(f"{site.origin}{PATH}").findings == []
    assert site.requests.count(PATH) == 3
    site.close(PATH)
    assert codes(check_url(f"{site.origin}{PATH}")) == ["fetch-failed"]
    assert site.requests.count(PATH) == 5, "a request that may have timed out is made twice"


@pytest.mark.parametrize("pause", ["3600", "Sat, 31 Jan 2099 14:00:00 GMT"])
def test_host_that_asks_for_a_long_pause_is_left_alone(site: WebSite, pause: str) -> None:
    site.add(PATH, Reply(503, headers={"Retry-After": pause}), good(site))
    assert codes(check_url(f"{site.origin}{PATH}")) == ["fetch-status"]
    assert site.requests.count(PATH) == 1


def test_urls_of_a_sitemap(site: WebSite, tmp_path: Path) -> None:
    site.add("/robots.txt", Reply(200, f"Sitemap: {site.origin}/a.xml\n".encode()))
    site.add("/a.xml", xml(index(f"{site.origin}/b.xml")))
    site.add_sitemap("/b.xml", "/1", "/2")
    assert sitemap_urls(site.origin, []) == [f"{site.origin}/1", f"{site.origin}/2"]
    site.add("/robots.txt", Reply(404))
    site.add_sitemap("/sitemap.xml", "/3")
    assert sitemap_urls(f"{site.origin}/".upper(), []) == [f"{site.origin}/3"]
    (tmp_path / "sitemap.xml").write_text(urlset("https://example.com/a"), "utf-8")
    assert (
        sitemap_urls(str(tmp_path), []) == sitemap_urls(str(tmp_path / "sitemap.xml"), []) == ["https://example.com/a"]
    )


def test_urls_of_a_folder_of_a_site(site: WebSite) -> None:
    site.add("/robots.txt", Reply(200, f"Sitemap: {site.origin}/a.xml\n".encode()))
    site.add_sitemap("/shop/sitemap.xml", "/shop/1")
    site.add_sitemap("/sitemap/", "/2")
    assert sitemap_urls(f"{site.origin}/shop/", []) == [f"{site.origin}/shop/1"]
    assert sitemap_urls(f"{site.origin}/sitemap/", []) == [f"{site.origin}/2"]
    site.add("/robots.txt", Reply(200, f"Sitemap: {site.origin}/a.xml\nSitemap: {site.origin}/shop/b.xml\n".encode()))
    site.add_sitemap("/shop/b.xml", "/shop/3")
    assert sitemap_urls(f"{site.origin}/shop/", []) == [f"{site.origin}/shop/3"]


def test_why_a_sitemap_has_no_urls(site: WebSite, tmp_path: Path) -> None:
    site.add("/closed.xml", Reply(401))
    (tmp_path / "index.xml").write_text(index("https://example.com/b.xml"), "utf-8")
    for target, reason in {
        f"{site.origin}/missing.xml": "the server answers 404",
        f"{site.origin}/closed.xml": "answers 401; a user and password in the URL are sent, as in https://user:password@",
        str(tmp_path / "index.xml"): "https://example.com/b.xml: no file of .* is this sitemap",
        f"{site.origin}/closed.xml".replace("//", "//ann:wrong@"): "answers 401; the user and password were refused",
        "example.com/sitemap.xml": "give a URL with http:// or https://",
    }.items():
        with pytest.raises(SitemapError, match=reason):
            sitemap_urls(target, [])


@pytest.mark.parametrize("url", ["https://[/", "mailto:ann@example.com"])
def test_robots_that_names_what_is_no_url(site: WebSite, url: str) -> None:
    site.add("/robots.txt", Reply(200, f"Sitemap: {url}\n".encode()))
    assert codes(check_url(site.origin)) == ["fetch-failed"]


def test_documents_of_an_index_are_read_each_once(site: WebSite) -> None:
    names = [f"/{number}.xml" for number in range(12)]
    site.add(PATH, xml(index(*(f"{site.origin}{name}" for name in names))))
    for name in names:
        site.add_sitemap(name, f"{name}/page")
    result = check_url(f"{site.origin}{PATH}")
    assert (result.checked, len(result.urls), result.findings) == (13, 12, [])
    assert sorted(site.requests) == sorted(["/robots.txt", PATH, *names])
    site.delays["/1.xml"] = 0.1
    site.add_sitemap("/7.xml", "/1.xml/page")
    again = check_url(f"{site.origin}{PATH}")
    assert [url.document for url in again.urls] == [url.document for url in result.urls], "the order of the index"
    assert [finding.document for finding in again.findings] == [f"{site.origin}/7.xml"]


def test_index_without_end_is_left_at_the_limit(site: WebSite) -> None:
    for number in range(30):
        site.add(f"/{number}.xml", xml(index(f"{site.origin}/{number + 1}.xml")))
    result = check_url(f"{site.origin}/0.xml", settings=CheckSettings(max_documents=5))
    assert {*codes(result)} == {"index-nested", "index-not-all-read"}
    assert result.checked == 5


def test_robots_that_forbids_only_other_programs(site: WebSite) -> None:
    rules = b"User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nUser-agent: Bingbot\nDisallow:\n"
    site.add("/robots.txt", Reply(200, rules))
    site.add(PATH, good(site))
    with pytest.raises(SitemapError, match="--ignore-robots"):
        check_url(f"{site.origin}{PATH}")
    assert site.requests == ["/robots.txt"]
    assert check_url(f"{site.origin}{PATH}", obey_robots=False).findings == []
    site.add("/robots.txt", Reply(200, rules.replace(b"Disallow: /\n", b"Disallow: /a.xml\n")))
    site.add(PATH, xml(index(f"{site.origin}/a.xml")))
    assert codes(check_url(f"{site.origin}{PATH}")) == ["index-not-all-read"]


# Which addresses are connected to

NAME = "files.example.com"


@pytest.fixture
def web(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> WebSite:
    """A site that stands for any host, without proxies."""
    site.default = Reply(200, b"found")
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return site


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The answers of the resolver for names, one after the other; the last one is given again. None fails."""
    answers = list[list[str]]()
    real = socket.getaddrinfo

    def resolve(host: str, *args: object, **options: object) -> object:
        if host in ("127.0.0.1", "localhost"):
            return real(host, *args, **options)  # type: ignore[arg-type] # passed on
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return answers


def test_host_without_address(addresses: list[list[str]]) -> None:
    (finding,) = check_url(f"http://bakery.example{PATH}").findings
    text = "could not connect to bakery.example: no such name"
    assert (finding.code, finding.text, addresses) == ("fetch-failed", text, [])


def request(url: str, *, named: str = "") -> Response:
    async def run() -> Response:
        time = Time()
        async with WebClient(named, obey_robots=False, clock=time, sleep=time.sleep) as client:
            return await client.get(url, 100)

    return asyncio.run(run())


def by_name(site: WebSite) -> str:
    return f"{site.origin.replace('127.0.0.1', NAME)}/a"


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["64:ff9b::7f00:1"], ["fe80::1%2"], ["169.254.169.254"]],
    ids=str,
)
def test_name_of_a_local_address_is_not_connected_to(
    web: WebSite, addresses: list[list[str]], found: list[str]
) -> None:
    addresses.append(found)
    answer = request(by_name(web))
    assert (answer.failure, web.requests) == (Failure.LOCAL, [])
    assert NAME in answer.reason


def test_index_on_the_web_that_names_and_redirects_to_local_hosts(
    web: WebSite, addresses: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy stands for the web: it answers for a host that has no address here."""
    monkeypatch.setenv("http_proxy", web.origin)
    monkeypatch.setenv("no_proxy", NAME)
    addresses += [["8.8.8.8"], ["127.0.0.1"]]
    url, moved = "http://www.example.com/sitemap.xml", "http://www.example.com/moved.xml"
    web.add(url, xml(index(by_name(web), moved)))
    web.add(moved, redirect(by_name(web)))
    result = check_url(url, obey_robots=False)
    failed = [(finding.url, finding.text) for finding in result.findings if finding.code == "fetch-failed"]
    text = f"{NAME} is not on the web, but in the local network"
    assert failed == [(by_name(web), text), (moved, text)]
    assert {*web.requests} == {url, moved, "http://www.example.com/robots.txt"}


def test_proxy_without_a_scheme(web: WebSite, addresses: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", web.origin.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "")
    assert (request("http://www.example.com/a").status, addresses) == (200, [])
    assert web.requests == ["http://www.example.com/a"]


@pytest.mark.parametrize(("host", "seconds"), [("127.0.0.1", 0), ("www.example.com", 20)])
def test_requests_are_apart_but_on_the_own_machine(
    web: WebSite, monkeypatch: pytest.MonkeyPatch, host: str, seconds: int
) -> None:
    monkeypatch.setenv("http_proxy", web.origin)
    time, url = Time(), web.origin.replace("127.0.0.1", host)
    for base in (url, ""):  # as a server, and as a proxy
        web.add(f"{base}/robots.txt", Reply(200, b"User-agent: *\nCrawl-delay: 60\n"))
        web.add(f"{base}/a.xml", xml(index(f"{url}/b.xml", f"{url}/c.xml")))
    check_url(f"{url}/a.xml", clock=time, sleep=time.sleep)
    assert len(web.requests) == 4
    assert int(time.now) == seconds


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_local_host_in_the_url_is_connected_to_only_if_the_user_named_it(web: WebSite, host: str) -> None:
    url = f"{web.origin.replace('127.0.0.1', host)}/a"
    assert (request(url).failure, web.requests) == (Failure.LOCAL, [])
    assert request(url, named=url).status == 200


@pytest.mark.parametrize("first", [["8.8.8.8"], ["8.8.8.8", "127.0.0.1"]], ids=str)
def test_name_that_becomes_local_is_not_connected_to(
    web: WebSite, addresses: list[list[str]], first: list[str]
) -> None:
    addresses += [first, ["127.0.0.1"]]
    answer = request(by_name(web), named=by_name(web))
    assert (answer.failure, web.requests) == (Failure.LOCAL, [])
