"""URLs: hosts in ASCII, and paths as they are written in a loc."""

from __future__ import annotations

import pytest

from sitemap_middleware.http.urls import MAX_LOC_CHARS, MIN_LOC_CHARS, ascii_host, quote_paths
from sitemap_middleware.models import Site


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


@pytest.mark.parametrize("path", ["/plain", "/ü", None], ids=["plain", "not plain", "unknown"])
def test_paths_whose_loc_is_too_short_or_too_long_have_none(path: str | None) -> None:
    site = Site("http", "a")
    base = len(site.base_url)
    shortest, longest = "/".ljust(MIN_LOC_CHARS - base, "a"), "/".ljust(MAX_LOC_CHARS - base, "a")
    paths = [path, shortest, longest, shortest[:-1], longest + "a"]
    quoted = {"/ü": "/%C3%BC"}.get(path or "", path)
    assert quote_paths(site, paths) == [quoted, shortest, longest, None, None]
    assert quote_paths(site, paths[:3]) == [quoted, shortest, longest]
