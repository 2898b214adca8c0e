"""URLs: hosts in ASCII."""

from __future__ import annotations

import pytest

from sitemap_middleware.http.urls import ascii_host


@pytest.mark.parametrize(
    ("netloc", "expected"),
    [
        ("Example.com:80", "Example.com:80"),
        ("Bücher.example:80", "xn--bcher-kva.example:80"),
        ("-ü.example:80", "-ü.example:80"),
        ("ü..example", "ü..example"),
    ],
    ids=["ASCII", "not ASCII", "a hyphen", "an empty label"],
)
def test_hosts_are_in_ascii_unless_they_are_invalid(netloc: str, expected: str) -> None:
    assert ascii_host(netloc) == expected
