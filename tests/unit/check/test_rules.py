"""Each rule has a faulty sitemap, which gives exactly its code; good sitemaps, as generators write them, give nothing.

`faulty/` has a file for each code, or a folder with `sitemap.xml` and the documents that it names. Sitemaps that are
too large for a file are made here. `good/` has a folder for each origin, and `FIRST` names the document to begin with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sitemap_middleware.check.findings import RULES, Finding, Severity
from sitemap_middleware.check.run_check import check_sitemap
from sitemap_middleware.check.run_state import CheckSettings
from sitemap_middleware.check.sources import FileSource

from .web_site import NAMESPACE, index, urlset

FAULTY = Path(__file__).parent / "faulty"
HOME = "https://example.com/"
NOW = 1_769_860_800.0  # 2026-01-31T12:00:00Z
LOCATIONS = {
    "index-outside-folder": "https://example.com/maps/sitemap.xml",
    "loc-outside-folder": "https://example.com/shop/sitemap.xml",
    "loc-mixed-www": None,
    "hreflang-self-missing": None,
}
"""Where a sitemap is served, if it is not at the top of example.com."""


def too_many_images() -> str:
    images = "".join(f"<image:image><image:loc>{HOME}{number}.jpg</image:loc></image:image>" for number in range(1_001))
    namespace = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    return urlset(HOME).replace("</loc>", f"</loc>{images}").replace("<urlset", f"<urlset {namespace}")


def too_many_articles() -> str:
    article = (
        "<news:news><news:publication><news:name>Times</news:name><news:language>en</news:language></news:publication>"
        "<news:publication_date>2026-01-31T09:00:00Z</news:publication_date><news:title>Rye</news:title></news:news>"
    )
    urls = urlset(*(f"{HOME}{number}" for number in range(1_001)))
    namespace = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    return urls.replace("</loc>", f"</loc>{article}").replace("<urlset", f"<urlset {namespace}")


MADE: dict[str, Callable[[], str]] = {
    "document-too-large": lambda: f"<urlset {NAMESPACE}><url><loc>{HOME}</loc></url>{' ' * 52_428_800}</urlset>",
    "document-too-many-urls": lambda: urlset(*(f"{HOME}{number}" for number in range(50_001))),
    "image-too-many": too_many_images,
    "index-too-many-sitemaps": lambda: index(*(f"{HOME}{number}.xml" for number in range(50_001))),
    "news-too-many": too_many_articles,
}
ELSEWHERE = {code for code in RULES if code.startswith(("coverage-", "fetch-", "page-", "robots-", "index-not"))} - {
    "fetch-html",
    "fetch-gzip-broken",
    "fetch-gzip-twice",
}
"""Rules that need a server or an app: `test_web_source`, `test_pages` and `test_coverage` test them."""


def check(file: Path, location: str | None, settings: CheckSettings, now: float = NOW) -> list[Finding]:
    source = FileSource(file, location)
    source.request_time = now
    return asyncio.run(check_sitemap(source, settings, clock=lambda: now)).findings


@pytest.mark.parametrize(
    "code", [pytest.param(code, marks=[pytest.mark.slow] * (code in MADE)) for code in RULES if code not in ELSEWHERE]
)
def test_faulty_sitemap_gives_exactly_its_code(code: str, tmp_path: Path) -> None:
    if code in MADE:
        file = tmp_path / "sitemap.xml"
        file.write_text(MADE[code](), "utf-8")
    else:
        file = FAULTY / f"{code}.xml"
        file = file if file.exists() else FAULTY / code / "sitemap.xml"
    ignored = {"index-file-missing", "index-not-all-read"} if code in MADE else ()
    settings = CheckSettings(ignored, max_documents=5)
    findings = check(file, LOCATIONS.get(code, "https://example.com/sitemap.xml"), settings)
    assert {finding.code for finding in findings} == {code}
    assert {finding.rule.severity for finding in findings} == {RULES[code].severity}


def test_each_faulty_sitemap_is_of_a_rule() -> None:
    assert {path.stem for path in FAULTY.iterdir()} <= {*RULES}


GOOD = Path(__file__).parent / "good"
FIRST = {
    "wordpress": "wp-sitemap.xml",
    "yoast": "sitemap_index.xml",
    "rank-math": "sitemap_index.xml",
    "astro": "sitemap-index.xml",
    "nuxt": "sitemap_index.xml",
    "gatsby": "sitemap-index.xml",
    "rails": "sitemap.xml.gz",
    "mediawiki": "sitemap-index-wiki.xml",
    "news": "news-sitemap.xml",
    "video": "video-sitemap.xml",
    "image": "image-sitemap.xml",
    "compressed": "sitemap.xml.gz",
    "text": "sitemap.txt",
    "rss": "feed.xml",
    "atom": "feed.xml",
}
"""The document to begin with, if it is not sitemap.xml."""


@pytest.mark.parametrize("origin", sorted(folder.name for folder in GOOD.iterdir()))
def test_good_sitemap_gives_neither_error_nor_warning(origin: str) -> None:
    site = "http://xn--bckerei-5wa.example" if origin == "prefixed" else "https://bakery.example"
    name = FIRST.get(origin, "sitemap.xml")
    findings = check(GOOD / origin / name, f"{site}/{name}", CheckSettings())
    assert [finding for finding in findings if finding.rule.severity is not Severity.INFO] == []
