from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

import pytest

from sitemap_middleware.crawlers.ip_address_ranges import (
    MAX_FILE_BYTES,
    MAX_NETWORKS,
    AddressRanges,
    RangesError,
    pack_ranges,
    parse_address,
    parse_ranges,
    unpack_ranges,
)

GOOGLE = {
    "creationTime": "2026-11-20T23:00:44.000000",
    "prefixes": [{"ipv6Prefix": "2001:4860:4801:10::/64"}, {"ipv4Prefix": "192.178.4.0/27"}],
}


@pytest.mark.parametrize(
    ("content", "networks"),
    [
        (GOOGLE, ["192.178.4.0/27", "2001:4860:4801:10::/64"]),
        ({"prefixes": ["192.0.2.0/25", "192.0.2.128/25"]}, ["192.0.2.0/24"]),
        (["192.0.2.1", " 2001:db8::1 "], ["192.0.2.1/32", "2001:db8::1/128"]),
        ({"prefixes": [{"ip_prefix": "192.0.2.0/24", "region": "eu"}]}, ["192.0.2.0/24"]),
        (
            {"prefixes": [{"ipv4Prefix": "192.0.2.0/24", "ipv6Prefix": "2001:db8::/32"}]},
            ["192.0.2.0/24", "2001:db8::/32"],
        ),
    ],
    ids=["Google", "texts", "a list", "ip_prefix", "both"],
)
def test_the_formats_of_operators_are_read(content: object, networks: list[str]) -> None:
    assert list(map(str, parse_ranges(json.dumps(content).encode()))) == networks


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"{}", "no list"),
        (b'{"prefixes": []}', "no list"),
        (b'{"prefixes": {"a": 1}}', "no list"),
        (b"3", "no list"),
        (b'[{"region": "eu"}]', "names no network"),
        (b'["192.0.2.1/24"]', "is not a network"),
        (b'["example.com"]', "is not a network"),
        (b"[3]", "is not a network"),
        (b'["0.0.0.0/0"]', "is too wide"),
        (b'["::/0"]', "is too wide"),
        (json.dumps(["192.0.2.1"] * (MAX_NETWORKS + 1)).encode(), "more than 50,000 networks"),
        (b" " * (MAX_FILE_BYTES + 1), "more than 4,194,304 bytes"),
    ],
    ids=[
        "HTML",
        "nested",
        "bytes",
        "nothing",
        "empty",
        "object",
        "number",
        "entry",
        "host bits",
        "name",
        "value",
        "all",
        "all of IPv6",
        "many",
        "large",
    ],
)
def test_what_is_no_file_of_ranges_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(RangesError, match=message):
        parse_ranges(content)


def test_addresses_are_found_in_ranges() -> None:
    ranges = AddressRanges(map(ip_network, ["192.0.2.0/24", "198.51.100.7/32", "2001:db8::/32"]))
    for inside in ("192.0.2.0", "192.0.2.255", "198.51.100.7", "2001:db8::1"):
        assert ip_address(inside) in ranges
    for outside in ("192.0.1.255", "192.0.3.0", "198.51.100.8", "0.0.0.0", "255.255.255.255", "2001:db9::", "::"):
        assert ip_address(outside) not in ranges
    assert ip_address("192.0.2.1") not in AddressRanges([])


def test_ranges_are_stored_as_a_record() -> None:
    ranges = {"https://example.com/bot.json": parse_ranges(json.dumps(GOOGLE).encode())}
    assert unpack_ranges(pack_ranges(ranges, 1000)) == (ranges, 1000)


@pytest.mark.parametrize("record", [b"", b"{}", b"[]", b'{"ranges": {"a": ["x"]}, "updated_at": 1}', b'{"ranges": 3}'])
def test_a_damaged_record_has_no_ranges(record: bytes) -> None:
    assert unpack_ranges(record) == ({}, 0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1%eth0", "2001:db8::1"),
        ("192.0.2.1:80", None),
        ("", None),
    ],
    ids=["IPv4", "mapped", "zone", "port", "nothing"],
)
def test_addresses_are_read_as_servers_write_them(text: str, address: str | None) -> None:
    assert parse_address(text) == (ip_address(address) if address else None)
