"""Soft 404s: which of several equal pages is listed."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware.evidence.soft_404 import equal_groups, find_equal_pages
from sitemap_middleware.evidence.value_history import VOLATILE, Run
from sitemap_middleware.models import Page


def pages(*paths: str, route: str = "/tags/<tag>", content: int = 7, **more: Any) -> list[Page]:
    """Learned pages, seen one after the other."""
    return [
        Page(path, route, at, at, 200, learned=True, without_path=5, content_history=(Run(content, at, at),))._replace(
            **more
        )
        for at, path in enumerate(paths)
    ]


def unlisted(found: list[Page]) -> str:
    return " ".join(sorted(find_equal_pages(equal_groups(found).values())))


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        (pages("/tags/a", "/tags/b", "/tags/c", "/tags/d"), ""),
        (pages("/tags/a", "/tags/b", "/tags/c", "/tags/d", "/tags/e"), "/tags/b /tags/c /tags/d /tags/e"),
        (pages(*(f"/tags/{n}" for n in "abcde"), refusal="its X-Robots-Tag says noindex"), ""),
        (pages(*(f"/tags/{n}" for n in "abcde"), content=VOLATILE), ""),
        ([*pages("/tags/a", "/tags/b", "/tags/c"), *pages("/t/d", "/t/e", route="/t/<x>")], ""),
        (pages("/tags/Tea", "/tags/tea"), "/tags/tea"),
        (pages("/tags/Tea", "/tags/tea", first_seen=1), "/tags/Tea"),
        (pages("/tags/tea", "/tags/tea.", "/tags/tea%20", "/tags/t%E2%84%AA"), "/tags/tea%20 /tags/tea."),
        (pages("/tags/7", "/tags/007"), "/tags/007"),
        (pages("/tags/caf%C3%A9", "/tags/cafe%CC%81"), "/tags/cafe%CC%81"),
        (pages("/q/1/tea", "/q/1/buy", "/q/2/tea", route="/q/{id}/{slug}"), "/q/1/buy"),
        (pages("/q/1/tea", "/q/1/buy", route="/q/{id}/tea"), ""),
        (pages("/tags/7-tea", "/tags/7-buy", "/tags/7", "/tags/8-tea"), "/tags/7 /tags/7-buy"),
        (pages("/tags/tea-7", "/tags/buy-7/", "/tags/tea-8"), "/tags/buy-7/"),
    ],
)
def test_of_equal_pages_the_first_known_is_listed(found: list[Page], gone: str) -> None:
    assert unlisted(found) == gone
    assert unlisted(found) == unlisted(found[::-1])
