"""The Last-Modified of documents: no two have the same one, so a client that sends no ETag gets each change."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

import pytest
from werkzeug.http import parse_date

from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import Answer

SITEMAP = "/sitemap.xml"
SECOND = 1_750_000_000

CHANGES = {
    "within a second": [0.1, 0.2, 0.6, 0.9],
    "in each second, twice": [0.2, 0.9, 1.2, 1.9, 2.2, 2.9],
    "at the turn of a second": [0.9, 1.0, 1.9, 2.0],
    "at the same moment": [0.5] * 5,
    "by clocks that differ": [3.0, 0.2, 2.5, 0.3, 3.0],
}


def workers(protocol: str, folder: Path) -> tuple[Clock, list[SampleSite]]:
    """Two workers that have one store."""
    clock, pages = Clock(SECOND), {"/": Page(), "/p/{number}": Page()}
    options = {"learn": "/p/{number}", "verify": False, "store": f"sqlite:///{folder / 'pages.sqlite3'}"}
    return clock, [SampleSite(protocol, pages, clock=clock, **options) for _ in range(2)]


def get(site: SampleSite, since: str | None = None) -> Answer:
    site.app.flush()
    return site.request(SITEMAP, headers=[] if since is None else [("if-modified-since", since)])


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("moments", CHANGES.values(), ids=CHANGES)
def test_a_client_without_an_etag_gets_every_change(protocol: str, moments: list[float], tmp_path: Path) -> None:
    clock, sites = workers(protocol, tmp_path)
    sites[0].request("/")
    known: dict[str, bytes] = {}
    for number, moment in enumerate(moments):
        clock.now = SECOND + moment
        changed, other = sites[number % 2], sites[number % 2 - 1]
        changed.request(f"/p/{number}")
        body = get(changed).body
        for site in (changed, other, changed):
            answer = get(site)
            assert answer.body == body
            date = answer.header("last-modified")
            if date is not None:
                assert known.setdefault(date, body) == body
                modified = parse_date(date)
                assert modified is not None
                assert modified.timestamp() <= clock.now
            for since, earlier in known.items():
                again = get(site, since)
                assert again.body == (b"" if again.status == 304 else body)
                assert again.status == 200 or earlier == body
    clock.now = SECOND + 10
    dates = {get(site).header("last-modified") for site in sites}
    assert len(dates) == 1
    (date,) = dates
    assert date is not None
    assert known.setdefault(date, body) == body
    assert [get(site, date).status for site in sites] == [304, 304]


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_the_first_response_of_every_process_has_a_date(protocol: str, tmp_path: Path) -> None:
    clock, (first, second) = workers(protocol, tmp_path)
    first.request("/")
    assert get(first).header("last-modified") == formatdate(SECOND, usegmt=True)
    clock.pass_(3600)
    assert get(second).header("last-modified") == formatdate(SECOND, usegmt=True)
    second.request("/p/1")
    assert get(second).header("last-modified") == formatdate(SECOND + 3600, usegmt=True)
