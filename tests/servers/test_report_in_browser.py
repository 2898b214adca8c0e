"""The report in Chromium: without JavaScript, by keyboard, for screen readers, at every width, under its policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..apps import report_bakery
from ..support.browser import chromium, has_chromium, serving_wsgi

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGES = ("", "/page?path=/menu", "/pages?q=%22%3E%3Cscript", "/routes", "/changes", "/documents", "/health")
WIDTHS = (320, 375, 768, 1280)

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event => violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    app = report_bakery.make()
    with serving_wsgi(app) as url:
        yield f"{url}{report_bakery.REPORT}"
    app.wsgi_app.close()  # type: ignore[attr-defined] # the middleware


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not has_chromium():
        pytest.skip("Chromium is not installed")
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def axe() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("path", PAGES)
def test_screen_readers_and_the_policy_find_no_fault_and_no_width_scrolls_sideways(
    path: str, base: str, browser: Any, axe: str
) -> None:
    for scheme, width in (("light", 1280), ("dark", 390)):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message, kept=messages: kept.append(message.text))
        page.on("pageerror", lambda error, kept=messages: kept.append(str(error)))
        page.add_init_script(WATCH)
        answer = page.goto(base + path)
        assert [text for text in messages if answer.status == 200 or "404" not in text] == []
        assert page.evaluate("violations") == []
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert [(item["id"], [node["html"] for node in item["nodes"]]) for item in found] == [], (scheme, width)
        for narrow in WIDTHS if scheme == "light" else ():
            page.set_viewport_size({"width": narrow, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= narrow, narrow
        context.close()


def test_the_keyboard_reaches_the_content_first_and_then_everything(base: str, browser: Any) -> None:
    page = browser.new_page()
    page.goto(base)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    names = []
    for _ in range(40):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"the sitemap", "The same as a table", "it answered 403"} <= set(names)
    page.close()
