"""Patterns of options: which paths of an app they match, and the warning about patterns that match nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ...support.sample_sites import Page, SampleSite
from ...support.wire import BOTH

PATHS = (
    "/",
    "/admin",
    "/admin/users",
    "/admin/users/{id}",
    "/adminer",
    "/posts/{slug}",
    "/blog/",
    "/blog/archive",
    "/about",
)


def site(protocol: str, *paths: str, **options: Any) -> SampleSite:
    pages = {path: Page() for path in paths or PATHS}
    return SampleSite(protocol, pages, base_url="https://example.com", verify=False, robots=False, **options)


def reasons_by_route(sample: SampleSite) -> dict[str, str]:
    core = sample.app.service
    state = core.snapshot(core.site_resolver.sites()[0], core.store)
    return {report.route.path: report.verdict.reason for report in core.route_report([state])}


@BOTH
@pytest.mark.parametrize(
    ("option", "pattern", "nearest"),
    [
        ("exclude", "/amdin/*", "/admin"),
        ("exclude", "/admin/user/*", "/admin/users"),
        ("exclude", "/post/*", "/posts/{slug}"),
        ("exclude", "/internal/*", None),
        ("exclude", "/api/<version>/x", None),
        ("include", "/abuot", "/about"),
        ("learn", "/post/<slug>", "/posts/{slug}"),
    ],
)
def test_unmatched_pattern_gets_one_warning_and_a_line_in_the_report(
    protocol: str, option: str, pattern: str, nearest: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    sample = site(protocol, **{option: pattern})
    assert caplog.messages == [], "not before the routes are known"
    for _ in range(3):
        sample.request("/sitemap.xml")
    (warned,) = [message for message in caplog.messages if "matches no route" in message]
    assert warned.startswith(f"the option {option} has {pattern}, ")
    if nearest is None:
        assert warned.endswith("correct it, or leave it out")
    else:
        written = re.sub(r"\{(\w+)\}", r"<\1>", nearest) if protocol == "wsgi" else nearest
        assert warned.endswith(f"did you mean {written}?")
    surveyed = reasons_by_route(sample)
    assert surveyed[pattern] == warned or (option == "include" and "named" in surveyed[pattern])


@BOTH
def test_several_patterns_in_one_text_are_recognised(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    site(protocol, exclude="/login, /admin/*").request("/sitemap.xml")
    assert "give several patterns as a list: ['/login', '/admin/*']" in caplog.text


@BOTH
@pytest.mark.parametrize(
    ("option", "pattern"),
    [
        ("exclude", "/admin/*"),
        ("exclude", "/posts/draft-*"),
        ("exclude", "/posts/*"),
        ("exclude", "/posts/<slug>"),
        ("exclude", "/admin/users/7"),
        ("exclude", "/static/*"),
        ("include", "/feed/of/another/app"),
        ("include", "/about"),
        ("learn", "/posts/<slug>"),
        ("learn", "/mounted/<page>/of/another"),
    ],
)
def test_a_pattern_that_may_match_something_gets_none(
    protocol: str, option: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    sample = site(protocol, **{option: pattern})
    sample.request("/sitemap.xml")
    assert "matches no route" not in caplog.text
    assert not any("matches no route" in reason for reason in reasons_by_route(sample).values())
