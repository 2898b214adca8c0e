"""Files of installed packages: the time of installation is not the date of a page."""

from __future__ import annotations

import os
import sys
from email.utils import formatdate
from pathlib import Path

import pytest

from sitemap_middleware.listing.site_signals_cache import install_times

from ...support.sample_sites import Clock, Page, SampleSite

DAY = 86_400

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


def html(text: str) -> Page:
    return Page(body=f"<!doctype html><title>Twin</title><main>{text}</main>".encode())


def install(folder: Path, at: float, name: str = "mlapp-1.0.dist-info", file: str = "METADATA") -> None:
    """Describe a package that was installed at this time."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / file).write_text("")
    os.utime(folder / name / file, (at, at))


def test_install_times_cover_every_importable_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, 1_600_000_000)
    install(tmp_path, 1_600_000_900, "other-2.dist-info")
    install(tmp_path, 1_600_002_700, "no_distribution")
    install(tmp_path, 1_600_003_600, "third-4.dist-info", "LICENSE")
    (tmp_path / "file").write_text("")
    no_folders = [str(tmp_path / "file"), str(tmp_path / "missing"), b"bytes", None]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *no_folders])
    assert install_times() == {1_600_000_000, 1_600_000_900}


@BOTH
@pytest.mark.parametrize(("after", "dated"), [(0, False), (30, False), (-45, False), (600, True), (-86_400, True)])
def test_last_modified_of_an_install_minute_is_not_trusted(
    protocol: str, after: int, *, dated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    at = int(clock() - 40 * DAY) // 60 * 60 + 30
    install(tmp_path, at)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    page = html("Experiments").with_headers(("last-modified", formatdate(at + after, usegmt=True)))
    site = SampleSite(protocol, {"/": page, "/about": html("About")}, clock=clock, verify=False)
    site.visit("/", "/about")
    entry = site.entries()["http://testserver/"]
    assert ("lastmod" in entry) is dated
    if not dated:
        assert "installed package" in (site.app.explain("/").lastmod_source or "")
