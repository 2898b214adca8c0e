from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sitemap_middleware.crawlers.counted_visits import OTHER_PATHS, CrawlerVisit
from sitemap_middleware.crawlers.visit_statistics import (
    OTHER_SECTION,
    CrawlerFigures,
    CrawlerLine,
    PathLine,
    SectionLine,
    crawler_figures,
)

VISIT = CrawlerVisit("/a", "Googlebot", True, 200, first=1000, last=2000, count=1)


def figures(visits: Sequence[CrawlerVisit], **more: Any) -> CrawlerFigures:
    return crawler_figures(
        visits,
        ["/", "/a", "/posts/1", "/posts/2"],
        section_of=lambda path: {"/a": "/a", "/": "/"}.get(path, "/posts/<id>" if path.startswith("/posts/") else None),
        is_document=lambda path: path == "/sitemap.xml",
        **more,
    )


def test_listed_pages_that_no_crawler_got_are_never_crawled() -> None:
    found = figures([VISIT, VISIT._replace(path="/posts/1", status=404), VISIT._replace(path="/", status=304)])
    assert (found.listed, found.crawled, found.never_crawled) == (4, 2, ["/posts/1", "/posts/2"])


def test_no_visits_are_no_lines() -> None:
    found = figures([])
    assert found == CrawlerFigures(listed=4, never_crawled=["/", "/a", "/posts/1", "/posts/2"])


def test_each_crawler_has_a_line_by_visits() -> None:
    found = figures(
        [
            VISIT,
            VISIT._replace(path="/b", count=2),
            VISIT._replace(path="/b", status=500, count=4, last=3000),
            VISIT._replace(verified=False, count=8),
            VISIT._replace(verified=False, fake=True, count=16),
            VISIT._replace(crawler="bingbot", verified=False, count=9),
            VISIT._replace(crawler="GPTBot", count=100),
        ]
    )
    assert found.crawlers == [
        CrawlerLine("GPTBot", 100, 1, 0, 2000, 0, 0),
        CrawlerLine("Googlebot", 7, 1, 4, 3000, 8, 16),
        CrawlerLine("bingbot", 0, 0, 0, None, 9, 0),
    ]


def test_unverified_visits_count_if_asked_for_and_fake_ones_never() -> None:
    visits = [VISIT._replace(verified=False), VISIT._replace(path="/", verified=False, fake=True)]
    assert figures(visits).crawled == 0
    found = figures(visits, count_unverified=True)
    assert found.crawled == 1
    assert found.crawlers == [CrawlerLine("Googlebot", 1, 1, 0, 2000, 1, 1)]


def test_sections_are_counted_by_crawler() -> None:
    found = figures(
        [
            VISIT._replace(path="/posts/1", count=3),
            VISIT._replace(path="/posts/2", count=4, last=2500),
            VISIT._replace(path="/posts/1", crawler="bingbot"),
            VISIT._replace(path="/posts/1", status=304),
            VISIT._replace(path=OTHER_PATHS, status=404, count=2),
            VISIT._replace(path="/sitemap.xml", count=50),
        ]
    )
    assert found.sections == [
        SectionLine("/posts/<id>", "Googlebot", 8, 2, 2500),
        SectionLine(OTHER_SECTION, "Googlebot", 2, 0, 2000),
        SectionLine("/posts/<id>", "bingbot", 1, 1, 2000),
    ]


def test_pages_of_a_section_are_listed_ones_that_the_crawler_got() -> None:
    found = figures(
        [
            VISIT._replace(path="/posts/1", status=404),
            VISIT._replace(path="/posts/2", status=302),
            VISIT._replace(path="/posts/not-listed"),
            VISIT._replace(path="/admin"),
        ]
    )
    assert found.sections == [
        SectionLine("/posts/<id>", "Googlebot", 3, 0, 2000),
        SectionLine(OTHER_SECTION, "Googlebot", 1, 0, 2000),
    ]


def test_paths_are_listed_by_what_is_wrong_with_them() -> None:
    found = figures(
        [
            VISIT._replace(path="/orphan", count=2),
            VISIT._replace(path="/moved", status=301),
            VISIT._replace(path="/gone", status=410, count=3),
            VISIT._replace(path="/a", status=503, count=3),
            VISIT._replace(path="/sitemap.xml", status=304, count=7),
            VISIT._replace(path="/sitemap.xml", status=503),
            VISIT._replace(path=OTHER_PATHS),
        ]
    )
    assert found.not_listed == [PathLine("/orphan", "Googlebot", 200, 2, 2000)]
    assert found.errors == [PathLine("/a", "Googlebot", 503, 3, 2000), PathLine("/gone", "Googlebot", 410, 3, 2000)]
    assert found.documents == [
        PathLine("/sitemap.xml", "Googlebot", 304, 7, 2000),
        PathLine("/sitemap.xml", "Googlebot", 503, 1, 2000),
    ]
    assert found.crawlers == [CrawlerLine("Googlebot", 18, 0, 6, 2000, 0, 0)]


def test_visits_that_ended_before_a_moment_are_left_out() -> None:
    found = figures([VISIT, VISIT._replace(path="/", last=3000)], since=2001)
    assert found.crawled == 1
    assert found.crawlers == [CrawlerLine("Googlebot", 1, 1, 0, 3000, 0, 0)]
