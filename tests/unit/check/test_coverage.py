"""What the middleware of an app knows of its pages, against what is listed."""

from __future__ import annotations

import pytest

from sitemap_middleware.check.answers import KnownUrl, check_coverage

URL = "https://example.com/a"


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (KnownUrl(URL, True, "it is a static route", None), "coverage-never-seen"),
        (KnownUrl(URL, True, "it answered 200", 404), "coverage-listed-bad"),
        (KnownUrl(URL, True, "it answered 200", 302), "coverage-listed-bad"),
        (KnownUrl(URL, False, "it says noindex", 200), "coverage-not-listed"),
        (KnownUrl(URL, True, "it answered 200", 200), None),
        (KnownUrl(URL, False, "it answered 404", 404), None),
        (KnownUrl(URL, False, "it is excluded", None), None),
    ],
)
def test_difference_gives_exactly_its_code(known: KnownUrl, code: str | None) -> None:
    found = [(finding[0], url) for finding, url in check_coverage([known], lambda _: False)]
    assert found == ([(code, URL)] if code else [])
    if code != "coverage-never-seen":  # which is left out if the run requests the page itself
        assert len([*check_coverage([known], lambda _: True)]) == len(found)
