"""Visits that wait for DNS: added up, in turns by network, and in bounded memory."""

from __future__ import annotations

import pytest

from sitemap_middleware.crawlers.known_crawlers import crawler_of_agent
from sitemap_middleware.models import Site
from sitemap_middleware.observation import visits_awaiting_dns
from sitemap_middleware.observation.noted_crawler_requests import NotedRequest
from sitemap_middleware.observation.visits_awaiting_dns import Group, UnverifiedVisits, grouped

SITE = Site("https", "example.com")
GOOGLEBOT = crawler_of_agent("Googlebot")


def request(address: str, path: str = "/", at: float = 100.0, status: int = 200) -> NotedRequest:
    assert GOOGLEBOT is not None
    return NotedRequest(SITE, path, GOOGLEBOT, status, at, address, True, False)


def addresses(waiting: UnverifiedVisits) -> list[str]:
    found = []
    while (group := waiting.next()) is not None:
        found.append(group.sender.address)
    return found


def rows(group: Group) -> list[tuple[str, int, int, int, int]]:
    return [(row.path, row.status, row.first, row.last, row.count) for row in group.rows.values()]


def test_requests_of_one_sender_for_one_path_and_status_are_one_row() -> None:
    requests = [request("192.0.2.1", at=at) for at in (300.5, 100, 200)]
    (group,) = grouped([*requests, request("192.0.2.1", "/a"), request("192.0.2.1", status=404)])
    assert rows(group) == [("/", 200, 100, 300, 3), ("/a", 200, 100, 100, 1), ("/", 404, 100, 100, 1)]


def test_a_sender_that_waits_already_gets_no_second_place() -> None:
    waiting = UnverifiedVisits()
    waiting.add(grouped([request("192.0.2.1", at=200)]))
    assert waiting.add(grouped([request("192.0.2.1", at=100), request("192.0.2.1", "/a", at=300)])) == []
    group = waiting.next()
    assert group is not None
    assert rows(group) == [("/", 200, 100, 200, 2), ("/a", 200, 300, 300, 1)]
    assert not waiting
    assert waiting.next() is None


@pytest.mark.parametrize(
    ("crowd", "other"),
    [
        (["192.0.2.1", "192.0.2.2", "192.0.2.3"], "198.51.100.1"),
        (["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], "2001:db8:1::1"),
        (["unix", "testclient", "local"], "192.0.2.1"),
    ],
    ids=["IPv4", "IPv6", "no addresses"],
)
def test_networks_take_turns(crowd: list[str], other: str) -> None:
    waiting = UnverifiedVisits()
    waiting.add(grouped(request(address) for address in [*crowd, other]))
    assert addresses(waiting) == [crowd[0], other, crowd[1], crowd[2]]


def test_the_network_with_the_most_gives_way_if_senders_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_awaiting_dns, "MAX_WAITING_SENDERS", 3)
    waiting = UnverifiedVisits()
    crowd = [request(f"192.0.2.{number}") for number in range(5)]
    removed = waiting.add(grouped([*crowd, request("198.51.100.1")]))
    assert [group.sender.address for group in removed] == ["192.0.2.4", "192.0.2.3", "192.0.2.2"]
    assert addresses(waiting) == ["192.0.2.0", "198.51.100.1", "192.0.2.1"]


def test_the_network_with_the_most_gives_way_if_rows_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_awaiting_dns, "MAX_WAITING_ROWS", 3)
    waiting = UnverifiedVisits()
    crowd = [request("192.0.2.1", f"/{number}") for number in range(5)]
    (removed,) = waiting.add(grouped([*crowd, request("198.51.100.1"), request("203.0.113.1")]))
    assert (removed.sender.address, len(removed.rows)) == ("192.0.2.1", 5)
    assert addresses(waiting) == ["198.51.100.1", "203.0.113.1"]


def test_the_network_with_the_most_gives_way_if_paths_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_awaiting_dns, "MAX_WAITING_CHARS", 1000)
    waiting = UnverifiedVisits()
    waiting.add(grouped([request("198.51.100.1"), request("198.51.100.1", "/a")]))
    (removed,) = waiting.add(grouped([request("192.0.2.1", "/" * 600), request("192.0.2.2", "/" * 500)]))
    assert removed.sender.address == "192.0.2.2"
    assert addresses(waiting) == ["198.51.100.1", "192.0.2.1"]


def test_whatever_comes_while_dns_hangs_the_rows_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_awaiting_dns, "MAX_WAITING_ROWS", 100)
    waiting = UnverifiedVisits()
    for number in range(50):
        waiting.add(grouped(request(f"2001:db8:{number:x}::{path:x}", f"/{path}") for path in range(20)))
    assert len(addresses(waiting)) == 100
