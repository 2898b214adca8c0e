"""What gives a page no date: the time of an installation; and on a large site, a deployment that few visitors saw."""

from __future__ import annotations

import os
import sys
from email.utils import formatdate
from pathlib import Path

import pytest

from sitemap_middleware.listing import site_signals_cache
from sitemap_middleware.listing.site_signals_cache import install_times

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import BOTH

HOUR, DAY = 3_600, 86_400


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


def test_new_dates_of_a_large_site_wait_for_an_hour_of_visitors_in_all_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_signals_cache, "SAMPLE_PAGES", 4)
    clock = Clock(1_750_000_000 // HOUR * HOUR - 30 - DAY)
    options = {"clock": clock, "store": f"sqlite:///{tmp_path / 'sitemap.sqlite3'}", "max_age": 60}
    site = SampleSite("wsgi", {f"/{number}": Page() for number in range(8)}, **options)

    def visit(*paths: str, modified: float) -> None:
        site.pages |= {
            path: html(path).with_headers(("last-modified", formatdate(modified, usegmt=True))) for path in paths
        }
        site.visit(*paths)

    def undated(site: SampleSite) -> list[str]:
        site.locs()
        site.app.flush()
        return [loc[-1] for loc, entry in site.entries().items() if "lastmod" not in entry]

    for number, path in enumerate(site.pages):
        visit(path, modified=clock() - (40 + number) * DAY)
    clock.pass_(DAY)
    visit("/0", modified=(deployed := clock()))
    clock.pass_(40)  # over the full hour
    assert undated(site) == ["0"]
    visit("/7", modified=clock())
    visit("/1", "/2", modified=deployed)
    clock.pass_(600)
    site.visit("/7")
    other = SampleSite("wsgi", site.pages, **options)
    assert undated(other) == undated(site) == ["0", "1", "2", "7"]
    clock.pass_(2 * HOUR)
    assert undated(other) == undated(site) == ["0", "1", "2"]
