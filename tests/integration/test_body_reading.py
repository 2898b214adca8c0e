"""Body reading: which responses have their body read, and how explain describes it."""

from __future__ import annotations

import pytest

from sitemap_middleware.cli.results import observation_lines
from sitemap_middleware.evidence.page_verdict import Explanation

from ..support.sample_sites import Page, SampleSite

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("content-type", "text/html")]
JSON = [("content-type", "application/json")]
UNREAD = {
    "JSON 401": Page(401, JSON, b'{"detail":"no"}'),
    "JSON 410": Page(410, JSON, b'{"detail":"gone"}'),
    "JSON 200": Page(200, JSON, b'{"a":1}'),
    "empty 307": Page(307, [("location", "/login")], b""),
    "HTML 302": Page(302, [*HTML, ("location", "/login")], b"<p>moved"),
    "HTML 404": Page(404, HTML, b"<title>Not Found</title><p>gone"),
}


def seen(explanation: Explanation) -> str:
    return "\n".join(observation_lines(explanation))


@BOTH
@pytest.mark.parametrize("answer", UNREAD.values(), ids=UNREAD.keys())
def test_what_is_no_html_page_is_not_said_to_be_read_when_we_ask(protocol: str, answer: Page) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/page": answer}, verify=True)
    sample.locs()
    explanation = sample.app.explain("/page")
    assert explanation.page is not None, "we have asked for it"
    assert not explanation.page.read_at
    assert not explanation.page.content_history
    assert "HTML read" not in seen(explanation)
    assert "content unchanged" not in seen(explanation)


@BOTH
@pytest.mark.parametrize("answer", UNREAD.values(), ids=UNREAD.keys())
def test_content_is_not_called_unchanged_after_the_page_answers_otherwise(protocol: str, answer: Page) -> None:
    sample = SampleSite(protocol, {"/": Page()}, verify=False)
    sample.visit("/")
    assert "content unchanged" in seen(sample.app.explain("/"))
    for _ in range(2):
        sample.clock.pass_(7200)
        sample.pages["/"] = answer
        sample.visit("/")
    explanation = sample.app.explain("/")
    assert explanation.page is not None
    assert not explanation.listed
    assert len(explanation.page.content_history) == 1
    assert "HTML read" not in seen(explanation)
    assert "content unchanged" not in seen(explanation)
