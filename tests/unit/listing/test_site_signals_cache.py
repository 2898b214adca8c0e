"""What is kept of site signals in the store."""

from __future__ import annotations

import zlib

import pytest

from sitemap_middleware.listing import site_signals_cache
from sitemap_middleware.listing.site_signals_cache import compress_for_zlib


@pytest.mark.parametrize("is_installed", [True, False])
def test_sample_can_be_read_without_the_library_that_compressed_it(
    monkeypatch: pytest.MonkeyPatch, *, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setattr(site_signals_cache, "fast_zlib", zlib)
    data = b"/posts/1" * 1000
    assert zlib.decompress(compress_for_zlib(data)) == data
    assert len(compress_for_zlib(data)) < len(data) / 10
