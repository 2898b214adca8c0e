"""Good sitemaps, written as generators write them, give no error, and no warning.

`good/` has a folder for each origin, and `FIRST` names the document with which to begin.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sitemap_middleware.linter.rules import Severity
from sitemap_middleware.linter.runner import Settings

from .test_rules import check

GOOD = Path(__file__).parent / "good"
FIRST = {
    "wordpress": "wp-sitemap.xml",
    "yoast": "sitemap_index.xml",
    "rank-math": "sitemap_index.xml",
    "hugo": "sitemap.xml",
    "jekyll": "sitemap.xml",
    "astro": "sitemap-index.xml",
    "nextjs": "sitemap.xml",
    "nuxt": "sitemap_index.xml",
    "django": "sitemap.xml",
    "flask-sitemap": "sitemap.xml",
    "shopify": "sitemap.xml",
    "drupal": "sitemap.xml",
    "ghost": "sitemap.xml",
    "docusaurus": "sitemap.xml",
    "mkdocs": "sitemap.xml",
    "wix": "sitemap.xml",
    "squarespace": "sitemap.xml",
    "gatsby": "sitemap-index.xml",
    "rails": "sitemap.xml.gz",
    "mediawiki": "sitemap-index-wiki.xml",
    "news": "news-sitemap.xml",
    "news-empty": "sitemap.xml",
    "video": "video-sitemap.xml",
    "image": "image-sitemap.xml",
    "compressed": "sitemap.xml.gz",
    "text": "sitemap.txt",
    "rss": "feed.xml",
    "atom": "feed.xml",
    "two-kinds": "sitemap.xml",
    "prefixed": "sitemap.xml",
    "many-hosts": "sitemap.xml",
}
OTHER_SITES = {"prefixed": "http://xn--bckerei-5wa.example"}


@pytest.mark.parametrize("origin", [*FIRST])
def test_good_sitemap_gives_neither_error_nor_warning(origin: str) -> None:
    site = OTHER_SITES.get(origin, "https://bakery.example")
    messages = check(GOOD / origin / FIRST[origin], f"{site}/{FIRST[origin]}", Settings())
    assert [message for message in messages if message.severity is not Severity.INFO] == []
    assert "index-not-all-read" not in {message.code for message in messages}


def test_each_folder_is_checked() -> None:
    assert {folder.name for folder in GOOD.iterdir()} == {*FIRST}
