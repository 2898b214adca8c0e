from __future__ import annotations

import socket
from collections.abc import Iterable

import pytest

from sitemap_middleware.crawlers.counted_visits import FAKE, UNVERIFIED, VERIFIED
from sitemap_middleware.crawlers.ip_address_ranges import parse_ranges
from sitemap_middleware.crawlers.ip_address_verification import KNOWN_SECONDS, RETRY_SECONDS, SystemResolver, Verifier
from sitemap_middleware.crawlers.known_crawlers import crawler_of_agent

GOOGLEBOT, GPTBOT, BYTESPIDER = (crawler_of_agent(name) for name in ("Googlebot", "GPTBot", "Bytespider"))
GOOGLE, STRANGER = "66.249.66.1", "203.0.112.9"
GOOGLE_NAME = "crawl-66-249-66-1.googlebot.com"


class DNS:
    """Records in place of DNS. It counts what it is asked."""

    def __init__(self, names: dict[str, list[str]], addresses: dict[str, list[str]]) -> None:
        self._names = names
        self._addresses = addresses
        self.asked = 0
        self.is_down = False

    def names(self, address: str) -> Iterable[str]:
        self.asked += 1
        if self.is_down:
            raise OSError("no server answers")
        return self._names.get(address, [])

    def addresses(self, name: str) -> Iterable[str]:
        self.asked += 1
        return self._addresses.get(name, [])


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def verifier(dns: DNS, clock: Clock | None = None) -> Verifier:
    return Verifier(dns, clock or Clock())


@pytest.mark.parametrize(
    ("names", "addresses", "identity"),
    [
        ([GOOGLE_NAME], [GOOGLE], VERIFIED),
        ([GOOGLE_NAME.upper() + "."], [GOOGLE], VERIFIED),
        ([GOOGLE_NAME], ["192.0.2.1", GOOGLE], VERIFIED),
        ([GOOGLE_NAME], ["192.0.2.1"], FAKE),
        ([GOOGLE_NAME], [], FAKE),
        ([], [], FAKE),
        (["evil.example"], [GOOGLE], FAKE),
        (["googlebot.com.evil.example"], [GOOGLE], FAKE),
        (["evilgooglebot.com"], [GOOGLE], FAKE),
        (["1.2.3.4.bc.googleusercontent.com"], [GOOGLE], FAKE),
        (["evil.example", GOOGLE_NAME], [GOOGLE], VERIFIED),
    ],
    ids=[
        "confirmed",
        "spelling",
        "two addresses",
        "forged",
        "no address",
        "no name",
        "other",
        "prefix",
        "no dot",
        "cloud",
        "second",
    ],
)
def test_a_name_counts_if_it_leads_back_to_the_address(names: list[str], addresses: list[str], identity: int) -> None:
    forward = {name.lower().rstrip("."): addresses for name in names}
    assert verifier(DNS({GOOGLE: names}, forward)).identity(GOOGLEBOT, GOOGLE) == identity


def test_many_names_of_one_address_are_not_all_looked_up() -> None:
    names = [f"{number}.googlebot.com" for number in range(1000)]
    dns = DNS({STRANGER: names}, {})
    assert verifier(dns).identity(GOOGLEBOT, STRANGER) == FAKE
    assert dns.asked < 10


def test_an_ipv6_address_and_one_mapped_to_ipv4_are_verified() -> None:
    dns = DNS(
        {"2001:4860:4801:10::1": [GOOGLE_NAME], GOOGLE: [GOOGLE_NAME]},
        {GOOGLE_NAME: ["2001:4860:4801:10:0::1", GOOGLE]},
    )
    assert verifier(dns).identity(GOOGLEBOT, "2001:4860:4801:10::1") == VERIFIED
    assert verifier(dns).identity(GOOGLEBOT, f"::ffff:{GOOGLE}") == VERIFIED


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "", "unix:", "testclient", "1.2.3"]
)
def test_an_address_of_a_proxy_or_of_nobody_is_unverified_and_not_looked_up(address: str) -> None:
    dns = DNS({}, {})
    assert verifier(dns).identity(GOOGLEBOT, address) == UNVERIFIED
    assert not dns.asked


def test_answers_of_dns_are_remembered_and_failures_for_a_while() -> None:
    dns, clock = DNS({GOOGLE: [GOOGLE_NAME]}, {GOOGLE_NAME: [GOOGLE]}), Clock()
    checked = verifier(dns, clock)
    dns.is_down = True
    assert checked.identity(GOOGLEBOT, GOOGLE) == UNVERIFIED
    dns.is_down = False
    clock.now += RETRY_SECONDS - 1
    assert checked.identity(GOOGLEBOT, GOOGLE) == UNVERIFIED
    clock.now += 1
    assert checked.identity(GOOGLEBOT, GOOGLE) == VERIFIED
    asked = dns.asked
    clock.now += KNOWN_SECONDS - 1
    assert checked.identity(GOOGLEBOT, GOOGLE) == VERIFIED
    assert dns.asked == asked
    clock.now += 1
    assert checked.identity(GOOGLEBOT, GOOGLE) == VERIFIED
    assert dns.asked == 2 * asked - 1  # the first question failed


def test_a_crawler_with_ranges_alone_is_fake_only_if_they_are_known() -> None:
    checked = verifier(DNS({}, {}))
    assert checked.identity(GPTBOT, STRANGER) == UNVERIFIED
    checked.use_ranges({GPTBOT.range_urls[0]: parse_ranges(b'["20.171.206.0/24"]')})
    assert checked.identity(GPTBOT, "20.171.206.7") == VERIFIED
    assert checked.identity(GPTBOT, STRANGER) == FAKE


def test_an_address_in_the_ranges_needs_no_dns() -> None:
    dns = DNS({}, {})
    checked = verifier(dns)
    checked.use_ranges({GOOGLEBOT.range_urls[0]: parse_ranges(b'{"prefixes": [{"ipv4Prefix": "66.249.64.0/19"}]}')})
    assert checked.identity(GOOGLEBOT, GOOGLE) == VERIFIED
    assert not dns.asked
    assert checked.identity(GOOGLEBOT, STRANGER) == FAKE


def test_a_crawler_that_cannot_be_verified_is_neither_verified_nor_fake() -> None:
    dns = DNS({}, {})
    assert verifier(dns).identity(BYTESPIDER, STRANGER) == UNVERIFIED
    assert not dns.asked


def test_the_system_resolver_reads_the_hosts_of_this_machine() -> None:
    resolver = SystemResolver()
    assert "127.0.0.1" in resolver.addresses("localhost")
    assert "localhost" in resolver.names("127.0.0.1")


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (socket.herror(1, "Unknown host"), []),
        (socket.herror(2, "Host name lookup failure"), None),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), None),
    ],
    ids=["no name", "failure", "bad address"],
)
def test_the_system_resolver_tells_no_name_from_a_failure(
    error: OSError, answer: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(socket, "gethostbyaddr", fail)
    if answer is None:
        with pytest.raises(OSError, match="ailure"):
            SystemResolver().names(STRANGER)
    else:
        assert SystemResolver().names(STRANGER) == answer


@pytest.mark.parametrize(
    ("code", "answer"), [(socket.EAI_NONAME, []), (socket.EAI_AGAIN, None)], ids=["no address", "failure"]
)
def test_the_system_resolver_tells_no_address_from_a_failure(
    code: int, answer: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "failure")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    if answer is None:
        with pytest.raises(OSError, match="failure"):
            SystemResolver().addresses("example.com")
    else:
        assert SystemResolver().addresses("example.com") == answer
